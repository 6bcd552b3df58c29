/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The kernels for x86-64 with AVX-512 F, BW, DQ and VL. The conversions of
 * float16 round as convert.h does. The arithmetic of AVX-512 FP16 is of no
 * use: it would round every addition to 16 bits.
 */
#include <config.h>

#if defined(__x86_64__)

#define WIDTH  64
#define TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))

#include "reduce/vector.h"

#include <immintrin.h>
#include <stdbool.h>

#define HAVE_F16
#define HAVE_BYTES
#define HAVE_NAN
#define HAVE_LESSER

FN pair_t f16_decode(vu16_t code)
{
    __m512i both = (__m512i)code;

    return (pair_t){
        (vf32_t)_mm512_cvtph_ps(_mm512_castsi512_si256(both)),
        (vf32_t)_mm512_cvtph_ps(_mm512_extracti64x4_epi64(both, 1)),
    };
}

FN pair_t f16_load(const char *src)
{
    const __m256i *halves = (const __m256i *)(const void *)src;

    return (pair_t){
        (vf32_t)_mm512_cvtph_ps(_mm256_loadu_si256(halves)),
        (vf32_t)_mm512_cvtph_ps(_mm256_loadu_si256(halves + 1)),
    };
}

FN bool has_nan(pair_t value)
{
    return _mm512_cmp_ps_mask((__m512)value.a, (__m512)value.b,
                              _CMP_UNORD_Q) != 0;
}

FN __m256i f16_encode16(vf32_t value)
{
    return _mm512_cvtps_ph((__m512)value, _MM_FROUND_TO_NEAREST_INT);
}

FN vu16_t halves(__m256i a, __m256i b)
{
    return (vu16_t)_mm512_inserti64x4(_mm512_castsi256_si512(a), b, 1);
}

FN vu16_t f16_encode(pair_t value)
{
    return halves(f16_encode16(value.a), f16_encode16(value.b));
}

FN vu16_t join(vu32_t a, vu32_t b)
{
    return halves(_mm512_cvtepi32_epi16((__m512i)a),
                  _mm512_cvtepi32_epi16((__m512i)b));
}

FN vu16_t widen(vhalf_t code)
{
    return (vu16_t)_mm512_cvtepu8_epi16((__m256i)code);
}

FN vhalf_t narrow(vu16_t code)
{
    return (vhalf_t)_mm512_cvtepi16_epi8((__m512i)code);
}

FN vf32_t f32_lesser(vf32_t a, vf32_t b)
{
    return (vf32_t)_mm512_min_ps((__m512)a, (__m512)b);
}

FN vf64_t f64_lesser(vf64_t a, vf64_t b)
{
    return (vf64_t)_mm512_min_pd((__m512d)a, (__m512d)b);
}

#include "reduce/kernels.h"

static bool avx512_usable(void)
{
    return __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
}

const hce_reduce_variant_t hce_reduce_avx512 = {
    .name = "avx512",
    .is_usable = avx512_usable,
    .rows = ROWS,
};

#else

typedef int hce_reduce_avx512_unused_t; /* a unit may not be empty */

#endif
