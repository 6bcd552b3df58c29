# SPDX-License-Identifier: BSD-3-Clause
# Jobs of hce_perf: local processes, threads, launchers, faults, reports.
perf_job_tests = \
	tests/job/perf_args.sh \
	tests/job/perf_faults.sh
TESTS += $(perf_job_tests)
EXTRA_DIST += $(perf_job_tests) tests/job/perf_lib.sh
