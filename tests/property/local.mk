# SPDX-License-Identifier: BSD-3-Clause
property_shapes = tests/property/shapes.h tests/property/shapes.c

check_PROGRAMS += \
	tests/property/plan_large \
	tests/property/plan_mutate \
	tests/property/plan_order \
	tests/property/plan_random
TESTS += \
	tests/property/plan_mutate \
	tests/property/plan_order \
	tests/property/plan_random
LONG_TESTS += tests/property/plan_random_long.sh tests/property/plan_large
EXTRA_DIST += tests/property/plan_random_long.sh

tests_property_plan_random_SOURCES = tests/property/plan_random.c \
	$(property_shapes)
tests_property_plan_random_LDADD = libhcecore.la

tests_property_plan_large_SOURCES = tests/property/plan_large.c \
	$(property_shapes)
tests_property_plan_large_LDADD = libhcecore.la

tests_property_plan_order_SOURCES = tests/property/plan_order.c \
	$(property_shapes)
tests_property_plan_order_LDADD = libhcecore.la

tests_property_plan_mutate_SOURCES = tests/property/plan_mutate.c \
	$(property_shapes)
tests_property_plan_mutate_LDADD = libhcecore.la
