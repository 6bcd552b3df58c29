# SPDX-License-Identifier: BSD-3-Clause
libhcecore_la_SOURCES += \
	lib/rma_proxy/config.c \
	lib/rma_proxy/proxy.c \
	lib/rma_proxy/proxy.h \
	lib/rma_proxy/select.c \
	lib/rma_proxy/select.h \
	lib/rma_proxy/settings.h \
	lib/rma_proxy/transport.h \
	lib/rma_proxy/loop/faults.c \
	lib/rma_proxy/loop/in.c \
	lib/rma_proxy/loop/loop.c \
	lib/rma_proxy/loop/loop.h \
	lib/rma_proxy/loop/mem.c \
	lib/rma_proxy/loop/out.c
