/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Filling, calling and checking. Slot s of a receive buffer starts s outputs
 * after its start.
 */
#include <config.h>

#include "burst.h"

#include "faults.h"
#include "pattern.h"
#include "stats.h"
#include "values.h"
#include "util/clock.h"

#include <inttypes.h>
#include <stdio.h>

static const hce_perf_coll_t *coll_of(const hce_perf_burst_t *burst)
{
    return burst->job->opts->coll;
}

/* Bytes of count elements. */
static size_t part_len(const hce_perf_burst_t *burst)
{
    return burst->count * hce_datatype_size(burst->type);
}

static size_t send_len(const hce_perf_burst_t *burst)
{
    return hce_perf_coll_send_len(coll_of(burst), part_len(burst),
                                  burst->job->attr.size);
}

static size_t recv_len(const hce_perf_burst_t *burst)
{
    return hce_perf_coll_recv_len(coll_of(burst), part_len(burst),
                                  burst->job->attr.size);
}

/* In place the shorter buffer is the own part of the longer one, or both are
 * the same. */
static size_t own_offset(const hce_perf_burst_t *burst)
{
    return hce_perf_coll_parts(coll_of(burst), burst->job->attr.size) == 1
               ? 0
               : (size_t)burst->job->attr.rank * part_len(burst);
}

static unsigned char *recv_slot(const hce_perf_burst_t *burst, int comm,
                                int slot)
{
    if (burst->in_place && coll_of(burst)->sends_all)
        return burst->pairs[comm].send.addr + (size_t)slot * send_len(burst) +
               own_offset(burst);
    return burst->pairs[comm].recv.addr + (size_t)slot * recv_len(burst);
}

static unsigned char *send_slot(const hce_perf_burst_t *burst, int comm,
                                int slot)
{
    if (burst->in_place && !coll_of(burst)->sends_all)
        return recv_slot(burst, comm, slot) + own_offset(burst);
    return burst->pairs[comm].send.addr + (size_t)slot * send_len(burst);
}

static hce_perf_values_t values_of(const hce_perf_burst_t *burst, int comm,
                                   int slot)
{
    return (hce_perf_values_t){
        .type = burst->type,
        .op = burst->op,
        .ranks = burst->job->attr.size,
        .comm = comm,
        .data = burst->data + (uint64_t)slot,
    };
}

static void fill_slot(const hce_perf_burst_t *burst, int comm, int slot)
{
    hce_perf_values_t values = values_of(burst, comm, slot);
    void *send = send_slot(burst, comm, slot);
    int rank = burst->job->attr.rank;

    if (coll_of(burst)->reduces)
        hce_perf_values_fill(&values, rank, 0, send,
                             send_len(burst) /
                                 hce_datatype_size(burst->type));
    else
        hce_perf_pattern_fill(
            hce_perf_pattern_key(rank, comm, values.data), send,
            send_len(burst));
}

void hce_perf_burst_fill(hce_perf_burst_t *burst, uint64_t data, int num)
{
    int comm, slot;

    burst->data = data;
    for (comm = 0; comm < burst->job->num_comms; comm++)
        for (slot = 0; slot < num; slot++)
            fill_slot(burst, comm, slot);
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
        status = hce_perf_coll_run(
            coll_of(burst), &(hce_perf_coll_args_t){
                                .send = send_slot(burst, i, slot),
                                .recv = recv_slot(burst, i, slot),
                                .count = call.count,
                                .type = call.type,
                                .op = burst->op,
                                .comm = job->comms[i],
                                .stream = job->streams[i],
                                .params = &call.params});
        if (status != HCE_OK)
            return hce_perf_job_fail(job, status, "call %" PRIu64 " of %s",
                                     *burst->calls, coll_of(burst)->call);
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
            return hce_perf_job_fail(job, status, "%s", coll_of(burst)->call);
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

static void check_gathered(const hce_perf_burst_t *burst, int comm, int slot,
                           hce_perf_tally_t *tally)
{
    size_t len = part_len(burst), elt = hce_datatype_size(burst->type);
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

static void check_reduced(const hce_perf_burst_t *burst, int comm, int slot,
                          hce_perf_tally_t *tally)
{
    hce_perf_values_t values = values_of(burst, comm, slot);
    size_t elt = hce_datatype_size(burst->type);
    size_t first = own_offset(burst) / elt, end = first + burst->count;
    size_t all = send_len(burst) / elt;
    const unsigned char *send = send_slot(burst, comm, slot);
    int rank = burst->job->attr.rank;

    tally->wrong += hce_perf_values_check(
        &values, first, recv_slot(burst, comm, slot), burst->count);
    tally->checked += burst->count;
    /* Of the input, in place, all but the own part stays as it is. */
    if (!burst->in_place)
        first = end = 0;
    tally->wrong +=
        hce_perf_values_check_input(&values, rank, 0, send, first) +
        hce_perf_values_check_input(&values, rank, end, send + end * elt,
                                    all - end);
}

bool hce_perf_burst_is_spent(const hce_perf_burst_t *burst, int num)
{
    return coll_of(burst)->reduces && burst->in_place &&
           (num > burst->slots || burst->job->opts->single);
}

void hce_perf_burst_check(const hce_perf_burst_t *burst, int num,
                          hce_perf_tally_t *tally)
{
    const hce_perf_job_t *job = burst->job;
    size_t elt = hce_datatype_size(burst->type);
    int comm, slot;

    /* In the exponent of floats: no error bound lets that pass. */
    if (job->opts->faults.corrupt_rank == job->attr.rank && burst->count > 0)
        recv_slot(burst, 0, 0)[(burst->count / 2 + 1) * elt - 1] ^= 0x40;
    for (comm = 0; comm < job->num_comms; comm++) {
        for (slot = 0; slot < num; slot++)
            coll_of(burst)->reduces
                ? check_reduced(burst, comm, slot, tally)
                : check_gathered(burst, comm, slot, tally);
        tally->wrong += hce_perf_buffer_check(&burst->pairs[comm].send) +
                        hce_perf_buffer_check(&burst->pairs[comm].recv);
    }
}
