/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Plans: found, built, kept.
 */
#include "config.h"

#include "core/plans.h"

#include <stdlib.h>

#include "core/comm.h"
#include "core/dispatch.h"
#include "util/log.h"
#ifdef HCE_DEBUG
#include "plan/verify.h"

/* A proof costs all ranks' plans on each rank. */
#define VERIFY_MAX_RANKS 16
#define VERIFY_MAX_OPS 2000
#endif

static bool matches(const hce_plans_item_t *item, const hce_plan_params_t *want,
                    const hce_plan_builder_t *builder)
{
    const hce_plan_params_t *have = &item->plan->params;

    return item->builder == builder && have->coll == want->coll &&
           have->len == want->len && have->width == want->width &&
           have->contexts == want->contexts && have->dirs == want->dirs &&
           have->carriers == want->carriers &&
           have->datatype == want->datatype && have->op == want->op &&
           have->in_place == want->in_place && have->root == want->root;
}

static hce_plans_item_t *find(hce_plans_t *plans,
                              const hce_plan_params_t *want,
                              const hce_plan_builder_t *builder)
{
    unsigned i;

    for (i = 0; i < HCE_PLANS_SIZE; i++)
        if (plans->items[i] != NULL &&
            matches(plans->items[i], want, builder))
            return plans->items[i];
    return NULL;
}

static void item_free(hce_plans_item_t *item)
{
    hce_plan_destroy(item->plan);
    free(item);
}

/* In place of the one that was used longest ago. */
static void keep(hce_plans_t *plans, hce_plans_item_t *item)
{
    hce_plans_item_t **at = &plans->items[0];
    unsigned i;

    for (i = 0; i < HCE_PLANS_SIZE && *at != NULL; i++)
        if (plans->items[i] == NULL || plans->items[i]->used < (*at)->used)
            at = &plans->items[i];
    if (*at != NULL) {
        (*at)->is_cached = false;
        if ((*at)->users == 0)
            item_free(*at);
    }
    item->is_cached = true;
    *at = item;
}

#ifdef HCE_DEBUG
static hce_status_t verify(const hce_plan_builder_t *builder,
                           const hce_plan_t *plan)
{
    hce_verify_report_t report;
    hce_status_t status;

    if (plan->params.layout->nranks > VERIFY_MAX_RANKS ||
        plan->num_ops > VERIFY_MAX_OPS)
        return HCE_OK;
    status = hce_plan_verify_builder(builder, &plan->params, &report);
    if (status != HCE_OK)
        hce_log(ERROR, PLAN, "path %s: %s", plan->path, report.text);
    return status;
}
#else
static hce_status_t verify(const hce_plan_builder_t *builder,
                           const hce_plan_t *plan)
{
    return HCE_OK;
}
#endif

/* Those that the plan puts to or tells of its entry, on first need. */
static hce_status_t connect_peers(hce_comm_h comm, const hce_plan_t *plan)
{
    const uint32_t scratch = 1u << HCE_BUF_SCRATCH | 1u << HCE_BUF_STAGE;
    hce_status_t status = HCE_OK;
    int peer = -1;
    uint32_t i;

    if (comm->proxy == NULL)
        return HCE_OK;
    hce_engine_acquire();
    for (i = 0; i < plan->num_out && status == HCE_OK; i++) {
        peer = plan->out[i].rank;
        if (!hce_layout_same_node(comm->layout, comm->rank, peer))
            status = hce_proxy_connect(comm->proxy, peer);
    }
    for (i = 0; i < plan->num_touches && status == HCE_OK; i++) {
        peer = plan->touches[i].rank;
        if ((plan->touches[i].bufs & scratch) != 0 &&
            !hce_layout_same_node(comm->layout, comm->rank, peer))
            status = hce_scratch_connect(comm, peer);
    }
    if (status == HCE_OK)
        status = hce_comm_watch(comm);
    hce_engine_release();
    if (status == HCE_ERR_TRANSPORT || status == HCE_ERR_GONE)
        status = hce_fault_settle(comm, peer, status);
    return status;
}

static hce_status_t make(hce_comm_h comm, const hce_plan_params_t *params,
                         const hce_dispatch_choice_t *choice,
                         hce_plans_item_t **item_p)
{
    hce_plans_item_t *item = calloc(1, sizeof(*item));
    hce_status_t status = HCE_ERR_NO_MEMORY;

    if (item == NULL)
        goto err_log;
    item->builder = choice->builder;
    status = choice->builder->build(params, &item->plan);
    if (status != HCE_OK)
        goto err_free;
    status = verify(choice->builder, item->plan);
    if (status == HCE_OK)
        status = connect_peers(comm, item->plan);
    if (status == HCE_OK)
        status = hce_run_reserve(comm, item->plan);
    if (status != HCE_OK)
        goto err_plan;
    hce_dispatch_line(comm, item->plan, choice, item->line,
                      sizeof(item->line));
    hce_log(INFO, TUNING, "%s", item->line);
    *item_p = item;
    return HCE_OK;
err_plan:
    hce_plan_destroy(item->plan);
err_free:
    free(item);
err_log:
    hce_log(ERROR, PLAN, "cannot make a plan for path %s: %s",
            choice->builder->path, hce_status_string(status));
    return status;
}

hce_status_t hce_plans_get(hce_comm_h comm, const hce_dispatch_call_t *call,
                           bool in_place, const hce_dispatch_choice_t *choice,
                           hce_plans_item_t **item_p)
{
    hce_plan_params_t params = {
        .layout = comm->layout,
        .limits = comm->limits,
        .len = call->len,
        .width = choice->width,
        .coll = call->coll,
        .datatype = call->datatype,
        .op = call->op,
        .rank = comm->rank,
        .contexts = choice->contexts,
        .carriers = choice->carriers,
        .dirs = choice->dirs,
        .in_place = in_place,
    };
    hce_plans_item_t *item = find(&comm->plans, &params, choice->builder);
    hce_status_t status;

    if (item == NULL) {
        status = make(comm, &params, choice, &item);
        if (status != HCE_OK)
            return status;
        keep(&comm->plans, item);
    }
    item->used = ++comm->plans.clock;
    item->users++;
    *item_p = item;
    return HCE_OK;
}

void hce_plans_put(hce_plans_item_t *item)
{
    item->users--;
    if (item->users == 0 && !item->is_cached)
        item_free(item);
}

void hce_plans_cleanup(hce_plans_t *plans)
{
    unsigned i;

    for (i = 0; i < HCE_PLANS_SIZE; i++)
        if (plans->items[i] != NULL)
            item_free(plans->items[i]);
}
