/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Column widths are those of the table that nccl-tests prints.
 */
#include <config.h>

#include "table.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void print_series(const hce_perf_opts_t *opts)
{
    char step[48];

    if (opts->step_factor > 1)
        snprintf(step, sizeof(step), "%d(factor)", opts->step_factor);
    else
        snprintf(step, sizeof(step), "%" PRIu64 "(bytes)", opts->step_bytes);
    printf("# %s minBytes %" PRIu64 " maxBytes %" PRIu64
           " (%s) step: %s warmup iters: %d iters: %d validation: %d\n",
           opts->coll->name, opts->min_bytes, opts->max_bytes,
           opts->per_rank ? "of each rank" : "of the output", step,
           opts->warmup, opts->iters, opts->checks);
}

void hce_perf_table_intro(const hce_perf_job_t *job)
{
    const hce_perf_opts_t *opts = job->opts;
    const hce_comm_attr_t *attr = &job->attr;
    static const char *const average[] = {"rank 0", "mean", "least",
                                          "greatest"};
    int major, minor, patch, r;

    hce_get_version(&major, &minor, &patch);
    print_series(opts);
    printf("# libhce %d.%d.%d: ranks %d%s nodes %d map %s transport %s host "
           "copy %s\n",
           major, minor, patch, attr->size, opts->threads ? " (threads)" : "",
           attr->num_nodes,
           opts->nodes != NULL ? hce_perf_map_name(opts->map) : "found",
           attr->transport, attr->host_copy);
    printf(
        "# buffers %s offset %d communicators %d calls %s time of ranks: %s\n",
        hce_perf_buffers_name(opts->buffers), opts->offset, opts->num_comms,
        opts->blocking ? "blocking" : "queued", average[opts->average]);
    for (r = 0; r < attr->size; r++)
        printf("# rank %d pid %d host %s node %d\n", r, (int)job->peers[r].pid,
               job->peers[r].host, (int)job->peers[r].node);
    printf("#\n");
}

void hce_perf_table_path(const hce_explain_t *explain,
                         const hce_explain_t *before)
{
    if (before != NULL && strcmp(explain->path, before->path) == 0 &&
        explain->contexts == before->contexts &&
        explain->dirs == before->dirs)
        return;
    printf("# path %s, %d context%s, chunks of %zu bytes: %s\n", explain->path,
           explain->contexts, explain->contexts == 1 ? "" : "s",
           explain->width, explain->reason);
}

void hce_perf_table_refusal(uint64_t size, const char *label, const char *why)
{
    printf("# not %s at %" PRIu64 " bytes: %s\n", label, size, why);
}

static const hce_perf_row_t *find_row(const hce_perf_results_t *results,
                                      const hce_perf_row_t *like, int variant)
{
    size_t i;

    for (i = 0; i < results->num_rows; i++) {
        const hce_perf_row_t *row = &results->rows[i];

        if (row->variant == variant && row->type == like->type &&
            row->op == like->op && row->size == like->size)
            return row;
    }
    return NULL;
}

/* Is row the first of its size and type? */
static bool is_new_size(const hce_perf_results_t *results, size_t i)
{
    return i == 0 || results->rows[i].size != results->rows[i - 1].size ||
           results->rows[i].type != results->rows[i - 1].type ||
           results->rows[i].op != results->rows[i - 1].op;
}

static void compare_size(const hce_perf_results_t *results,
                         const hce_perf_row_t *like)
{
    double least = 0, times[results->num_variants];
    int v;

    for (v = 0; v < results->num_variants; v++) {
        const hce_perf_row_t *row = find_row(results, like, v);

        times[v] =
            row == NULL ? 0 : row->cells[HCE_PERF_OUT_OF_PLACE].time_us;
        if (times[v] > 0 && (least == 0 || times[v] < least))
            least = times[v];
    }
    printf("# %12" PRIu64 "  %8s", like->size,
           hce_datatype_string(like->type));
    for (v = 0; v < results->num_variants; v++) {
        if (times[v] > 0)
            printf("  %11.1f%s", times[v], times[v] == least ? "*" : " ");
        else
            printf("  %11s ", "-");
    }
    printf("\n");
}

