/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The results of a run as JSON: configuration, ranks and rows. Nothing of
 * the environment is in it.
 */
#ifndef HCE_PERF_JSON_H
#define HCE_PERF_JSON_H

#include "job.h"
#include "results.h"

/* Why JSON cannot be written by this build, or NULL. */
const char *hce_perf_json_refusal(void);

/* Can the file be written? Known before the measurement, not after it. */
hce_status_t hce_perf_json_probe(hce_perf_job_t *job);

hce_status_t hce_perf_json_write(hce_perf_job_t *job,
                                 const hce_perf_results_t *results,
                                 const char *verdict);

#endif
