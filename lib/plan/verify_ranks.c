/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Checks by rank, for more ranks than are replayed: each output is covered
 * exactly, with bytes that belong there or that were where they belong on
 * another rank, or that come through scratch memory; what is forwarded has
 * been waited for; and where all nodes are alike every plan is the next
 * node's, turned by one node.
 */
#include "config.h"

#include "plan/verify_priv.h"

#include "util/math.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct landing {
    uint64_t start;
    uint64_t end;
    uint32_t op;
} landing_t;

/* Writes into outputs, owner by owner. */
typedef struct landings {
    landing_t *all;
    size_t *first; /* [nranks + 1] */
} landings_t;

static int landing_compare(const void *a_p, const void *b_p)
{
    const landing_t *a = a_p, *b = b_p;

    return (a->start > b->start) - (a->start < b->start);
}

static bool is_scratch(const hce_plan_ref_t *ref)
{
    return ref->buf == HCE_BUF_SCRATCH || ref->buf == HCE_BUF_STAGE;
}

bool hce_verify_is_placed(hce_verify_t *v, const hce_plan_op_t *op,
                          const hce_plan_ref_t *src, const hce_plan_ref_t *dst)
{
    uint64_t place = src->offset;

    if (is_scratch(dst)) {
        return true;
    }
    if (op->kind == HCE_OP_REDUCE) {
        return false;
    }
    if (is_scratch(src)) {
        v->report->is_untraced = true;
        return true;
    }
    if (src->buf == HCE_BUF_SEND) {
        place += src->rank * v->len;
    }
    return dst->buf == HCE_BUF_RECV && dst->offset == place;
}

static bool ranks_check_place(hce_verify_t *v, uint32_t op_index)
{
    const hce_plan_op_t *op = hce_verify_op(v, op_index);
    int rank = hce_verify_op_rank(v, op_index), i;
    const hce_plan_ref_t *src = &v->plans[rank]->refs[op->ref];
    const hce_plan_ref_t *dst = src + op->num_src;
    char name[HCE_VERIFY_NAME_SIZE];

    for (i = 0; i < op->num_dst; i++) {
        if (!hce_verify_is_placed(v, op, src, &dst[i])) {
            return hce_verify_fault(
                v, "%s: writes to byte %" PRIu64 " what does not belong there",
                hce_verify_name_op(v, op_index, name), dst[i].offset);
        }
    }
    return true;
}

/* Calls for every write into an output: counts it, or files it. */
static void landings_walk(const hce_verify_t *v, size_t *next, landing_t *all)
{
    uint32_t index;
    int i;

    for (index = 0; index < hce_verify_num_ops(v); index++) {
        const hce_plan_op_t *op = hce_verify_op(v, index);
        int rank = hce_verify_op_rank(v, index);
        const hce_plan_ref_t *dst =
            &v->plans[rank]->refs[op->ref + op->num_src];

        for (i = 0; op->len > 0 && i < op->num_dst; i++) {
            if (is_scratch(&dst[i])) {
                continue;
            }
            if (all != NULL) {
                all[next[dst[i].rank]] =
                    (landing_t){dst[i].offset, dst[i].offset + op->len, index};
            }
            next[dst[i].rank]++;
        }
    }
}

static bool landings_collect(hce_verify_t *v, landings_t *l)
{
    size_t *next = calloc(v->nranks + 1, sizeof(*next));
    int rank;

    l->first = calloc(v->nranks + 1, sizeof(*l->first));
    if (next == NULL || l->first == NULL) {
        free(next);
        return hce_verify_no_memory(v);
    }
    landings_walk(v, next, NULL);
    for (rank = 0; rank < v->nranks; rank++) {
        l->first[rank + 1] = l->first[rank] + next[rank];
    }
    l->all = malloc((l->first[v->nranks] + 1) * sizeof(*l->all));
    if (l->all == NULL) {
        free(next);
        return hce_verify_no_memory(v);
    }
    memcpy(next, l->first, v->nranks * sizeof(*next));
    landings_walk(v, next, l->all);
    free(next);
    for (rank = 0; rank < v->nranks; rank++) {
        qsort(&l->all[l->first[rank]], l->first[rank + 1] - l->first[rank],
              sizeof(*l->all), landing_compare);
    }
    return true;
}

static bool ranks_check_output(hce_verify_t *v, int rank, const landings_t *l)
{
    uint64_t own = rank * v->len, at = 0;
    char name[HCE_VERIFY_NAME_SIZE];
    size_t i;

    for (i = l->first[rank]; i <= l->first[rank + 1]; i++) {
        uint64_t start =
            i < l->first[rank + 1] ? l->all[i].start : v->len * v->nranks;

        if (v->in_place && at == own) {
            at += v->len;
        }
        if (start > at) {
            return hce_verify_fault(v,
                                    "bytes %" PRIu64 " to %" PRIu64 " of "
                                    "the output of rank %d are never "
                                    "written",
                                    at, start, rank);
        }
        if (i < l->first[rank + 1]) {
            if (start < at) {
                return hce_verify_fault(
                    v,
                    "byte %" PRIu64 " of the output of rank %d is written "
                    "for the second time by %s",
                    start, rank, hce_verify_name_op(v, l->all[i].op, name));
            }
            at = l->all[i].end;
        }
    }
    return true;
}

