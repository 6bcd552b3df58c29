/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The kernels of one datatype. Included by kernels.h once for each, with
 *   TYPE     its name in types.h
 *   PARTIAL  that of its partial results, whose kernels come before
 * and no include guard. Where op, or the number of sources, is a constant
 * the compiler drops what depends on it.
 */
#include "reduce/stream.h"
#include "reduce/types.h"
#include "reduce/variant.h"
#include "util/math.h"

#ifndef TYPE
#define TYPE    f32 /* so that the header compiles alone */
#define PARTIAL f32
#endif

#define CAT_(_a, _b) _a##_b
#define CAT(_a, _b)  CAT_(_a, _b)
#define T(_name)     CAT(TYPE, _name)
#define P(_name)     CAT(PARTIAL, _name)

#define ELEM_SIZE    sizeof(((T(_packed_t)){0})[0])
#define PARTIAL_SIZE sizeof(((P(_packed_t)){0})[0])
#define LANES        (sizeof(T(_packed_t)) / ELEM_SIZE)

/* A block is four vectors: one's latency hides behind the others. */
#define BLOCK  4
#define UNROLL _Pragma("GCC unroll 4")

FN T(_acc_t) T(_vector_load)(const char *src, size_t at, bool partial)
{
    return partial ? P(_load)(src + at * PARTIAL_SIZE)
                   : T(_load)(src + at * ELEM_SIZE);
}

/* The sum is kept flipped while it is a maximum. */
FN T(_acc_t) T(_begin)(T(_acc_t) value, hce_redop_t op)
{
    return op == HCE_MAX ? T(_flip)(value) : value;
}

FN T(_acc_t) T(_combine)(T(_acc_t) sum, T(_acc_t) value, hce_redop_t op)
{
    if (op == HCE_SUM)
        return T(_add)(sum, value);
    if (op == HCE_PROD)
        return T(_mul)(sum, value);
    return T(_min)(sum, T(_begin)(value, op));
}

FN T(_acc_t) T(_finish)(T(_acc_t) sum, hce_redop_t op, uint32_t divisor)
{
    if (op == HCE_MAX)
        return T(_flip)(sum);
    return divisor != 0 ? T(_divide)(sum, divisor) : sum;
}

FN void T(_block_store)(const hce_reduce_args_t *args, size_t at,
                        const T(_acc_t) * sum, bool streaming)
{
    const size_t size = sizeof(T(_packed_t));
    T(_packed_t) packed[BLOCK];
    char *dst;
    int d, i;

    UNROLL for (i = 0; i < BLOCK; i++) packed[i] = T(_pack)(sum[i]);
    for (d = 0; d < args->num_dsts; d++) {
        dst = (char *)args->dsts[d] + at * ELEM_SIZE;
        if (streaming) {
            UNROLL for (i = 0; i < BLOCK; i++)
                stream(dst + (size_t)i * size, &packed[i], size);
        } else {
            UNROLL for (i = 0; i < BLOCK; i++)
                memcpy(dst + (size_t)i * size, &packed[i], size);
        }
    }
}

FN void T(_block)(const hce_reduce_args_t *args, size_t at, hce_redop_t op,
                  int num_srcs, bool streaming)
{
    const char *const *srcs = (const char *const *)args->srcs;
    bool partial = args->num_partials > 0;
    T(_acc_t) sum[BLOCK];
    size_t i;
    int s;

    UNROLL for (i = 0; i < BLOCK; i++) sum[i] =
        T(_begin)(T(_vector_load)(srcs[0], at + i * LANES, partial), op);
    for (s = 1; s < num_srcs; s++) {
        partial = s < args->num_partials;
        UNROLL for (i = 0; i < BLOCK; i++) sum[i] = T(_combine)(
            sum[i], T(_vector_load)(srcs[s], at + i * LANES, partial), op);
    }
    UNROLL for (i = 0; i < BLOCK; i++) sum[i] =
        T(_finish)(sum[i], op, args->divisor);
    if (args->to_partial)
        P(_block_store)(args, at, sum, streaming);
    else
        T(_block_store)(args, at, sum, streaming);
}

