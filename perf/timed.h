/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The timed calls of one cell: first, if --single asks for it, one by one,
 * then queued one after the other, with what they cost beside time.
 */
#ifndef HCE_PERF_TIMED_H
#define HCE_PERF_TIMED_H

#include "burst.h"
#include "measure.h"

/* Fixed layout: exchanged between ranks. */
typedef struct hce_perf_timed {
    double sec;         /* this rank's, for all queued calls */
    double cpu_sec;     /* this rank's, during them */
    double single_sec;  /* median of single calls; 0: not measured */
    uint64_t calls;     /* queued */
    hce_perf_net_t net; /* of this rank's host, during them */
} hce_perf_timed_t;

/* How many calls shall be timed, the same on all ranks: what the options say,
 * else what takes about the time they say. */
hce_status_t hce_perf_timed_choose(hce_perf_burst_t *burst,
                                   hce_perf_tally_t *tally, int *num_p);

/* Single, blocking calls on the data of slot 0: a barrier before each, the
 * time that the slowest rank takes. *sec_p is their median. */
hce_status_t hce_perf_timed_single(hce_perf_burst_t *burst, int num,
                                   hce_perf_tally_t *tally, double *sec_p);

/* num calls, queued; all of timed but single_sec is written. */
hce_status_t hce_perf_timed_queued(hce_perf_burst_t *burst, int num,
                                   hce_perf_tally_t *tally,
                                   hce_perf_timed_t *timed);

#endif
