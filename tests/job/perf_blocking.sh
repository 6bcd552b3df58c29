#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the libhce authors
#
# A blocking call does the work in the caller's thread: 100,000 of them switch
# to the progress thread less than 1,000 times.
. "$srcdir/tests/job/perf_lib.sh"

for ways in '' --threads; do
    for nodes in 1 2; do
        good 1 4 "$perf" all_gather $ways --ranks 4 --nodes $nodes \
            -b 1K -e 1K --blocking -n 50000 --check-stats
        wakes=$(sed -n 's/^# counted by rank 0: .* progress wakes //p' "$out")
        [ "${wakes:-9999}" -lt 1000 ] || fail "$wakes switches"
    done
done
finish
