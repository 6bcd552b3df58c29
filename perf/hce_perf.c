/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * hce_perf: times a collective and checks every byte of it. This file is the
 * life of one rank, from joining the job to the verdict.
 */
#include <config.h>

#include "buffers.h"
#include "calibrate.h"
#include "job.h"
#include "json.h"
#include "launch.h"
#include "opts.h"
#include "plot.h"
#include "reduce_kernel.h"
#include "results.h"
#include "run.h"
#include "series.h"
#include "stats.h"
#include "table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_CONTEXTS 16 /* of hce_comm_get_peer_stats */

/* What would only fail after a long measurement fails here. */
static hce_status_t probe_reports(hce_perf_job_t *job)
{
    hce_status_t status = HCE_OK;

    if (job->attr.rank != 0)
        return HCE_OK;
    if (job->opts->json != NULL)
        status = hce_perf_json_probe(job);
    if (status == HCE_OK && job->opts->plot != NULL)
        status = hce_perf_plot_probe(job);
    if (status == HCE_OK && job->opts->calibrate != NULL)
        status = hce_perf_calibrate_probe(job);
    return status;
}

static hce_status_t prepare(hce_perf_job_t *job, hce_perf_results_t *results)
{
    const hce_perf_opts_t *opts = job->opts;
    char why[160];
    uint64_t last, rows;
    hce_status_t status;

    /* Under a launcher the number of ranks is known only now. */
    if (!hce_perf_opts_check_ranks(opts, job->attr.size, why, sizeof(why)))
        return hce_perf_job_refuse(job, HCE_ERR_INVALID_ARG, "%s", why);
    status = probe_reports(job);
    if (status != HCE_OK)
        return status;
    status = hce_perf_variants_create(job, &results->variants,
                                      &results->num_variants);
    if (status != HCE_OK)
        return status;
    rows = hce_perf_series_len(opts, &last) * (uint64_t)opts->num_types *
           (uint64_t)opts->num_ops * (uint64_t)results->num_variants;
    results->rows = calloc(rows, sizeof(*results->rows));
    if (results->rows == NULL)
        return hce_perf_job_fail(job, HCE_ERR_NO_MEMORY, "list of results");
    results->max_rows = rows;
    return HCE_OK;
}

/* Bytes put to each rank, through all contexts. */
static hce_status_t add_peer_stats(hce_comm_h comm, int size, uint64_t *to)
{
    hce_status_t status = HCE_OK;
    hce_peer_stats_t one;
    int peer, context;

    for (peer = 0; peer < size; peer++) {
        for (context = 0; context < MAX_CONTEXTS; context++) {
            status = hce_comm_get_peer_stats(comm, peer, context, &one);
            if (status != HCE_OK)
                return status;
            to[peer] += one.put_bytes;
        }
    }
    return HCE_OK;
}

static hce_status_t gather_peer_stats(hce_perf_job_t *job,
                                      hce_perf_results_t *results)
{
    size_t size = (size_t)job->attr.size;
    hce_status_t status = HCE_OK;
    uint64_t *to;
    int c;

    to = calloc(size, sizeof(*to));
    results->put_bytes = calloc(size * size, sizeof(*results->put_bytes));
    if (to == NULL || results->put_bytes == NULL) {
        free(to);
        return hce_perf_job_fail(job, HCE_ERR_NO_MEMORY,
                                 "bytes between %d ranks", job->attr.size);
    }
    for (c = 0; c < job->num_comms && status == HCE_OK; c++)
        status = add_peer_stats(job->comms[c], job->attr.size, to);
    if (status != HCE_OK)
        hce_perf_job_fail(job, status, "hce_comm_get_peer_stats");
    else
        status = hce_perf_job_exchange(job, to, size * sizeof(*to),
                                       results->put_bytes);
    free(to);
    return status;
}

/* What the library counted for each rank. */
static hce_status_t gather_stats(hce_perf_job_t *job,
                                 hce_perf_results_t *results)
{
    hce_comm_stats_t sum = {0}, one;
    hce_status_t status = HCE_OK;
    int c;

    results->stats = calloc((size_t)job->attr.size, sizeof(*results->stats));
    if (results->stats == NULL)
        return hce_perf_job_fail(job, HCE_ERR_NO_MEMORY,
                                 "statistics of %d ranks", job->attr.size);
    for (c = 0; c < job->num_comms && status == HCE_OK; c++) {
        status = hce_comm_get_stats(job->comms[c], &one);
        if (status == HCE_OK)
            hce_perf_stats_add(&sum, &one);
    }
    if (status != HCE_OK)
        return hce_perf_job_fail(job, status, "hce_comm_get_stats");
    status = hce_perf_job_exchange(job, &sum, sizeof(sum), results->stats);
    return status == HCE_OK ? gather_peer_stats(job, results) : status;
}

