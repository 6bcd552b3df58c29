/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * What one plan must satisfy by itself: lanes in plan order, refs inside of
 * their buffers and within reach of the op's kind, counters that exist; and
 * what all plans together move between nodes.
 */
#include "config.h"

#include "plan/verify_priv.h"

#include "plan/show.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* One plan while it is looked at. */
typedef struct shape {
    hce_verify_t *v;
    const hce_plan_t *plan;
    const hce_plan_op_t *op;
    int rank;
} shape_t;

static bool shape_fault(const shape_t *s, const char *what)
{
    if (s->op == NULL) {
        return hce_verify_fault(s->v, "rank %d: %s", s->rank, what);
    }
    return hce_verify_fault(
        s->v, "rank %d op %u (%s, lane %u): %s", s->rank,
        (unsigned)(s->op - s->plan->ops),
        s->op->kind <= HCE_OP_SIGNAL ? hce_plan_kind_string(s->op->kind) : "?",
        s->op->lane, what);
}

static bool shape_params(const shape_t *s)
{
    const hce_plan_params_t *mine = &s->plan->params;
    const hce_plan_params_t *first = &s->v->plans[0]->params;

    if (mine->rank != s->rank) {
        return shape_fault(s, "this is the plan of another rank");
    }
    if (mine->layout->nranks != s->v->nranks || mine->len != first->len ||
        mine->width != first->width || mine->coll != first->coll ||
        mine->datatype != first->datatype || mine->op != first->op ||
        mine->root != first->root || mine->contexts != first->contexts ||
        mine->carriers != first->carriers || mine->dirs != first->dirs ||
        mine->in_place != first->in_place ||
        mine->limits.scratch != first->limits.scratch ||
        mine->limits.parcel != first->limits.parcel ||
        mine->limits.reads != first->limits.reads ||
        strcmp(s->plan->path, s->v->plans[0]->path) != 0) {
        return shape_fault(s, "its plan was built for another call than that "
                              "of rank 0");
    }
    return true;
}

/* All ranks count the same launches as those that use scratch memory. */
static bool shape_scratch(const shape_t *s)
{
    uint64_t most = HCE_PLAN_SLOTS * s->plan->params.limits.scratch;

    if (s->v->builder == NULL) {
        return true;
    }
    if (s->plan->scratch_len > most || s->plan->stage_len > most) {
        return shape_fault(s, "uses more scratch memory than there is");
    }
    return (s->plan->scratch_len + s->plan->stage_len > 0) ==
                   (s->v->plans[0]->scratch_len +
                        s->v->plans[0]->stage_len > 0)
               ? true
               : shape_fault(s, "uses scratch memory, or not, unlike rank 0");
}

/* In the slot of its launch, and nowhere else. */
static bool shape_slot(const shape_t *s, const hce_plan_ref_t *ref)
{
    uint64_t len = s->plan->params.limits.scratch;

    if (s->v->builder == NULL || ref->buf < HCE_BUF_SCRATCH) {
        return true;
    }
    return ref->depth == HCE_PLAN_SLOTS && ref->stride == len &&
                   ref->offset <= len && s->op->len <= len - ref->offset
               ? true
               : shape_fault(s, "a ref that is not in its launch's slot of "
                                "scratch memory");
}

