/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Lists candidates and finds the cheapest.
 */
#include "config.h"

#include "core/candidate.h"

#include <stdio.h>
#include <string.h>

#include "core/paths.h"
#include "core/tuning.h"
#include "core/values.h"
#include "model/cost.h"
#include "util/math.h"

static bool is_given(const hce_candidate_call_t *call, uint64_t bit)
{
    return (call->params->field_mask & bit) != 0;
}

/* "1 -> full": all contexts from a size a peer on. */
static int choose_contexts(const hce_candidate_call_t *call)
{
    if (is_given(call, HCE_CALL_PARAM_CONTEXTS)) {
        return call->params->contexts;
    }
    return call->len < hce_core_values.multi_ctx_threshold ? 1
                                                           : call->contexts;
}

static uint64_t choose_width(const hce_candidate_call_t *call,
                             const char *path, int contexts)
{
    uint64_t width;

    if (is_given(call, HCE_CALL_PARAM_WIDTH)) {
        width = call->params->width;
    } else if (hce_core_values.width == HCE_CORE_WIDTH_AUTO) {
        width = hce_paths_width_auto(path, call->len, contexts);
    } else if (hce_core_values.width == HCE_CORE_WIDTH_RULE) {
        width = hce_paths_width(path, call->len, contexts);
    } else {
        width = hce_round_up(hce_core_values.width, HCE_PATHS_WIDTH_UNIT);
    }
    return hce_plan_chunk_width(call->len, width);
}

/* Where all rails share a port, many flows gain nothing: their shares are
 * uneven. Two fill it though one of them is not scheduled at a time: two
 * carriers of a ring in one direction, one in two (8 nodes of 4, 200 Mbit/s:
 * 97 to 99 % of the port with one or two carriers, 92 to 95 with four). */
static int choose_carriers(const hce_candidate_call_t *call,
                           const char *path, int dirs)
{
    if (is_given(call, HCE_CALL_PARAM_CARRIERS)) {
        return call->params->carriers;
    }
    if (hce_core_values.carriers != HCE_CORE_CARRIERS_AUTO) {
        return hce_core_values.carriers;
    }
    if (strcmp(call->kind, "tcp") != 0) {
        return HCE_CORE_CARRIERS_RAILS;
    }
    return strcmp(path, "ring") == 0 && dirs == 1 ? 2 : 1;
}

static void add(const hce_candidate_call_t *call,
                const hce_plan_builder_t *builder, int dirs,
                hce_candidate_t *it)
{
    hce_cost_figure_t figure;
    hce_cost_terms_t terms;

    *it = (hce_candidate_t){.builder = builder, .seconds = -1};
    it->params = (hce_plan_params_t){
        .layout = call->layout,
        .limits = call->limits,
        .len = call->len,
        .coll = call->coll,
        .datatype = call->datatype,
        .op = call->op,
        .rank = call->rank,
        .contexts = choose_contexts(call),
        .carriers = choose_carriers(call, builder->path, dirs),
        .dirs = dirs,
    };
    it->params.width =
        choose_width(call, builder->path, it->params.contexts);
    it->refusal = builder->refuse(&it->params);
    if (call->coll == HCE_COLL_ALLGATHER &&
        hce_cost_allgather(builder->path, call->layout, call->len, &terms) &&
        hce_tuning_find(call->kind, call->layout, builder->path, dirs,
                        &figure)) {
        it->seconds = hce_cost_seconds(&terms, &figure);
    }
}

unsigned hce_candidates_list(const hce_candidate_call_t *call,
                             hce_candidate_t list[HCE_CANDIDATES_MAX])
{
    int asked = is_given(call, HCE_CALL_PARAM_DIRS)
                    ? call->params->dirs
                    : hce_core_values.ring_dirs;
    unsigned i, num = 0;

    for (i = 0; hce_paths[i] != NULL && num + 2 <= HCE_CANDIDATES_MAX; i++) {
        const hce_plan_builder_t *builder = hce_paths[i];

        if (builder->coll != call->coll) {
            continue;
        }
        if (strcmp(builder->path, "ring") == 0) {
            if (asked != 1) {
                add(call, builder, 2, &list[num++]);
            }
            if (asked != 2) {
                add(call, builder, 1, &list[num++]);
            }
        } else if (strcmp(builder->path, "ring_short") == 0) {
            add(call, builder, asked == 1 ? 1 : 2, &list[num++]);
        } else {
            add(call, builder, 0, &list[num++]);
        }
    }
    return num;
}

/* Without figures, a path is taken only where none with figures can run. */
static bool is_better(const hce_candidate_t *a, const hce_candidate_t *b)
{
    return a->seconds >= 0 && (b->seconds < 0 || a->seconds < b->seconds);
}

int hce_candidates_best(const hce_candidate_call_t *call,
                        const hce_candidate_t *list, unsigned num,
                        const char *path)
{
    int best = -1;
    unsigned i;

    for (i = 0; i < num; i++) {
        if (list[i].refusal != NULL ||
            (path != NULL && strcmp(list[i].builder->path, path) != 0)) {
            continue;
        }
        if (best < 0 || is_better(&list[i], &list[best])) {
            best = (int)i;
        }
    }
    return best;
}

const char *hce_candidate_name(const hce_candidate_t *candidate, char *buf,
                               size_t size)
{
    bool is_one = strcmp(candidate->builder->path, "ring") == 0 &&
                  candidate->params.dirs == 1;

    snprintf(buf, size, "%s%s", candidate->builder->path,
             is_one ? " in 1 direction" : "");
    return buf;
}
