#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the libhce authors
#
# A release builds from its archive in a folder of its own with read-only
# sources, passes the unit tests, installs, runs the examples, and leaves
# nothing when it is uninstalled and cleaned.
. "$srcdir/tests/build/lib.sh"

configure_in build
tests=$(make_in build print-unit-tests)
test -n "$tests" || fail 'no unit tests'
make_in build distcheck TESTS="$tests"
