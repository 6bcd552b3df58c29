# SPDX-License-Identifier: BSD-3-Clause
libhcecore_la_SOURCES += \
	lib/ring/ring.h \
	lib/ring/build.h \
	lib/ring/build.c \
	lib/ring/allgather.c \
	lib/ring/allgather_short.c
