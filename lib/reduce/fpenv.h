/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The floating-point environment that results are defined in: to nearest,
 * ties to even, subnormal numbers kept, nothing trapped. The thread that
 * reduces may be the user's, and a program built with -ffast-math has others.
 */
#ifndef HCE_REDUCE_FPENV_H
#define HCE_REDUCE_FPENV_H

#include <stdint.h>

#if defined(__x86_64__)
#include <immintrin.h>

#define HCE_REDUCE_FPENV 0x1f80u /* MXCSR: all masked, nothing else */
#define HCE_REDUCE_FLAGS 0x003fu /* what has happened: not looked at */

static inline uint64_t hce_reduce_fpenv_get(void)
{
    return _mm_getcsr() & ~HCE_REDUCE_FLAGS;
}

static inline void hce_reduce_fpenv_set(uint64_t env)
{
    _mm_setcsr((unsigned)env);
}

#elif defined(__aarch64__)

#define HCE_REDUCE_FPENV 0u /* FPCR */

static inline uint64_t hce_reduce_fpenv_get(void)
{
    uint64_t env;

    __asm__ volatile("mrs %0, fpcr" : "=r"(env));
    return env;
}

static inline void hce_reduce_fpenv_set(uint64_t env)
{
    __asm__ volatile("msr fpcr, %0" : : "r"(env) : "memory");
}

#endif

#endif
