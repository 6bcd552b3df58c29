# SPDX-License-Identifier: BSD-3-Clause
check_PROGRAMS += tests/job/faults
TESTS += tests/job/faults
tests_job_faults_SOURCES = tests/job/faults.c tests/job/job.c tests/job/job.h
tests_job_faults_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/job
tests_job_faults_LDADD = libhcecore.la
check_PROGRAMS += tests/job/calls
TESTS += tests/job/calls
tests_job_calls_SOURCES = tests/job/calls.c tests/job/job.c tests/job/job.h
tests_job_calls_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/job
tests_job_calls_LDADD = libhcecore.la
check_PROGRAMS += tests/job/progress
TESTS += tests/job/progress
tests_job_progress_SOURCES = tests/job/progress.c tests/job/job.c \
	tests/job/job.h
tests_job_progress_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/job
tests_job_progress_LDADD = libhcecore.la
LONG_TESTS += tests/job/paths.sh
EXTRA_DIST += tests/job/paths.sh
check_PROGRAMS += tests/job/remap
TESTS += tests/job/remap
tests_job_remap_SOURCES = tests/job/remap.c tests/job/job.c tests/job/job.h
tests_job_remap_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/job
tests_job_remap_LDADD = libhcecore.la
