/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Sums over the rows of a run.
 */
#include <config.h>

#include "results.h"

#include <inttypes.h>
#include <stdio.h>

const char *hce_perf_results_op(const hce_perf_opts_t *opts,
                                const hce_perf_row_t *row)
{
    return opts->coll->reduces ? hce_redop_string(row->op) : "none";
}

int hce_perf_results_places(const hce_perf_opts_t *opts)
{
    return opts->out_of_place ? HCE_PERF_OUT_OF_PLACE + 1 : HCE_PERF_PLACES;
}

double hce_perf_results_busbw(const hce_perf_results_t *results)
{
    size_t i, num = 0;
    double sum = 0;
    int p;

    for (i = 0; i < results->num_rows; i++) {
        for (p = 0; p < HCE_PERF_PLACES; p++) {
            sum += results->rows[i].cells[p].busbw;
            num += results->rows[i].cells[p].is_measured;
        }
    }
    return num > 0 ? sum / (double)num : 0;
}

bool hce_perf_results_verdict(const hce_perf_results_t *results,
                              const hce_perf_opts_t *opts, const char *failure,
                              char *buf, size_t size)
{
    if (failure[0] != '\0') {
        snprintf(buf, size, "FAILED, %s", failure);
        return false;
    }
    if (results->wrong > 0) {
        snprintf(buf, size,
                 "FAILED, %" PRIu64 " wrong in %" PRIu64 " checked values",
                 results->wrong, results->checked);
        return false;
    }
    if (results->stats_wrong > 0) {
        snprintf(buf, size,
                 "FAILED, statistics differ from the plan in %" PRIu64
                 " bursts of calls",
                 results->stats_wrong);
        return false;
    }
    if (opts->checks == 0)
        snprintf(buf, size, "OK, nothing checked");
    else
        snprintf(buf, size, "OK, 0 wrong in %" PRIu64 " checked values",
                 results->checked);
    return true;
}
