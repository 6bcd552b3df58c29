# SPDX-License-Identifier: BSD-3-Clause
libhcecore_la_SOURCES += \
	lib/flat/flat.h \
	lib/flat/allgather.c
