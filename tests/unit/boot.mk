# SPDX-License-Identifier: BSD-3-Clause
if HAVE_CMOCKA
boot_tests = \
	tests/unit/boot_env \
	tests/unit/boot_faults \
	tests/unit/boot_group \
	tests/unit/boot_heir \
	tests/unit/boot_hostile \
	tests/unit/boot_mac \
	tests/unit/boot_misfits \
	tests/unit/boot_mismatch
check_PROGRAMS += $(boot_tests)
TESTS += $(boot_tests)

boot_ldadd = libhcecore.la $(CMOCKA_LIBS)
boot_ranks = tests/unit/boot_ranks.c tests/unit/boot_ranks.h
tests_unit_boot_env_SOURCES = tests/unit/boot_env.c $(boot_ranks)
tests_unit_boot_env_LDADD = $(boot_ldadd)
tests_unit_boot_faults_SOURCES = tests/unit/boot_faults.c $(boot_ranks)
tests_unit_boot_faults_LDADD = $(boot_ldadd)
tests_unit_boot_group_SOURCES = tests/unit/boot_group.c $(boot_ranks)
tests_unit_boot_group_LDADD = $(boot_ldadd)
tests_unit_boot_heir_SOURCES = tests/unit/boot_heir.c $(boot_ranks)
tests_unit_boot_heir_LDADD = $(boot_ldadd)
boot_part = tests/unit/boot_part.c tests/unit/boot_part.h $(boot_ranks)
tests_unit_boot_hostile_SOURCES = tests/unit/boot_hostile.c $(boot_part)
tests_unit_boot_hostile_LDADD = $(boot_ldadd)
tests_unit_boot_mac_SOURCES = tests/unit/boot_mac.c
tests_unit_boot_mac_LDADD = $(boot_ldadd)
tests_unit_boot_misfits_SOURCES = tests/unit/boot_misfits.c $(boot_part)
tests_unit_boot_misfits_LDADD = $(boot_ldadd)
tests_unit_boot_mismatch_SOURCES = tests/unit/boot_mismatch.c $(boot_ranks)
tests_unit_boot_mismatch_LDADD = $(boot_ldadd)

# A rank of tests that start it themselves.
check_PROGRAMS += tests/unit/boot_rank
TESTS += tests/unit/boot_launch.sh
tests_unit_boot_rank_SOURCES = tests/unit/boot_rank.c $(boot_ranks)
tests_unit_boot_rank_LDADD = libhcecore.la
endif
EXTRA_DIST += tests/unit/boot_launch.sh
