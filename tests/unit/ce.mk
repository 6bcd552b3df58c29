# SPDX-License-Identifier: BSD-3-Clause
if HAVE_CMOCKA
ce_tests = \
	tests/unit/ce_doorbell \
	tests/unit/ce_faults \
	tests/unit/ce_loops \
	tests/unit/ce_mem \
	tests/unit/ce_outbox \
	tests/unit/ce_ring \
	tests/unit/ce_ways \
	tests/unit/ce_window
check_PROGRAMS += $(ce_tests)
TESTS += $(ce_tests)

ce_ldadd = libhcecore.la $(CMOCKA_LIBS)
# So that a test can do something between two rounds of a bootstrap.
ce_ldflags = -Wl,--wrap=hce_boot_allgather
ce_ranks_sources = tests/unit/ce_ranks.c tests/unit/ce_ranks.h \
	tests/unit/ce_refuse.c
tests_unit_ce_loops_SOURCES = tests/unit/ce_loops.c
tests_unit_ce_loops_LDADD = $(ce_ldadd)
tests_unit_ce_mem_SOURCES = tests/unit/ce_mem.c
tests_unit_ce_mem_LDADD = $(ce_ldadd)
tests_unit_ce_outbox_SOURCES = tests/unit/ce_outbox.c
tests_unit_ce_outbox_LDADD = $(ce_ldadd)
tests_unit_ce_ring_SOURCES = tests/unit/ce_ring.c tests/unit/ce_duel.h
tests_unit_ce_ring_LDADD = $(ce_ldadd)
tests_unit_ce_ways_SOURCES = tests/unit/ce_ways.c $(ce_ranks_sources)
tests_unit_ce_ways_LDADD = $(ce_ldadd)
tests_unit_ce_ways_LDFLAGS = $(ce_ldflags)
tests_unit_ce_window_SOURCES = tests/unit/ce_window.c $(ce_ranks_sources)
tests_unit_ce_window_LDADD = $(ce_ldadd)
tests_unit_ce_window_LDFLAGS = $(ce_ldflags)
tests_unit_ce_doorbell_SOURCES = tests/unit/ce_doorbell.c tests/unit/ce_duel.h \
	$(ce_ranks_sources)
tests_unit_ce_doorbell_LDADD = $(ce_ldadd)
tests_unit_ce_doorbell_LDFLAGS = $(ce_ldflags)
tests_unit_ce_faults_SOURCES = tests/unit/ce_faults.c $(ce_ranks_sources)
tests_unit_ce_faults_LDADD = $(ce_ldadd)
tests_unit_ce_faults_LDFLAGS = $(ce_ldflags) -Wl,--wrap=sendmsg
endif

if HAVE_CMOCKA
ce_cuda_tests = \
	tests/unit/ce_cuda \
	tests/unit/ce_cuda_capture \
	tests/unit/ce_cuda_failures \
	tests/unit/ce_cuda_procs
check_PROGRAMS += $(ce_cuda_tests)
TESTS += $(ce_cuda_tests)

ce_cuda_sources = tests/unit/ce_cuda.h tests/unit/ce_cuda_help.c \
	tests/softgpu/rig.c tests/softgpu/rig.h
ce_cuda_cppflags = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
tests_unit_ce_cuda_SOURCES = tests/unit/ce_cuda.c $(ce_cuda_sources)
tests_unit_ce_cuda_CPPFLAGS = $(ce_cuda_cppflags)
tests_unit_ce_cuda_LDADD = $(softgpu_ldadd)
tests_unit_ce_cuda_LDFLAGS = $(softgpu_ldflags)
tests_unit_ce_cuda_DEPENDENCIES = $(softgpu_deps)
tests_unit_ce_cuda_capture_SOURCES = tests/unit/ce_cuda_capture.c \
	$(ce_cuda_sources)
tests_unit_ce_cuda_capture_CPPFLAGS = $(ce_cuda_cppflags)
tests_unit_ce_cuda_capture_LDADD = $(softgpu_ldadd)
tests_unit_ce_cuda_capture_LDFLAGS = $(softgpu_ldflags)
tests_unit_ce_cuda_capture_DEPENDENCIES = $(softgpu_deps)
tests_unit_ce_cuda_failures_SOURCES = tests/unit/ce_cuda_failures.c \
	$(ce_cuda_sources) $(child_sources)
tests_unit_ce_cuda_failures_CPPFLAGS = $(ce_cuda_cppflags)
tests_unit_ce_cuda_failures_LDADD = $(softgpu_ldadd)
tests_unit_ce_cuda_failures_LDFLAGS = $(softgpu_ldflags)
tests_unit_ce_cuda_failures_DEPENDENCIES = $(softgpu_deps)
tests_unit_ce_cuda_procs_SOURCES = tests/unit/ce_cuda_procs.c $(ce_cuda_sources)
tests_unit_ce_cuda_procs_CPPFLAGS = $(ce_cuda_cppflags)
tests_unit_ce_cuda_procs_LDADD = $(softgpu_ldadd)
tests_unit_ce_cuda_procs_LDFLAGS = $(softgpu_ldflags)
tests_unit_ce_cuda_procs_DEPENDENCIES = $(softgpu_deps)
endif
