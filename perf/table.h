/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * What people see: the lines on standard output, in the form that tools for
 * collective benchmarks parse (comments start with '#'), and a progress bar
 * on standard error while that is a terminal. Rank 0 only.
 */
#ifndef HCE_PERF_TABLE_H
#define HCE_PERF_TABLE_H

#include "job.h"
#include "results.h"

/* Settings and ranks. */
void hce_perf_table_intro(const hce_perf_job_t *job);

void hce_perf_table_head(void);

/* The dispatcher's choice for the row to come, where it is another than that
 * of the row before (NULL if there is none). */
void hce_perf_table_path(const hce_explain_t *explain,
                         const hce_explain_t *before);
/* A variant that cannot run a size, and why. */
void hce_perf_table_refusal(uint64_t size, const char *label,
                            const char *why);
/* Times of all variants side by side, where there are several. */
void hce_perf_table_compare(const hce_perf_opts_t *opts,
                            const hce_perf_results_t *results);
void hce_perf_table_row(const hce_perf_opts_t *opts,
                        const hce_perf_row_t *row);
/* What this rank's first communicator has counted. */
void hce_perf_table_stats(const hce_perf_job_t *job);

void hce_perf_table_foot(const hce_perf_results_t *results,
                         const char *verdict);

/* done of total steps; 0 of 0 clears the bar. */
void hce_perf_progress(size_t done, size_t total, const char *what);

#endif
