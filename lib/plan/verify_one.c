/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Checks one rank of a job whose plans do not fit into memory together. The
 * plans of the ranks that it counts on, or that count on it, are built one
 * after the other: both sides must agree on every counter, and what all of
 * them put into this rank's output must cover it exactly.
 */
#include "config.h"

#include "plan/verify.h"

#include "plan/verify_priv.h"
#include "util/log.h"
#include "util/math.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A write into the output of the rank, and the post that tells of it. */
typedef struct landing {
    uint64_t start;
    uint64_t end;
    int64_t value; /* 0: no post to the rank */
    int32_t writer;
    int32_t slot;
    uint32_t op;
} landing_t;

typedef struct one {
    hce_verify_t v;
    const hce_plan_params_t *params;
    hce_plan_t *plan;
    landing_t *landings;
    size_t num_landings, cap_landings;
    int num_peers;
    uint64_t ops;
} one_t;

/* The sorted list's rise for a counter, or 0. */
static int64_t rise_find(const hce_plan_rise_t *rises, uint32_t num, int rank,
                         int slot)
{
    uint32_t lo = 0, hi = num;

    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;

        if (rises[mid].rank == rank && rises[mid].slot == slot) {
            return rises[mid].rise;
        }
        if (rises[mid].rank < rank ||
            (rises[mid].rank == rank && rises[mid].slot < slot)) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return 0;
}

/* Counters of owner that writer raises: the same for both. */
static bool check_counters(one_t *one, const hce_plan_t *owner,
                           const hce_plan_t *writer)
{
    int o = owner->params.rank, w = writer->params.rank;
    char name[HCE_VERIFY_NAME_SIZE];
    hce_verify_counter_t counter = {.owner = o, .writer = w};
    int64_t in, out;
    uint32_t i;

    for (i = 0; i < owner->num_in + writer->num_out; i++) {
        bool of_owner = i < owner->num_in;
        const hce_plan_rise_t *rise =
            of_owner ? &owner->in[i] : &writer->out[i - owner->num_in];

        if (rise->rank != (of_owner ? w : o)) {
            continue;
        }
        in = rise_find(owner->in, owner->num_in, w, rise->slot);
        out = rise_find(writer->out, writer->num_out, o, rise->slot);
        if (in != out) {
            counter.slot = rise->slot;
            return hce_verify_fault(
                &one->v,
                "%s: rises by %" PRId64 " for its writer, by %" PRId64
                " for its owner",
                hce_verify_name_counter(&counter, name), out, in);
        }
    }
    return true;
}

static bool add_landing(one_t *one, const landing_t *landing)
{
    landing_t *grown;

    if (one->num_landings == one->cap_landings) {
        one->cap_landings = hce_max(2 * one->cap_landings, (size_t)64);
        grown = realloc(one->landings, one->cap_landings * sizeof(*grown));
        if (grown == NULL) {
            return hce_verify_no_memory(&one->v);
        }
        one->landings = grown;
    }
    one->landings[one->num_landings++] = *landing;
    return true;
}

/* What one op of a plan writes into the output of the rank. */
static bool collect_op(one_t *one, const hce_plan_t *plan, uint32_t index)
{
    const hce_plan_op_t *op = &plan->ops[index];
    const hce_plan_ref_t *dst = &plan->refs[op->ref + op->num_src];
    int me = one->params->rank, i, j;

    for (i = 0; op->len > 0 && i < op->num_dst; i++) {
        landing_t landing = {.start = dst[i].offset,
                             .end = dst[i].offset + op->len,
                             .writer = plan->params.rank,
                             .op = index};

        if (dst[i].rank != me || dst[i].buf != HCE_BUF_RECV) {
            continue;
        }
        if (!hce_verify_is_placed(&one->v, op, &plan->refs[op->ref],
                                  &dst[i])) {
            return hce_verify_fault(&one->v,
                                    "rank %d op %u: writes to byte %" PRIu64
                                    " what does not belong there",
                                    plan->params.rank, index, dst[i].offset);
        }
        for (j = 0; j < op->num_post; j++) {
            if (plan->posts[op->post + j].owner == me) {
                landing.slot = plan->posts[op->post + j].slot;
                landing.value = plan->posts[op->post + j].value;
            }
        }
        if (!add_landing(one, &landing)) {
            return false;
        }
    }
    return true;
}

static bool collect(one_t *one, const hce_plan_t *plan)
{
    uint32_t i;
    bool ok = true;

    for (i = 0; ok && i < plan->num_ops; i++) {
        ok = collect_op(one, plan, i);
    }
    one->ops += plan->num_ops;
    return ok;
}

static hce_plan_t *build(one_t *one, int rank)
{
    hce_plan_params_t params = *one->params;
    hce_plan_t *plan;

    params.rank = rank;
    if (one->v.builder->build(&params, &plan) != HCE_OK) {
        hce_verify_no_memory(&one->v);
        return NULL;
    }
    return plan;
}

static bool check_peer(one_t *one, int peer)
{
    hce_plan_t *plan = build(one, peer);
    bool ok;

    if (plan == NULL) {
        return false;
    }
    one->num_peers++;
    ok = check_counters(one, one->plan, plan) &&
         check_counters(one, plan, one->plan) && collect(one, plan);
    hce_plan_destroy(plan);
    return ok;
}

