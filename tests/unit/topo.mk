# SPDX-License-Identifier: BSD-3-Clause
if HAVE_CMOCKA
check_PROGRAMS += tests/unit/topo_discover
TESTS += tests/unit/topo_discover
tests_unit_topo_discover_SOURCES = tests/unit/topo_discover.c $(boot_ranks)
tests_unit_topo_discover_LDADD = libhcecore.la $(CMOCKA_LIBS)
endif
EXTRA_DIST += tests/unit/topo_two_packages.xml