/* What an op takes from an output has been put there before. */
static bool ranks_check_read(hce_verify_t *v, uint32_t op_index,
                             const landings_t *l)
{
    const hce_plan_op_t *op = hce_verify_op(v, op_index);
    int rank = hce_verify_op_rank(v, op_index);
    const hce_plan_ref_t *src = &v->plans[rank]->refs[op->ref];
    char name[HCE_VERIFY_NAME_SIZE], writer[HCE_VERIFY_NAME_SIZE];
    size_t lo, hi;

    if (op->num_src == 0 || src->buf != HCE_BUF_RECV || op->len == 0) {
        return true;
    }
    lo = l->first[src->rank];
    hi = l->first[src->rank + 1];
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (l->all[mid].end <= src->offset) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    for (hi = l->first[src->rank + 1];
         lo < hi && l->all[lo].start < src->offset + op->len; lo++) {
        if (!hce_verify_is_ordered(v, l->all[lo].op, op_index)) {
            return hce_verify_fault(
                v, "%s does not wait for the write of what it reads: %s",
                hce_verify_name_op(v, op_index, name),
                hce_verify_name_op(v, l->all[lo].op, writer));
        }
    }
    return true;
}

int hce_verify_turn_rank(const hce_verify_t *v, int rank)
{
    return rank < 0 ? rank : (rank + v->layout->max_node_size) % v->nranks;
}

static bool turn_ref_equal(const hce_verify_t *v, const hce_plan_ref_t *a,
                           const hce_plan_ref_t *b)
{
    uint64_t offset = a->offset;

    if (a->buf == HCE_BUF_RECV && v->len > 0) {
        offset = hce_verify_turn_rank(v, offset / v->len) * v->len +
                 offset % v->len;
    }
    return hce_verify_turn_rank(v, a->rank) == b->rank &&
           offset == b->offset && a->buf == b->buf;
}

static bool turn_op_equal(const hce_verify_t *v, const hce_plan_t *a,
                          const hce_plan_t *b, uint32_t index)
{
    const hce_plan_op_t *op = &a->ops[index];
    int i;

    if (memcmp(op, &b->ops[index], sizeof(*op)) != 0) {
        return false;
    }
    for (i = 0; i < op->num_src + op->num_dst; i++) {
        if (!turn_ref_equal(v, &a->refs[op->ref + i], &b->refs[op->ref + i])) {
            return false;
        }
    }
    for (i = 0; i < op->num_wait; i++) {
        const hce_plan_wait_t *x = &a->waits[op->wait + i];
        const hce_plan_wait_t *y = &b->waits[op->wait + i];

        if (hce_verify_turn_rank(v, x->writer) != y->writer ||
            x->slot != y->slot || x->value != y->value) {
            return false;
        }
    }
    for (i = 0; i < op->num_post; i++) {
        const hce_plan_post_t *x = &a->posts[op->post + i];
        const hce_plan_post_t *y = &b->posts[op->post + i];

        if (hce_verify_turn_rank(v, x->owner) != y->owner ||
            x->slot != y->slot || x->value != y->value) {
            return false;
        }
    }
    return true;
}

bool hce_verify_is_turned(hce_verify_t *v, const hce_plan_t *a,
                          const hce_plan_t *b)
{
    int rank = a->params.rank;
    uint32_t i;

    if (a->num_ops != b->num_ops) {
        return hce_verify_fault(v,
                                "rank %d has %u ops, rank %d on the next "
                                "node has %u",
                                rank, a->num_ops, b->params.rank, b->num_ops);
    }
    for (i = 0; i < a->num_ops; i++) {
        if (!turn_op_equal(v, a, b, i)) {
            return hce_verify_fault(v,
                                    "op %u of rank %d is not that of rank "
                                    "%d turned by one node",
                                    i, rank, b->params.rank);
        }
    }
    return true;
}

bool hce_verify_is_turnable(const hce_layout_t *layout)
{
    int i;

    for (i = 0; i < layout->nranks; i++) {
        if (layout->node[i] != i / layout->max_node_size) {
            return false;
        }
    }
    return layout->nranks % layout->max_node_size == 0;
}

bool hce_verify_ranks(hce_verify_t *v)
{
    landings_t l = {NULL, NULL};
    bool turnable = hce_verify_is_turnable(v->layout), ok = true;
    uint32_t op;
    int rank;

    if (v->plans[0]->params.coll != HCE_COLL_ALLGATHER) {
        return hce_verify_fault(v, "reductions of more than %d ranks cannot "
                                   "be checked",
                                HCE_VERIFY_MAX_FULL_RANKS);
    }
    for (op = 0; ok && op < hce_verify_num_ops(v); op++) {
        ok = ranks_check_place(v, op);
    }
    ok = ok && landings_collect(v, &l);
    for (rank = 0; ok && rank < v->nranks; rank++) {
        ok = ranks_check_output(v, rank, &l);
    }
    for (op = 0; ok && op < hce_verify_num_ops(v); op++) {
        ok = ranks_check_read(v, op, &l);
    }
    /* Places in scratch memory need not turn with the nodes. */
    turnable = turnable && !v->report->is_untraced;
    for (rank = 0; ok && turnable && rank < v->nranks; rank++) {
        ok = hce_verify_is_turned(v, v->plans[rank],
                                  v->plans[hce_verify_turn_rank(v, rank)]);
    }
    free(l.all);
    free(l.first);
    return ok;
}
