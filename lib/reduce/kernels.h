/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * All kernels of a variant and their table. Included once by each variant,
 * after vector.h and whatever it has better than convert.h and types.h.
 */
#ifndef HCE_REDUCE_KERNELS_H
#define HCE_REDUCE_KERNELS_H

#ifdef __FAST_MATH__
#error "reductions need IEEE arithmetic: build without -ffast-math"
#endif

#define TYPE    int8
#define PARTIAL int8
#include "reduce/loop.h"
#define TYPE    uint8
#define PARTIAL uint8
#include "reduce/loop.h"
#define TYPE    int32
#define PARTIAL int32
#include "reduce/loop.h"
#define TYPE    uint32
#define PARTIAL uint32
#include "reduce/loop.h"
#define TYPE    int64
#define PARTIAL int64
#include "reduce/loop.h"
#define TYPE    uint64
#define PARTIAL uint64
#include "reduce/loop.h"
#define TYPE    f16
#define PARTIAL f16
#include "reduce/loop.h"
#define TYPE    bf16
#define PARTIAL bf16
#include "reduce/loop.h"
#define TYPE    f32
#define PARTIAL f32
#include "reduce/loop.h"
#define TYPE    f64
#define PARTIAL f64
#include "reduce/loop.h"
/* Sums of 8-bit floats travel as float16. */
#define TYPE    e4m3
#define PARTIAL f16
#include "reduce/loop.h"
#define TYPE    e5m2
#define PARTIAL f16
#include "reduce/loop.h"

#define ROWS                                                                  \
    {                                                                         \
        [HCE_INT8] = ROW(int8), [HCE_UINT8] = ROW(uint8),                     \
        [HCE_INT32] = ROW(int32), [HCE_UINT32] = ROW(uint32),                 \
        [HCE_INT64] = ROW(int64), [HCE_UINT64] = ROW(uint64),                 \
        [HCE_FLOAT16] = ROW(f16), [HCE_FLOAT32] = ROW(f32),                   \
        [HCE_FLOAT64] = ROW(f64), [HCE_BFLOAT16] = ROW(bf16),                 \
        [HCE_FLOAT8E4M3] = ROW(e4m3), [HCE_FLOAT8E5M2] = ROW(e5m2),           \
    }

#endif
