/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * AllGather by a ring over ranks 0..R-1 that ignores nodes: in step k a rank
 * sends the slice of rank me - k to the next rank, chunk by chunk as they
 * arrive from the rank before. One counter a context (or one for copies)
 * counts the chunks of all steps.
 */
#include "config.h"

#include "flat/flat.h"

#include <assert.h>

typedef struct flat_build {
    hce_plan_t *plan;
    hce_plan_chunks_t chunks;
    uint32_t lanes[HCE_PLAN_MAX_CONTEXTS]; /* towards next */
    int nranks;
    int me;
    int prev;
    int next;
    bool put_in;  /* prev is on another node */
    bool put_out; /* next is on another node */
} flat_build_t;

/* The slot and the value by which chunk j of a step is counted. */
static int flat_slot(const flat_build_t *b, bool put, uint32_t j)
{
    return put ? HCE_SLOT_FLOW + (int)(j % b->chunks.contexts)
               : HCE_SLOT_LOCAL;
}

static int64_t flat_value(const flat_build_t *b, bool put, int step,
                          uint32_t j)
{
    const hce_plan_chunks_t *chunks = &b->chunks;

    if (!put) {
        return (int64_t)step * chunks->count + j + 1;
    }
    return (int64_t)step *
               hce_plan_context_chunks(chunks, j % chunks->contexts) +
           j / chunks->contexts + 1;
}

static void flat_add_lanes(flat_build_t *b)
{
    uint32_t i, lane;

    lane = hce_plan_add_lane(b->plan, HCE_LANE_ENTRY, -1, 0, 0);
    hce_plan_add_op(b->plan, HCE_OP_SIGNAL, lane, 0);
    hce_plan_add_post(b->plan, b->prev, HCE_SLOT_READY, 1);

    for (i = 0; i < b->chunks.contexts; i++) {
        if (!b->put_out) {
            b->lanes[i] = i == 0 ? hce_plan_add_lane(b->plan, HCE_LANE_COPY,
                                                     b->next, 0, 0)
                                 : b->lanes[0];
        } else if (i < b->chunks.count) {
            b->lanes[i] =
                hce_plan_add_lane(b->plan, HCE_LANE_PROXY, b->next, i, 0);
        }
    }
}

/* One chunk to the next rank. */
static void flat_add_chunk(const flat_build_t *b, int step, uint32_t j)
{
    uint64_t at = j * b->chunks.width;
    uint64_t slice = (b->me - step + b->nranks) % b->nranks;
    bool first = step == 0 && (b->put_out ? j < b->chunks.contexts : j == 0);

    hce_plan_add_op(b->plan, b->put_out ? HCE_OP_PUT : HCE_OP_COPY,
                    b->lanes[j % b->chunks.contexts],
                    hce_plan_chunk_len(&b->chunks, j));
    if (step == 0) {
        hce_plan_add_src(b->plan, b->me, HCE_BUF_SEND, at);
    } else {
        hce_plan_add_src(b->plan, b->me, HCE_BUF_RECV,
                         slice * b->chunks.len + at);
        hce_plan_add_wait(b->plan, b->prev, flat_slot(b, b->put_in, j),
                          flat_value(b, b->put_in, step - 1, j));
    }
    hce_plan_add_dst(b->plan, b->next, HCE_BUF_RECV,
                     slice * b->chunks.len + at);
    if (first) {
        /* Later ops of the lane start after this one. */
        hce_plan_add_wait(b->plan, b->next, HCE_SLOT_READY, 1);
    }
    hce_plan_add_post(b->plan, b->next, flat_slot(b, b->put_out, j),
                      flat_value(b, b->put_out, step, j));
}

static void flat_add_own_copies(const flat_build_t *b)
{
    uint32_t lane = hce_plan_add_lane(b->plan, HCE_LANE_COPY, b->me, 0, 0);
    uint32_t j;
    uint64_t at;

    for (j = 0; j < b->chunks.count; j++) {
        at = j * b->chunks.width;
        hce_plan_add_op(b->plan, HCE_OP_COPY, lane,
                        hce_plan_chunk_len(&b->chunks, j));
        hce_plan_add_src(b->plan, b->me, HCE_BUF_SEND, at);
        hce_plan_add_dst(b->plan, b->me, HCE_BUF_RECV,
                         b->me * b->chunks.len + at);
    }
}

