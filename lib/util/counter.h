/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The one means of synchronisation: a 64-bit number with one writer that only
 * grows. Compared as CUDA's GEQ does, signed and cyclic, so that a wait is
 * released by storing HCE_COUNTER_RELEASE. May lie in memory that several
 * processes map.
 */
#ifndef HCE_UTIL_COUNTER_H
#define HCE_UTIL_COUNTER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct hce_counter {
    _Atomic(uint64_t) value;
} hce_counter_t;

#define HCE_COUNTER_RELEASE ((uint64_t)INT64_MAX)

/* Acquire: data written before the matching hce_counter_post is visible
 * after a read that saw its value. */
static inline uint64_t hce_counter_read(const hce_counter_t *counter)
{
    return atomic_load_explicit(&((hce_counter_t *)counter)->value,
                                memory_order_acquire);
}

/* Release: pairs with hce_counter_read. */
static inline void hce_counter_post(hce_counter_t *counter, uint64_t value)
{
    atomic_store_explicit(&counter->value, value, memory_order_release);
}

static inline bool hce_counter_geq(uint64_t have, uint64_t want)
{
    return (int64_t)(have - want) >= 0;
}

#endif