static hce_status_t measure(hce_perf_job_t *job, hce_perf_pair_t *pairs,
                            hce_perf_results_t *results)
{
    const hce_perf_coll_t *coll = job->opts->coll;
    int ranks = job->attr.size;
    size_t len = hce_perf_series_max(job->opts,
                                     hce_perf_coll_parts(coll, ranks));
    size_t input = hce_perf_coll_send_len(coll, len, ranks);
    size_t output = hce_perf_coll_recv_len(coll, len, ranks);
    hce_status_t status;

    status = prepare(job, results);
    if (status == HCE_OK)
        status = hce_perf_buffers_admit(job, input, output);
    if (status == HCE_OK)
        status = hce_perf_buffers_create(job, input, output, pairs);
    if (status != HCE_OK)
        return status;
    if (job->attr.rank == 0)
        hce_perf_table_head();
    status = hce_perf_run(job, pairs, results);
    if (status == HCE_OK && job->opts->json != NULL)
        status = gather_stats(job, results);
    if (status == HCE_OK)
        status = hce_perf_buffers_deregister(job, pairs);
    return status;
}

/* Rank 0's last words. */
static void conclude(hce_perf_job_t *job, const hce_perf_results_t *results)
{
    const hce_perf_opts_t *opts = job->opts;
    char verdict[720];

    if (opts->check_stats && job->failure[0] == '\0')
        hce_perf_table_stats(job);
    hce_perf_table_compare(opts, results);
    if (opts->plot != NULL && job->failure[0] == '\0')
        hce_perf_plot_write(job, results);
    if (opts->calibrate != NULL && job->failure[0] == '\0')
        hce_perf_calibrate_write(job, results);
    hce_perf_results_verdict(results, opts, job->failure, verdict,
                             sizeof(verdict));
    /* Written also after a failure; a failure to write counts as one. */
    if (opts->json != NULL && job->peers != NULL &&
        hce_perf_json_write(job, results, verdict) != HCE_OK)
        hce_perf_results_verdict(results, opts, job->failure, verdict,
                                 sizeof(verdict));
    hce_perf_table_foot(results, verdict);
}

/* The exit status; a table that was cut short must not look complete. */
static int end(bool ok)
{
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "hce_perf: cannot write to standard output\n");
        return 1;
    }
    return ok ? 0 : 1;
}

static int rank_main(const hce_perf_opts_t *opts,
                     const hce_perf_entry_t *entry)
{
    hce_perf_results_t results = {0};
    hce_perf_pair_t *pairs;
    hce_perf_job_t job;
    char verdict[720];
    bool first, ok;

    pairs = calloc((size_t)opts->num_comms, sizeof(*pairs));
    if (pairs == NULL) {
        fprintf(stderr, "hce_perf: no memory for buffers\n");
        return 1;
    }
    if (hce_perf_job_open(opts, entry, &job) == HCE_OK) {
        if (job.attr.rank == 0)
            hce_perf_table_intro(&job);
        measure(&job, pairs, &results);
    }
    /* Until the communicator is there only local ranks know who they are. */
    first = job.attr.size > 0 ? job.attr.rank == 0 : entry->rank == 0;
    if (first)
        conclude(&job, &results);
    ok = hce_perf_results_verdict(&results, opts, job.failure, verdict,
                                  sizeof(verdict));
    hce_perf_job_close(&job);
    hce_perf_buffers_free(opts, pairs);
    free(results.rows);
    free(results.stats);
    free(results.put_bytes);
    free(results.variants);
    free(pairs);
    return end(ok);
}

int main(int argc, char **argv)
{
    hce_perf_opts_t opts;

    if (argc > 1 && strcmp(argv[1], "reduce_kernel") == 0)
        return hce_perf_reduce_kernel(argc - 1, argv + 1);
    hce_perf_opts_parse(argc, argv, &opts);
    return hce_perf_launch(&opts, rank_main);
}