/* Each op is in its lane once, in plan order; fills ops[]. */
static bool shape_lanes(const shape_t *s)
{
    const hce_plan_t *plan = s->plan;
    uint32_t lane_base = s->v->lane_base[s->rank];
    hce_verify_op_t *ops = &s->v->ops[s->v->op_base[s->rank]];
    uint32_t i, j, at = 0, index;

    for (i = 0; i < plan->num_lanes; i++) {
        const hce_plan_lane_t *lane = &plan->lanes[i];

        s->v->lane_rank[lane_base + i] = s->rank;
        if (lane->kind > HCE_LANE_REDUCE || lane->first != at ||
            lane->num_ops > plan->num_ops - at ||
            lane->context >= HCE_PLAN_MAX_CONTEXTS) {
            return shape_fault(s, "its lanes are malformed");
        }
        for (j = 0; j < lane->num_ops; j++) {
            index = plan->lane_ops[at + j];
            if (index >= plan->num_ops || plan->ops[index].lane != i ||
                (j > 0 && index <= plan->lane_ops[at + j - 1])) {
                return shape_fault(s, "a lane does not hold its ops in plan "
                                      "order");
            }
            ops[index] = (hce_verify_op_t){lane_base + i, j};
        }
        at += lane->num_ops;
    }
    return at == plan->num_ops ? true : shape_fault(s, "an op is in no lane");
}

static uint64_t shape_buf_size(const shape_t *s, const hce_plan_ref_t *ref)
{
    switch (ref->buf) {
    case HCE_BUF_SEND:
        return hce_plan_send_len(&s->plan->params);
    case HCE_BUF_RECV:
        return hce_plan_recv_len(&s->plan->params);
    case HCE_BUF_SCRATCH:
        return s->v->plans[ref->rank]->scratch_len;
    default:
        return s->v->plans[ref->rank]->stage_len;
    }
}

static bool shape_ref_bounds(const shape_t *s, const hce_plan_ref_t *ref)
{
    uint64_t size, left;

    if (ref->rank < 0 || ref->rank >= s->v->nranks ||
        ref->buf > HCE_BUF_STAGE || ref->depth < 1) {
        return shape_fault(s, "a ref to a rank or buffer that is not there");
    }
    size = shape_buf_size(s, ref);
    if (ref->offset > size || s->op->len > size - ref->offset) {
        return hce_verify_fault(s->v,
                                "rank %d op %u: %s of rank %d has %" PRIu64
                                " bytes, not %" PRIu64 " + %" PRIu64,
                                s->rank, (unsigned)(s->op - s->plan->ops),
                                hce_plan_buf_string(ref->buf), ref->rank, size,
                                ref->offset, s->op->len);
    }
    left = size - ref->offset - s->op->len;
    if (ref->depth > 1 && ref->stride > left / (ref->depth - 1)) {
        return shape_fault(s, "its last slot is out of bounds");
    }
    return true;
}

static bool shape_dst(const shape_t *s, const hce_plan_ref_t *dst)
{
    const hce_layout_t *layout = s->v->layout;

    if (dst->buf == HCE_BUF_SEND) {
        return shape_fault(s, "writes into an input");
    }
    if (s->op->kind == HCE_OP_PUT) {
        if (hce_layout_same_node(layout, dst->rank, s->rank) ||
            s->plan->lanes[s->op->lane].peer != dst->rank) {
            return shape_fault(s, "puts to a rank that is not its lane's "
                                  "peer on another node");
        }
    } else if (!hce_layout_same_node(layout, dst->rank, s->rank)) {
        return shape_fault(s, "writes to another node");
    }
    if (s->plan->params.coll == HCE_COLL_ALLGATHER && s->v->in_place &&
        dst->buf == HCE_BUF_RECV && s->op->len > 0 &&
        dst->offset < (dst->rank + 1) * s->v->len &&
        dst->offset + s->op->len > dst->rank * s->v->len) {
        return hce_verify_fault(
            s->v, "rank %d op %u: overwrites the slice of rank %d in place",
            s->rank, (unsigned)(s->op - s->plan->ops), dst->rank);
    }
    return true;
}

/* Of a node peer. */
static bool may_read(const shape_t *s, const hce_plan_ref_t *src)
{
    const hce_plan_limits_t *limits = &s->plan->params.limits;

    return src->buf == HCE_BUF_SEND || src->buf == HCE_BUF_RECV
               ? limits->pulls
               : limits->reads;
}

