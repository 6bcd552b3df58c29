/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Filling, calling and checking. Slot s of a receive buffer starts s outputs
 * after its start; in place the own slice in it is the input.
 */
#include <config.h>

#include "burst.h"

#include "faults.h"
#include "pattern.h"
#include "stats.h"
#include "util/clock.h"

#include <inttypes.h>
#include <stdio.h>

static size_t slice_len(const hce_perf_burst_t *burst)
{
    return burst->count * hce_datatype_size(burst->type);
}

static unsigned char *recv_slot(const hce_perf_burst_t *burst, int comm,
                                int slot)
{
    return burst->pairs[comm].recv.addr +
           (size_t)slot * (size_t)burst->job->attr.size * slice_len(burst);
}

static unsigned char *send_slot(const hce_perf_burst_t *burst, int comm,
                                int slot)
{
    size_t len = slice_len(burst);

    if (burst->in_place)
        return recv_slot(burst, comm, slot) +
               (size_t)burst->job->attr.rank * len;
    return burst->pairs[comm].send.addr + (size_t)slot * len;
}

void hce_perf_burst_fill(hce_perf_burst_t *burst, uint64_t data, int num)
{
    int comm, slot;
    uint64_t key;

    burst->data = data;
    for (comm = 0; comm < burst->job->num_comms; comm++) {
        for (slot = 0; slot < num; slot++) {
            key = hce_perf_pattern_key(burst->job->attr.rank, comm,
                                       data + (uint64_t)slot);
            hce_perf_pattern_fill(key, send_slot(burst, comm, slot),
                                  slice_len(burst));
        }
    }
}

static hce_status_t call_all(hce_perf_burst_t *burst, int slot)
{
    hce_perf_job_t *job = burst->job;
    hce_perf_call_t call = {burst->count, burst->type, burst->call};
    hce_status_t status;
    int i;

    hce_perf_faults_apply(&job->opts->faults, job->attr.rank, ++*burst->calls,
                          &call);
    for (i = 0; i < job->num_comms; i++) {
        status = hce_allgather(
            send_slot(burst, i, slot), recv_slot(burst, i, slot), call.count,
            call.type, job->comms[i], job->streams[i], &call.params);
        if (status != HCE_OK)
            return hce_perf_job_fail(job, status,
                                     "call %" PRIu64 " of hce_allgather",
                                     *burst->calls);
    }
    return HCE_OK;
}

static hce_status_t wait_all(hce_perf_burst_t *burst)
{
    hce_perf_job_t *job = burst->job;
    hce_status_t status;
    int i;

    for (i = 0; i < job->num_comms; i++) {
        status = hce_stream_synchronize(job->comms[i], job->streams[i]);
        if (status != HCE_OK)
            return hce_perf_job_fail(job, status, "hce_allgather");
    }
    return HCE_OK;
}

/* With --blocking each call is done when it returns. */
static hce_status_t make_calls(hce_perf_burst_t *burst, int num)
{
    hce_status_t status;
    int i;

    for (i = 0; i < num; i++) {
        status = call_all(burst, i % burst->slots);
        if (status != HCE_OK)
            return status;
    }
    return wait_all(burst);
}

/* Sums over the measured communicators. */
static hce_status_t read_stats(hce_perf_job_t *job, hce_comm_stats_t *sum_p)
{
    hce_comm_stats_t sum = {0}, one;
    hce_status_t status;
    int i;

    for (i = 0; i < job->num_comms; i++) {
        status = hce_comm_get_stats(job->comms[i], &one);
        if (status != HCE_OK)
            return hce_perf_job_fail(job, status, "hce_comm_get_stats");
        hce_perf_stats_add(&sum, &one);
    }
    *sum_p = sum;
    return HCE_OK;
}

static void compare_stats(const hce_perf_burst_t *burst, int num,
                          const hce_comm_stats_t *before,
                          const hce_comm_stats_t *after,
                          hce_perf_tally_t *tally)
{
    hce_perf_stats_diff_t diff;
    hce_comm_stats_t plan;

    hce_perf_stats_plan(&burst->explain,
                        (uint64_t)num * (uint64_t)burst->job->num_comms,
                        burst->in_place, &plan);
    if (hce_perf_stats_match(before, after, &plan, &diff))
        return;
    tally->stats_wrong++;
    fprintf(stderr,
            "hce_perf: rank %d: %s: %" PRIu64 " counted, %" PRIu64
            " planned (path %s, %zu elements a rank, %s)\n",
            burst->job->attr.rank, diff.name, diff.counted, diff.planned,
            burst->explain.path, burst->count,
            burst->in_place ? "in place" : "out of place");
}

hce_status_t hce_perf_burst_run(hce_perf_burst_t *burst, int num,
                                double *sec_p, hce_perf_tally_t *tally)
{
    bool stats = burst->job->opts->check_stats;
    hce_comm_stats_t before, after;
    hce_status_t status = HCE_OK;
    uint64_t start;

    if (stats)
        status = read_stats(burst->job, &before);
    if (status != HCE_OK)
        return status;
    start = hce_clock_ns();
    status = make_calls(burst, num);
    *sec_p = (double)(hce_clock_ns() - start) / HCE_NS_PER_SEC;
    if (status == HCE_OK && stats) {
        status = read_stats(burst->job, &after);
        if (status == HCE_OK)
            compare_stats(burst, num, &before, &after, tally);
    }
    return status;
}

static void check_slot(const hce_perf_burst_t *burst, int comm, int slot,
                       hce_perf_tally_t *tally)
{
    size_t len = slice_len(burst), elt = hce_datatype_size(burst->type);
    const unsigned char *recv = recv_slot(burst, comm, slot);
    int rank = burst->job->attr.rank, size = burst->job->attr.size, r;
    uint64_t data = burst->data + (uint64_t)slot;

    for (r = 0; r < size; r++)
        tally->wrong +=
            hce_perf_pattern_check(hce_perf_pattern_key(r, comm, data),
                                   recv + (size_t)r * len, len, elt);
    tally->checked += (uint64_t)size * burst->count;
    /* What is sent is only to be read. */
    if (!burst->in_place)
        tally->wrong +=
            hce_perf_pattern_check(hce_perf_pattern_key(rank, comm, data),
                                   send_slot(burst, comm, slot), len, elt);
}

void hce_perf_burst_check(const hce_perf_burst_t *burst, int num,
                          hce_perf_tally_t *tally)
{
    const hce_perf_job_t *job = burst->job;
    int comm, slot;

    if (job->opts->faults.corrupt_rank == job->attr.rank && burst->count > 0)
        recv_slot(burst, 0, 0)[slice_len(burst) / 2] ^= 0x10;
    for (comm = 0; comm < job->num_comms; comm++) {
        for (slot = 0; slot < num; slot++)
            check_slot(burst, comm, slot, tally);
        tally->wrong += hce_perf_buffer_check(&burst->pairs[comm].send) +
                        hce_perf_buffer_check(&burst->pairs[comm].recv);
    }
}