/* A vector of which only num elements are there; the others are 0. */
FN T(_acc_t)
    T(_short_load)(const hce_reduce_args_t *args, int s, size_t at, size_t num)
{
    bool partial = s < args->num_partials;
    size_t size = partial ? PARTIAL_SIZE : ELEM_SIZE;
    char copy[sizeof(T(_acc_t))] = {0};

    memcpy(copy, (const char *)args->srcs[s] + at * size, num * size);
    return T(_vector_load)(copy, 0, partial);
}

FN void T(_short_store)(const hce_reduce_args_t *args, size_t at, size_t num,
                        T(_acc_t) sum)
{
    size_t size = args->to_partial ? PARTIAL_SIZE : ELEM_SIZE;
    char copy[sizeof(T(_acc_t))];
    P(_packed_t) partial;
    T(_packed_t) packed;
    int d;

    if (args->to_partial) {
        partial = P(_pack)(sum);
        memcpy(copy, &partial, sizeof(partial));
    } else {
        packed = T(_pack)(sum);
        memcpy(copy, &packed, sizeof(packed));
    }
    for (d = 0; d < args->num_dsts; d++)
        memcpy((char *)args->dsts[d] + at * size, copy, num * size);
}

/* Less than a block, or before the first aligned one. */
static TARGET __attribute__((noinline)) void
T(_rest)(const hce_reduce_args_t *args, size_t at, size_t end, hce_redop_t op)
{
    T(_acc_t) sum;
    size_t num;
    int s;

    for (; at < end; at += num) {
        num = hce_min(end - at, LANES);
        sum = T(_begin)(T(_short_load)(args, 0, at, num), op);
        for (s = 1; s < args->num_srcs; s++)
            sum = T(_combine)(sum, T(_short_load)(args, s, at, num), op);
        sum = T(_finish)(sum, op, args->divisor);
        T(_short_store)(args, at, num, sum);
    }
}

FN void T(_run)(const hce_reduce_args_t *args, size_t at, size_t end,
                bool streaming, hce_redop_t op)
{
    const size_t len = BLOCK * LANES;

    if (args->num_srcs == 2) {
        for (; end - at >= len; at += len)
            T(_block)(args, at, op, 2, streaming);
    } else {
        for (; end - at >= len; at += len)
            T(_block)(args, at, op, args->num_srcs, streaming);
    }
    if (at < end)
        T(_rest)(args, at, end, op);
}

static inline TARGET void T(_sum)(const hce_reduce_args_t *args, size_t at,
                                  size_t end, bool streaming)
{
    T(_run)(args, at, end, streaming, HCE_SUM);
}

static inline TARGET void T(_prod)(const hce_reduce_args_t *args, size_t at,
                                   size_t end, bool streaming)
{
    T(_run)(args, at, end, streaming, HCE_PROD);
}

static inline TARGET void T(_least)(const hce_reduce_args_t *args, size_t at,
                                    size_t end, bool streaming)
{
    T(_run)(args, at, end, streaming, HCE_MIN);
}

static inline TARGET void T(_most)(const hce_reduce_args_t *args, size_t at,
                                   size_t end, bool streaming)
{
    T(_run)(args, at, end, streaming, HCE_MAX);
}

/* A vector of sums as it is stored, for tests of the rounding alone. */
static inline TARGET size_t T(_sum_round)(const void *src, void *dst)
{
    T(_packed_t) packed;
    T(_acc_t) sum;

    memcpy(&sum, src, sizeof(sum));
    packed = T(_pack)(sum);
    memcpy(dst, &packed, sizeof(packed));
    return LANES;
}

#undef TYPE
#undef PARTIAL
