#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the libhce authors
#
# The verbs transport on soft-RoCE devices of a virtual machine: one boot for
# all of suite.sh. A machine that fails is started once more, and is an error
# the second time; a test that fails is one at once.
# environment: srcdir, builddir, TMPDIR (see tests/local.mk); HCE_VM_CASES,
# cases of suite.sh to run instead of all
set -u
vm=$srcdir/tests/vm cache=$builddir/tests/vm/cache

grep -q '^#define HCE_HAVE_VERBS 1' "$builddir/config.h" || {
    echo "skipped: this build is without verbs"
    exit 77
}
grep -q '^#define HCE_HAVE_CMOCKA 1' "$builddir/config.h" || {
    echo "skipped: this build is without cmocka"
    exit 77
}
mkdir -p "$cache"
"$vm/prepare.sh" "$cache" || exit
cd "$builddir" || exit 1
for attempt in 1 2; do
    "$vm/boot.sh" "$cache" 540 srcdir="$srcdir" builddir="$builddir" -- \
        "$vm/suite.sh" ${HCE_VM_CASES:-}
    status=$?
    case $status in
    123 | 124 | 125) echo "the machine failed ($status), attempt $attempt" ;;
    *) exit $status ;;
    esac
done
exit $status
