/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Builder helpers: arrays that grow while a plan is being built. After the
 * first failure everything is a no-op until hce_plan_finish reports it, so
 * that a builder needs no error path of its own.
 */
#include "config.h"

#include "plan/plan.h"

#include "util/log.h"
#include "util/math.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define GROW_FIRST 16

/* A stated rise of one of my counters; kept apart from waits[]. */
typedef struct plan_build {
    hce_status_t status;
    uint32_t cap_ops;
    uint32_t cap_lanes;
    uint32_t cap_refs;
    uint32_t cap_waits;
    uint32_t cap_posts;
    hce_plan_wait_t *rises;
    uint32_t num_rises;
    uint32_t cap_rises;
} plan_build_t;

static plan_build_t *plan_build(hce_plan_t *plan)
{
    assert(plan->builder != NULL);
    return plan->builder;
}

static void plan_fail(hce_plan_t *plan, hce_status_t status, const char *why)
{
    plan_build_t *build = plan_build(plan);

    if (build->status != HCE_OK) {
        return;
    }
    build->status = status;
    hce_log(ERROR, PLAN, "plan '%s' of rank %d: %s", plan->path,
            plan->params.rank, why);
}

/* Room for one more element; NULL after a failure. */
static void *plan_grow(hce_plan_t *plan, void *array_p, uint32_t *num_p,
                       uint32_t *cap_p, size_t size)
{
    char *array;
    uint32_t cap;

    if (plan_build(plan)->status != HCE_OK) {
        return NULL;
    }
    memcpy(&array, array_p, sizeof(array));
    if (*num_p == *cap_p) {
        cap = *cap_p == 0 ? GROW_FIRST : *cap_p * 2;
        array =
            cap > UINT32_MAX / 2 ? NULL : realloc(array, (size_t)cap * size);
        if (array == NULL) {
            plan_fail(plan, HCE_ERR_NO_MEMORY, "out of memory");
            return NULL;
        }
        memcpy(array_p, &array, sizeof(array));
        *cap_p = cap;
    }
    return memset(array + (size_t)(*num_p)++ * size, 0, size);
}

hce_status_t hce_plan_create(const hce_plan_params_t *params, const char *path,
                             hce_plan_t **plan_p)
{
    hce_plan_t *plan;

    assert(params->contexts >= 1 && params->contexts <= HCE_PLAN_MAX_CONTEXTS);
    assert(params->rank >= 0 && params->rank < params->layout->nranks);
    assert(strlen(path) < sizeof(plan->path));

    plan = calloc(1, sizeof(*plan));
    if (plan == NULL) {
        goto err;
    }
    plan->builder = calloc(1, sizeof(plan_build_t));
    if (plan->builder == NULL) {
        goto err_free_plan;
    }
    plan->params = *params;
    memcpy(plan->path, path, strlen(path) + 1);
    *plan_p = plan;
    return HCE_OK;

err_free_plan:
    free(plan);
err:
    hce_log(ERROR, PLAN, "plan '%s' of rank %d: out of memory", path,
            params->rank);
    return HCE_ERR_NO_MEMORY;
}

static void plan_free_build(hce_plan_t *plan)
{
    plan_build_t *build = plan->builder;

    if (build != NULL) {
        free(build->rises);
        free(build);
    }
    plan->builder = NULL;
}

void hce_plan_destroy(hce_plan_t *plan)
{
    if (plan == NULL) {
        return;
    }
    plan_free_build(plan);
    free(plan->ops);
    free(plan->lanes);
    free(plan->lane_ops);
    free(plan->refs);
    free(plan->waits);
    free(plan->posts);
    free(plan->in);
    free(plan->out);
    free(plan->touches);
    free(plan);
}

uint32_t hce_plan_add_lane(hce_plan_t *plan, hce_plan_lane_kind_t kind,
                           int peer, int context, int direction)
{
    plan_build_t *build = plan_build(plan);
    hce_plan_lane_t *lane;

    lane = plan_grow(plan, &plan->lanes, &plan->num_lanes, &build->cap_lanes,
                     sizeof(*lane));
    if (lane == NULL) {
        return 0;
    }
    lane->kind = kind;
    lane->peer = peer;
    lane->context = context;
    lane->direction = direction;
    return plan->num_lanes - 1;
}

