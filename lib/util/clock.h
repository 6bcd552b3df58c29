/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Monotonic time in nanoseconds.
 */
#ifndef HCE_UTIL_CLOCK_H
#define HCE_UTIL_CLOCK_H

#include <stdint.h>
#include <time.h>

#define HCE_NS_PER_MS  1000000ull
#define HCE_NS_PER_SEC 1000000000ull
#define HCE_TIME_NEVER UINT64_MAX

static inline uint64_t hce_clock_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * HCE_NS_PER_SEC + (uint64_t)now.tv_nsec;
}

/* The moment len_ns from now; HCE_TIME_NEVER when len_ns is 0 (no limit). */
static inline uint64_t hce_clock_deadline(uint64_t len_ns)
{
    return len_ns == 0 ? HCE_TIME_NEVER : hce_clock_ns() + len_ns;
}

#endif
