#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the libhce authors
#
# Ranks under a real launcher: mpirun.openmpi with its PMIx server.
set -u
if ! grep -q '^#define HCE_HAVE_PMIX 1' "$builddir/config.h"; then
    echo "skip: built without PMIx"
    exit 77
fi
mpirun=$(command -v mpirun.openmpi) || {
    echo "skip: mpirun.openmpi is not installed"
    exit 77
}
OMPI_ALLOW_RUN_AS_ROOT=1
OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# What the PMIx library itself never frees is not looked at.
ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
export ASAN_OPTIONS OMPI_ALLOW_RUN_AS_ROOT \
    OMPI_ALLOW_RUN_AS_ROOT_CONFIRM

failed=0
# What a launcher prints matters: a rank that ends without PMIx_Finalize is
# reported as a crash.
check() { # number of ranks
    n=$1
    out=$("$mpirun" --oversubscribe -n "$n" \
        "$builddir/tests/unit/boot_rank" pmix 2>&1)
    rc=$?
    lines=$(echo "$out" | grep -c "^ok [0-9]* of $n\$")
    if [ $rc -ne 0 ] || [ "$lines" -ne "$n" ] ||
        [ "$(echo "$out" | wc -l)" -ne "$n" ]; then
        echo "mpirun -n $n: exit status $rc, $lines ranks ok"
        echo "$out"
        failed=1
    fi
}
check 1
check 4
check 7
exit $failed
