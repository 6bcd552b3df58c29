#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the libhce authors
#
# The jobs of tests/job/calls and tests/job/faults, which else run on the path
# that is chosen by itself, on each path there is; then over a network that
# delays, reorders, refuses and repeats.
set -u
: "${srcdir:?}" "${builddir:?}" "${TMPDIR:?}"
bad=0 runs=0

paths=$("$builddir/perf/hce_perf" all_gather --path ? 2>&1 |
    sed -n "s/.*expected auto, each, //p" | tr -d ,)
[ "$(wc -w <<<"$paths")" -ge 4 ] || { echo "paths: '$paths'"; exit 1; }

job() { # NAME ENV...
    local name=$1
    shift

    runs=$((runs + 1))
    echo "run: $* $name"
    env "$@" "$builddir/tests/job/$name" >"$TMPDIR/out" 2>&1 && return
    echo "FAILED: $* $name"
    tail -n 15 "$TMPDIR/out" | sed 's/^/  | /'
    bad=$((bad + 1))
}

for path in $paths; do
    # What is large is not sent eagerly.
    bytes=100000
    [ $path = eager ] && bytes=1000
    job calls HCE_AG_PATH=$path
    job calls HCE_AG_PATH=$path HCE_TRANSPORT=loop HCE_CARRIERS=1 \
        HCE_LOOP_FAULTS=delay=10,reorder=20,refuse=20,pieces=20,twice=10
    job faults JOB_BYTES=$bytes HCE_AG_PATH=$path
    job faults JOB_BYTES=$bytes HCE_AG_PATH=$path HCE_TRANSPORT=loop \
        HCE_LOOP_FAULTS=delay=10,reorder=20,refuse=20,pieces=20,twice=10
done
echo "$runs runs, $bad failures"
[ "$runs" -gt 0 ] && [ "$bad" -eq 0 ]
