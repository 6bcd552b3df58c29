#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the libhce authors
#
# As distributions build: optimised, hardened, without assertions, with a
# static library. No warning, the unit tests pass, and the version map stays
# the only door of the shared library.
. "$srcdir/tests/build/lib.sh"

configure_in build --enable-werror --enable-static \
    CFLAGS='-O3 -DNDEBUG -D_FORTIFY_SOURCE=2 -fstack-protector-strong'
make_in build all
test -f "$work/build/.libs/libhce.a" || fail 'no static library'
make_in build check-unit
