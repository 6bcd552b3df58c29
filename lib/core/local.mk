# SPDX-License-Identifier: BSD-3-Clause
libhcecore_la_SOURCES += \
	lib/core/settings.c \
	lib/core/settings.h
