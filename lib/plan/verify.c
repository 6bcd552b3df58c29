/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The verifier's course: shape, traffic, counters, windows, then the replay,
 * or the checks by rank where there are too many ranks to replay.
 */
#include "config.h"

#include "plan/verify.h"

#include "plan/verify_priv.h"
#include "util/log.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Instances of three launches must have numbers of 32 bits. */
#define VERIFY_MAX (UINT32_MAX / (HCE_VERIFY_LAUNCHES + 1))

static bool verify_alloc(hce_verify_t *v)
{
    size_t n = v->nranks + 1;

    v->op_base = calloc(n, sizeof(*v->op_base));
    v->lane_base = calloc(n, sizeof(*v->lane_base));
    v->wait_base = calloc(n, sizeof(*v->wait_base));
    v->post_base = calloc(n, sizeof(*v->post_base));
    v->counter_base = calloc(n, sizeof(*v->counter_base));
    return v->op_base != NULL && v->lane_base != NULL &&
           v->wait_base != NULL && v->post_base != NULL &&
           v->counter_base != NULL;
}

static bool verify_alloc_arrays(hce_verify_t *v)
{
    int n = v->nranks;

    v->ops = calloc(v->op_base[n] + 1, sizeof(*v->ops));
    v->lane_rank = calloc(v->lane_base[n] + 1, sizeof(*v->lane_rank));
    v->counters = calloc(v->counter_base[n] + 1, sizeof(*v->counters));
    v->posts = calloc(v->post_base[n] + 1, sizeof(*v->posts));
    v->wait_counter = calloc(v->wait_base[n] + 1, sizeof(*v->wait_counter));
    v->post_counter = calloc(v->post_base[n] + 1, sizeof(*v->post_counter));
    v->post_index = calloc(v->post_base[n] + 1, sizeof(*v->post_index));
    return v->ops != NULL && v->lane_rank != NULL && v->counters != NULL &&
           v->posts != NULL && v->wait_counter != NULL &&
           v->post_counter != NULL && v->post_index != NULL;
}

bool hce_verify_open(hce_verify_t *v, hce_plan_t *const *plans, int nranks)
{
    uint64_t total = 0;
    int i;

    v->plans = plans;
    v->nranks = nranks;
    v->layout = plans[0]->params.layout;
    v->len = plans[0]->params.len;
    v->in_place = plans[0]->params.in_place;
    if (v->len > UINT64_MAX / 2 / v->nranks) {
        return hce_verify_fault(v, "%" PRIu64 " bytes a rank are too many",
                                v->len);
    }
    if (!verify_alloc(v)) {
        return hce_verify_no_memory(v);
    }
    for (i = 0; i < v->nranks; i++) {
        const hce_plan_t *plan = v->plans[i];

        total += (uint64_t)plan->num_ops + plan->num_lanes + plan->num_waits +
                 plan->num_posts + plan->num_in;
        if (total > VERIFY_MAX) {
            return hce_verify_fault(v, "too many ops to verify");
        }
        v->op_base[i + 1] = v->op_base[i] + plan->num_ops;
        v->lane_base[i + 1] = v->lane_base[i] + plan->num_lanes;
        v->wait_base[i + 1] = v->wait_base[i] + plan->num_waits;
        v->post_base[i + 1] = v->post_base[i] + plan->num_posts;
        v->counter_base[i + 1] = v->counter_base[i] + plan->num_in;
    }
    return verify_alloc_arrays(v) ? true : hce_verify_no_memory(v);
}

void hce_verify_close(hce_verify_t *v)
{
    hce_verify_order_destroy(v);
    free(v->op_base);
    free(v->lane_base);
    free(v->wait_base);
    free(v->post_base);
    free(v->counter_base);
    free(v->ops);
    free(v->lane_rank);
    free(v->counters);
    free(v->posts);
    free(v->wait_counter);
    free(v->post_counter);
    free(v->post_index);
}

