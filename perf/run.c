/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The loop over types, operations, sizes and places. Every burst has data of
 * its own, named by a number that all ranks count alike, so that nothing a
 * former call left in a buffer can pass for the result of a later one.
 */
#include <config.h>

#include "run.h"

#include "burst.h"
#include "core/dispatch.h"
#include "series.h"
#include "table.h"
#include "timed.h"
#include "util/math.h"

#include <stdio.h>
#include <string.h>

/* Calls rotate over so many bytes of buffer, where the largest size leaves
 * room for more than one slot: beyond what caches hold. */
#define ROTATE_LEN (64 * HCE_MIB)
#define MAX_SLOTS  1024

typedef struct run {
    hce_perf_job_t *job;
    hce_perf_pair_t *pairs;
    hce_perf_results_t *results;
    uint64_t next_data; /* first name of data that is not used yet */
    uint64_t calls;
    size_t done; /* cells measured, for the progress bar */
} run_t;

/* Fixed layout: exchanged between ranks. */
typedef struct outcome {
    hce_perf_timed_t timed;
    hce_perf_tally_t tally;
} outcome_t;

static int slots_for(const run_t *run, size_t len)
{
    const hce_perf_coll_t *coll = run->job->opts->coll;
    uint64_t size = (uint64_t)len *
                    (uint64_t)hce_perf_coll_parts(coll, run->job->attr.size);
    uint64_t room = hce_max(run->pairs[0].send.size, run->pairs[0].recv.size);

    room = hce_min(room, ROTATE_LEN);

    if (size == 0)
        return 1;
    return (int)hce_min(hce_max(room / size, 1ull), (uint64_t)MAX_SLOTS);
}

/* Names for the data of a burst of num calls; returns slots it uses. */
static int renew(run_t *run, hce_perf_burst_t *burst, int num)
{
    int used = hce_min(num, burst->slots);

    hce_perf_burst_fill(burst, run->next_data, used);
    run->next_data += (uint64_t)used;
    return used;
}

static hce_status_t measure_timed(run_t *run, hce_perf_burst_t *burst,
                                  outcome_t *mine)
{
    const hce_perf_opts_t *opts = run->job->opts;
    hce_status_t status;
    double unused;
    int used, num;

    if (opts->warmup > 0) {
        renew(run, burst, opts->warmup);
        status =
            hce_perf_burst_run(burst, opts->warmup, &unused, &mine->tally);
        if (status != HCE_OK)
            return status;
    }
    status = hce_perf_timed_choose(burst, &mine->tally, &num);
    if (status != HCE_OK)
        return status;
    used = renew(run, burst, num);
    if (opts->single)
        status = hce_perf_timed_single(burst, num, &mine->tally,
                                       &mine->timed.single_sec);
    if (status == HCE_OK)
        status = hce_perf_timed_queued(burst, num, &mine->tally, &mine->timed);
    if (status == HCE_OK && opts->checks > 0 &&
        !hce_perf_burst_is_spent(burst, num))
        hce_perf_burst_check(burst, used, &mine->tally);
    return status;
}

static hce_status_t measure_checked(run_t *run, hce_perf_burst_t *burst,
                                    outcome_t *mine)
{
    int left = run->job->opts->checks, num;
    hce_status_t status;
    double unused;

    for (; left > 0; left -= num) {
        num = renew(run, burst, left);
        status = hce_perf_burst_run(burst, num, &unused, &mine->tally);
        if (status != HCE_OK)
            return status;
        hce_perf_burst_check(burst, num, &mine->tally);
    }
    return HCE_OK;
}

static double average_sec(const outcome_t *all, int size,
                          hce_perf_average_t average)
{
    double sum = 0, least = all[0].timed.sec, most = all[0].timed.sec;
    int r;

    for (r = 0; r < size; r++) {
        sum += all[r].timed.sec;
        least = hce_min(least, all[r].timed.sec);
        most = hce_max(most, all[r].timed.sec);
    }
    switch (average) {
    case HCE_PERF_AVERAGE_RANK0:
        return all[0].timed.sec;
    case HCE_PERF_AVERAGE_MIN:
        return least;
    case HCE_PERF_AVERAGE_MAX:
        return most;
    default:
        return sum / size;
    }
}

/* Bandwidths as in nccl-tests: algbw counts the whole size, busbw what must
 * come from other ranks. */
static void fill_cell(run_t *run, const outcome_t *all, hce_perf_row_t *row,
                      hce_perf_cell_t *cell)
{
    const hce_perf_opts_t *opts = run->job->opts;
    int size = run->job->attr.size, r;
    double sec =
        average_sec(all, size, opts->average) / (double)all[0].timed.calls;

    memset(cell, 0, sizeof(*cell));
    cell->is_measured = true;
    cell->calls = all[0].timed.calls;
    cell->single_us = all[0].timed.single_sec * 1e6;
    cell->time_us = sec * 1e6;
    if (sec > 0)
        cell->algbw = (double)row->size * opts->num_comms / sec / 1e9;
    cell->busbw =
        cell->algbw * hce_perf_coll_bus_factor(opts->coll, size);
    for (r = 0; r < size; r++) {
        cell->wrong += all[r].tally.wrong;
        cell->cpu_sec += all[r].timed.cpu_sec;
        if (hce_perf_job_is_first(run->job, r)) {
            cell->net.received += all[r].timed.net.received;
            cell->net.sent += all[r].timed.net.sent;
        }
        run->results->checked += all[r].tally.checked;
        run->results->stats_wrong += all[r].tally.stats_wrong;
    }
    run->results->wrong += cell->wrong;
}

