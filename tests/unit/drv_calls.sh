#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the libhce authors
#
# No call of the CUDA driver that could run on a multiprocessor is in the
# library: not in the list of lib/drv/calls.h, not elsewhere in the sources,
# not as a name in the finished library; and no call is made but through that
# list. First the rules have to find what is planted.
#
# environment: srcdir, builddir, TMPDIR (see tests/local.mk)
set -u
export LC_ALL=C
srcdir=${srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
builddir=${builddir:-$PWD}
tmp=$(mktemp -d "${TMPDIR:-/tmp}/hce-drv.XXXXXX") || exit 1
trap 'rm -rf "$tmp"' EXIT

# Launches, code and what prepares it, memsets (multiprocessors or not, as the
# driver likes), memory that moves by itself, functions on driver threads.
forbidden='^cu(Launch|Module|Library|Link|Kernel|Func|Memset|MemAllocManaged'
forbidden+='|LaunchHostFunc|StreamAddCallback|GraphAdd|GraphLaunch|Occupancy)'

# Names of driver calls in standard input, once each.
names() {
    grep -oE '\<cu[A-Z][A-Za-z0-9]+(_v[0-9]+)?\>' | sort -u
}

# What is in the list below ROOT.
listed() {
    tr -d '\n\\' <"$1/lib/drv/calls.h" |
        grep -oE 'F\((REQUIRED|OPTIONAL), *[a-z0-9_]+, *cu[A-Za-z0-9]+' |
        names
}

# check ROOT: a line for each finding below ROOT.
check() {
    local name

    for name in $(listed "$1" | grep -E "$forbidden"); do
        echo "listed $name"
    done
    cat $(find "$1/lib" "$1/include" "$1/tools" "$1/perf" -name '*.[ch]' \
        ! -path "*/drv/check_*") | names >"$tmp/used"
    for name in $(grep -E "$forbidden" "$tmp/used"); do
        echo "named $name"
    done
    { listed "$1"; echo cuGetProcAddress; echo cuGetProcAddress_v2; } |
        sort >"$tmp/listed"
    for name in $(comm -23 "$tmp/used" "$tmp/listed"); do
        echo "unlisted $name"
    done
}

mkdir -p "$tmp/bad/tools" "$tmp/bad/perf"
cp -r "$srcdir/lib" "$srcdir/include" "$tmp/bad"
sed -i 's/F(REQUIRED, mem_alloc, cuMemAlloc,/F(REQUIRED, a, cuMemsetD8Async,/
    s/F(REQUIRED, mem_free, cuMemFree,/F(REQUIRED, f, cuLaunchKernel,/' \
    "$tmp/bad/lib/drv/calls.h"
echo 'const char *name = "cuModuleLoad";' >"$tmp/bad/lib/core/bad.c"
echo 'const char *name = "cuCtxSynchronize";' >"$tmp/bad/tools/bad.c"
check "$tmp/bad" | sort >"$tmp/found"
for planted in 'listed cuMemsetD8Async' 'listed cuLaunchKernel' \
    'named cuModuleLoad' 'unlisted cuCtxSynchronize'; do
    if ! grep -qx "$planted" "$tmp/found"; then
        echo "not found in the planted tree: $planted"
        exit 1
    fi
done
echo "all planted calls were found"

[ "$(listed "$srcdir" | wc -l)" -gt 50 ] || {
    echo "the list is not read right: $(listed "$srcdir" | wc -l) calls"
    exit 1
}
check "$srcdir" >"$tmp/found"
library=$builddir/.libs/libhce.so
[ -f "$library" ] || { echo "no $library"; exit 1; }
grep -aoE 'cu[A-Z][A-Za-z0-9_]+' "$library" | names | grep -E "$forbidden" |
    sed 's/^/library: /' >>"$tmp/found"
grep -aq cuMemcpyAsync "$library" || echo "library: no names" >>"$tmp/found"
if [ -s "$tmp/found" ]; then
    cat "$tmp/found"
    exit 1
fi
echo "nothing to find; $(listed "$srcdir" | wc -l) calls are listed"
