/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * A burst: calls of one kind queued one after the other, each on its own
 * slot of the buffers, then waited for. Its data are filled before and
 * checked after it.
 */
#ifndef HCE_PERF_BURST_H
#define HCE_PERF_BURST_H

#include "buffers.h"
#include "job.h"

typedef struct hce_perf_burst {
    hce_perf_job_t *job;
    hce_perf_pair_t *pairs;
    size_t count; /* elements a rank */
    hce_datatype_t type;
    hce_redop_t op; /* of a reduction */
    bool in_place;
    int slots; /* calls that have buffers of their own; then again the first */

    uint64_t data;         /* names the data of slot 0; slot s has data + s */
    hce_call_params_t call; /* params of each call */
    uint64_t *calls;       /* made so far in this run; shared by its bursts */
    hce_explain_t explain; /* what statistics must amount to */
} hce_perf_burst_t;

/* What this rank found; zeroed by the caller, added to by the calls below. */
typedef struct hce_perf_tally {
    uint64_t wrong;   /* elements, guards' bytes */
    uint64_t checked; /* elements */
    uint64_t stats_wrong;
} hce_perf_tally_t;

/* New data for the first num slots; every rank names them alike. */
void hce_perf_burst_fill(hce_perf_burst_t *burst, uint64_t data, int num);

/* num calls on every communicator; *sec_p is for all of them. */
hce_status_t hce_perf_burst_run(hce_perf_burst_t *burst, int num,
                                double *sec_p, hce_perf_tally_t *tally);

/* Have num calls overwritten their own input? In place a reduction leaves
 * its result there, and a slot's second call starts from that. */
bool hce_perf_burst_is_spent(const hce_perf_burst_t *burst, int num);

/* Compares every element of the first num slots. */
void hce_perf_burst_check(const hce_perf_burst_t *burst, int num,
                          hce_perf_tally_t *tally);

#endif
