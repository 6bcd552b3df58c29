# SPDX-License-Identifier: BSD-3-Clause
if HAVE_CMOCKA
check_PROGRAMS += tests/unit/core_paths
TESTS += tests/unit/core_paths
tests_unit_core_paths_SOURCES = tests/unit/core_paths.c
tests_unit_core_paths_LDADD = libhcecore.la $(CMOCKA_LIBS)
check_PROGRAMS += tests/unit/core_candidate
TESTS += tests/unit/core_candidate
tests_unit_core_candidate_SOURCES = tests/unit/core_candidate.c
tests_unit_core_candidate_LDADD = libhcecore.la $(CMOCKA_LIBS)
endif
