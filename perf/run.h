/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The measurement: for each datatype and size, out of place and in place,
 * warm-up calls, timed calls and checked calls.
 */
#ifndef HCE_PERF_RUN_H
#define HCE_PERF_RUN_H

#include "buffers.h"
#include "job.h"
#include "results.h"

/* Measures everything that the options ask for into results, rank 0 printing
 * each row. Rows measured before a failure stay. Collective. */
hce_status_t hce_perf_run(hce_perf_job_t *job, hce_perf_pair_t *pairs,
                          hce_perf_results_t *results);

#endif
