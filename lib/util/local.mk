# SPDX-License-Identifier: BSD-3-Clause
libhcecore_la_SOURCES += \
	lib/util/clock.h \
	lib/util/config.h \
	lib/util/counter.h \
	lib/util/datatype.h \
	lib/util/layout.h \
	lib/util/log.h \
	lib/util/math.h \
	lib/util/shm.h
