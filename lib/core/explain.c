/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * What the dispatcher's answer looks like to people and to callers.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/comm.h"
#include "core/dispatch.h"
#include "core/paths.h"
#include "core/values.h"
#include "util/log.h"

void hce_dispatch_settings(const hce_dispatch_choice_t *choice, char *buf,
                           size_t size)
{
    size_t used;

    used = (size_t)snprintf(buf, size, "%s=%s HCE_CHUNK_WIDTH=%" PRIu64,
                            hce_core_path_variable(choice->builder->coll),
                            choice->builder->path, choice->width);
    if (used < size)
        used += choice->contexts == 1
                    ? (size_t)snprintf(buf + used, size - used,
                                       " HCE_NUM_CTX=1")
                    : (size_t)snprintf(buf + used, size - used,
                                       " HCE_NUM_CTX=%d "
                                       "HCE_MULTI_CTX_THRESHOLD=0",
                                       choice->contexts);
    if (used < size)
        used += choice->carriers == 0
                    ? (size_t)snprintf(buf + used, size - used,
                                       " HCE_CARRIERS=rails")
                    : (size_t)snprintf(buf + used, size - used,
                                       " HCE_CARRIERS=%d", choice->carriers);
    if (used < size && choice->dirs > 0)
        snprintf(buf + used, size - used, " HCE_RING_DIRS=%d", choice->dirs);
}

void hce_dispatch_line(hce_comm_h comm, const hce_plan_t *plan,
                       const hce_dispatch_choice_t *choice, char *buf,
                       size_t size)
{
    const hce_plan_params_t *params = &plan->params;
    hce_dispatch_call_t call = hce_dispatch_call_of(params);
    char reason[512], settings[192];

    hce_dispatch_reason(comm, &call, choice, reason, sizeof(reason));
    hce_dispatch_settings(choice, settings, sizeof(settings));
    snprintf(buf, size,
             "%s path: %s, %" PRIu64 " bytes a rank, %d contexts, chunks of "
             "%" PRIu64 ", %u ops (%s) [%s]",
             plan->path, hce_paths_means(plan->path, comm->proxy != NULL),
             params->len, params->contexts, params->width, plan->num_ops,
             reason, settings);
}

static hce_status_t count(hce_comm_h comm, const hce_dispatch_call_t *call,
                          bool in_place, const hce_dispatch_choice_t *choice,
                          hce_plan_totals_t *totals_p)
{
    hce_plans_item_t *item;
    hce_status_t status = hce_plans_get(comm, call, in_place, choice, &item);

    if (status != HCE_OK)
        return status;
    hce_plan_count(item->plan, totals_p);
    hce_plans_put(item);
    return HCE_OK;
}

static hce_status_t explain(hce_comm_h comm, const hce_dispatch_call_t *call,
                            const hce_dispatch_choice_t *choice,
                            hce_explain_t *explain_p)
{
    hce_plan_totals_t totals, in_place;
    hce_status_t status = count(comm, call, false, choice, &totals);

    if (status == HCE_OK)
        status = count(comm, call, true, choice, &in_place);
    if (status != HCE_OK)
        return status;
    *explain_p = (hce_explain_t){
        .contexts = choice->contexts,
        .width = choice->width,
        .puts = totals.puts,
        .put_bytes = totals.put_bytes,
        .copies = totals.copies,
        .copy_bytes = totals.copy_bytes,
        .dirs = choice->dirs,
        .carriers = choice->carriers,
        .in_place_copies = in_place.copies,
        .in_place_copy_bytes = in_place.copy_bytes,
    };
    snprintf(explain_p->path, sizeof(explain_p->path), "%s",
             choice->builder->path);
    hce_dispatch_reason(comm, call, choice, explain_p->reason,
                        sizeof(explain_p->reason));
    hce_dispatch_settings(choice, explain_p->settings,
                          sizeof(explain_p->settings));
    return HCE_OK;
}

hce_status_t hce_comm_explain(hce_comm_h comm, hce_coll_t coll, size_t count,
                              hce_datatype_t datatype,
                              const hce_call_params_t *params,
                              hce_explain_t *explain_p)
{
    hce_status_t status = hce_comm_check(comm, "hce_comm_explain");
    size_t size = hce_datatype_size(datatype);
    hce_dispatch_call_t call = {.coll = coll, .len = count * size};
    hce_dispatch_choice_t choice;

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
    if (coll != HCE_COLL_ALLGATHER)
        call.datatype = datatype;
    status = hce_dispatch_choose(comm, &call, params, &choice);
    if (status != HCE_OK)
        return status;
    return explain(comm, &call, &choice, explain_p);
}
