# SPDX-License-Identifier: BSD-3-Clause
EXTRA_DIST += tests/data/chunk_width.tsv
if HAVE_CMOCKA
check_PROGRAMS += tests/unit/ring_plans
TESTS += tests/unit/ring_plans
tests_unit_ring_plans_SOURCES = tests/unit/ring_plans.c $(plan_world)
tests_unit_ring_plans_LDADD = $(plan_ldadd)
endif
