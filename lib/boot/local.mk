# SPDX-License-Identifier: BSD-3-Clause
libhcecore_la_SOURCES += \
	lib/boot/adopt.c \
	lib/boot/boot.h \
	lib/boot/bootstraps.h \
	lib/boot/conn.c \
	lib/boot/conn.h \
	lib/boot/create.c \
	lib/boot/env.c \
	lib/boot/exchange.c \
	lib/boot/frames.c \
	lib/boot/group.c \
	lib/boot/group.h \
	lib/boot/heir.c \
	lib/boot/host.c \
	lib/boot/host.h \
	lib/boot/join.c \
	lib/boot/local.h \
	lib/boot/mac.c \
	lib/boot/mac.h \
	lib/boot/meet.c \
	lib/boot/meet.h \
	lib/boot/net.c \
	lib/boot/net.h \
	lib/boot/news.c \
	lib/boot/pmix.c \
	lib/boot/seat.c \
	lib/boot/settings.c \
	lib/boot/settings.h \
	lib/boot/split.c \
	lib/boot/stuck.c \
	lib/boot/unique_id.c \
	lib/boot/unique_id.h \
	lib/boot/watch.c \
	lib/boot/wire.h

EXTRA_DIST += docs/WIRE.md
