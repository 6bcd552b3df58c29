#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the libhce authors
#
# ReduceScatter and AllReduce: every datatype and operation, awkward sizes,
# numbers of ranks, kinds of memory and ways to reach it, out of place and in
# place. Integers, and min and max, are to be exact, else within the error
# bound. A planted error is found in each row.
. "$srcdir/tests/job/perf_lib.sh"

all=60 # rows: 12 datatypes, 5 operations
for coll in all_reduce reduce_scatter; do
    # 0 to 8 bytes of each rank: 1 element of each datatype, or none; 3
    # elements of 8 bytes; then more than a quantum.
    good 3 4 "$perf" $coll --threads --ranks 4 -d double --per-rank -b 0 -e 24 \
        -i 12 -n 3 --check-stats
    for ranks in 1 2 3; do
        good $all $ranks "$perf" $coll --threads --ranks $ranks -d all -o all \
            --per-rank -b 4097 -e 4097 -n 3 -c 2 --check-stats
    done
    good $all 4 "$perf" $coll --ranks 4 -d all -o all --per-rank -b 1000 \
        -e 1000 -n 3 --buffers malloc --offset 3 --check-stats
    for copy in map vm staged; do
        good 1 4 env HCE_HOST_COPY=$copy "$perf" $coll --ranks 4 -d bfloat16 \
            -b 400000 -e 400000 -n 20 -c 5 --buffers malloc --check-stats
    done
    good 1 3 "$perf" $coll --ranks 3 -o avg --blocking --comms 2 -b 1M -e 1M \
        -n 5
    run "$perf" $coll --threads --ranks 2 -d all -o all -b 4096 -e 4096 -n 1 \
        --corrupt 1
    [ "$status" -eq 1 ] || fail "exit status $status, expected 1"
    found=$(awk '!/^#/ && NF == 13 && $9 > 0 && $13 > 0 { n++ }
                 END { print n + 0 }' "$out")
    [ "$found" -eq $all ] || fail "$found rows with errors, expected $all"
    bad 1 'cannot run here: it adds up inside a node' \
        "$perf" $coll --threads --ranks 4 --nodes 2 -b 1K -e 1K
done

# Ranks that call differently, and one that is gone.
bad 1 'rank [0-9] .*allreduce' "$perf" all_reduce --ranks 2 -b 1K -e 1K \
    --mismatch 1:type
bad 1 'rank 1' "$perf" all_reduce --ranks 3 -b 1K -e 1K --kill 1:3
finish
