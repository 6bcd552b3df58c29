# SPDX-License-Identifier: BSD-3-Clause
if HAVE_CMOCKA
ce_tests = \
	tests/unit/ce_ways
check_PROGRAMS += $(ce_tests)
TESTS += $(ce_tests)

ce_ldadd = libhcecore.la $(CMOCKA_LIBS)
ce_ranks_sources = tests/unit/ce_ranks.c tests/unit/ce_ranks.h
tests_unit_ce_ways_SOURCES = tests/unit/ce_ways.c $(ce_ranks_sources)
tests_unit_ce_ways_LDADD = $(ce_ldadd)
endif
