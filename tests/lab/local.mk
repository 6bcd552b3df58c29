# SPDX-License-Identifier: BSD-3-Clause
# Several hosts on this machine; need root.
lab_tests = \
	tests/lab/basics.sh \
	tests/lab/compare.sh \
	tests/lab/neighbours.sh
lab_long_tests = \
	tests/lab/launchers.sh \
	tests/lab/updown.sh
TESTS += $(lab_tests)
LONG_TESTS += $(lab_long_tests)
EXTRA_DIST += $(lab_tests) $(lab_long_tests) tests/lab/lab_lib.sh \
	tests/lab/flows.py
