/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Counters are read outside of the time that is taken, those of the network
 * behind a barrier, when nobody sends any more.
 */
#include <config.h>

#include "timed.h"

#include "util/math.h"

#include <stdlib.h>

#define TRIAL_CALLS 3
#define MIN_CALLS   5
#define MAX_CALLS   20000
#define MAX_SINGLES 2000

/* Greatest of the ranks' values, in place, for each of num values. */
static hce_status_t reduce_max(hce_perf_job_t *job, double *values, int num)
{
    int size = job->attr.size, r, i;
    double *all = malloc((size_t)num * (size_t)size * sizeof(*all));
    hce_status_t status;

    if (all == NULL)
        return hce_perf_job_fail(job, HCE_ERR_NO_MEMORY, "%d times", num);
    status =
        hce_perf_job_exchange(job, values, (size_t)num * sizeof(*values), all);
    for (r = 0; r < size && status == HCE_OK; r++) {
        for (i = 0; i < num; i++)
            values[i] = hce_max(values[i], all[r * num + i]);
    }
    free(all);
    return status;
}

hce_status_t hce_perf_timed_choose(hce_perf_burst_t *burst,
                                   hce_perf_tally_t *tally, int *num_p)
{
    const hce_perf_opts_t *opts = burst->job->opts;
    hce_status_t status;
    double sec, num;

    if (opts->milliseconds == 0) {
        *num_p = opts->iters;
        return HCE_OK;
    }
    status = hce_perf_job_barrier(burst->job);
    if (status == HCE_OK)
        status = hce_perf_burst_run(burst, TRIAL_CALLS, &sec, tally);
    if (status == HCE_OK)
        status = reduce_max(burst->job, &sec, 1);
    if (status != HCE_OK)
        return status;
    num = opts->milliseconds * 1e-3 * TRIAL_CALLS / hce_max(sec, 1e-9);
    *num_p = (int)hce_max(hce_min(num, (double)MAX_CALLS), (double)MIN_CALLS);
    return HCE_OK;
}

hce_status_t hce_perf_timed_single(hce_perf_burst_t *burst, int num,
                                   hce_perf_tally_t *tally, double *sec_p)
{
    hce_perf_burst_t one = *burst;
    int n = hce_min(num, MAX_SINGLES), i;
    double *sec = calloc((size_t)n, sizeof(*sec));
    hce_status_t status = HCE_OK;

    if (sec == NULL)
        return hce_perf_job_fail(burst->job, HCE_ERR_NO_MEMORY, "%d times", n);
    /* Several communicators are to be at work at once. */
    if (burst->job->num_comms == 1) {
        one.call.field_mask |= HCE_CALL_PARAM_BLOCKING;
        one.call.blocking = 1;
    }
    for (i = 0; i < n && status == HCE_OK; i++) {
        status = hce_perf_job_barrier(burst->job);
        if (status == HCE_OK)
            status = hce_perf_burst_run(&one, 1, &sec[i], tally);
    }
    if (status == HCE_OK)
        status = reduce_max(burst->job, sec, n);
    if (status == HCE_OK)
        *sec_p = hce_perf_measure_median(sec, (size_t)n);
    free(sec);
    return status;
}

hce_status_t hce_perf_timed_queued(hce_perf_burst_t *burst, int num,
                                   hce_perf_tally_t *tally,
                                   hce_perf_timed_t *timed)
{
    hce_perf_job_t *job = burst->job;
    hce_perf_net_t before, after;
    hce_status_t status;
    double cpu;

    hce_perf_measure_net(&before);
    status = hce_perf_job_barrier(job);
    if (status != HCE_OK)
        return status;
    cpu = hce_perf_measure_cpu();
    status = hce_perf_burst_run(burst, num, &timed->sec, tally);
    /* Threads are all counted by the one process. */
    timed->cpu_sec = job->opts->threads && job->attr.rank != 0
                         ? 0
                         : hce_perf_measure_cpu() - cpu;
    if (status == HCE_OK)
        status = hce_perf_job_barrier(job);
    hce_perf_measure_net(&after);
    timed->net.received = after.received - before.received;
    timed->net.sent = after.sent - before.sent;
    timed->calls = (uint64_t)num;
    return status;
}
