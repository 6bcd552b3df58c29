# SPDX-License-Identifier: BSD-3-Clause
if HAVE_CMOCKA
check_PROGRAMS += tests/unit/perf_pattern tests/unit/perf_series
TESTS += tests/unit/perf_pattern tests/unit/perf_series
tests_unit_perf_pattern_SOURCES = tests/unit/perf_pattern.c perf/pattern.c
tests_unit_perf_pattern_LDADD = $(CMOCKA_LIBS)
tests_unit_perf_series_SOURCES = tests/unit/perf_series.c perf/series.c
tests_unit_perf_series_LDADD = libhcecore.la $(CMOCKA_LIBS)
endif
