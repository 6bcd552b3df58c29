# SPDX-License-Identifier: BSD-3-Clause
libhcecore_la_SOURCES += \
	lib/drv/calls.h \
	lib/drv/drv.h \
	lib/drv/load.c \
	lib/drv/scope.c \
	lib/drv/types.h

# With the toolkit's headers: what is written here is compared with them.
drv_checks = lib/drv/check_calls.c lib/drv/check_types.c
EXTRA_DIST += $(drv_checks)
if HAVE_CUDA
libhcecore_la_SOURCES += $(drv_checks)
endif
