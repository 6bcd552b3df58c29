/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Paths, their order of preference, and the rules for contexts and width.
 */
#include "config.h"

#include "core/dispatch.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/comm.h"
#include "core/values.h"
#include "direct/direct.h"
#include "flat/flat.h"
#include "util/log.h"
#include "util/math.h"

/* Best first: auto takes the first that does not refuse. */
static const hce_plan_builder_t *const builders[] = {
    &hce_direct_allgather,
    &hce_flat_allgather,
};

#define NUM_BUILDERS (sizeof(builders) / sizeof(builders[0]))

/* min(P/C, 64 MiB), rounded up to 8 KiB: the published geometry of chunks. */
#define WIDTH_MAX (64 * HCE_MIB)
#define WIDTH_UNIT (8 * HCE_KIB)

/* The CPU spreads a chunk while the next one arrives: a chunk as wide as the
 * slice would leave nothing to overlap. */
#define WIDTH_AUTO_MAX (1 * HCE_MIB)

const char *hce_dispatch_coll_name(hce_coll_t coll)
{
    static const char *const names[HCE_COLL_LAST] = {
        [HCE_COLL_ALLGATHER] = "allgather",
    };

    return (unsigned)coll < HCE_COLL_LAST ? names[coll] : "unknown";
}

static hce_status_t check_params(hce_comm_h comm,
                                 const hce_call_params_t *params)
{
    if ((params->field_mask & HCE_CALL_PARAM_CONTEXTS) &&
        (params->contexts < 1 || params->contexts > comm->stats.contexts)) {
        hce_log(ERROR, TUNING,
                "contexts is %d, expected 1..%d (HCE_NUM_CTX opens more)",
                params->contexts, comm->stats.contexts);
        return HCE_ERR_INVALID_ARG;
    }
    if ((params->field_mask & HCE_CALL_PARAM_WIDTH) && params->width == 0) {
        hce_log(ERROR, TUNING, "width is 0, expected bytes of a chunk");
        return HCE_ERR_INVALID_ARG;
    }
    if ((params->field_mask & HCE_CALL_PARAM_PATH) && params->path == NULL) {
        hce_log(ERROR, TUNING, "path is NULL, expected the name of a path");
        return HCE_ERR_INVALID_ARG;
    }
    return HCE_OK;
}

/* "1 -> full": all contexts from a size a peer on. */
static int choose_contexts(hce_comm_h comm, uint64_t len)
{
    return len < hce_core_values.multi_ctx_threshold ? 1
                                                     : comm->stats.contexts;
}

static uint64_t choose_width(uint64_t len, int contexts)
{
    uint64_t rule = hce_min(hce_div_up(len, (uint64_t)contexts), WIDTH_MAX);
    uint64_t width = hce_core_values.width;

    if (width == HCE_CORE_WIDTH_AUTO)
        width = hce_min(rule, WIDTH_AUTO_MAX);
    else if (width == HCE_CORE_WIDTH_RULE)
        width = rule;
    return hce_max(hce_round_up(width, WIDTH_UNIT), WIDTH_UNIT);
}

static void names_of_paths(char *buf, size_t size)
{
    size_t used = 0;
    unsigned i;

    for (i = 0; i < NUM_BUILDERS && used < size; i++)
        used += (size_t)snprintf(buf + used, size - used, "%s%s",
                                 i == 0 ? "" : ", ", builders[i]->path);
}

static hce_status_t choose_named(const char *path, const char *origin,
                                 const hce_plan_params_t *plan_params,
                                 hce_dispatch_choice_t *choice)
{
    const char *why = NULL;
    char known[64];
    unsigned i;

    for (i = 0; i < NUM_BUILDERS; i++)
        if (strcmp(builders[i]->path, path) == 0)
            break;
    if (i == NUM_BUILDERS) {
        names_of_paths(known, sizeof(known));
        hce_log(ERROR, TUNING, "%s is '%s', expected auto, %s", origin, path,
                known);
        return HCE_ERR_INVALID_ARG;
    }
    why = builders[i]->refuse(plan_params);
    if (why != NULL) {
        hce_log(ERROR, TUNING, "path %s (%s) cannot run here: %s", path,
                origin, why);
        return HCE_ERR_UNSUPPORTED;
    }
    choice->builder = builders[i];
    choice->forced_by = origin;
    return HCE_OK;
}