static void verify_report(const hce_plan_t *plan, const char *placement,
                          hce_verify_report_t *report)
{
    const hce_plan_params_t *params = &plan->params;
    int ranks = params->layout->nranks, nodes = params->layout->nnodes;

    snprintf(report->text, sizeof(report->text),
             "%s: %s, %d rank%s on %d node%s, %" PRIu64 " bytes a rank, %s, "
             "%" PRIu64 " ops%s",
             plan->path,
             report->full ? "full proof, three launches replayed"
                          : "checked by rank, not replayed",
             ranks, ranks == 1 ? "" : "s", nodes, nodes == 1 ? "" : "s",
             params->len, placement, report->ops, hce_verify_reserve(report));
}

hce_status_t hce_plan_verify(hce_plan_t *const *plans, int nranks,
                             const hce_plan_builder_t *builder,
                             hce_verify_report_t *report_p)
{
    hce_verify_t v = {.builder = builder, .report = report_p};
    bool ok;

    memset(report_p, 0, sizeof(*report_p));
    ok = hce_verify_open(&v, plans, nranks) && hce_verify_shape(&v) &&
         hce_verify_counters(&v) && hce_verify_order_create(&v) &&
         hce_verify_windows(&v) &&
         (builder == NULL || hce_verify_traffic(&v)) &&
         (nranks <= HCE_VERIFY_MAX_FULL_RANKS ? hce_verify_replay(&v)
                                              : hce_verify_ranks(&v));
    if (ok) {
        report_p->ops = hce_verify_num_ops(&v);
        report_p->full = nranks <= HCE_VERIFY_MAX_FULL_RANKS;
        verify_report(plans[0], v.in_place ? "in place" : "out of place",
                      report_p);
    }
    hce_verify_close(&v);
    return v.status;
}

static hce_status_t verify_build(const hce_plan_builder_t *builder,
                                 const hce_plan_params_t *params,
                                 hce_plan_t **plans)
{
    hce_plan_params_t mine = *params;
    hce_status_t status = HCE_OK;

    for (mine.rank = 0; status == HCE_OK && mine.rank < mine.layout->nranks;
         mine.rank++) {
        status = builder->build(&mine, &plans[mine.rank]);
    }
    return status;
}

/* One of the two placements; adds to *ops, and reports on both. */
static hce_status_t verify_placed(const hce_plan_builder_t *builder,
                                  const hce_plan_params_t *params,
                                  uint64_t *ops, hce_verify_report_t *report_p)
{
    int i, nranks = params->layout->nranks;
    hce_plan_t **plans = calloc(nranks, sizeof(*plans));
    hce_status_t status;

    if (plans == NULL) {
        hce_log(ERROR, PLAN, "verify '%s': out of memory", builder->path);
        return HCE_ERR_NO_MEMORY;
    }
    status = verify_build(builder, params, plans);
    if (status == HCE_OK) {
        status = hce_plan_verify(plans, nranks, builder, report_p);
        if (status == HCE_OK) {
            *ops += report_p->ops;
            report_p->ops = *ops;
            verify_report(plans[0], "out of place and in place", report_p);
        }
    } else {
        snprintf(report_p->text, sizeof(report_p->text),
                 "'%s' could not be built: %s", builder->path,
                 hce_status_string(status));
    }
    for (i = 0; i < nranks; i++) {
        hce_plan_destroy(plans[i]);
    }
    free(plans);
    return status;
}

hce_status_t hce_plan_verify_builder(const hce_plan_builder_t *builder,
                                     const hce_plan_params_t *params,
                                     hce_verify_report_t *report_p)
{
    hce_plan_params_t placed = *params;
    hce_status_t status;
    uint64_t ops = 0;

    memset(report_p, 0, sizeof(*report_p));
    placed.in_place = false;
    status = verify_placed(builder, &placed, &ops, report_p);
    if (status == HCE_OK) {
        placed.in_place = true;
        status = verify_placed(builder, &placed, &ops, report_p);
    }
    return status;
}