static hce_status_t measure_cell(run_t *run, hce_perf_row_t *row,
                                 hce_perf_place_t place)
{
    outcome_t mine = {0}, all[run->job->attr.size];
    hce_perf_burst_t burst = {
        .job = run->job,
        .pairs = run->pairs,
        .count = row->count,
        .type = row->type,
        .op = row->op,
        .in_place = place == HCE_PERF_IN_PLACE,
        .slots = slots_for(run, row->count * hce_datatype_size(row->type)),
        .calls = &run->calls,
        .call = run->results->variants[row->variant].call,
        .explain = row->explain,
    };
    hce_status_t status;

    status = measure_timed(run, &burst, &mine);
    if (status == HCE_OK)
        status = measure_checked(run, &burst, &mine);
    if (status == HCE_OK)
        status = hce_perf_job_exchange(run->job, &mine, sizeof(mine), all);
    if (status == HCE_OK)
        fill_cell(run, all, row, &row->cells[place]);
    return status;
}

static void show_progress(const run_t *run, const hce_perf_row_t *row)
{
    char what[48];

    if (run->job->attr.rank != 0)
        return;
    snprintf(what, sizeof(what), "%s, %llu bytes",
             hce_datatype_string(row->type), (unsigned long long)row->size);
    hce_perf_progress(run->done,
                      run->results->max_rows *
                          (size_t)hce_perf_results_places(run->job->opts),
                      what);
}

static hce_status_t measure_row(run_t *run, hce_perf_row_t *row)
{
    const hce_perf_row_t *before = run->results->num_rows > 0 ? row - 1 : NULL;
    const hce_perf_variant_t *variant = &run->results->variants[row->variant];
    hce_perf_job_t *job = run->job;
    hce_status_t status;
    int p;

    status = hce_comm_explain(job->comms[0], job->opts->coll->number,
                              row->count, row->type, &variant->call,
                              &row->explain);
    if (status != HCE_OK)
        return hce_perf_job_fail(job, status, "hce_comm_explain");
    for (p = 0; p < hce_perf_results_places(job->opts); p++) {
        show_progress(run, row);
        status = measure_cell(run, row, (hce_perf_place_t)p);
        if (status != HCE_OK)
            break;
        run->done++;
    }
    if (job->attr.rank == 0)
        hce_perf_progress(0, 0, NULL);
    if (status != HCE_OK)
        return status;
    if (job->attr.rank == 0) {
        hce_perf_table_path(&row->explain,
                            before != NULL ? &before->explain : NULL);
        hce_perf_table_row(job->opts, row);
    }
    run->results->num_rows++;
    return HCE_OK;
}

/* A size on every variant that can run it: all ranks find the same ones. */
static hce_status_t measure_size(run_t *run, hce_datatype_t type,
                                 hce_redop_t op, uint64_t size)
{
    hce_perf_results_t *results = run->results;
    const hce_perf_opts_t *opts = run->job->opts;
    int parts = hce_perf_coll_parts(opts->coll, run->job->attr.size), i;
    hce_dispatch_call_t call = {.coll = opts->coll->number,
                                .datatype = opts->coll->reduces ? type : 0,
                                .op = op};
    hce_perf_row_t *row;
    const char *why;

    for (i = 0; i < results->num_variants; i++) {
        row = &results->rows[results->num_rows];
        *row = (hce_perf_row_t){.type = type, .op = op, .variant = i};
        row->count = hce_perf_series_count(opts, size, type, parts);
        row->size = (uint64_t)row->count * (uint64_t)parts *
                    hce_datatype_size(type);
        call.len = row->count * hce_datatype_size(type);
        why = opts->each
                  ? hce_dispatch_refusal(run->job->comms[0], &call,
                                         &results->variants[i].call)
                  : NULL;
        if (why == NULL) {
            hce_status_t status = measure_row(run, row);

            if (status != HCE_OK)
                return status;
        } else if (run->job->attr.rank == 0) {
            hce_perf_table_refusal(row->size, results->variants[i].label,
                                   why);
        }
    }
    return HCE_OK;
}

hce_status_t hce_perf_run(hce_perf_job_t *job, hce_perf_pair_t *pairs,
                          hce_perf_results_t *results)
{
    const hce_perf_opts_t *opts = job->opts;
    run_t run = {.job = job, .pairs = pairs, .results = results};
    hce_status_t status;
    uint64_t size;
    int t;

    for (t = 0; t < opts->num_types * opts->num_ops; t++) {
        size = opts->min_bytes;
        do {
            status = measure_size(&run, opts->types[t / opts->num_ops],
                                  opts->ops[t % opts->num_ops], size);
            if (status != HCE_OK)
                return status;
        } while (hce_perf_series_next(opts, &size));
    }
    return HCE_OK;
}
