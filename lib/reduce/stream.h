/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Stores of one vector that go past the caches, where the architecture has
 * such; plain ones elsewhere. Weakly ordered: hce_reduce_run adds the fence.
 */
#ifndef HCE_REDUCE_STREAM_H
#define HCE_REDUCE_STREAM_H

#include "reduce/vector.h"

#if defined(__x86_64__)
#include <immintrin.h>

FN void stream4(char *dst, const void *src)
{
    int word;

    memcpy(&word, src, sizeof(word));
    _mm_stream_si32((int *)(void *)dst, word);
}

FN void stream8(char *dst, const void *src)
{
    long long word;

    memcpy(&word, src, sizeof(word));
    _mm_stream_si64((long long *)(void *)dst, word);
}

FN void stream16(char *dst, const void *src)
{
    __m128i value;

    memcpy(&value, src, sizeof(value));
    _mm_stream_si128((__m128i *)(void *)dst, value);
}

#if WIDTH >= 32
FN void stream32(char *dst, const void *src)
{
    __m256i value;

    memcpy(&value, src, sizeof(value));
    _mm256_stream_si256((__m256i *)(void *)dst, value);
}
#endif

#if WIDTH >= 64
FN void stream64(char *dst, const void *src)
{
    __m512i value;

    memcpy(&value, src, sizeof(value));
    _mm512_stream_si512((__m512i *)(void *)dst, value);
}
#endif
#endif

/* dst is aligned to size. */
FN void stream(char *dst, const void *src, size_t size)
{
#if defined(__x86_64__)
    if (size == 4)
        stream4(dst, src);
    else if (size == 8)
        stream8(dst, src);
    else if (size == 16)
        stream16(dst, src);
#if WIDTH >= 32
    else if (size == 32)
        stream32(dst, src);
#endif
#if WIDTH >= 64
    else if (size == 64)
        stream64(dst, src);
#endif
#else
    memcpy(dst, src, size);
#endif
}

#endif
