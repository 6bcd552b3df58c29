/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Chooses path, contexts and width, and says why.
 */
#include "config.h"

#include "core/dispatch.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/comm.h"
#include "core/paths.h"
#include "core/values.h"
#include "util/log.h"
#include "util/math.h"

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

static uint64_t choose_width(const char *path, uint64_t len, int contexts)
{
    switch (hce_core_values.width) {
    case HCE_CORE_WIDTH_AUTO:
        return hce_paths_width_auto(path, len, contexts);
    case HCE_CORE_WIDTH_RULE:
        return hce_paths_width(path, len, contexts);
    default:
        return hce_round_up(hce_core_values.width, HCE_PATHS_WIDTH_UNIT);
    }
}

static hce_status_t choose_named(const char *path, const char *origin,
                                 const hce_plan_params_t *plan_params,
                                 hce_dispatch_choice_t *choice)
{
    const hce_plan_builder_t *builder =
        hce_paths_find(plan_params->coll, path);
    char known[HCE_PATHS_NAMES_SIZE];
    const char *why;

    if (builder == NULL) {
        hce_log(ERROR, TUNING, "%s is '%s', expected auto, %s", origin, path,
                hce_paths_names(plan_params->coll, known));
        return HCE_ERR_INVALID_ARG;
    }
    why = builder->refuse(plan_params);
    if (why != NULL) {
        hce_log(ERROR, TUNING, "path %s (%s) cannot run here: %s", path,
                origin, why);
        return HCE_ERR_UNSUPPORTED;
    }
    choice->builder = builder;
    choice->forced_by = origin;
    return HCE_OK;
}

/* The first that does not refuse. */
static hce_status_t choose_auto(const hce_plan_params_t *plan_params,
                                hce_dispatch_choice_t *choice)
{
    unsigned i;

    for (i = 0; hce_paths[i] != NULL; i++) {
        if (hce_paths[i]->coll != plan_params->coll ||
            hce_paths[i]->refuse(plan_params) != NULL)
            continue;
        choice->builder = hce_paths[i];
        choice->forced_by = NULL;
        return HCE_OK;
    }
    for (i = 0; hce_paths[i] != NULL; i++)
        if (hce_paths[i]->coll == plan_params->coll)
            hce_log(ERROR, TUNING, "path %s cannot run: %s",
                    hce_paths[i]->path, hce_paths[i]->refuse(plan_params));
    return HCE_ERR_UNSUPPORTED;
}

void hce_dispatch_reason(hce_comm_h comm, hce_coll_t coll, uint64_t len,
                         const hce_dispatch_choice_t *choice, char *buf,
                         size_t size)
{
    hce_plan_params_t plan_params = {
        .layout = comm->layout,
        .limits = comm->limits,
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
    for (i = 0; hce_paths[i] != NULL && used < size; i++) {
        if (hce_paths[i] == choice->builder || hce_paths[i]->coll != coll)
            continue;
        why = hce_paths[i]->refuse(&plan_params);
        used += (size_t)snprintf(buf + used, size - used, "; not %s: %s",
                                 hce_paths[i]->path,
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
        .layout = comm->layout,
        .limits = comm->limits,
        .len = len,
        .coll = coll,
        .rank = comm->rank,
    };
    hce_dispatch_choice_t choice = {0};
    const char *path = hce_core_values.ag_path, *origin = "HCE_AG_PATH";
    hce_status_t status;

    if (params == NULL)
        params = &none;
    status = check_params(comm, params);
    if (status != HCE_OK)
        return status;
    if (params->field_mask & HCE_CALL_PARAM_PATH) {
        path = params->path;
        origin = "params.path";
    }
    choice.contexts = params->field_mask & HCE_CALL_PARAM_CONTEXTS
                          ? params->contexts
                          : choose_contexts(comm, len);
    choice.width = params->field_mask & HCE_CALL_PARAM_WIDTH
                       ? params->width
                       : choose_width(path, len, choice.contexts);
    choice.width = hce_plan_chunk_width(len, choice.width);
    plan_params.contexts = choice.contexts;
    plan_params.width = choice.width;
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