static hce_status_t choose_auto(const hce_plan_params_t *plan_params,
                                hce_dispatch_choice_t *choice)
{
    unsigned i;

    for (i = 0; i < NUM_BUILDERS; i++) {
        if (builders[i]->refuse(plan_params) != NULL)
            continue;
        choice->builder = builders[i];
        choice->forced_by = NULL;
        return HCE_OK;
    }
    for (i = 0; i < NUM_BUILDERS; i++)
        hce_log(ERROR, TUNING, "path %s cannot run: %s", builders[i]->path,
                builders[i]->refuse(plan_params));
    return HCE_ERR_UNSUPPORTED;
}

void hce_dispatch_reason(hce_comm_h comm, hce_coll_t coll, uint64_t len,
                         const hce_dispatch_choice_t *choice, char *buf,
                         size_t size)
{
    hce_plan_params_t plan_params = {
        .layout = comm->layout,
        .len = len,
        .width = choice->width,
        .coll = coll,
        .rank = comm->rank,
        .contexts = choice->contexts,
    };
    size_t used;
    const char *why;
    unsigned i;

    used = choice->forced_by != NULL
               ? (size_t)snprintf(buf, size, "%s=%s", choice->forced_by,
                                  choice->builder->path)
               : (size_t)snprintf(buf, size, "auto, first that can run");
    for (i = 0; i < NUM_BUILDERS && used < size; i++) {
        if (builders[i] == choice->builder)
            continue;
        why = builders[i]->refuse(&plan_params);
        used += (size_t)snprintf(buf + used, size - used, "; not %s: %s",
                                 builders[i]->path,
                                 why != NULL ? why : "not asked for");
    }
}

hce_status_t hce_dispatch_choose(hce_comm_h comm, hce_coll_t coll,
                                 uint64_t len,
                                 const hce_call_params_t *params,
                                 hce_dispatch_choice_t *choice_p)
{
    hce_call_params_t none = {0};
    hce_plan_params_t plan_params = {
        .layout = comm->layout, .len = len, .coll = coll, .rank = comm->rank};
    hce_dispatch_choice_t choice = {0};
    const char *path = hce_core_values.ag_path, *origin = "HCE_AG_PATH";
    hce_status_t status;

    if (params == NULL)
        params = &none;
    status = check_params(comm, params);
    if (status != HCE_OK)
        return status;
    choice.contexts = params->field_mask & HCE_CALL_PARAM_CONTEXTS
                          ? params->contexts
                          : choose_contexts(comm, len);
    choice.width = params->field_mask & HCE_CALL_PARAM_WIDTH
                       ? params->width
                       : choose_width(len, choice.contexts);
    choice.width = hce_plan_chunk_width(len, choice.width);
    plan_params.contexts = choice.contexts;
    plan_params.width = choice.width;
    if (params->field_mask & HCE_CALL_PARAM_PATH) {
        path = params->path;
        origin = "params.path";
    }
    status = strcmp(path, "auto") == 0
                 ? choose_auto(&plan_params, &choice)
                 : choose_named(path, origin, &plan_params, &choice);
    if (status != HCE_OK)
        return status;
    *choice_p = choice;
    return HCE_OK;
}

hce_status_t hce_comm_explain(hce_comm_h comm, hce_coll_t coll, size_t count,
                              hce_datatype_t datatype,
                              const hce_call_params_t *params,
                              hce_explain_t *explain_p)
{
    hce_status_t status = hce_comm_check(comm, "hce_comm_explain");
    size_t size = hce_datatype_size(datatype);
    hce_dispatch_choice_t choice;
    hce_plan_totals_t totals;
    hce_plans_item_t *item;

    if (status != HCE_OK)
        return status;
    if (explain_p == NULL || size == 0 || (unsigned)coll >= HCE_COLL_LAST ||
        count > UINT64_MAX / size / (size_t)hce_comm_size(comm)) {
        hce_log(ERROR, CORE,
                "hce_comm_explain: explain_p is NULL, or collective %d, "
                "datatype %d or count %zu is not valid",
                (int)coll, (int)datatype, count);
        return HCE_ERR_INVALID_ARG;
    }
    status = hce_dispatch_choose(comm, coll, count * size, params, &choice);
    if (status != HCE_OK)
        return status;
    status = hce_plans_get(comm, coll, count * size, false, &choice, &item);
    if (status != HCE_OK)
        return status;
    hce_plan_count(item->plan, &totals);
    hce_plans_put(item);
    *explain_p = (hce_explain_t){
        .contexts = choice.contexts,
        .width = choice.width,
        .puts = totals.puts,
        .put_bytes = totals.put_bytes,
        .copies = totals.copies,
        .copy_bytes = totals.copy_bytes,
    };
    snprintf(explain_p->path, sizeof(explain_p->path), "%s",
             choice.builder->path);
    hce_dispatch_reason(comm, coll, count * size, &choice, explain_p->reason,
                        sizeof(explain_p->reason));
    return HCE_OK;
}
