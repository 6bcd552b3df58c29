/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 */
#include "config.h"

#include "source.h"

#include "core/paths.h"
#include "plan/show.h"
#include "util/math.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Limits as with the settings' defaults, over ucx. */
#define DEFAULT_SCRATCH (4 * HCE_MIB)
#define DEFAULT_PARCEL  (60 * HCE_KIB)

static hce_layout_t *make_layout(const hce_tools_opts_t *opts)
{
    int *color = calloc((size_t)opts->ranks, sizeof(*color));
    hce_layout_t *layout = NULL;
    const char *why = "out of memory";

    if (color != NULL && hce_layout_parse(opts->nodes, opts->map, opts->ranks,
                                          color, &why) == HCE_OK) {
        why = "out of memory";
        if (hce_layout_create(opts->ranks, color, &layout) != HCE_OK) {
            layout = NULL;
        }
    }
    free(color);
    if (layout == NULL) {
        hce_tools_opts_refuse("--nodes: '%s' does not fit %d ranks: %s",
                              opts->nodes, opts->ranks, why);
    }
    return layout;
}

static uint64_t choose_width(const hce_tools_opts_t *opts, const char *path,
                             uint64_t len)
{
    switch (opts->width_by) {
    case HCE_TOOLS_WIDTH_RULE:
        return hce_paths_width(path, len, opts->contexts);
    case HCE_TOOLS_WIDTH_AUTO:
        return hce_paths_width_auto(path, len, opts->contexts);
    default:
        return opts->width;
    }
}

void hce_tools_source_params(const hce_tools_opts_t *opts, int size,
                             const hce_plan_builder_t *builder,
                             hce_plan_params_t *params_p)
{
    uint64_t len = opts->sizes[size];
    uint64_t width = choose_width(opts, builder->path, len);

    *params_p = (hce_plan_params_t){
        .layout = make_layout(opts),
        .limits = {.scratch = DEFAULT_SCRATCH,
                   .parcel = DEFAULT_PARCEL,
                   .reads = true,
                   .pulls = true},
        .len = len,
        .width = hce_plan_chunk_width(len, width),
        .coll = opts->coll,
        .contexts = opts->contexts,
        .carriers = opts->carriers,
        .dirs = opts->dirs,
        .in_place = opts->in_place,
    };
}

const hce_plan_builder_t *
hce_tools_source_builder(const hce_tools_opts_t *opts, const char *path)
{
    const hce_plan_builder_t *builder = hce_paths_find(opts->coll, path);
    char names[HCE_PATHS_NAMES_SIZE];

    if (builder == NULL &&
        hce_paths_names(opts->coll, names)[0] == '\0') {
        fprintf(stderr, "hce_plan: this build has no path for %s\n",
                hce_plan_coll_string(opts->coll));
    } else if (builder == NULL) {
        fprintf(stderr,
                "hce_plan: this build has no path %s: expected one of %s\n",
                path, names);
    }
    return builder;
}

bool hce_tools_source_check(const hce_plan_builder_t *builder,
                            const hce_plan_params_t *params)
{
    const char *why = builder->refuse(params);

    if (why != NULL) {
        fprintf(stderr, "hce_plan: path %s cannot do this: %s\n",
                builder->path, why);
    }
    return why == NULL;
}

/* Takes over params->layout, also on failure. */
static bool build(const hce_plan_builder_t *builder,
                  const hce_plan_params_t *params, int rank,
                  hce_plan_set_t *set)
{
    int num = rank == HCE_TOOLS_ALL_RANKS ? params->layout->nranks : 1;
    int first = rank == HCE_TOOLS_ALL_RANKS ? 0 : rank;
    hce_plan_params_t mine = *params;
    hce_status_t status = HCE_OK;

    *set = (hce_plan_set_t){
        .layout = (hce_layout_t *)params->layout,
        .plans = calloc((size_t)num, sizeof(*set->plans)),
    };
    if (set->plans == NULL) {
        status = HCE_ERR_NO_MEMORY;
    }
    for (; status == HCE_OK && set->num < num; set->num++) {
        mine.rank = first + set->num;
        status = builder->build(&mine, &set->plans[set->num]);
    }
    if (status != HCE_OK) {
        fprintf(stderr, "hce_plan: path %s cannot be built: %s\n",
                builder->path, hce_status_string(status));
        hce_plan_set_cleanup(set);
    }
    return status == HCE_OK;
}

/* Only the plan of one rank is wanted. */
static bool pick(hce_plan_set_t *set, int rank, const char *from)
{
    hce_plan_t *swap;
    int i;

    for (i = 0; i < set->num; i++) {
        if (set->plans[i]->params.rank == rank) {
            break;
        }
    }
    if (i == set->num) {
        fprintf(stderr, "hce_plan: %s: holds no plan of rank %d\n", from,
                rank);
        hce_plan_set_cleanup(set);
        return false;
    }
    swap = set->plans[0];
    set->plans[0] = set->plans[i];
    set->plans[i] = swap;
    for (i = 1; i < set->num; i++) {
        hce_plan_destroy(set->plans[i]);
    }
    set->num = 1;
    return true;
}

static bool read_file(const char *from, hce_plan_set_t *set)
{
    bool is_stdin = strcmp(from, "-") == 0;
    FILE *in = is_stdin ? stdin : fopen(from, "re");
    char why[HCE_PLAN_READ_WHY_SIZE];
    hce_status_t status;

    if (in == NULL) {
        fprintf(stderr, "hce_plan: %s: cannot be opened: %m\n", from);
        return false;
    }
    status = hce_plan_set_read(in, set, why);
    if (status != HCE_OK) {
        fprintf(stderr, "hce_plan: %s: %s\n", from, why);
    }
    if (!is_stdin) {
        fclose(in);
    }
    return status == HCE_OK;
}

bool hce_tools_source_open(const hce_tools_opts_t *opts, int rank,
                           hce_plan_set_t *set_p)
{
    const hce_plan_builder_t *builder;
    hce_plan_params_t params;

    if (opts->from != NULL) {
        return read_file(opts->from, set_p) &&
               (rank == HCE_TOOLS_ALL_RANKS || pick(set_p, rank, opts->from));
    }
    builder = hce_tools_source_builder(opts, opts->path == NULL ? "direct"
                                                                : opts->path);
    if (builder == NULL) {
        return false;
    }
    hce_tools_source_params(opts, 0, builder, &params);
    if (!hce_tools_source_check(builder, &params)) {
        hce_layout_destroy((hce_layout_t *)params.layout);
        return false;
    }
    return build(builder, &params, rank, set_p);
}

bool hce_tools_source_is_whole(const hce_plan_set_t *set)
{
    int i;

    for (i = 0; i < set->num; i++) {
        if (set->plans[i]->params.rank != i) {
            break;
        }
    }
    if (i < set->num || set->num != set->layout->nranks) {
        fprintf(stderr,
                "hce_plan: expected the plans of all %d ranks in order, "
                "found %d, and number %d is not that of rank %d\n",
                set->layout->nranks, set->num, i, i);
        return false;
    }
    return true;
}

bool hce_tools_source_has_rank(const hce_plan_set_t *set, const char *flag,
                               int rank)
{
    if (rank >= set->layout->nranks) {
        fprintf(stderr,
                "hce_plan: %s: %d is not a rank: expected less than %d\n",
                flag, rank, set->layout->nranks);
        return false;
    }
    return true;
}
