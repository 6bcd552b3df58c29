/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Copy loops of x86-64: rep movsb, and register multicast in three widths:
 * loaded once, stored to every destination, through the caches or past them.
 * The latter end with sfence: non-temporal stores are weakly ordered, also
 * against a release.
 */
#include <config.h>

#include "ce/host/copy.h"

#if defined(__x86_64__)

#include <immintrin.h>

static bool always_usable(void)
{
    return true;
}

static bool avx512_usable(void)
{
    return __builtin_cpu_supports("avx512f");
}

static bool avx2_usable(void)
{
    return __builtin_cpu_supports("avx2");
}

static void rep_block(void *dst, const void *src, size_t len)
{
    __asm__ volatile("rep movsb"
                     : "+D"(dst), "+S"(src), "+c"(len)
                     :
                     : "memory");
}

/* Inlined with a constant past: past the caches, or through them. */
__attribute__((target("avx512f"), always_inline)) static inline void
avx512_store(char *dst, __m512i value, bool past)
{
    if (past)
        _mm512_stream_si512((void *)dst, value);
    else
        _mm512_store_si512((void *)dst, value);
}

__attribute__((target("avx512f"), always_inline)) static inline void
avx512_run(char *const *dsts, int num_dsts, const char *src, size_t len,
           bool past)
{
    __m512i a, b, c, d;
    size_t at;
    int i;

    for (at = 0; at + 256 <= len; at += 256) {
        a = _mm512_loadu_si512(src + at);
        b = _mm512_loadu_si512(src + at + 64);
        c = _mm512_loadu_si512(src + at + 128);
        d = _mm512_loadu_si512(src + at + 192);
        for (i = 0; i < num_dsts; i++) {
            avx512_store(dsts[i] + at, a, past);
            avx512_store(dsts[i] + at + 64, b, past);
            avx512_store(dsts[i] + at + 128, c, past);
            avx512_store(dsts[i] + at + 192, d, past);
        }
    }
    for (; at < len; at += 64) {
        a = _mm512_loadu_si512(src + at);
        for (i = 0; i < num_dsts; i++)
            avx512_store(dsts[i] + at, a, past);
    }
    if (past)
        _mm_sfence();
}

__attribute__((target("avx512f"))) static void
avx512_stream(char *const *dsts, int num_dsts, const char *src, size_t len)
{
    avx512_run(dsts, num_dsts, src, len, true);
}

__attribute__((target("avx512f"))) static void
avx512_lines(char *const *dsts, int num_dsts, const char *src, size_t len)
{
    avx512_run(dsts, num_dsts, src, len, false);
}

__attribute__((target("avx2"), always_inline)) static inline void
avx2_store(char *dst, __m256i value, bool past)
{
    if (past)
        _mm256_stream_si256((void *)dst, value);
    else
        _mm256_store_si256((void *)dst, value);
}

__attribute__((target("avx2"), always_inline)) static inline void
avx2_run(char *const *dsts, int num_dsts, const char *src, size_t len,
         bool past)
{
    __m256i a, b;
    size_t at;
    int i;

    for (at = 0; at < len; at += 64) {
        a = _mm256_loadu_si256((const void *)(src + at));
        b = _mm256_loadu_si256((const void *)(src + at + 32));
        for (i = 0; i < num_dsts; i++) {
            avx2_store(dsts[i] + at, a, past);
            avx2_store(dsts[i] + at + 32, b, past);
        }
    }
    if (past)
        _mm_sfence();
}

__attribute__((target("avx2"))) static void
avx2_stream(char *const *dsts, int num_dsts, const char *src, size_t len)
{
    avx2_run(dsts, num_dsts, src, len, true);
}

__attribute__((target("avx2"))) static void
avx2_lines(char *const *dsts, int num_dsts, const char *src, size_t len)
{
    avx2_run(dsts, num_dsts, src, len, false);
}

static void sse2_stream(char *const *dsts, int num_dsts, const char *src,
                        size_t len)
{
    __m128i a, b, c, d;
    size_t at;
    int i;

    for (at = 0; at < len; at += 64) {
        a = _mm_loadu_si128((const void *)(src + at));
        b = _mm_loadu_si128((const void *)(src + at + 16));
        c = _mm_loadu_si128((const void *)(src + at + 32));
        d = _mm_loadu_si128((const void *)(src + at + 48));
        for (i = 0; i < num_dsts; i++) {
            _mm_stream_si128((void *)(dsts[i] + at), a);
            _mm_stream_si128((void *)(dsts[i] + at + 16), b);
            _mm_stream_si128((void *)(dsts[i] + at + 32), c);
            _mm_stream_si128((void *)(dsts[i] + at + 48), d);
        }
    }
    _mm_sfence();
}

static const hce_ce_loop_t rep_loop = {
    .name = "rep movsb",
    .choice = HCE_CE_LOOP_REP,
    .is_usable = always_usable,
    .block = rep_block,
};
static const hce_ce_loop_t avx512_loop = {
    .name = "avx512",
    .choice = HCE_CE_LOOP_VECTOR,
    .is_usable = avx512_usable,
    .lines = avx512_lines,
};
static const hce_ce_loop_t avx2_loop = {
    .name = "avx2",
    .choice = HCE_CE_LOOP_VECTOR,
    .is_usable = avx2_usable,
    .lines = avx2_lines,
};
static const hce_ce_loop_t avx512_nt_loop = {
    .name = "non-temporal avx512",
    .choice = HCE_CE_LOOP_NT,
    .is_usable = avx512_usable,
    .lines = avx512_stream,
};
static const hce_ce_loop_t avx2_nt_loop = {
    .name = "non-temporal avx2",
    .choice = HCE_CE_LOOP_NT,
    .is_usable = avx2_usable,
    .lines = avx2_stream,
};
static const hce_ce_loop_t sse2_nt_loop = {
    .name = "non-temporal sse2",
    .choice = HCE_CE_LOOP_NT,
    .is_usable = always_usable,
    .lines = sse2_stream,
};

const hce_ce_loop_t *const hce_ce_arch_loops[] = {
    &rep_loop,     &avx512_loop,  &avx2_loop, &avx512_nt_loop,
    &avx2_nt_loop, &sse2_nt_loop, NULL};

#elif !defined(__aarch64__)

const hce_ce_loop_t *const hce_ce_arch_loops[] = {NULL};

#endif