static bool shape_refs(const shape_t *s)
{
    const hce_plan_op_t *op = s->op;
    const hce_plan_ref_t *refs = &s->plan->refs[op->ref];
    int i;

    for (i = 0; i < op->num_src + op->num_dst; i++) {
        if (!shape_ref_bounds(s, &refs[i]) || !shape_slot(s, &refs[i])) {
            return false;
        }
    }
    for (i = 0; i < op->num_src; i++) {
        if (op->kind == HCE_OP_PUT
                ? refs[i].rank != s->rank
                : !hce_layout_same_node(s->v->layout, refs[i].rank, s->rank)) {
            return shape_fault(s, "reads what it cannot reach");
        }
        if (refs[i].rank != s->rank && s->v->builder != NULL &&
            !may_read(s, &refs[i])) {
            return shape_fault(s, "reads what a node peer owns, which is not "
                                  "possible here");
        }
    }
    for (i = 0; i < op->num_dst; i++) {
        if (!shape_dst(s, &refs[op->num_src + i])) {
            return false;
        }
    }
    return true;
}

/* Reductions add whole elements. */
static bool shape_elements(const shape_t *s)
{
    const hce_plan_op_t *op = s->op;
    const hce_plan_ref_t *refs = &s->plan->refs[op->ref];
    uint64_t size = hce_datatype_size(s->plan->params.datatype);
    bool whole = size > 0 && op->len % size == 0;
    int i;

    if (op->kind != HCE_OP_REDUCE) {
        return true;
    }
    for (i = 0; whole && i < op->num_src + op->num_dst; i++) {
        whole = refs[i].offset % size == 0 && refs[i].stride % size == 0;
    }
    return whole ? true : shape_fault(s, "does not add whole elements");
}

/* What each kind of op looks like. */
static bool shape_kind(const shape_t *s)
{
    static const struct {
        uint16_t min_src, max_src, min_dst, max_dst;
        int lane; /* -1 is any */
    } rules[] = {
        [HCE_OP_COPY] = {1, 1, 1, UINT16_MAX, HCE_LANE_COPY},
        [HCE_OP_PUT] = {1, 1, 1, 1, HCE_LANE_PROXY},
        [HCE_OP_REDUCE] = {1, UINT16_MAX, 1, UINT16_MAX, HCE_LANE_REDUCE},
        [HCE_OP_SIGNAL] = {0, 0, 0, 0, -1},
    };
    const hce_plan_op_t *op = s->op;

    if (op->kind > HCE_OP_SIGNAL) {
        return shape_fault(s, "an op of no known kind");
    }
    if (op->num_src < rules[op->kind].min_src ||
        op->num_src > rules[op->kind].max_src ||
        op->num_dst < rules[op->kind].min_dst ||
        op->num_dst > rules[op->kind].max_dst ||
        (op->kind == HCE_OP_SIGNAL && op->len != 0)) {
        return shape_fault(s, "sources or destinations do not fit its kind");
    }
    if (rules[op->kind].lane >= 0 &&
        s->plan->lanes[op->lane].kind != rules[op->kind].lane) {
        return shape_fault(s, "it is in a lane of another kind");
    }
    return true;
}

static bool shape_has_slot(const shape_t *s, int peer, int slot)
{
    const hce_layout_t *layout = s->v->layout;

    return peer >= 0 && peer < s->v->nranks && slot >= 0 &&
           slot < (hce_layout_same_node(layout, peer, s->rank)
                       ? hce_plan_local_slots(layout)
                       : HCE_SLOT_NET);
}

static bool shape_posts(const shape_t *s)
{
    const hce_plan_op_t *op = s->op;
    const hce_plan_post_t *post = &s->plan->posts[op->post];
    int i;

    for (i = 0; i < op->num_post; i++) {
        /* Only the put's own peer can be told after its data. */
        if (op->kind != HCE_OP_SIGNAL &&
            !hce_layout_same_node(s->v->layout, post[i].owner, s->rank) &&
            (op->kind != HCE_OP_PUT ||
             post[i].owner != s->plan->lanes[op->lane].peer)) {
            return shape_fault(s, "posts to another node");
        }
    }
    return true;
}

