/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Small integer helpers.
 */
#ifndef HCE_UTIL_MATH_H
#define HCE_UTIL_MATH_H

#include <stdint.h>

#define HCE_KIB 1024ull
#define HCE_MIB (1024ull * 1024)
#define HCE_GIB (1024ull * 1024 * 1024)

#define hce_min(_a, _b) ((_a) < (_b) ? (_a) : (_b))
#define hce_max(_a, _b) ((_a) > (_b) ? (_a) : (_b))

static inline uint64_t hce_div_up(uint64_t a, uint64_t b)
{
    return a / b + (a % b != 0);
}

/* Next multiple of unit, which need not be a power of two. */
static inline uint64_t hce_round_up(uint64_t a, uint64_t unit)
{
    return hce_div_up(a, unit) * unit;
}

/* splitmix64: public domain construction by S. Vigna; one step of a seeded
 * sequence, for tests, jitter and test patterns. */
static inline uint64_t hce_rand_next(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15ull);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

#endif
