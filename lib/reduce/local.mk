# SPDX-License-Identifier: BSD-3-Clause
# Each variant's instructions are allowed function by function, so that one
# library has them all. Contracting a * b + c would change results.
libhcecore_la_SOURCES += \
	lib/reduce/avx2.c \
	lib/reduce/avx512.c \
	lib/reduce/avx512_bf16.c \
	lib/reduce/config.c \
	lib/reduce/convert.h \
	lib/reduce/fpenv.h \
	lib/reduce/kernels.h \
	lib/reduce/loop.h \
	lib/reduce/portable.c \
	lib/reduce/reduce.c \
	lib/reduce/reduce.h \
	lib/reduce/settings.h \
	lib/reduce/stream.h \
	lib/reduce/types.h \
	lib/reduce/variant.h \
	lib/reduce/vector.h
EXTRA_DIST += docs/REDUCE.md
AM_CFLAGS += -ffp-contract=off
