# SPDX-License-Identifier: BSD-3-Clause
util_scripts = \
	tests/unit/hce_info.sh \
	tests/unit/style_check.sh
TESTS += $(util_scripts)
EXTRA_DIST += $(util_scripts)

if HAVE_CMOCKA
util_tests = \
	tests/unit/util_basics \
	tests/unit/util_config \
	tests/unit/util_fuzz \
	tests/unit/util_layout \
	tests/unit/util_log \
	tests/unit/util_shm
check_PROGRAMS += $(util_tests)
TESTS += $(util_tests)

util_ldadd = libhcecore.la $(CMOCKA_LIBS)
child_sources = tests/unit/child.c tests/unit/child.h
tests_unit_util_basics_SOURCES = tests/unit/util_basics.c
tests_unit_util_basics_LDADD = $(util_ldadd)
tests_unit_util_config_SOURCES = tests/unit/util_config.c $(child_sources)
tests_unit_util_config_LDADD = $(util_ldadd)
tests_unit_util_fuzz_SOURCES = tests/unit/util_fuzz.c
tests_unit_util_fuzz_LDADD = $(util_ldadd)
tests_unit_util_layout_SOURCES = tests/unit/util_layout.c
tests_unit_util_layout_LDADD = $(util_ldadd)
tests_unit_util_log_SOURCES = tests/unit/util_log.c $(child_sources)
tests_unit_util_log_LDADD = $(util_ldadd)
tests_unit_util_shm_SOURCES = tests/unit/util_shm.c
tests_unit_util_shm_LDADD = $(util_ldadd)
endif
