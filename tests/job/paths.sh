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

job() { # COMMAND ENV...
    local command=$1
    shift

    runs=$((runs + 1))
    echo "run: $* $command"
    env "$@" timeout 100 "$builddir"/tests/job/$command >"$TMPDIR/out" 2>&1 &&
        return
    echo "FAILED: $* $command"
    tail -n 15 "$TMPDIR/out" | sed 's/^/  | /'
    bad=$((bad + 1))
}

# faults_on ENV...: of each kind; "quiet" needs a path on which every rank
# tells its node peers that it has entered.
faults_on() {
    local kind kinds='gone silent survived absent mismatch abort leaves'

    case $path in
    direct | ring*) kinds+=' quiet' ;;
    esac
    for kind in $kinds; do
        job "faults $kind" JOB_BYTES=$bytes HCE_AG_PATH=$path "$@"
    done
}

network=delay=10,reorder=20,refuse=20,pieces=20,twice=10
for path in $paths; do
    # What is large is not sent eagerly.
    bytes=100000
    [ $path = eager ] && bytes=1000
    job calls HCE_AG_PATH=$path
    job calls HCE_AG_PATH=$path HCE_TRANSPORT=loop HCE_CARRIERS=1 \
        HCE_LOOP_FAULTS=$network
    faults_on
    faults_on HCE_TRANSPORT=loop HCE_LOOP_FAULTS=$network
done
# A reduction, inside a node.
for copy in auto vm staged; do
    for kind in gone silent survived absent mismatch abort leaves quiet; do
        job "faults $kind" JOB_COLL=allreduce HCE_HOST_COPY=$copy
    done
done
echo "$runs runs, $bad failures"
[ "$runs" -gt 0 ] && [ "$bad" -eq 0 ]
