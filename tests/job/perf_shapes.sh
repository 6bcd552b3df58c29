#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the libhce authors
#
# AllGathers of ranks as processes, or as threads where a script of that name
# says so: layouts, awkward sizes, kinds of buffers and of calls. Each run is
# out of place and in place; "#wrong" is to be 0 and the statistics as planned.
. "$srcdir/tests/job/perf_lib.sh"
ways=${ways:-}

# layout RANKS EXPECTED-NODES FLAG...
layout() {
    local ranks=$1 nodes=$2
    shift 2

    # 0, 1, 3 and 4097 bytes a rank; then elements of several bytes.
    good 4 "$ranks" "$perf" all_gather $ways --ranks "$ranks" "$@" \
        -d int8 --per-rank -b 0 -e 3 -i 1 -n 3 -c 2 --check-stats
    [ "$(nodes_shown)" = "$nodes" ] ||
        fail "nodes $(nodes_shown), expected $nodes"
    good 1 "$ranks" "$perf" all_gather $ways --ranks "$ranks" "$@" \
        -d int8 --per-rank -b 4097 -e 4097 -n 3 -c 2 --check-stats
    good 2 "$ranks" "$perf" all_gather $ways --ranks "$ranks" "$@" \
        -d double -b 1M -e 8M -f 8 -n 3 -c 2 --check-stats
}

layout 1 '0'
layout 4 '0 0 0 0'
layout 4 '0 1 2 3' --nodes 4
layout 6 '0 0 0 1 2 2' --nodes 3,1,2
layout 6 '0 1 2 0 2 0' --nodes 3,1,2 --map cyclic
layout 8 '0 1 0 1 0 1 0 1' --nodes 2 --map cyclic

job=("$perf" all_gather $ways --ranks 4 --nodes 2)
for path in direct flat; do
    good 3 4 "${job[@]}" --path $path -b 1K -e 1M -f 32 -n 3 --check-stats
    grep -q "^# path $path," "$out" || fail "expected path $path"
done
for buffers in window alloc malloc; do
    good 3 4 "${job[@]}" --buffers $buffers --offset 1 -d int8 --per-rank \
        -b 1 -e 999999 -f 999 -n 3 --check-stats
done
good 12 4 "${job[@]}" -d all -b 64K -e 64K -n 3 --check-stats
good 1 4 env HCE_NUM_CTX=3 "${job[@]}" --contexts 3 --width 8K -b 1M -e 1M -n 3 --check-stats
good 1 4 "${job[@]}" --blocking -b 64K -e 64K -n 50
# 100 calls on a stream, each with buffers and data of its own.
good 2 4 "${job[@]}" -b 8K -e 1M -f 128 -n 100 -c 100 --check-stats
# Four communicators at once.
good 2 4 "${job[@]}" --comms 4 -b 1K -e 256K -f 256 -n 20 -c 5 --check-stats
finish
