# SPDX-License-Identifier: BSD-3-Clause
TESTS += tests/unit/hce_plan.sh
EXTRA_DIST += tests/unit/hce_plan.sh \
	tests/unit/golden/plan_draw.svg \
	tests/unit/golden/plan_rank2.json \
	tests/unit/golden/plan_show.txt

if HAVE_CMOCKA
plan_tests = \
	tests/unit/plan_build \
	tests/unit/plan_eager \
	tests/unit/plan_faults \
	tests/unit/plan_made \
	tests/unit/plan_memory \
	tests/unit/plan_one \
	tests/unit/plan_paths \
	tests/unit/plan_read \
	tests/unit/plan_show \
	tests/unit/plan_reduce \
	tests/unit/plan_sums
check_PROGRAMS += $(plan_tests)
TESTS += $(plan_tests)

plan_ldadd = libhcecore.la $(CMOCKA_LIBS) $(JANSSON_LIBS)
plan_world = tests/unit/plan_world.c tests/unit/plan_world.h
tests_unit_plan_build_SOURCES = tests/unit/plan_build.c $(plan_world)
tests_unit_plan_build_LDADD = $(plan_ldadd)
tests_unit_plan_eager_SOURCES = tests/unit/plan_eager.c $(plan_world)
tests_unit_plan_eager_LDADD = $(plan_ldadd)
tests_unit_plan_faults_SOURCES = tests/unit/plan_faults.c $(plan_world)
tests_unit_plan_faults_LDADD = $(plan_ldadd)
tests_unit_plan_made_SOURCES = tests/unit/plan_made.c $(plan_world)
tests_unit_plan_made_LDADD = $(plan_ldadd)
tests_unit_plan_memory_SOURCES = tests/unit/plan_memory.c $(plan_world)
tests_unit_plan_memory_LDADD = $(plan_ldadd)
tests_unit_plan_memory_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc
tests_unit_plan_one_SOURCES = tests/unit/plan_one.c $(plan_world)
tests_unit_plan_one_LDADD = $(plan_ldadd)
tests_unit_plan_paths_SOURCES = tests/unit/plan_paths.c $(plan_world)
tests_unit_plan_paths_LDADD = $(plan_ldadd)
tests_unit_plan_read_SOURCES = tests/unit/plan_read.c $(plan_world) \
	tools/plan/schedule.c tools/plan/schedule.h
tests_unit_plan_read_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)
tests_unit_plan_read_LDADD = $(plan_ldadd)
tests_unit_plan_reduce_SOURCES = tests/unit/plan_reduce.c $(plan_world)
tests_unit_plan_reduce_LDADD = $(plan_ldadd)
tests_unit_plan_sums_SOURCES = tests/unit/plan_sums.c $(plan_world)
tests_unit_plan_sums_LDADD = $(plan_ldadd)
tests_unit_plan_show_SOURCES = tests/unit/plan_show.c $(plan_world)
tests_unit_plan_show_LDADD = $(plan_ldadd)
endif
