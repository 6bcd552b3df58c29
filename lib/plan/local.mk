# SPDX-License-Identifier: BSD-3-Clause
libhcecore_la_SOURCES += \
	lib/plan/plan.h \
	lib/plan/read.h \
	lib/plan/read_priv.h \
	lib/plan/show.h \
	lib/plan/verify.h \
	lib/plan/verify_area.h \
	lib/plan/verify_content.h \
	lib/plan/verify_priv.h \
	lib/plan/geometry.c \
	lib/plan/json.c \
	lib/plan/plan.c \
	lib/plan/print.c \
	lib/plan/read.c \
	lib/plan/read_values.c \
	lib/plan/set.c \
	lib/plan/verify.c \
	lib/plan/verify_area.c \
	lib/plan/verify_content.c \
	lib/plan/verify_counters.c \
	lib/plan/verify_one.c \
	lib/plan/verify_order.c \
	lib/plan/verify_output.c \
	lib/plan/verify_ranks.c \
	lib/plan/verify_replay.c \
	lib/plan/verify_sets.c \
	lib/plan/verify_shape.c \
	lib/plan/verify_text.c \
	lib/plan/verify_window.c

EXTRA_DIST += docs/PLAN.md
