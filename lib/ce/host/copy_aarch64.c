/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Copy loops of aarch64: register multicast with store pairs, with the
 * non-temporal hint (stnp) or without. Both are ordered like any store, so
 * that the release of a later post suffices and no fence is needed here.
 */
#include <config.h>

#include "ce/host/copy.h"

#if defined(__aarch64__)

#include <arm_neon.h>

static bool always_usable(void)
{
    return true;
}

static inline void store_pair(char *dst, uint8x16_t a, uint8x16_t b, bool past)
{
    if (past)
        __asm__ volatile("stnp %q1, %q2, [%0]"
                         :
                         : "r"(dst), "w"(a), "w"(b)
                         : "memory");
    else
        __asm__ volatile("stp %q1, %q2, [%0]"
                         :
                         : "r"(dst), "w"(a), "w"(b)
                         : "memory");
}

/* Inlined with a constant past: past the caches, or through them. */
__attribute__((always_inline)) static inline void
neon_run(char *const *dsts, int num_dsts, const char *src, size_t len,
         bool past)
{
    const uint8_t *from = (const uint8_t *)src;
    uint8x16_t a, b, c, d;
    size_t at;
    int i;

    for (at = 0; at < len; at += 64) {
        a = vld1q_u8(from + at);
        b = vld1q_u8(from + at + 16);
        c = vld1q_u8(from + at + 32);
        d = vld1q_u8(from + at + 48);
        for (i = 0; i < num_dsts; i++) {
            store_pair(dsts[i] + at, a, b, past);
            store_pair(dsts[i] + at + 32, c, d, past);
        }
    }
}

static void neon_stream(char *const *dsts, int num_dsts, const char *src,
                        size_t len)
{
    neon_run(dsts, num_dsts, src, len, true);
}

static void neon_lines(char *const *dsts, int num_dsts, const char *src,
                       size_t len)
{
    neon_run(dsts, num_dsts, src, len, false);
}

static const hce_ce_loop_t neon_loop = {
    .name = "neon",
    .choice = HCE_CE_LOOP_VECTOR,
    .is_usable = always_usable,
    .lines = neon_lines,
};
static const hce_ce_loop_t neon_nt_loop = {
    .name = "non-temporal neon",
    .choice = HCE_CE_LOOP_NT,
    .is_usable = always_usable,
    .lines = neon_stream,
};

const hce_ce_loop_t *const hce_ce_arch_loops[] = {&neon_loop, &neon_nt_loop,
                                                  NULL};

#else

typedef int hce_ce_copy_aarch64_unused_t; /* a unit may not be empty */

#endif
