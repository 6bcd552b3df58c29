# SPDX-License-Identifier: BSD-3-Clause
bin_PROGRAMS += tools/hce_info
tools_hce_info_SOURCES = tools/hce_info.c
tools_hce_info_LDADD = libhcecore.la

# Plans are made of integers alone: as-needed keeps the libraries of the
# transports out.
bin_PROGRAMS += tools/hce_plan
tools_hce_plan_SOURCES = \
	tools/plan/chunks.c \
	tools/plan/commands.h \
	tools/plan/draw.c \
	tools/plan/hce_plan.c \
	tools/plan/opts.c \
	tools/plan/opts.h \
	tools/plan/schedule.c \
	tools/plan/schedule.h \
	tools/plan/show.c \
	tools/plan/source.c \
	tools/plan/source.h \
	tools/plan/verify.c
tools_hce_plan_LDADD = libhcecore.la
tools_hce_plan_LDFLAGS = $(AM_LDFLAGS) -Wl,--as-needed

# docs/ENV.md is made from the tables of settings; a test compares them.
EXTRA_DIST += docs/ENV.md

.PHONY: update-env-doc
update-env-doc: tools/hce_info
	tools/hce_info --doc >docs.tmp && mv docs.tmp $(top_srcdir)/docs/ENV.md
