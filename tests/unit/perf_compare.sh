#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the libhce authors
#
# Statistics and figures of perf/compare, and rates of perf/lab.
command -v python3 >/dev/null || {
    echo "skipped: there is no python3"
    exit 77
}
exec python3 "$srcdir/tests/unit/perf_compare.py"
