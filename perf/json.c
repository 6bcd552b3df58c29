/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Keys say their unit; times and bandwidths are those of the table.
 */
#include <config.h>

#include "json.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static hce_status_t fail(hce_perf_job_t *job, const char *why)
{
    return hce_perf_job_fail(job, HCE_ERR_SYSTEM, "--json %s: %s",
                             job->opts->json, why);
}

hce_status_t hce_perf_json_probe(hce_perf_job_t *job)
{
    int fd = open(job->opts->json, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);

    if (fd < 0)
        return fail(job, strerror(errno));
    close(fd);
    return HCE_OK;
}

#ifdef HCE_HAVE_JANSSON
#include <jansson.h>

const char *hce_perf_json_refusal(void)
{
    return NULL;
}

static json_t *pack_config(const hce_perf_opts_t *opts)
{
    const hce_call_params_t *call = &opts->call;
    json_t *types = json_array();
    int t;

    for (t = 0; t < opts->num_types; t++)
        json_array_append_new(
            types, json_string(hce_datatype_string(opts->types[t])));
    /* clang-format off */
    return json_pack(
        "{s:I, s:I, s:I, s:i, s:b, s:i, s:i, s:i, s:i, s:i, s:o, s:s?, s:s, "
        "s:b, s:s, s:i, s:I, s:i, s:s, s:i, s:b}",
        "min_bytes", (json_int_t)opts->min_bytes,
        "max_bytes", (json_int_t)opts->max_bytes,
        "step_bytes", (json_int_t)opts->step_bytes,
        "step_factor", opts->step_factor,
        "per_rank", opts->per_rank,
        "iters", opts->iters,
        "milliseconds", opts->milliseconds, /* 0: iters counts */
        "warmup_iters", opts->warmup,
        "check", opts->checks,
        "average", (int)opts->average,
        "datatypes", types,
        "nodes", opts->nodes,
        "map", hce_perf_map_name(opts->map),
        "threads", opts->threads,
        "path", opts->each           ? "each"
                : call->path != NULL ? call->path
                                     : "auto",
        "contexts", call->contexts, /* 0: not given */
        "width", (json_int_t)call->width,
        "comms", opts->num_comms,
        "buffers", hce_perf_buffers_name(opts->buffers),
        "offset", opts->offset,
        "blocking", opts->blocking);
    /* clang-format on */
}

/* clang-format off */
static json_t *pack_stats(const hce_comm_stats_t *stats)
{
    return json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}",
        "calls", (json_int_t)stats->calls,
        "puts", (json_int_t)stats->puts,
        "put_bytes", (json_int_t)stats->put_bytes,
        "copies", (json_int_t)stats->copies,
        "copy_bytes", (json_int_t)stats->copy_bytes,
        "kernels", (json_int_t)stats->kernels,
        "retries", (json_int_t)stats->retries,
        "progress_wakes", (json_int_t)stats->progress_wakes);
}

/* Bytes by the rank that they were put to. */
static json_t *pack_put_bytes(const uint64_t *bytes, int size)
{
    json_t *to = json_array();
    int peer;

    for (peer = 0; peer < size; peer++)
        json_array_append_new(to, json_integer((json_int_t)bytes[peer]));
    return to;
}

/* Statistics are null after a failure. */
static json_t *pack_rank(const hce_perf_job_t *job,
                         const hce_perf_results_t *results, int rank)
{
    const hce_perf_peer_t *peer = &job->peers[rank];
    bool has_stats = results->stats != NULL && results->put_bytes != NULL;
    int size = job->attr.size;

    return json_pack(
        "{s:i, s:i, s:s, s:i, s:o, s:o}",
        "rank", rank,
        "pid", (int)peer->pid,
        "host", peer->host,
        "node", (int)peer->node,
        "statistics", has_stats ? pack_stats(&results->stats[rank])
                                : json_null(),
        "put_bytes_to", has_stats
            ? pack_put_bytes(&results->put_bytes[(size_t)rank * (size_t)size],
                             size)
            : json_null());
}

