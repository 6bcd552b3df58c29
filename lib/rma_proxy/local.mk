# SPDX-License-Identifier: BSD-3-Clause
libhcecore_la_SOURCES += \
	lib/rma_proxy/proxy.h \
	lib/rma_proxy/transport.h