void hce_plan_add_op(hce_plan_t *plan, hce_plan_kind_t kind, uint32_t lane,
                     uint64_t len)
{
    plan_build_t *build = plan_build(plan);
    hce_plan_op_t *op;

    op = plan_grow(plan, &plan->ops, &plan->num_ops, &build->cap_ops,
                   sizeof(*op));
    if (op == NULL) {
        return;
    }
    assert(lane < plan->num_lanes);
    op->kind = kind;
    op->lane = lane;
    op->len = len;
    op->ref = plan->num_refs;
    op->wait = plan->num_waits;
    op->post = plan->num_posts;
    plan->lanes[lane].num_ops++;
}

/* One more of something that belongs to the last op. */
static void plan_count_up(hce_plan_t *plan, uint16_t *count)
{
    if (*count == UINT16_MAX) {
        plan_fail(plan, HCE_ERR_UNSUPPORTED,
                  "an op with more than 65535 refs, waits or posts");
    } else {
        (*count)++;
    }
}

static hce_plan_op_t *plan_last_op(hce_plan_t *plan)
{
    assert(plan->num_ops > 0);
    return &plan->ops[plan->num_ops - 1];
}

static bool plan_add_ref(hce_plan_t *plan, int rank, hce_plan_buf_t buf,
                         uint64_t offset)
{
    plan_build_t *build = plan_build(plan);
    hce_plan_ref_t *ref;

    ref = plan_grow(plan, &plan->refs, &plan->num_refs, &build->cap_refs,
                    sizeof(*ref));
    if (ref == NULL) {
        return false;
    }
    ref->rank = rank;
    ref->buf = buf;
    ref->offset = offset;
    ref->depth = 1;
    return true;
}

void hce_plan_add_src(hce_plan_t *plan, int rank, hce_plan_buf_t buf,
                      uint64_t offset)
{
    if (plan_add_ref(plan, rank, buf, offset)) {
        assert(plan_last_op(plan)->num_dst == 0);
        plan_count_up(plan, &plan_last_op(plan)->num_src);
    }
}

void hce_plan_add_dst(hce_plan_t *plan, int rank, hce_plan_buf_t buf,
                      uint64_t offset)
{
    if (plan_add_ref(plan, rank, buf, offset)) {
        plan_count_up(plan, &plan_last_op(plan)->num_dst);
    }
}

void hce_plan_set_last(hce_plan_t *plan)
{
    if (plan_build(plan)->status == HCE_OK) {
        plan_last_op(plan)->is_last = true;
    }
}

void hce_plan_set_slots(hce_plan_t *plan, int depth, uint64_t stride)
{
    assert(depth >= 1 && depth <= UINT16_MAX);
    if (plan_build(plan)->status == HCE_OK) {
        assert(plan->num_refs > 0);
        plan->refs[plan->num_refs - 1].depth = depth;
        plan->refs[plan->num_refs - 1].stride = stride;
    }
}

/* A plan that uses scratch memory says so on all ranks, so that all count
 * the same launches. */
static void plan_use_scratch(hce_plan_t *plan)
{
    plan->scratch_len = HCE_PLAN_SLOTS * plan->params.limits.scratch;
    hce_plan_set_slots(plan, HCE_PLAN_SLOTS, plan->params.limits.scratch);
}

void hce_plan_add_scratch_src(hce_plan_t *plan, int rank, uint64_t offset)
{
    hce_plan_add_src(plan, rank, HCE_BUF_SCRATCH, offset);
    plan_use_scratch(plan);
}

void hce_plan_add_scratch_dst(hce_plan_t *plan, int rank, uint64_t offset)
{
    hce_plan_add_dst(plan, rank, HCE_BUF_SCRATCH, offset);
    plan_use_scratch(plan);
}

static hce_plan_wait_t *plan_push_wait(hce_plan_t *plan)
{
    return plan_grow(plan, &plan->waits, &plan->num_waits,
                     &plan_build(plan)->cap_waits, sizeof(hce_plan_wait_t));
}

void hce_plan_add_wait(hce_plan_t *plan, int writer, int slot, int64_t value)
{
    hce_plan_wait_t *wait = plan_push_wait(plan);

    assert(writer >= 0 && slot >= 0 && plan->num_done_wait == 0);
    if (wait != NULL) {
        *wait = (hce_plan_wait_t){writer, slot, value};
        plan_count_up(plan, &plan_last_op(plan)->num_wait);
    }
}

void hce_plan_add_post(hce_plan_t *plan, int owner, int slot, int64_t value)
{
    plan_build_t *build = plan_build(plan);
    hce_plan_post_t *post;

    assert(owner >= 0 && slot >= 0);
    post = plan_grow(plan, &plan->posts, &plan->num_posts, &build->cap_posts,
                     sizeof(*post));
    if (post != NULL) {
        *post = (hce_plan_post_t){owner, slot, value};
        plan_count_up(plan, &plan_last_op(plan)->num_post);
    }
}

