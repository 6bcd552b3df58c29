/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Test data: bytes that depend on the contributing rank, on the call and on
 * the offset, so that a slice that is late, doubled or misplaced is seen.
 */
#ifndef HCE_PERF_PATTERN_H
#define HCE_PERF_PATTERN_H

#include <stddef.h>
#include <stdint.h>

/* Names the data of one contribution. comm tells communicators apart that
 * are used at the same time. */
uint64_t hce_perf_pattern_key(int rank, int comm, uint64_t call);

/* The word at an index. */
uint64_t hce_perf_pattern_word(uint64_t key, uint64_t index);

void hce_perf_pattern_fill(uint64_t key, void *buf, size_t len);

/* How many elements of elt_size bytes in buf differ from the pattern. */
uint64_t hce_perf_pattern_check(uint64_t key, const void *buf, size_t len,
                                size_t elt_size);

#endif
