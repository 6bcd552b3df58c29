# SPDX-License-Identifier: BSD-3-Clause
libhcecore_la_SOURCES += \
	lib/direct/direct.h \
	lib/direct/eager.c \
	lib/direct/reduce.c \
	lib/direct/allgather.c
