#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the libhce authors
#
# The shapes of perf_shapes.sh with ranks as threads of one process.
ways=--threads . "$srcdir/tests/job/perf_shapes.sh"
