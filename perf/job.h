/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * One rank's view of the job: its communicators and streams, who else takes
 * part, and the small exchanges between ranks that a benchmark needs.
 *
 * The first error is kept as text for the verdict, and ends the job on all
 * ranks: every communicator is aborted, so that nobody waits for this rank.
 */
#ifndef HCE_PERF_JOB_H
#define HCE_PERF_JOB_H

#include "launch.h"

#define HCE_PERF_HOST_LEN 64

/* Fixed layout: exchanged between ranks. */
typedef struct hce_perf_peer {
    int32_t pid;
    int32_t node;
    char host[HCE_PERF_HOST_LEN];
} hce_perf_peer_t;

typedef struct hce_perf_job {
    const hce_perf_opts_t *opts;
    hce_comm_h launched;   /* what a launcher gave, if --nodes split it */
    hce_comm_h ctl;        /* all ranks; carries the exchanges */
    hce_comm_h *comms;     /* [num_comms] measured; may be just ctl */
    hce_stream_h *streams; /* [num_comms] */
    int num_comms;
    hce_comm_attr_t attr;   /* of ctl; size 0 until it is known */
    hce_perf_peer_t *peers; /* [attr.size] */
    char failure[640];      /* the first error; empty while there is none */
} hce_perf_job_t;

/* Outputs are written also on failure, for the text and for close. */
hce_status_t hce_perf_job_open(const hce_perf_opts_t *opts,
                               const hce_perf_entry_t *entry,
                               hce_perf_job_t *job);
void hce_perf_job_close(hce_perf_job_t *job);

/* mine of every rank into all, by rank. */
hce_status_t hce_perf_job_exchange(hce_perf_job_t *job, const void *mine,
                                   size_t len, void *all);
hce_status_t hce_perf_job_barrier(hce_perf_job_t *job);

/* Is rank the first of those on its host? */
bool hce_perf_job_is_first(const hce_perf_job_t *job, int rank);

/* Refuses what every rank finds out alike, so that nobody must be told: rank 0
 * reports it. Returns status. */
hce_status_t hce_perf_job_refuse(hce_perf_job_t *job, hce_status_t status,
                                 const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Reports "what failed" on standard error with the library's own account of
 * it, keeps the first as the job's failure, and ends the job everywhere.
 * Returns status. */
hce_status_t hce_perf_job_fail(hce_perf_job_t *job, hce_status_t status,
                               const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
