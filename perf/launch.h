/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Starts the ranks: processes of this machine, threads of this process, or
 * nobody where a launcher such as mpirun has started them.
 */
#ifndef HCE_PERF_LAUNCH_H
#define HCE_PERF_LAUNCH_H

#include "opts.h"

/* How one rank joins the job. */
typedef struct hce_perf_entry {
    int rank, size;                   /* -1: the launcher knows */
    const hce_unique_id_t *unique_id; /* NULL: the launcher knows */
    int node;                         /* -1: the library finds it */
} hce_perf_entry_t;

/* Runs one rank; its result is the rank's exit status. */
typedef int (*hce_perf_body_t)(const hce_perf_opts_t *opts,
                               const hce_perf_entry_t *entry);

/* Runs body for every rank of this process or its children and returns the
 * exit status for the job: 0 only if every rank returned 0. On SIGINT or
 * SIGTERM the children are ended and the signal ends this process too. */
int hce_perf_launch(const hce_perf_opts_t *opts, hce_perf_body_t body);

#endif
