# SPDX-License-Identifier: BSD-3-Clause
# Tests of the build itself: what is exported, installed, packed.
build_tests = \
	tests/build/exports.sh \
	tests/build/manual.sh \
	tests/build/runner.sh
build_long_tests = \
	tests/build/packages.sh \
	tests/build/without_packages.sh \
	tests/build/with_clang.sh \
	tests/build/with_ndebug.sh \
	tests/build/distcheck.sh \
	tests/build/quickstart.sh
TESTS += $(build_tests)
LONG_TESTS += $(build_long_tests)
EXTRA_DIST += $(build_tests) $(build_long_tests) tests/build/lib.sh
