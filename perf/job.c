/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Creating and leaving the job, exchanges between ranks, and failing so that
 * every rank hears of it.
 */
#include <config.h>

#include "job.h"

#include "util/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The library's account of what went wrong: of a communicator, else what it
 * said first. */
static void find_error(const hce_perf_job_t *job, hce_status_t status,
                       hce_comm_error_t *error_p)
{
    const char *first = hce_log_first_error();
    int i;

    memset(error_p, 0, sizeof(*error_p));
    if (job->ctl != NULL)
        hce_comm_get_async_error(job->ctl, error_p);
    for (i = 0; i < job->num_comms && error_p->status == HCE_OK; i++) {
        if (job->comms[i] != NULL)
            hce_comm_get_async_error(job->comms[i], error_p);
    }
    if (error_p->status == HCE_OK) {
        error_p->status = status;
        snprintf(error_p->text, sizeof(error_p->text), "%s",
                 first != NULL ? first : "");
    }
}

static void abort_all(hce_perf_job_t *job)
{
    int i;

    if (job->launched != NULL)
        hce_comm_abort(job->launched);
    if (job->ctl != NULL)
        hce_comm_abort(job->ctl);
    for (i = 0; i < job->num_comms; i++) {
        if (job->comms[i] != NULL && job->comms[i] != job->ctl)
            hce_comm_abort(job->comms[i]);
    }
}

hce_status_t hce_perf_job_fail(hce_perf_job_t *job, hce_status_t status,
                               const char *format, ...)
{
    hce_comm_error_t error;
    char what[160];
    va_list args;

    if (job->failure[0] != '\0')
        return status;
    va_start(args, format);
    vsnprintf(what, sizeof(what), format, args);
    va_end(args);
    find_error(job, status, &error);
    snprintf(job->failure, sizeof(job->failure), "%s: %s%s%.400s", what,
             hce_status_string(error.status), error.text[0] ? ": " : "",
             error.text);
    if (job->attr.size > 0)
        fprintf(stderr, "hce_perf: rank %d: %s\n", job->attr.rank,
                job->failure);
    else
        fprintf(stderr, "hce_perf: %s\n", job->failure);
    abort_all(job);
    return status;
}

hce_status_t hce_perf_job_refuse(hce_perf_job_t *job, hce_status_t status,
                                 const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(job->failure, sizeof(job->failure), format, args);
    va_end(args);
    if (job->attr.rank == 0)
        fprintf(stderr, "hce_perf: %s\n", job->failure);
    return status;
}

hce_status_t hce_perf_job_exchange(hce_perf_job_t *job, const void *mine,
                                   size_t len, void *all)
{
    hce_call_params_t params = {.field_mask = HCE_CALL_PARAM_BLOCKING,
                                .blocking = true};
    hce_status_t status;

    status =
        hce_allgather(mine, all, len, HCE_UINT8, job->ctl, NULL, &params);
    if (status != HCE_OK)
        return hce_perf_job_fail(job, status, "exchange between ranks");
    return HCE_OK;
}

hce_status_t hce_perf_job_barrier(hce_perf_job_t *job)
{
    unsigned char mine = 0, all[job->attr.size];

    return hce_perf_job_exchange(job, &mine, sizeof(mine), all);
}

bool hce_perf_job_is_first(const hce_perf_job_t *job, int rank)
{
    int r;

    for (r = 0; r < rank; r++) {
        if (strcmp(job->peers[r].host, job->peers[rank].host) == 0)
            return false;
    }
    return true;
}

/* Under a launcher the size is known only now: --nodes re-forms the job by
 * a split that changes nothing but the nodes. */
static hce_status_t apply_nodes(hce_perf_job_t *job)
{
    const hce_perf_opts_t *opts = job->opts;
    hce_comm_params_t params = {.field_mask = HCE_COMM_PARAM_NODE};
    int color[job->attr.size];
    hce_status_t status;
    const char *why;

    status =
        hce_layout_parse(opts->nodes, opts->map, job->attr.size, color, &why);
    if (status != HCE_OK)
        return hce_perf_job_refuse(job, status,
                                   "--nodes: '%s' does not fit %d ranks: %s",
                                   opts->nodes, job->attr.size, why);
    params.node = color[job->attr.rank];
    job->launched = job->ctl;
    job->ctl = NULL;
    status =
        hce_comm_split(job->launched, 0, job->attr.rank, &params, &job->ctl);
    if (status == HCE_OK)
        status = hce_comm_query(job->ctl, &job->attr);
    if (status != HCE_OK)
        return hce_perf_job_fail(job, status, "--nodes: hce_comm_split");
    return HCE_OK;
}

