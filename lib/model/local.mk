# SPDX-License-Identifier: BSD-3-Clause
libhcecore_la_SOURCES += \
	lib/model/cost.h \
	lib/model/cost.c \
	lib/model/figures.c
