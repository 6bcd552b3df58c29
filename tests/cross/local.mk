# SPDX-License-Identifier: BSD-3-Clause
# Other machines' processors, emulated.
cross_tests = tests/cross/aarch64.sh
LONG_TESTS += $(cross_tests)
EXTRA_DIST += $(cross_tests)
