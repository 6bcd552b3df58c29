#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the libhce authors
#
# clang: no warning, and the unit tests pass; plans are verified.
. "$srcdir/tests/build/lib.sh"

command -v clang >/dev/null || skip 'clang is not installed'
configure_in build --enable-werror --enable-debug CC=clang
make_in build all
make_in build check-unit
