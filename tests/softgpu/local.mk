# SPDX-License-Identifier: BSD-3-Clause
# A libcuda.so.1 for tests: device memory and copy engines without a device.
# Never installed; programs find it by their run path.
check_LTLIBRARIES += tests/softgpu/libcuda.la
tests_softgpu_libcuda_la_SOURCES = \
	tests/softgpu/calls.h \
	tests/softgpu/capture.c \
	tests/softgpu/copy.c \
	tests/softgpu/device.c \
	tests/softgpu/engine.c \
	tests/softgpu/enter.c \
	tests/softgpu/event.c \
	tests/softgpu/graph.c \
	tests/softgpu/host.c \
	tests/softgpu/mem.c \
	tests/softgpu/memop.c \
	tests/softgpu/multicast.c \
	tests/softgpu/nic.c \
	tests/softgpu/object.c \
	tests/softgpu/pointer.c \
	tests/softgpu/proc.c \
	tests/softgpu/settings.c \
	tests/softgpu/share.c \
	tests/softgpu/soft.h \
	tests/softgpu/softgpu.h \
	tests/softgpu/space.c \
	tests/softgpu/stream.c \
	tests/softgpu/vmm.c \
	tests/softgpu/vmm.h
tests_softgpu_libcuda_la_LDFLAGS = $(AM_LDFLAGS) -rpath /nowhere \
	-version-info 1:0:0
tests_softgpu_libcuda_la_LIBADD = -lpthread
# DT_RPATH, not DT_RUNPATH: under AddressSanitizer it is the sanitizer's
# library that calls dlopen.
softgpu_ldflags = -Wl,--disable-new-dtags,-rpath,$(abs_top_builddir)/tests/softgpu/.libs

if HAVE_CMOCKA
softgpu_tests = \
	tests/softgpu/crashes \
	tests/softgpu/refusals
check_PROGRAMS += $(softgpu_tests)
TESTS += $(softgpu_tests)

softgpu_rig = tests/softgpu/rig.c tests/softgpu/rig.h tests/softgpu/calls.h
softgpu_ldadd = libhcecore.la $(CMOCKA_LIBS)
softgpu_deps = libhcecore.la tests/softgpu/libcuda.la
tests_softgpu_crashes_SOURCES = tests/softgpu/crashes.c $(softgpu_rig)
tests_softgpu_crashes_LDADD = $(softgpu_ldadd)
tests_softgpu_crashes_LDFLAGS = $(softgpu_ldflags)
tests_softgpu_crashes_DEPENDENCIES = $(softgpu_deps)
tests_softgpu_refusals_SOURCES = tests/softgpu/refusals.c $(softgpu_rig)
tests_softgpu_refusals_LDADD = $(softgpu_ldadd)
tests_softgpu_refusals_LDFLAGS = $(softgpu_ldflags)
tests_softgpu_refusals_DEPENDENCIES = $(softgpu_deps)
endif