void hce_plan_add_done_wait(hce_plan_t *plan, int writer, int slot,
                            int64_t value)
{
    hce_plan_wait_t *wait = plan_push_wait(plan);

    if (wait != NULL) {
        *wait = (hce_plan_wait_t){writer, slot, value};
        if (plan->num_done_wait++ == 0) {
            plan->done_wait = plan->num_waits - 1;
        }
    }
}

void hce_plan_add_rise(hce_plan_t *plan, int writer, int slot, int64_t value)
{
    plan_build_t *build = plan_build(plan);
    hce_plan_wait_t *rise;

    rise = plan_grow(plan, &build->rises, &build->num_rises, &build->cap_rises,
                     sizeof(*rise));
    if (rise != NULL) {
        *rise = (hce_plan_wait_t){writer, slot, value};
    }
}

/* Order of start is the order in which the builder added a lane's ops. */
static hce_status_t plan_sort_lanes(hce_plan_t *plan)
{
    uint32_t i, at = 0;

    plan->lane_ops =
        malloc(hce_max(plan->num_ops, 1u) * sizeof(*plan->lane_ops));
    if (plan->lane_ops == NULL) {
        plan_fail(plan, HCE_ERR_NO_MEMORY, "out of memory");
        return HCE_ERR_NO_MEMORY;
    }
    for (i = 0; i < plan->num_lanes; i++) {
        plan->lanes[i].first = at;
        at += plan->lanes[i].num_ops;
        plan->lanes[i].num_ops = 0;
    }
    for (i = 0; i < plan->num_ops; i++) {
        hce_plan_lane_t *lane = &plan->lanes[plan->ops[i].lane];

        plan->lane_ops[lane->first + lane->num_ops++] = i;
    }
    return HCE_OK;
}

static bool is_same_counter(const hce_plan_rise_t *a, const hce_plan_rise_t *b)
{
    return a->rank == b->rank && a->slot == b->slot;
}

/* Appends one, or raises the last where it is the same counter: builders
 * name a counter many times in a row. Those that never rise are dropped. */
static void rises_push(hce_plan_rise_t *rises, uint32_t *num_p,
                       const hce_plan_rise_t *rise)
{
    hce_plan_rise_t *last = *num_p > 0 ? &rises[*num_p - 1] : NULL;

    if (rise->rise <= 0) {
        return;
    }
    if (last != NULL && is_same_counter(last, rise)) {
        last->rise = hce_max(last->rise, rise->rise);
    } else {
        rises[(*num_p)++] = *rise;
    }
}

/* One pass of a radix sort: to[] gets what is in from[], in order of slots or
 * of ranks and otherwise as it was. There are plans with tens of thousands of
 * counters, for which comparing sorts take too long. first[] is zeroed, and
 * has room for two more than the greatest key. */
static void rises_sort_pass(const hce_plan_rise_t *from, hce_plan_rise_t *to,
                            uint32_t num, bool by_rank, uint32_t *first)
{
    uint32_t i, last = 0;
    int key;

    for (i = 0; i < num; i++) {
        key = by_rank ? from[i].rank : from[i].slot;
        last = hce_max(last, (uint32_t)key);
        first[key + 1]++;
    }
    for (i = 0; i < last; i++) {
        first[i + 1] += first[i];
    }
    for (i = 0; i < num; i++) {
        key = by_rank ? from[i].rank : from[i].slot;
        to[first[key]++] = from[i];
    }
    memset(first, 0, ((size_t)last + 2) * sizeof(*first));
}

/* Sorts by rank and slot, and keeps the greatest value of each counter. */
static hce_status_t rises_sort(hce_plan_t *plan, hce_plan_rise_t *rises,
                               uint32_t *num_p)
{
    hce_plan_rise_t *by_slot = malloc((*num_p + 1) * sizeof(*by_slot));
    uint32_t num = *num_p, i, *first;
    int last = 0;

    for (i = 0; i < num; i++) {
        last = hce_max(last, hce_max(rises[i].rank, rises[i].slot));
    }
    first = calloc((size_t)last + 2, sizeof(*first));
    if (by_slot == NULL || first == NULL) {
        free(by_slot);
        free(first);
        plan_fail(plan, HCE_ERR_NO_MEMORY, "out of memory");
        return HCE_ERR_NO_MEMORY;
    }
    rises_sort_pass(rises, by_slot, num, false, first);
    rises_sort_pass(by_slot, rises, num, true, first);
    for (i = 0, *num_p = 0; i < num; i++) {
        rises_push(rises, num_p, &rises[i]);
    }
    free(by_slot);
    free(first);
    return HCE_OK;
}