/* All steps of the rank before have come. */
static void flat_add_done(const flat_build_t *b)
{
    uint32_t i, num = b->put_in ? b->chunks.contexts : 1;

    for (i = 0; i < num && i < b->chunks.count; i++) {
        /* The last chunk that the counter counts in a step. */
        uint32_t last =
            b->put_in ? i + (hce_plan_context_chunks(&b->chunks, i) - 1) *
                                b->chunks.contexts
                      : b->chunks.count - 1;

        hce_plan_add_done_wait(b->plan, b->prev, flat_slot(b, b->put_in, last),
                               flat_value(b, b->put_in, b->nranks - 2, last));
    }
}

static void flat_add_ring(flat_build_t *b, bool in_place)
{
    uint32_t j;
    int step;

    flat_add_lanes(b);
    for (step = 0; step < b->nranks - 1; step++) {
        for (j = 0; j < b->chunks.count; j++) {
            flat_add_chunk(b, step, j);
        }
        if (step == 0 && !in_place) {
            /* While the first slice of the rank before is on its way. */
            flat_add_own_copies(b);
        }
    }
    flat_add_done(b);
}

static hce_status_t flat_build(const hce_plan_params_t *params,
                               hce_plan_t **plan_p)
{
    const hce_layout_t *layout = params->layout;
    int nranks = layout->nranks;
    flat_build_t b = {
        .chunks = hce_plan_chunks(params),
        .nranks = nranks,
        .me = params->rank,
        .prev = (params->rank + nranks - 1) % nranks,
        .next = (params->rank + 1) % nranks,
    };
    hce_status_t status;

    assert(params->coll == HCE_COLL_ALLGATHER);
    b.put_in = !hce_layout_same_node(layout, b.prev, b.me);
    b.put_out = !hce_layout_same_node(layout, b.me, b.next);
    status = hce_plan_create(params, hce_flat_allgather.path, &b.plan);
    if (status != HCE_OK) {
        return status;
    }
    if (nranks > 1) {
        flat_add_ring(&b, params->in_place);
    } else if (!params->in_place) {
        flat_add_own_copies(&b);
    }
    status = hce_plan_finish(b.plan);
    if (status == HCE_OK) {
        *plan_p = b.plan;
    }
    return status;
}

static const char *flat_refuse(const hce_plan_params_t *params)
{
    uint64_t ops = (uint64_t)hce_plan_num_chunks(params->len, params->width) *
                       params->layout->nranks +
                   1;

    if (params->coll != HCE_COLL_ALLGATHER) {
        return "flat here is for AllGather only";
    }
    return ops <= HCE_PLAN_MAX_OPS ? NULL
                                   : "too many chunks for so many ranks: a "
                                     "rank's plan is limited to 2^24 ops";
}

static void flat_traffic(const hce_plan_params_t *params, int from_node,
                         int to_node, uint64_t *bytes_p, uint64_t *puts_p)
{
    const hce_layout_t *layout = params->layout;
    uint64_t links = 0, slices = layout->nranks - 1;
    int i, rank;

    /* Places where the ring crosses from the one node to the other. */
    for (i = 0; from_node != to_node && i < layout->node_size[from_node];
         i++) {
        rank = hce_layout_rank(layout, from_node, i);
        links += layout->node[(rank + 1) % layout->nranks] == to_node;
    }
    *bytes_p = links * slices * params->len;
    *puts_p =
        params->len == 0
            ? 0
            : links * slices * hce_plan_num_chunks(params->len, params->width);
}

const hce_plan_builder_t hce_flat_allgather = {
    .path = "flat",
    .coll = HCE_COLL_ALLGATHER,
    .build = flat_build,
    .refuse = flat_refuse,
    .traffic = flat_traffic,
};
