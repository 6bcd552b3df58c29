#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the libhce authors
#
# hce_perf where descriptors are short: a job runs, or says that they are.
. "$srcdir/tests/job/perf_lib.sh"
export HCE_BOOTSTRAP_TIMEOUT=2s
job=("$perf" all_gather -b 64K -e 64K -n 1)

# What is allowed is used, though it is not given at first.
(ulimit -S -n 16 && good 1 8 "${job[@]}" --threads --ranks 8 --nodes 2 &&
    [ "$failures" -eq 0 ]) || fail "a low soft limit"

for ((num = 8; num <= 24; num += 4)); do
    for way in --ranks=4 "--ranks=4 --threads"; do
        # shellcheck disable=SC2086 # two flags
        run bash -c 'ulimit -n "$0" && exec "$@"' $num "${job[@]}" $way
        [ "$status" -eq 0 ] || grep -q 'Too many open files' "$out" "$err" ||
            fail "nothing says what $num descriptors are too few for"
    done
done
finish
