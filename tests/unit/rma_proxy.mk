# SPDX-License-Identifier: BSD-3-Clause
if HAVE_CMOCKA
rma_proxy_tests = tests/unit/rma_proxy_transport_loop \
	tests/unit/rma_proxy_transport_ucx
check_PROGRAMS += $(rma_proxy_tests)
TESTS += $(rma_proxy_tests)

# One suite for all transports: built once for each.
rma_proxy_transport_sources = tests/unit/rma_proxy_transport.c \
	tests/unit/rma_proxy_world.c tests/unit/rma_proxy_world.h
tests_unit_rma_proxy_transport_loop_SOURCES = $(rma_proxy_transport_sources)
tests_unit_rma_proxy_transport_loop_CPPFLAGS = $(AM_CPPFLAGS) \
	-DTEST_TRANSPORT='"loop"'
tests_unit_rma_proxy_transport_loop_LDADD = libhcecore.la $(CMOCKA_LIBS)
tests_unit_rma_proxy_transport_ucx_SOURCES = $(rma_proxy_transport_sources)
tests_unit_rma_proxy_transport_ucx_CPPFLAGS = $(AM_CPPFLAGS) \
	-DTEST_TRANSPORT='"ucx"'
tests_unit_rma_proxy_transport_ucx_LDADD = libhcecore.la $(CMOCKA_LIBS)
endif
