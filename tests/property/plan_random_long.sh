#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the libhce authors
#
# Ten thousand random jobs, each of at most 20,000 ops.
exec ${TEST_WRAPPER:-} "${builddir:-.}"/tests/property/plan_random \
    --shapes 10000 --first 1000000
