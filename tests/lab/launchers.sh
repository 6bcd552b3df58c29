#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the libhce authors
#
# hce_perf in a lab by each launcher, 4 x 2 and 8 x 4.
. "$srcdir/tests/lab/lab_lib.sh"
lab_up 8 500mbit
launchers=(env)
grep -q '^#define HCE_HAVE_PMIX 1' "$builddir/config.h" ||
    skip "this build is without PMIx"
export HCE_BOOTSTRAP_TIMEOUT=120s
for launcher in mpirun srun; do
    run "$lab" run 1 1 $launcher true
    if [ "$status" -eq 77 ]; then
        missing="$(cat "$err")"
    else
        [ "$status" -eq 0 ] || fail "$launcher true: exit status $status"
        launchers+=("$launcher")
    fi
done
for launcher in "${launchers[@]}"; do
    job 4 2 "$launcher" 1048576 5
    job 8 4 "$launcher" 262144 8
    run "$lab" run 2 2 "$launcher" sh -c 'exit 3'
    [ "$status" -ne 0 ] || fail "$launcher: a failure is not seen"
done
"$lab" down || fail "down"
nothing_left "$LIBHCE_LAB"
[ "$failures" -eq 0 ] && [ -n "${missing:-}" ] && skip "$missing"
finish
