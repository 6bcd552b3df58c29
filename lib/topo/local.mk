# SPDX-License-Identifier: BSD-3-Clause
libhcecore_la_SOURCES += \
	lib/topo/discover.c \
	lib/topo/machine.c \
	lib/topo/machine.h \
	lib/topo/pin.c \
	lib/topo/pin.h \
	lib/topo/settings.c \
	lib/topo/settings.h \
	lib/topo/topo.h
