# SPDX-License-Identifier: BSD-3-Clause
# Sources in lib/util include <config.h>: quotes would find util/config.h.
libhcecore_la_SOURCES += \
	lib/util/arch.h \
	lib/util/arch_aarch64.h \
	lib/util/arch_x86_64.h \
	lib/util/clock.h \
	lib/util/config.c \
	lib/util/config.h \
	lib/util/config_parse.c \
	lib/util/config_print.c \
	lib/util/config_priv.h \
	lib/util/counter.h \
	lib/util/datatype.c \
	lib/util/datatype.h \
	lib/util/layout.c \
	lib/util/layout.h \
	lib/util/layout_parse.c \
	lib/util/log.c \
	lib/util/log.h \
	lib/util/log_file.c \
	lib/util/log_file.h \
	lib/util/math.h \
	lib/util/shm.c \
	lib/util/shm.h \
	lib/util/status.c
