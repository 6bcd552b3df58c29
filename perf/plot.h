/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The curve of a run, drawn by gnuplot.
 */
#ifndef HCE_PERF_PLOT_H
#define HCE_PERF_PLOT_H

#include "job.h"
#include "results.h"

/* Why a file cannot be drawn by its name alone, or NULL. */
const char *hce_perf_plot_refusal(const char *file);

/* Can gnuplot be run? Known before the measurement, not after it. */
hce_status_t hce_perf_plot_probe(hce_perf_job_t *job);

hce_status_t hce_perf_plot_write(hce_perf_job_t *job,
                                 const hce_perf_results_t *results);

#endif
