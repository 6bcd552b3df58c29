# SPDX-License-Identifier: BSD-3-Clause
libhcecore_la_SOURCES += \
	lib/rma_proxy/config.c \
	lib/rma_proxy/proxy.c \
	lib/rma_proxy/proxy.h \
	lib/rma_proxy/regions.c \
	lib/rma_proxy/regions.h \
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

if HAVE_VERBS
libhcecore_la_SOURCES += \
	lib/rma_proxy/verbs/complete.c \
	lib/rma_proxy/verbs/control.c \
	lib/rma_proxy/verbs/device.c \
	lib/rma_proxy/verbs/dmabuf.c \
	lib/rma_proxy/verbs/gid.c \
	lib/rma_proxy/verbs/list.c \
	lib/rma_proxy/verbs/mem.c \
	lib/rma_proxy/verbs/peer.c \
	lib/rma_proxy/verbs/post.c \
	lib/rma_proxy/verbs/qp.c \
	lib/rma_proxy/verbs/recover.c \
	lib/rma_proxy/verbs/verbs.c \
	lib/rma_proxy/verbs/verbs.h \
	lib/rma_proxy/verbs/wire.h
endif

if HAVE_UCX
libhcecore_la_SOURCES += \
	lib/rma_proxy/ucx/address.c \
	lib/rma_proxy/ucx/am.c \
	lib/rma_proxy/ucx/context.c \
	lib/rma_proxy/ucx/ep.c \
	lib/rma_proxy/ucx/handler.c \
	lib/rma_proxy/ucx/mem.c \
	lib/rma_proxy/ucx/tune.c \
	lib/rma_proxy/ucx/ucx.c \
	lib/rma_proxy/ucx/ucx.h
endif
