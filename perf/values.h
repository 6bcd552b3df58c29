/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Test data of reductions: elements that depend on the contributing rank, on
 * the call and on the index, and results held against a reference with more
 * precision. Integers, and min and max, are to be exact; docs/REDUCE.md
 * derives the bound for the rest.
 */
#ifndef HCE_PERF_VALUES_H
#define HCE_PERF_VALUES_H

#include <hce/hce.h>
#include <stddef.h>
#include <stdint.h>

/* What is reduced: data names a call, comm a communicator. */
typedef struct hce_perf_values {
    hce_datatype_t type;
    hce_redop_t op;
    int ranks;
    int comm;
    uint64_t data;
} hce_perf_values_t;

/* Elements first to first + count of a rank's input. */
void hce_perf_values_fill(const hce_perf_values_t *values, int rank,
                          size_t first, void *buf, size_t count);

/* How many elements of buf are not those of a rank's input, or not those of
 * the result within the bound. */
uint64_t hce_perf_values_check_input(const hce_perf_values_t *values, int rank,
                                     size_t first, const void *buf,
                                     size_t count);
uint64_t hce_perf_values_check(const hce_perf_values_t *values, size_t first,
                               const void *buf, size_t count);

#endif
