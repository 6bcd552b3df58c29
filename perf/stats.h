/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Do the library's statistics amount to what its plan says? Pure.
 */
#ifndef HCE_PERF_STATS_H
#define HCE_PERF_STATS_H

#include <hce/hce.h>
#include <stdbool.h>

/* Sum of one and the other. */
void hce_perf_stats_add(hce_comm_stats_t *sum, const hce_comm_stats_t *one);

/* What calls of one kind must count. */
void hce_perf_stats_plan(const hce_explain_t *explain, uint64_t calls,
                         bool in_place, hce_comm_stats_t *plan_p);

/* One count that is not as planned. */
typedef struct hce_perf_stats_diff {
    const char *name; /* "puts" */
    uint64_t counted, planned;
} hce_perf_stats_diff_t;

/* Is the difference of before and after as planned? If not *diff_p is the
 * first count that is not. */
bool hce_perf_stats_match(const hce_comm_stats_t *before,
                          const hce_comm_stats_t *after,
                          const hce_comm_stats_t *plan,
                          hce_perf_stats_diff_t *diff_p);

#endif
