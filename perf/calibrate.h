/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * From measured times to figures of cost, and into a tuning file.
 */
#ifndef HCE_PERF_CALIBRATE_H
#define HCE_PERF_CALIBRATE_H

#include "job.h"
#include "results.h"

/* Rank 0, before anything is measured: can the file be written? */
hce_status_t hce_perf_calibrate_probe(hce_perf_job_t *job);

/* Rank 0: fits each variant, prints how well, and writes the file. What the
 * file says of other layouts and networks is kept. */
hce_status_t hce_perf_calibrate_write(hce_perf_job_t *job,
                                      const hce_perf_results_t *results);

#endif