static bool shape_counters(const shape_t *s)
{
    const hce_plan_t *plan = s->plan;
    uint32_t i;

    for (i = 0; i < plan->num_waits; i++) {
        if (!shape_has_slot(s, plan->waits[i].writer, plan->waits[i].slot)) {
            return shape_fault(s, "waits for a counter that is not there");
        }
    }
    for (i = 0; i < plan->num_posts; i++) {
        if (!shape_has_slot(s, plan->posts[i].owner, plan->posts[i].slot)) {
            return shape_fault(s, "posts to a counter that is not there");
        }
    }
    for (i = 0; i < plan->num_in; i++) {
        if (!shape_has_slot(s, plan->in[i].rank, plan->in[i].slot)) {
            return shape_fault(s, "counts on a counter that is not there");
        }
    }
    for (i = 0; i < plan->num_out; i++) {
        if (!shape_has_slot(s, plan->out[i].rank, plan->out[i].slot)) {
            return shape_fault(s, "counts on a counter that is not there");
        }
    }
    return true;
}

static bool shape_op(const shape_t *s)
{
    return shape_kind(s) && shape_refs(s) && shape_elements(s) &&
           shape_posts(s);
}

bool hce_verify_shape(hce_verify_t *v)
{
    shape_t s = {.v = v};
    uint32_t i;

    for (s.rank = 0; s.rank < v->nranks; s.rank++) {
        s.plan = v->plans[s.rank];
        s.op = NULL;
        if (!shape_params(&s) || !shape_scratch(&s) || !shape_lanes(&s) ||
            !shape_counters(&s)) {
            return false;
        }
        for (i = 0; i < s.plan->num_ops; i++) {
            s.op = &s.plan->ops[i];
            if (!shape_op(&s)) {
                return false;
            }
        }
    }
    return true;
}

/* What one node puts to each other node. */
typedef struct link {
    uint64_t bytes;
    uint64_t puts;
} link_t;

static void links_count(const hce_verify_t *v, int node, link_t *links)
{
    const hce_layout_t *layout = v->layout;
    uint32_t i;
    int lrank, to;

    memset(links, 0, layout->nnodes * sizeof(*links));
    for (lrank = 0; lrank < layout->node_size[node]; lrank++) {
        const hce_plan_t *plan =
            v->plans[hce_layout_rank(layout, node, lrank)];

        for (i = 0; i < plan->num_ops; i++) {
            if (plan->ops[i].kind == HCE_OP_PUT && plan->ops[i].len > 0) {
                to = layout->node[plan->lanes[plan->ops[i].lane].peer];
                links[to].bytes += plan->ops[i].len;
                links[to].puts++;
            }
        }
    }
}

bool hce_verify_traffic(hce_verify_t *v)
{
    int nnodes = v->layout->nnodes, from, to;
    link_t want, *links = calloc(nnodes, sizeof(*links));
    bool ok = links != NULL ? true : hce_verify_no_memory(v);

    for (from = 0; ok && from < nnodes; from++) {
        links_count(v, from, links);
        for (to = 0; ok && to < nnodes; to++) {
            v->builder->traffic(&v->plans[0]->params, from, to, &want.bytes,
                                &want.puts);
            if (links[to].bytes != want.bytes || links[to].puts != want.puts) {
                ok = hce_verify_fault(
                    v,
                    "traffic from node %d to node %d: %" PRIu64 " bytes in "
                    "%" PRIu64 " puts, by formula %" PRIu64 " bytes in "
                    "%" PRIu64,
                    from, to, links[to].bytes, links[to].puts, want.bytes,
                    want.puts);
            }
        }
    }
    free(links);
    return ok;
}