/* Null for what was not measured, and for wrong when nothing was checked. */
static json_t *pack_cell(const hce_perf_cell_t *cell, bool checked)
{
    if (!cell->is_measured)
        return json_null();
    return json_pack(
        "{s:I, s:f, s:o, s:f, s:I, s:I, s:f, s:f, s:o}",
        "calls", (json_int_t)cell->calls,
        "time_us", cell->time_us,
        "single_us", cell->single_us > 0 ? json_real(cell->single_us)
                                         : json_null(),
        "cpu_sec", cell->cpu_sec,
        "net_received", (json_int_t)cell->net.received,
        "net_sent", (json_int_t)cell->net.sent,
        "algbw_gbps", cell->algbw,
        "busbw_gbps", cell->busbw,
        "wrong", checked ? json_integer((json_int_t)cell->wrong)
                         : json_null());
}

static json_t *pack_row(const hce_perf_row_t *row, const char *op,
                        bool checked)
{
    const hce_perf_cell_t *cells = row->cells;

    return json_pack(
        "{s:I, s:I, s:s, s:s, s:i, s:s, s:i, s:i, s:i, s:I, s:s, s:s, s:o, "
        "s:o}",
        "size", (json_int_t)row->size,
        "count", (json_int_t)row->count,
        "type", hce_datatype_string(row->type),
        "redop", op,
        "root", -1,
        "path", row->explain.path,
        "dirs", row->explain.dirs,
        "carriers", row->explain.carriers,
        "contexts", row->explain.contexts,
        "width", (json_int_t)row->explain.width,
        "reason", row->explain.reason,
        "settings", row->explain.settings,
        "out_of_place", pack_cell(&cells[HCE_PERF_OUT_OF_PLACE], checked),
        "in_place", pack_cell(&cells[HCE_PERF_IN_PLACE], checked));
}
/* clang-format on */

static json_t *pack_ranks(const hce_perf_job_t *job,
                          const hce_perf_results_t *results)
{
    json_t *ranks = json_array();
    int r;

    for (r = 0; r < job->attr.size; r++)
        json_array_append_new(ranks, pack_rank(job, results, r));
    return ranks;
}

static json_t *pack_rows(const hce_perf_opts_t *opts,
                         const hce_perf_results_t *results)
{
    json_t *rows = json_array();
    size_t i;

    for (i = 0; i < results->num_rows; i++)
        json_array_append_new(rows,
                              pack_row(&results->rows[i],
                                       hce_perf_results_op(
                                           opts, &results->rows[i]),
                                       opts->checks > 0));
    return rows;
}

hce_status_t hce_perf_json_write(hce_perf_job_t *job,
                                 const hce_perf_results_t *results,
                                 const char *verdict)
{
    int major, minor, patch, written;
    json_t *root;

    hce_get_version(&major, &minor, &patch);
    /* clang-format off */
    root = json_pack(
        "{s:o, s:s, s:o, s:i, s:i, s:s, s:s, s:o, s:o, s:f, s:I, s:I, s:s}",
        "libhce", json_sprintf("%d.%d.%d", major, minor, patch),
        "collective", job->opts->coll->name,
        "config", pack_config(job->opts),
        "num_ranks", job->attr.size,
        "num_nodes", job->attr.num_nodes,
        "transport", job->attr.transport,
        "host_copy", job->attr.host_copy,
        "ranks", pack_ranks(job, results),
        "results", pack_rows(job->opts, results),
        "avg_busbw_gbps", hce_perf_results_busbw(results),
        "wrong", (json_int_t)results->wrong,
        "checked", (json_int_t)results->checked,
        "verdict", verdict);
    /* clang-format on */
    if (root == NULL)
        return fail(job, "the results could not be put into JSON");
    written = json_dump_file(root, job->opts->json, JSON_INDENT(2));
    json_decref(root);
    return written == 0 ? HCE_OK : fail(job, "could not be written");
}

#else

const char *hce_perf_json_refusal(void)
{
    return "this build is without jansson";
}

hce_status_t hce_perf_json_write(hce_perf_job_t *job,
                                 const hce_perf_results_t *results,
                                 const char *verdict)
{
    return fail(job, hce_perf_json_refusal());
}

#endif
