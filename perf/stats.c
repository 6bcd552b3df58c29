/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Counts are compared field by field through a table of their names.
 */
#include <config.h>

#include "stats.h"

#include <stddef.h>
#include <string.h>

/* retries and progress_wakes depend on timing and are not compared. */
static const struct {
    const char *name;
    size_t at;
} counts[] = {
    {"calls", offsetof(hce_comm_stats_t, calls)},
    {"puts", offsetof(hce_comm_stats_t, puts)},
    {"bytes put", offsetof(hce_comm_stats_t, put_bytes)},
    {"copies", offsetof(hce_comm_stats_t, copies)},
    {"bytes copied", offsetof(hce_comm_stats_t, copy_bytes)},
    {"kernels", offsetof(hce_comm_stats_t, kernels)},
};

#define NUM_COUNTS (sizeof(counts) / sizeof(counts[0]))

static uint64_t *count_at(hce_comm_stats_t *stats, size_t i)
{
    return (uint64_t *)((char *)stats + counts[i].at);
}

static uint64_t count_get(const hce_comm_stats_t *stats, size_t i)
{
    return *count_at((hce_comm_stats_t *)stats, i);
}

void hce_perf_stats_add(hce_comm_stats_t *sum, const hce_comm_stats_t *one)
{
    size_t i;

    for (i = 0; i < NUM_COUNTS; i++)
        *count_at(sum, i) += count_get(one, i);
}

void hce_perf_stats_plan(const hce_explain_t *explain, uint64_t calls,
                         bool in_place, hce_comm_stats_t *plan_p)
{
    memset(plan_p, 0, sizeof(*plan_p));
    plan_p->calls = calls;
    plan_p->puts = calls * explain->puts;
    plan_p->put_bytes = calls * explain->put_bytes;
    plan_p->copies =
        calls * (in_place ? explain->in_place_copies : explain->copies);
    plan_p->copy_bytes =
        calls *
        (in_place ? explain->in_place_copy_bytes : explain->copy_bytes);
}

bool hce_perf_stats_match(const hce_comm_stats_t *before,
                          const hce_comm_stats_t *after,
                          const hce_comm_stats_t *plan,
                          hce_perf_stats_diff_t *diff_p)
{
    uint64_t counted;
    size_t i;

    for (i = 0; i < NUM_COUNTS; i++) {
        counted = count_get(after, i) - count_get(before, i);
        if (counted != count_get(plan, i)) {
            *diff_p = (hce_perf_stats_diff_t){counts[i].name, counted,
                                              count_get(plan, i)};
            return false;
        }
    }
    return true;
}
