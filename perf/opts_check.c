/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * What can only be judged when all flags are known, and defaults that follow
 * from other flags. Writes the text of a refusal; prints nothing.
 */
#include <config.h>

#include "opts.h"

#include "core/paths.h"
#include "json.h"
#include "plot.h"
#include "ranks.h"
#include "series.h"
#include "util/math.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* More than anybody reads. */
#define MAX_ROWS 65536

bool hce_perf_opts_check_ranks(const hce_perf_opts_t *opts, int nranks,
                               char *why, size_t size)
{
    const hce_perf_faults_t *faults = &opts->faults;
    const struct {
        const char *flag;
        int rank;
    } named[] = {
        {"-r", opts->root},
        {"--corrupt", faults->corrupt_rank},
        {"--delay", faults->delay_rank},
        {"--kill", faults->kill_rank},
        {"--mismatch", faults->mismatch_rank},
    };
    int color[nranks];
    const char *text;
    size_t i;

    for (i = 0; i < sizeof(named) / sizeof(named[0]); i++) {
        if (named[i].rank >= nranks) {
            snprintf(why, size, "%s: %d is not a rank: expected less than %d",
                     named[i].flag, named[i].rank, nranks);
            return false;
        }
    }
    if (opts->nodes != NULL && hce_layout_parse(opts->nodes, opts->map, nranks,
                                                color, &text) != HCE_OK) {
        snprintf(why, size, "--nodes: '%s' does not fit %d ranks: %s",
                 opts->nodes, nranks, text);
        return false;
    }
    return true;
}

/* With --ranks or without a launcher the ranks are started here. */
static bool finish_ranks(hce_perf_opts_t *opts, char *why, size_t size)
{
    if (opts->ranks == 0 && !hce_perf_ranks_launched())
        opts->ranks = hce_perf_ranks_default(opts->nodes);
    if (opts->ranks > 0)
        return hce_perf_opts_check_ranks(opts, opts->ranks, why, size);
    if (opts->threads)
        snprintf(why, size,
                 "--threads: the ranks are processes of a launcher here: "
                 "expected --ranks as well");
    return !opts->threads;
}

/* -b, -e, -i and -f together. */
static bool finish_series(hce_perf_opts_t *opts, char *why, size_t size)
{
    uint64_t last, rows;

    if (opts->max_bytes == HCE_PERF_NOT_GIVEN)
        opts->max_bytes = hce_max(opts->min_bytes, HCE_PERF_DEFAULT_BYTES);
    if (opts->min_bytes > opts->max_bytes) {
        snprintf(why, size,
                 "-b: %" PRIu64 " is more than -e: expected at most %" PRIu64,
                 opts->min_bytes, opts->max_bytes);
        return false;
    }
    if (opts->step_bytes == 0 && opts->step_factor == 1 &&
        opts->min_bytes < opts->max_bytes) {
        snprintf(why, size, "-i: 0 never reaches -e: expected at least 1");
        return false;
    }
    if (!opts->coll->reduces)
        opts->num_ops = 1;
    rows = hce_perf_series_len(opts, &last) * (uint64_t)opts->num_types *
           (uint64_t)opts->num_ops;
    if (rows > MAX_ROWS) {
        snprintf(why, size,
                 "-i: %" PRIu64 " makes %" PRIu64
                 " rows: expected at most %d; use -f or a larger -i",
                 opts->step_bytes, rows, MAX_ROWS);
        return false;
    }
    return true;
}

/* --path and --calibrate. */
static bool finish_path(hce_perf_opts_t *opts, char *why, size_t size)
{
    const char *path = opts->call.path;
    char known[HCE_PATHS_NAMES_SIZE];

    if (opts->calibrate != NULL && opts->coll->number != HCE_COLL_ALLGATHER) {
        snprintf(why, size,
                 "--calibrate: there are no figures of %s: expected "
                 "all_gather",
                 opts->coll->name);
        return false;
    }
    opts->each = opts->calibrate != NULL ||
                 (path != NULL && strcmp(path, "each") == 0);
    if (opts->calibrate != NULL && path != NULL && strcmp(path, "each") != 0) {
        snprintf(why, size,
                 "--path: '%s' is not for --calibrate: expected each", path);
        return false;
    }
    if (opts->each) {
        opts->call.field_mask &= ~(uint64_t)HCE_CALL_PARAM_PATH;
        opts->call.path = NULL;
    } else if (path != NULL && strcmp(path, "auto") != 0 &&
               hce_paths_find(opts->coll->number, path) == NULL) {
        snprintf(why, size, "--path: '%s' is unknown: expected auto, each, %s",
                 path, hce_paths_names(opts->coll->number, known));
        return false;
    }
    if (opts->calibrate != NULL &&
        opts->min_bytes == HCE_PERF_DEFAULT_BYTES &&
        opts->max_bytes == HCE_PERF_NOT_GIVEN) {
        opts->min_bytes = 64 * HCE_KIB;
        opts->max_bytes = 64 * HCE_MIB;
        opts->step_factor = 4;
    }
    return true;
}

/* 0, or why nothing can be written there; creates nothing. */
static int find_obstacle(const char *path)
{
    char folder[PATH_MAX];
    char *slash;

    if (access(path, F_OK) == 0)
        return access(path, W_OK) == 0 ? 0 : errno;
    snprintf(folder, sizeof(folder), "%s", path);
    slash = strrchr(folder, '/');
    if (slash == NULL)
        return access(".", W_OK) == 0 ? 0 : errno;
    slash[slash == folder] = '\0'; /* the root keeps its name */
    return access(folder, W_OK) == 0 ? 0 : errno;
}

/* Not under a launcher: rank 0 may be on another host. */
static bool finish_files(const hce_perf_opts_t *opts, char *why, size_t size)
{
    const struct {
        const char *flag, *path;
    } files[] = {
        {"--json", opts->json},
        {"--plot", opts->plot},
        {"--calibrate", opts->calibrate},
    };
    size_t i;
    int err;

    for (i = 0; i < sizeof(files) / sizeof(files[0]) && opts->ranks > 0; i++) {
        err = files[i].path != NULL ? find_obstacle(files[i].path) : 0;
        if (err != 0) {
            snprintf(why, size, "%s: '%s' cannot be written: %s",
                     files[i].flag, files[i].path, strerror(err));
            return false;
        }
    }
    return true;
}

bool hce_perf_opts_finish(hce_perf_opts_t *opts, char *why, size_t size)
{
    const char *text;

    if (opts->coll == NULL) {
        snprintf(why, size, "the collective is missing: expected all_gather, "
                            "reduce_scatter or all_reduce");
        return false;
    }
    text = opts->plot != NULL ? hce_perf_plot_refusal(opts->plot) : NULL;
    if (text != NULL) {
        snprintf(why, size, "--plot: '%s': %s", opts->plot, text);
        return false;
    }
    text = opts->json != NULL ? hce_perf_json_refusal() : NULL;
    if (text != NULL) {
        snprintf(why, size, "--json: '%s': %s", opts->json, text);
        return false;
    }
    text = opts->calibrate != NULL ? hce_perf_json_refusal() : NULL;
    if (text != NULL) {
        snprintf(why, size, "--calibrate: '%s': %s", opts->calibrate, text);
        return false;
    }
    if (opts->blocking) {
        opts->call.blocking = 1;
        opts->call.field_mask |= HCE_CALL_PARAM_BLOCKING;
    }
    return finish_path(opts, why, size) && finish_series(opts, why, size) &&
           finish_ranks(opts, why, size) && finish_files(opts, why, size);
}
