# SPDX-License-Identifier: BSD-3-Clause
# Jobs of hce_perf: local processes, threads, launchers, faults, reports.
perf_job_tests = \
	tests/job/perf_args.sh \
	tests/job/perf_env.sh \
	tests/job/perf_faults.sh \
	tests/job/perf_limits.sh \
	tests/job/perf_mpirun.sh \
	tests/job/perf_paths.sh \
	tests/job/perf_reduce.sh \
	tests/job/perf_reduce_kernel.sh \
	tests/job/perf_reports.sh \
	tests/job/perf_shapes.sh \
	tests/job/perf_threads.sh \
	tests/job/perf_torchrun.sh
perf_job_long_tests = \
	tests/job/perf_blocking.sh \
	tests/job/perf_large.sh \
	tests/job/perf_path_shapes.sh
TESTS += $(perf_job_tests)
LONG_TESTS += $(perf_job_long_tests)
EXTRA_DIST += $(perf_job_tests) $(perf_job_long_tests) tests/job/perf_lib.sh

check_PROGRAMS += tests/job/foreign_port
tests_job_foreign_port_SOURCES = tests/job/foreign_port.c