static hce_status_t create_ctl(hce_perf_job_t *job,
                               const hce_perf_entry_t *entry)
{
    hce_comm_params_t params = {.field_mask = 0};
    hce_status_t status;

    if (entry->unique_id != NULL) {
        params.field_mask = HCE_COMM_PARAM_BOOTSTRAP | HCE_COMM_PARAM_RANK;
        params.bootstrap = HCE_BOOTSTRAP_TCP;
        params.rank = entry->rank;
        params.size = entry->size;
        params.unique_id = entry->unique_id;
    }
    if (entry->node >= 0) {
        params.field_mask |= HCE_COMM_PARAM_NODE;
        params.node = entry->node;
    }
    status = hce_comm_create(&params, &job->ctl);
    if (status == HCE_OK)
        status = hce_comm_query(job->ctl, &job->attr);
    if (status != HCE_OK)
        return hce_perf_job_fail(job, status, "hce_comm_create");
    if (entry->unique_id == NULL && job->opts->nodes != NULL)
        return apply_nodes(job);
    return HCE_OK;
}

/* The measured communicators: ctl itself, or several like it. */
static hce_status_t create_comms(hce_perf_job_t *job)
{
    hce_comm_params_t params = {.field_mask = HCE_COMM_PARAM_NODE,
                                .node = job->attr.node};
    int i, num = job->opts->num_comms;
    hce_status_t status;

    job->comms = calloc((size_t)num, sizeof(*job->comms));
    job->streams = calloc((size_t)num, sizeof(*job->streams));
    if (job->comms == NULL || job->streams == NULL)
        return hce_perf_job_fail(job, HCE_ERR_NO_MEMORY, "%d communicators",
                                 num);
    job->num_comms = num;
    for (i = 0; i < num; i++) {
        status = hce_stream_create(&job->streams[i]);
        if (status != HCE_OK)
            return hce_perf_job_fail(job, status, "hce_stream_create");
        if (num == 1) {
            job->comms[i] = job->ctl;
            continue;
        }
        status = hce_comm_split(job->ctl, 0, job->attr.rank, &params,
                                &job->comms[i]);
        if (status != HCE_OK)
            return hce_perf_job_fail(job, status, "hce_comm_split");
    }
    return HCE_OK;
}

static hce_status_t introduce(hce_perf_job_t *job)
{
    hce_perf_peer_t mine = {.pid = (int32_t)getpid(), .node = job->attr.node};

    if (gethostname(mine.host, sizeof(mine.host) - 1) != 0)
        snprintf(mine.host, sizeof(mine.host), "unknown");
    job->peers = calloc((size_t)job->attr.size, sizeof(*job->peers));
    if (job->peers == NULL)
        return hce_perf_job_fail(job, HCE_ERR_NO_MEMORY, "list of ranks");
    return hce_perf_job_exchange(job, &mine, sizeof(mine), job->peers);
}

hce_status_t hce_perf_job_open(const hce_perf_opts_t *opts,
                               const hce_perf_entry_t *entry,
                               hce_perf_job_t *job)
{
    hce_status_t status;

    memset(job, 0, sizeof(*job));
    job->opts = opts;
    status = create_ctl(job, entry);
    if (status == HCE_OK)
        status = introduce(job);
    if (status == HCE_OK)
        status = create_comms(job);
    return status;
}

void hce_perf_job_close(hce_perf_job_t *job)
{
    int i;

    for (i = 0; i < job->num_comms; i++) {
        if (job->comms[i] != NULL && job->comms[i] != job->ctl)
            hce_comm_destroy(job->comms[i]);
    }
    if (job->ctl != NULL)
        hce_comm_destroy(job->ctl);
    if (job->launched != NULL)
        hce_comm_destroy(job->launched);
    /* After an error their operations end with the communicators. */
    for (i = 0; i < job->num_comms; i++)
        hce_stream_destroy(job->streams[i]);
    free(job->comms);
    free(job->streams);
    free(job->peers);
    memset(job, 0, sizeof(*job));
}
