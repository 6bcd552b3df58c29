# SPDX-License-Identifier: BSD-3-Clause
# A fragment for each folder under test; all append to check_PROGRAMS and
# TESTS, or to LONG_TESTS for what takes minutes. A test is a program of the
# build tree or a script of the source tree, named without "./"; it exits
# with 0, with 77 after a line that says why it cannot run here, or has
# failed. tests/runner runs each as its own process, in the build tree, with
# a limit of TEST_LIMIT seconds, and sets for it
#   srcdir, builddir  absolute paths        TMPDIR  a folder of its own
#   CC, CFLAGS        as configured         MAKE
# "make check TESTS=tests/unit/x" runs one, "make check-unit" the programs
# of tests/unit; TEST_WRAPPER goes before programs.
include tests/softgpu/local.mk
include tests/unit/util.mk
include tests/unit/drv.mk
include tests/unit/boot.mk
include tests/unit/topo.mk
include tests/unit/plan.mk
include tests/unit/ce.mk
include tests/unit/reduce.mk
include tests/unit/rma_proxy.mk
include tests/unit/ring.mk
include tests/unit/model.mk
include tests/unit/core.mk
include tests/unit/perf.mk
include tests/property/local.mk
include tests/job/local.mk
include tests/job/perf.mk
include tests/lab/local.mk
include tests/vm/local.mk
include tests/build/local.mk
include tests/cross/local.mk

EXTRA_DIST += tests/runner tests/run_one tests/lsan.supp
# Seconds a test may take; those of LONG_TESTS ten times as many.
LONG_TEST_LIMIT = $(TEST_LIMIT)0

# In place of Automake's harness, which knows no time limit.
run_tests = $(TEST_ENVIRONMENT) \
	srcdir=$(abs_top_srcdir) builddir=$(abs_top_builddir) \
	CC='$(CC)' CFLAGS='$(CFLAGS) $(HCE_CFLAGS)' MAKE='$(MAKE)' \
	$(abs_top_srcdir)/tests/runner

check-TESTS: $(check_PROGRAMS)
	@$(run_tests) -l $(TEST_LIMIT) -s tests/check.sum $(TESTS)

unit_programs = $(filter-out %.sh,$(filter tests/unit/%,$(TESTS)))

.PHONY: check-programs check-unit check-threads check-long print-unit-tests
check-programs: all-am $(check_PROGRAMS)

check-unit: check-programs
	@$(run_tests) -l $(TEST_LIMIT) -s tests/check-unit.sum \
		$(unit_programs)

# Where threads or processes meet: what the thread sanitizer is worth. Failing
# each call of the driver takes hundreds of short processes, slow to start.
check-threads: check-programs
	@$(run_tests) -l $(TEST_LIMIT) -s tests/check-threads.sum \
		$(filter-out tests/unit/ce_cuda_failures,$(unit_programs)) \
		$(filter tests/job/%,$(TESTS))

print-unit-tests:
	@echo $(unit_programs)

check-long: check-programs
	@$(run_tests) -l $(LONG_TEST_LIMIT) -s tests/check-long.sum $(LONG_TESTS)

mostlyclean-local:
	test ! -d tests || find tests -name '*.log' -exec rm -f {} +
	rm -f tests/check.sum tests/check-unit.sum tests/check-threads.sum \
		tests/check-long.sum
