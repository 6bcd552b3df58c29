#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the libhce authors
#
# reduce_rounding on all 2^32 floats.
exec ${TEST_WRAPPER:-} "${builddir:-.}/tests/unit/reduce_rounding" all
