#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the libhce authors
#
# Every path of AllGather over layouts, numbers of carriers, sizes, and a
# network that delays, reorders, refuses and repeats.
. "$srcdir/tests/job/perf_lib.sh"

tiny=(-d int8 --per-rank -b 0 -e 3 -i 1)
odd=(-d int8 --per-rank -b 4097 -e 999999 -f 244)
for layout in '--ranks 1' '--ranks 4 --nodes 4' '--ranks 5 --nodes 5' \
    '--ranks 8 --nodes 4' '--ranks 6 --nodes 3,1,2' \
    '--ranks 6 --nodes 3,1,2 --map cyclic' '--ranks 6 --nodes 2'; do
    for carriers in 0 1 2; do
        each 2 $layout --carriers $carriers "${odd[@]}"
    done
    each 4 $layout "${tiny[@]}"
done
each 1 --ranks 8 --nodes 4 --buffers malloc -b 8M -e 8M
if ! grep -q '^#define HCE_HAVE_UCX 1' "$builddir/config.h"; then
    echo "contexts of ucx are left out: this build is without it"
else
    HCE_NUM_CTX=3 each 1 --ranks 6 --nodes 3 --contexts 3 --width 8K \
        -b 1M -e 1M
fi

# A network that does what a network may do.
for seed in 1 2 3; do
    export HCE_TRANSPORT=loop HCE_LOOP_SEED=$seed
    export HCE_LOOP_FAULTS=delay=20,reorder=20,refuse=20,pieces=20,twice=10
    each 2 --ranks 8 --nodes 4 "${odd[@]}"
    each 2 --ranks 6 --nodes 3,1,2 --map cyclic --carriers 1 "${odd[@]}"
    HCE_NUM_CTX=4 HCE_MULTI_CTX_THRESHOLD=0 \
        each 2 --ranks 5 --nodes 5 --width 8K "${odd[@]}"
    unset HCE_LOOP_FAULTS HCE_LOOP_SEED
done
finish
