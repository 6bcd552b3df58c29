# SPDX-License-Identifier: BSD-3-Clause
drv_scripts = tests/unit/drv_calls.sh
TESTS += $(drv_scripts)
EXTRA_DIST += $(drv_scripts)

if HAVE_CMOCKA
drv_tests = tests/unit/drv_load
check_PROGRAMS += $(drv_tests)
TESTS += $(drv_tests)

tests_unit_drv_load_SOURCES = tests/unit/drv_load.c $(child_sources)
tests_unit_drv_load_LDADD = libhcecore.la $(CMOCKA_LIBS)
tests_unit_drv_load_LDFLAGS = $(softgpu_ldflags)
tests_unit_drv_load_DEPENDENCIES = libhcecore.la tests/softgpu/libcuda.la
endif
