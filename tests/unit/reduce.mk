# SPDX-License-Identifier: BSD-3-Clause
if HAVE_CMOCKA
reduce_tests = \
	tests/unit/reduce_kernels \
	tests/unit/reduce_rounding
check_PROGRAMS += $(reduce_tests)
TESTS += $(reduce_tests)
LONG_TESTS += tests/unit/reduce_rounding_all.sh

reduce_ldadd = libhcecore.la $(CMOCKA_LIBS) -lm
reduce_ref_sources = tests/unit/reduce_ref.c tests/unit/reduce_ref.h
tests_unit_reduce_kernels_SOURCES = tests/unit/reduce_kernels.c \
	$(reduce_ref_sources)
tests_unit_reduce_kernels_LDADD = $(reduce_ldadd)
tests_unit_reduce_rounding_SOURCES = tests/unit/reduce_rounding.c \
	$(reduce_ref_sources)
tests_unit_reduce_rounding_LDADD = $(reduce_ldadd)
endif
EXTRA_DIST += tests/unit/reduce_rounding_all.sh
