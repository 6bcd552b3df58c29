# SPDX-License-Identifier: BSD-3-Clause
libhcecore_la_SOURCES += \
	lib/ce/ce.h \
	lib/ce/host/agree.c \
	lib/ce/host/config.c \
	lib/ce/host/copy.c \
	lib/ce/host/copy.h \
	lib/ce/host/copy_aarch64.c \
	lib/ce/host/copy_x86_64.c \
	lib/ce/host/host.h \
	lib/ce/host/import.c \
	lib/ce/host/link.c \
	lib/ce/host/link.h \
	lib/ce/host/link_msg.c \
	lib/ce/host/link_msg.h \
	lib/ce/host/mem.c \
	lib/ce/host/mem.h \
	lib/ce/host/open.c \
	lib/ce/host/outbox.c \
	lib/ce/host/outbox.h \
	lib/ce/host/probe.c \
	lib/ce/host/reach.c \
	lib/ce/host/ring.c \
	lib/ce/host/ring.h \
	lib/ce/host/segment.c \
	lib/ce/host/segment.h \
	lib/ce/host/settings.h \
	lib/ce/host/transfer.c \
	lib/ce/host/vm.c \
	lib/ce/host/window.c
