# SPDX-License-Identifier: BSD-3-Clause
# Tests of the build itself: what is exported, installed, packed.
build_tests = \
	tests/build/runner.sh
TESTS += $(build_tests)
EXTRA_DIST += $(build_tests)
