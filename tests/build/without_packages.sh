#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the libhce authors
#
# Without any optional library: builds without a warning, says what was left
# out, needs nothing but the C library, and passes its tests. Between nodes
# there is only the transport loop, which has to be asked for.
. "$srcdir/tests/build/lib.sh"

configure_in build --enable-werror --without-ucx --without-verbs --without-pmix \
    --without-hwloc --without-jansson
for package in ucx verbs pmix hwloc jansson; do
    has "^ *$package +no +switched off by --without-$package$" \
        "$work/build.out"
done
make_in build all
! readelf -d "$work/build/.libs/libhce.so" |
    grep -E 'NEEDED.*lib(ucp|ucs|ibverbs|pmix|hwloc|jansson)' ||
    fail 'it is linked all the same'
HCE_TRANSPORT=loop make_in build check