/* Both lists are in order of rank. */
static bool check_peers(one_t *one)
{
    const hce_plan_t *plan = one->plan;
    uint32_t in = 0, out = 0;
    bool ok = true;
    int peer;

    while (ok && (in < plan->num_in || out < plan->num_out)) {
        peer = in < plan->num_in ? plan->in[in].rank : INT32_MAX;
        peer = out < plan->num_out ? hce_min(peer, plan->out[out].rank) : peer;
        while (in < plan->num_in && plan->in[in].rank == peer) {
            in++;
        }
        while (out < plan->num_out && plan->out[out].rank == peer) {
            out++;
        }
        ok = peer == plan->params.rank || check_peer(one, peer);
    }
    return ok;
}

static int landing_compare(const void *a_p, const void *b_p)
{
    const landing_t *a = a_p, *b = b_p;

    return (a->start > b->start) - (a->start < b->start);
}

static bool check_output(one_t *one)
{
    uint64_t own = (uint64_t)one->params->rank * one->v.len, at = 0, start;
    size_t i;

    qsort(one->landings, one->num_landings, sizeof(*one->landings),
          landing_compare);
    for (i = 0; i <= one->num_landings; i++) {
        if (one->v.in_place && at == own) {
            at += one->v.len;
        }
        start = i < one->num_landings ? one->landings[i].start
                                      : one->v.len * one->v.nranks;
        if (start != at) {
            return hce_verify_fault(
                &one->v, "byte %" PRIu64 " of the output of rank %d is %s",
                hce_min(start, at), one->params->rank,
                start > at ? "never written" : "written twice");
        }
        at = i < one->num_landings ? one->landings[i].end : at;
    }
    return true;
}

/* The op, or one before it in its lane, waits for what was written. */
static bool is_awaited(const hce_plan_t *plan, uint32_t index,
                       const landing_t *landing)
{
    const hce_plan_lane_t *lane = &plan->lanes[plan->ops[index].lane];
    uint32_t i = index, pos = lane->num_ops;
    int j;

    while (pos > 0 && plan->lane_ops[lane->first + pos - 1] > index) {
        pos--;
    }
    for (; pos > 0; pos--) {
        i = plan->lane_ops[lane->first + pos - 1];
        for (j = 0; j < plan->ops[i].num_wait; j++) {
            const hce_plan_wait_t *wait = &plan->waits[plan->ops[i].wait + j];

            if (wait->writer == landing->writer &&
                wait->slot == landing->slot && landing->value > 0 &&
                wait->value >= landing->value) {
                return true;
            }
        }
    }
    return false;
}

static bool check_read(one_t *one, uint32_t index)
{
    const hce_plan_op_t *op = &one->plan->ops[index];
    const hce_plan_ref_t *src = &one->plan->refs[op->ref];
    size_t lo = 0, hi = one->num_landings;

    if (op->num_src == 0 || op->len == 0 || src->buf != HCE_BUF_RECV) {
        return true;
    }
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (one->landings[mid].end <= src->offset) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    for (; lo < one->num_landings &&
           one->landings[lo].start < src->offset + op->len;
         lo++) {
        if (src->rank != one->params->rank ||
            !is_awaited(one->plan, index, &one->landings[lo])) {
            return hce_verify_fault(
                &one->v,
                "rank %d op %u does not itself wait for the write of what it "
                "reads, op %u of rank %d",
                one->params->rank, index, one->landings[lo].op,
                one->landings[lo].writer);
        }
    }
    return true;
}

static bool check_turned(one_t *one)
{
    hce_plan_t *next;
    bool ok;

    /* Places in scratch memory need not turn with the nodes. */
    if (one->v.report->is_untraced || !hce_verify_is_turnable(one->v.layout)) {
        return true;
    }
    next = build(one, hce_verify_turn_rank(&one->v, one->params->rank));
    if (next == NULL) {
        return false;
    }
    ok = hce_verify_is_turned(&one->v, one->plan, next);
    hce_plan_destroy(next);
    return ok;
}

static bool check_one(one_t *one)
{
    uint32_t i;
    bool ok;

    one->plan = build(one, one->params->rank);
    ok = one->plan != NULL && collect(one, one->plan) && check_peers(one) &&
         check_output(one);
    for (i = 0; ok && i < one->plan->num_ops; i++) {
        ok = check_read(one, i);
    }
    return ok && check_turned(one);
}

hce_status_t hce_plan_verify_rank(const hce_plan_builder_t *builder,
                                  const hce_plan_params_t *params,
                                  hce_verify_report_t *report_p)
{
    one_t one = {
        .v = {.builder = builder,
              .report = report_p,
              .nranks = params->layout->nranks,
              .layout = params->layout,
              .len = params->len,
              .in_place = params->in_place},
        .params = params,
    };

    memset(report_p, 0, sizeof(*report_p));
    if (check_one(&one)) {
        report_p->ops = one.ops;
        snprintf(report_p->text, sizeof(report_p->text),
                 "%s: rank %d of %d on %d node%s checked with the %d rank%s "
                 "that share counters with it, not replayed, %" PRIu64
                 " bytes a rank, %s, %" PRIu64 " ops%s",
                 builder->path, params->rank, one.v.nranks,
                 params->layout->nnodes,
                 params->layout->nnodes == 1 ? "" : "s", one.num_peers,
                 one.num_peers == 1 ? "" : "s", params->len,
                 params->in_place ? "in place" : "out of place", one.ops,
                 hce_verify_reserve(report_p));
    }
    hce_plan_destroy(one.plan);
    free(one.landings);
    return one.v.status;
}
