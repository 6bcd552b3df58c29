# SPDX-License-Identifier: BSD-3-Clause
if HAVE_CMOCKA
check_PROGRAMS += tests/unit/model_cost
TESTS += tests/unit/model_cost
tests_unit_model_cost_SOURCES = tests/unit/model_cost.c
tests_unit_model_cost_LDADD = libhcecore.la $(CMOCKA_LIBS)
endif
