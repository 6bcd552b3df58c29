# SPDX-License-Identifier: BSD-3-Clause
libhcecore_la_SOURCES += \
	lib/plan/plan.h \
	lib/plan/verify.h \
	lib/plan/plan.c \
	lib/plan/geometry.c
