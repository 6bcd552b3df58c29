/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The kernels for x86-64 with AVX2 and F16C. The conversions of F16C take and
 * give subnormal numbers and round as convert.h does; NaNs are made alike.
 */
#include <config.h>

#if defined(__x86_64__)

#define WIDTH  32
#define TARGET __attribute__((target("avx2,f16c")))

#include "reduce/vector.h"

#include <cpuid.h>
#include <immintrin.h>
#include <stdbool.h>

#define HAVE_F16
#define HAVE_BYTES
#define HAVE_NAN
#define HAVE_LESSER

FN pair_t f16_decode(vu16_t code)
{
    return (pair_t){
        (vf32_t)_mm256_cvtph_ps(_mm256_castsi256_si128((__m256i)code)),
        (vf32_t)_mm256_cvtph_ps(_mm256_extracti128_si256((__m256i)code, 1)),
    };
}

FN pair_t f16_load(const char *src)
{
    const __m128i *halves = (const __m128i *)(const void *)src;

    return (pair_t){
        (vf32_t)_mm256_cvtph_ps(_mm_loadu_si128(halves)),
        (vf32_t)_mm256_cvtph_ps(_mm_loadu_si128(halves + 1)),
    };
}

FN bool has_nan(pair_t value)
{
    return _mm256_movemask_ps(_mm256_cmp_ps((__m256)value.a, (__m256)value.b,
                                            _CMP_UNORD_Q)) != 0;
}

FN __m128i f16_encode8(vf32_t value)
{
    return _mm256_cvtps_ph((__m256)value, _MM_FROUND_TO_NEAREST_INT);
}

FN vu16_t f16_encode(pair_t value)
{
    return (vu16_t)_mm256_set_m128i(f16_encode8(value.b),
                                    f16_encode8(value.a));
}

/* packus works in each 128 bits: 0 2 1 3 puts the quarters in order. */
FN vu16_t join(vu32_t a, vu32_t b)
{
    return (vu16_t)_mm256_permute4x64_epi64(
        _mm256_packus_epi32((__m256i)a, (__m256i)b), 0xd8);
}

FN vu16_t widen(vhalf_t code)
{
    return (vu16_t)_mm256_cvtepu8_epi16((__m128i)code);
}

FN vhalf_t narrow(vu16_t code)
{
    __m256i bytes = _mm256_packus_epi16((__m256i)code, (__m256i)code);

    bytes = _mm256_permute4x64_epi64(bytes, 0xd8);
    return (vhalf_t)_mm256_castsi256_si128(bytes);
}

FN vf32_t f32_lesser(vf32_t a, vf32_t b)
{
    return (vf32_t)_mm256_min_ps((__m256)a, (__m256)b);
}

FN vf64_t f64_lesser(vf64_t a, vf64_t b)
{
    return (vf64_t)_mm256_min_pd((__m256d)a, (__m256d)b);
}

#include "reduce/kernels.h"

static bool avx2_usable(void)
{
    unsigned eax, ebx, ecx = 0, edx;

    /* clang 14 does not know the name of F16C. */
    return __builtin_cpu_supports("avx2") &&
           __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 &&
           (ecx & bit_F16C) != 0;
}

const hce_reduce_variant_t hce_reduce_avx2 = {
    .name = "avx2",
    .is_usable = avx2_usable,
    .rows = ROWS,
};

#else

typedef int hce_reduce_avx2_unused_t; /* a unit may not be empty */

#endif
