/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The kernels of bfloat16 for x86-64 with AVX-512 BF16. Its conversion takes
 * subnormal numbers for 0 and keeps what NaNs carry: vectors with either are
 * rounded as convert.h does.
 */
#include <config.h>

#if defined(__x86_64__)

#define WIDTH 64
#define TARGET                                                                \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")))
#define HAVE_BF16

#include "reduce/convert.h"

#include <immintrin.h>

/* Quiet NaN, subnormal number, signalling NaN: operand of vfpclassps. */
#define NOT_CONVERTED (0x01 | 0x20 | 0x80)

FN vu16_t bf16_pack(pair_t value)
{
    /* Even lanes come in the lower half, odd ones in the upper. */
    static const uint16_t order[32] = {
        0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
        8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
    __m512 a = (__m512)value.a, b = (__m512)value.b;

    if (__builtin_expect((_mm512_fpclass_ps_mask(a, NOT_CONVERTED) |
                          _mm512_fpclass_ps_mask(b, NOT_CONVERTED)) != 0,
                         0))
        return bf16_round(value);
    return (vu16_t)_mm512_permutexvar_epi16(
        _mm512_loadu_si512(order), (__m512i)_mm512_cvtne2ps_pbh(b, a));
}

#define TYPE    bf16
#define PARTIAL bf16
#include "reduce/loop.h"

static bool bf16_usable(void)
{
    return hce_reduce_avx512.is_usable() &&
           __builtin_cpu_supports("avx512bf16");
}

const hce_reduce_variant_t hce_reduce_avx512_bf16 = {
    .name = "avx512-bf16",
    .is_usable = bf16_usable,
    .base = &hce_reduce_avx512,
    .rows = {[HCE_BFLOAT16] = ROW(bf16)},
};

#else

typedef int hce_reduce_avx512_bf16_unused_t; /* a unit may not be empty */

#endif
