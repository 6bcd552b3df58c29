#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the libhce authors
#
# hce_perf under mpirun.openmpi, which is where its ranks come from.
. "$srcdir/tests/job/perf_lib.sh"
if ! command -v mpirun.openmpi >/dev/null; then
    echo "skipped: mpirun.openmpi is not installed"
    exit 77
fi
if ! grep -q '^#define HCE_HAVE_PMIX 1' "$builddir/config.h"; then
    echo "skipped: this build is without PMIx"
    exit 77
fi
# PMIx and hwloc load plug-ins in two threads. The loader's own lock orders
# that, but the thread sanitizer does not see it.
echo 'race:^_dl_close_worker$' >"$TMPDIR/tsan.supp"
export TSAN_OPTIONS="suppressions=$TMPDIR/tsan.supp:print_suppressions=0"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
mpirun=(mpirun.openmpi --oversubscribe --mca btl_tcp_if_include lo)

good 4 4 "${mpirun[@]}" -n 4 "$perf" all_gather -b 8 -e 4M -f 64 -n 5 \
    --check-stats
[ "$(nodes_shown)" = '0 0 0 0' ] || fail "nodes $(nodes_shown)"
good 3 6 "${mpirun[@]}" -n 6 "$perf" all_gather --nodes 3,1,2 \
    --map cyclic -d int8 --per-rank -b 1 -e 289 -f 17 -n 5 --check-stats
[ "$(nodes_shown)" = '0 1 2 0 2 0' ] || fail "nodes $(nodes_shown)"
bad 1 "--nodes: '3' does not fit 4 ranks" \
    "${mpirun[@]}" -n 4 "$perf" all_gather --nodes 3
bad 1 '-r: 2 is not a rank: expected less than 2' \
    "${mpirun[@]}" -n 2 "$perf" all_gather -r 2
run "${mpirun[@]}" -n 2 "$perf" all_gather -b 64 -e 64 --corrupt 1
[ "$status" -ne 0 ] || fail "wrong data, but exit status 0"
finish