static hce_status_t plan_compute_in(hce_plan_t *plan)
{
    plan_build_t *build = plan_build(plan);
    uint32_t i;

    plan->in = malloc(((size_t)plan->num_waits + build->num_rises + 1) *
                      sizeof(*plan->in));
    if (plan->in == NULL) {
        plan_fail(plan, HCE_ERR_NO_MEMORY, "out of memory");
        return HCE_ERR_NO_MEMORY;
    }
    for (i = 0; i < plan->num_waits + build->num_rises; i++) {
        const hce_plan_wait_t *wait = i < plan->num_waits
                                          ? &plan->waits[i]
                                          : &build->rises[i - plan->num_waits];
        hce_plan_rise_t rise = {wait->writer, wait->slot, wait->value};

        rises_push(plan->in, &plan->num_in, &rise);
    }
    return rises_sort(plan, plan->in, &plan->num_in);
}

static hce_status_t plan_compute_out(hce_plan_t *plan)
{
    uint32_t i;

    plan->out = malloc(((size_t)plan->num_posts + 1) * sizeof(*plan->out));
    if (plan->out == NULL) {
        plan_fail(plan, HCE_ERR_NO_MEMORY, "out of memory");
        return HCE_ERR_NO_MEMORY;
    }
    for (i = 0; i < plan->num_posts; i++) {
        const hce_plan_post_t *post = &plan->posts[i];
        hce_plan_rise_t rise = {post->owner, post->slot, post->value};

        rises_push(plan->out, &plan->num_out, &rise);
    }
    return rises_sort(plan, plan->out, &plan->num_out);
}

/* What puts of mine read; and what others' puts write, of which their
 * counters tell: those of chunks go to the output. */
static void plan_find_net_bufs(hce_plan_t *plan)
{
    uint32_t i;

    for (i = 0; i < plan->num_ops; i++) {
        if (plan->ops[i].kind == HCE_OP_PUT && plan->ops[i].num_src > 0) {
            plan->net_bufs |= 1u << plan->refs[plan->ops[i].ref].buf;
        }
    }
    for (i = 0; i < plan->num_in; i++) {
        if (plan->in[i].slot >= HCE_SLOT_FLOW &&
            plan->in[i].slot < HCE_SLOT_NET) {
            plan->net_bufs |= 1u << HCE_BUF_RECV;
        }
    }
}

static hce_status_t plan_find_touches(hce_plan_t *plan)
{
    int ranks = plan->params.layout->nranks, rank;
    uint8_t *bufs = calloc((size_t)ranks, sizeof(*bufs));
    uint32_t i;

    if (bufs == NULL) {
        plan_fail(plan, HCE_ERR_NO_MEMORY, "out of memory");
        return HCE_ERR_NO_MEMORY;
    }
    for (i = 0; i < plan->num_refs; i++) {
        rank = plan->refs[i].rank;
        assert(rank >= 0 && rank < ranks);
        plan->num_touches += rank != plan->params.rank && bufs[rank] == 0;
        bufs[rank] |= (uint8_t)(1u << plan->refs[i].buf);
    }
    plan->touches =
        malloc(hce_max(plan->num_touches, 1u) * sizeof(*plan->touches));
    for (i = 0, rank = 0; plan->touches != NULL && rank < ranks; rank++) {
        if (rank != plan->params.rank && bufs[rank] != 0) {
            plan->touches[i++] = (hce_plan_touch_t){rank, bufs[rank]};
        }
    }
    free(bufs);
    if (plan->touches == NULL) {
        plan_fail(plan, HCE_ERR_NO_MEMORY, "out of memory");
        return HCE_ERR_NO_MEMORY;
    }
    plan_find_net_bufs(plan);
    return HCE_OK;
}

hce_status_t hce_plan_finish(hce_plan_t *plan)
{
    hce_status_t status = plan_build(plan)->status;

    if (status == HCE_OK) {
        status = plan_sort_lanes(plan);
    }
    if (status == HCE_OK) {
        status = plan_compute_in(plan);
    }
    if (status == HCE_OK) {
        status = plan_compute_out(plan);
    }
    if (status == HCE_OK) {
        status = plan_find_touches(plan);
    }
    if (status != HCE_OK) {
        hce_plan_destroy(plan);
        return status;
    }
    plan_free_build(plan);
    return HCE_OK;
}