void hce_perf_table_compare(const hce_perf_opts_t *opts,
                            const hce_perf_results_t *results)
{
    size_t i;
    int v;

    if (!opts->each || results->num_rows == 0)
        return;
    printf("#\n# Side by side: us out of place, the least with a star\n");
    printf("# %12s  %8s", "size", "type");
    for (v = 0; v < results->num_variants; v++)
        printf("  %11s ", results->variants[v].label);
    printf("\n");
    for (i = 0; i < results->num_rows; i++)
        if (is_new_size(results, i))
            compare_size(results, &results->rows[i]);
}

void hce_perf_table_head(void)
{
    printf("#\n# %10s  %12s  %8s  %6s  %6s           out-of-place             "
           "          in-place          \n",
           "", "", "", "", "");
    printf(
        "# %10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s %6s  %7s  %6s  %6s %6s\n",
        "size", "count", "type", "redop", "root", "time", "algbw", "busbw",
        "#wrong", "time", "algbw", "busbw", "#wrong");
    printf("# %10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s  %5s  %7s  %6s  %6s  "
           "%5s\n",
           "(B)", "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "",
           "(us)", "(GB/s)", "(GB/s)", "");
    fflush(stdout);
}

static void print_cell(const hce_perf_cell_t *cell, bool checked)
{
    int digits = cell->time_us >= 10000 ? 0 : cell->time_us >= 100 ? 1 : 2;

    if (!cell->is_measured) {
        printf("  %7s  %6s  %6s  %5s", "N/A", "N/A", "N/A", "N/A");
        return;
    }
    printf("  %7.*f  %6.2f  %6.2f", digits, cell->time_us, cell->algbw,
           cell->busbw);
    if (checked)
        printf("  %5" PRIu64, cell->wrong);
    else
        printf("    N/A");
}

void hce_perf_table_row(const hce_perf_opts_t *opts, const hce_perf_row_t *row)
{
    int p;

    printf("%12" PRIu64 "  %12zu  %8s  %6s  %6d", row->size, row->count,
           hce_datatype_string(row->type), hce_perf_results_op(opts, row), -1);
    for (p = 0; p < HCE_PERF_PLACES; p++)
        print_cell(&row->cells[p], opts->checks > 0);
    printf("\n");
    fflush(stdout);
}

void hce_perf_table_stats(const hce_perf_job_t *job)
{
    hce_comm_stats_t stats;

    if (hce_comm_get_stats(job->comms[0], &stats) != HCE_OK)
        return;
    printf("# counted by rank %d: calls %" PRIu64 " puts %" PRIu64
           " bytes put %" PRIu64 " copies %" PRIu64 " bytes copied %" PRIu64
           " kernels %" PRIu64 " retries %" PRIu64 " progress wakes %" PRIu64
           "\n",
           job->attr.rank, stats.calls, stats.puts, stats.put_bytes,
           stats.copies, stats.copy_bytes, stats.kernels, stats.retries,
           stats.progress_wakes);
}

void hce_perf_table_foot(const hce_perf_results_t *results,
                         const char *verdict)
{
    printf("# Out of bounds values : %" PRIu64 " %s\n", results->wrong,
           results->wrong > 0 ? "FAILED" : "OK");
    printf("# Avg bus bandwidth    : %g\n", hce_perf_results_busbw(results));
    printf("#\n# Verdict: %s\n", verdict);
    fflush(stdout);
}

void hce_perf_progress(size_t done, size_t total, const char *what)
{
    static const char bar[] = "########################################";
    const int width = (int)sizeof(bar) - 1;
    int filled;

    if (!isatty(STDERR_FILENO))
        return;
    if (total == 0) {
        fprintf(stderr, "\r\033[K");
        return;
    }
    filled = (int)(done * (size_t)width / total);
    fprintf(stderr, "\r[%.*s%*s] %zu/%zu %s\033[K", filled, bar,
            width - filled, "", done, total, what);
}
