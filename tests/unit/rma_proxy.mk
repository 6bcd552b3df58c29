# SPDX-License-Identifier: BSD-3-Clause
# What every transport must do is one suite, built once for each way to run
# it: NAME, transport, environment.
if HAVE_CMOCKA
rma_proxy_ldadd = libhcecore.la $(CMOCKA_LIBS)
rma_proxy_world = tests/unit/rma_proxy_world.c tests/unit/rma_proxy_world.h
rma_proxy_transport = tests/unit/rma_proxy_transport.c $(rma_proxy_world)
rma_proxy_failure = tests/unit/rma_proxy_failure.c $(rma_proxy_world)

rma_proxy_loop = $(AM_CPPFLAGS) -DTEST_TRANSPORT='"loop"'
rma_proxy_ucx = $(AM_CPPFLAGS) -DTEST_TRANSPORT='"ucx"'
rma_proxy_verbs = $(AM_CPPFLAGS) -DTEST_TRANSPORT='"verbs"'

rma_proxy_tests = \
	tests/unit/rma_proxy_transport_loop \
	tests/unit/rma_proxy_transport_loop_faults \
	tests/unit/rma_proxy_transport_ucx \
	tests/unit/rma_proxy_transport_ucx_shm \
	tests/unit/rma_proxy_transport_verbs \
	tests/unit/rma_proxy_failure_loop \
	tests/unit/rma_proxy_failure_ucx \
	tests/unit/rma_proxy_failure_verbs \
	tests/unit/rma_proxy_loop \
	tests/unit/rma_proxy_proxy
check_PROGRAMS += $(rma_proxy_tests)
TESTS += $(rma_proxy_tests)

tests_unit_rma_proxy_transport_loop_SOURCES = $(rma_proxy_transport)
tests_unit_rma_proxy_transport_loop_CPPFLAGS = $(rma_proxy_loop)
tests_unit_rma_proxy_transport_loop_LDADD = $(rma_proxy_ldadd)

tests_unit_rma_proxy_transport_loop_faults_SOURCES = $(rma_proxy_transport)
tests_unit_rma_proxy_transport_loop_faults_CPPFLAGS = $(rma_proxy_loop) \
	-DTEST_ENV='"HCE_LOOP_FAULTS=delay=10,reorder=30,refuse=20,pieces=30,twice=10"'
tests_unit_rma_proxy_transport_loop_faults_LDADD = $(rma_proxy_ldadd)

tests_unit_rma_proxy_transport_ucx_SOURCES = $(rma_proxy_transport)
tests_unit_rma_proxy_transport_ucx_CPPFLAGS = $(rma_proxy_ucx)
tests_unit_rma_proxy_transport_ucx_LDADD = $(rma_proxy_ldadd)

# UCX's own puts, as on RDMA, over what a machine without it has.
tests_unit_rma_proxy_transport_ucx_shm_SOURCES = $(rma_proxy_transport)
tests_unit_rma_proxy_transport_ucx_shm_CPPFLAGS = $(rma_proxy_ucx) \
	-DTEST_ENV='"UCX_TLS=posix,self UCX_POSIX_ERROR_HANDLING=y"'
tests_unit_rma_proxy_transport_ucx_shm_LDADD = $(rma_proxy_ldadd)

# Need an RDMA device: tests/vm runs them where there is none.
tests_unit_rma_proxy_transport_verbs_SOURCES = $(rma_proxy_transport)
tests_unit_rma_proxy_transport_verbs_CPPFLAGS = $(rma_proxy_verbs)
tests_unit_rma_proxy_transport_verbs_LDADD = $(rma_proxy_ldadd)

tests_unit_rma_proxy_failure_verbs_SOURCES = $(rma_proxy_failure)
tests_unit_rma_proxy_failure_verbs_CPPFLAGS = $(rma_proxy_verbs)
tests_unit_rma_proxy_failure_verbs_LDADD = $(rma_proxy_ldadd)

tests_unit_rma_proxy_failure_loop_SOURCES = $(rma_proxy_failure)
tests_unit_rma_proxy_failure_loop_CPPFLAGS = $(rma_proxy_loop)
tests_unit_rma_proxy_failure_loop_LDADD = $(rma_proxy_ldadd)

tests_unit_rma_proxy_failure_ucx_SOURCES = $(rma_proxy_failure)
tests_unit_rma_proxy_failure_ucx_CPPFLAGS = $(rma_proxy_ucx)
tests_unit_rma_proxy_failure_ucx_LDADD = $(rma_proxy_ldadd)

tests_unit_rma_proxy_loop_SOURCES = tests/unit/rma_proxy_loop.c \
	$(rma_proxy_world)
tests_unit_rma_proxy_loop_CPPFLAGS = $(rma_proxy_loop)
tests_unit_rma_proxy_loop_LDADD = $(rma_proxy_ldadd)

tests_unit_rma_proxy_proxy_SOURCES = tests/unit/rma_proxy_proxy.c $(boot_ranks)
tests_unit_rma_proxy_proxy_LDADD = $(rma_proxy_ldadd)

# On devices that are not there; what needs processes is left to tests/vm.
if HAVE_VERBS
rma_proxy_fake_tests = \
	tests/unit/rma_proxy_verbs \
	tests/unit/rma_proxy_transport_fake
check_PROGRAMS += $(rma_proxy_fake_tests)
TESTS += $(rma_proxy_fake_tests)
rma_proxy_fake = tests/unit/fake_verbs.c tests/unit/fake_verbs_qp.c \
	tests/unit/fake_verbs.h tests/unit/fake_verbs_priv.h
tests_unit_rma_proxy_verbs_SOURCES = tests/unit/rma_proxy_verbs.c \
	$(rma_proxy_fake) $(softgpu_rig)
tests_unit_rma_proxy_verbs_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
tests_unit_rma_proxy_verbs_LDADD = $(softgpu_ldadd)
tests_unit_rma_proxy_verbs_LDFLAGS = $(softgpu_ldflags)
tests_unit_rma_proxy_verbs_DEPENDENCIES = $(softgpu_deps)

tests_unit_rma_proxy_transport_fake_SOURCES = $(rma_proxy_transport) \
	$(rma_proxy_fake)
tests_unit_rma_proxy_transport_fake_CPPFLAGS = $(rma_proxy_verbs) \
	-DTEST_THREADS_ONLY -DORDER_ROUNDS=2000
tests_unit_rma_proxy_transport_fake_LDADD = $(rma_proxy_ldadd)
endif

if HAVE_UCX
check_PROGRAMS += tests/unit/rma_proxy_ucx_tune
TESTS += tests/unit/rma_proxy_ucx_tune
tests_unit_rma_proxy_ucx_tune_SOURCES = tests/unit/rma_proxy_ucx_tune.c \
	$(rma_proxy_world)
tests_unit_rma_proxy_ucx_tune_CPPFLAGS = $(rma_proxy_ucx)
tests_unit_rma_proxy_ucx_tune_LDADD = $(rma_proxy_ldadd)
endif
endif
