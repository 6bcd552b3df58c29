# SPDX-License-Identifier: BSD-3-Clause
if HAVE_CMOCKA
perf_tests = \
	tests/unit/perf_measure \
	tests/unit/perf_pattern \
	tests/unit/perf_series \
	tests/unit/perf_stats \
	tests/unit/perf_values
check_PROGRAMS += $(perf_tests)
TESTS += $(perf_tests)
perf_ldadd = libhcecore.la $(CMOCKA_LIBS)
tests_unit_perf_measure_SOURCES = tests/unit/perf_measure.c perf/measure.c
tests_unit_perf_measure_LDADD = $(perf_ldadd)
tests_unit_perf_pattern_SOURCES = tests/unit/perf_pattern.c perf/pattern.c
tests_unit_perf_pattern_LDADD = $(perf_ldadd)
tests_unit_perf_series_SOURCES = tests/unit/perf_series.c perf/series.c
tests_unit_perf_series_LDADD = $(perf_ldadd)
tests_unit_perf_stats_SOURCES = tests/unit/perf_stats.c perf/stats.c
tests_unit_perf_stats_LDADD = $(perf_ldadd)
tests_unit_perf_values_SOURCES = tests/unit/perf_values.c perf/values.c \
	perf/pattern.c
tests_unit_perf_values_LDADD = $(perf_ldadd) -lm
endif

TESTS += tests/unit/perf_compare.sh
EXTRA_DIST += tests/unit/perf_compare.sh tests/unit/perf_compare.py
