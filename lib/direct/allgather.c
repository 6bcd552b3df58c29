/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * AllGather, one hop between nodes. A rank puts its slice to its carrier on
 * every other node, nodes taken in order from its own, and copies it to its
 * node peers; a carrier copies each chunk to its node peers once it has
 * arrived. Every ready(t -> s) is answered by data s -> t, if only by the
 * signal of a chunk of no bytes, that t's completion waits for: so a rank
 * never has more than two readies at one peer.
 */
#include "config.h"

#include "direct/direct.h"

#include <assert.h>

typedef struct direct_build {
    hce_plan_t *plan;
    const hce_layout_t *layout;
    hce_plan_chunks_t chunks;
    int me;
    int node;
    int node_size;
    bool in_place;
} direct_build_t;

/* Walks the slices that one rank carries, in the order in which they are
 * expected: senders serve their next node first, so the node before ours
 * comes first. Number index in that order is copy lane index + 1. */
typedef struct direct_carried {
    const hce_layout_t *layout;
    int carrier;
    int distance; /* nodes back from the carrier's */
    int lrank;    /* of the slice on its node */
    int slice;
    int index;
} direct_carried_t;

static direct_carried_t carried_begin(const hce_layout_t *layout, int carrier)
{
    return (direct_carried_t){
        .layout = layout,
        .carrier = carrier,
        .lrank = -1,
        .index = -1,
    };
}

static bool carried_next(direct_carried_t *it)
{
    const hce_layout_t *layout = it->layout;
    int node = layout->node[it->carrier], from;

    if (it->lrank >= 0) {
        it->lrank += layout->node_size[node];
    }
    for (;;) {
        if (it->distance > 0) {
            from = (node + layout->nnodes - it->distance) % layout->nnodes;
            if (it->lrank < layout->node_size[from]) {
                break;
            }
        }
        if (++it->distance == layout->nnodes) {
            return false;
        }
        it->lrank = layout->lrank[it->carrier];
    }
    it->slice = hce_layout_rank(layout, from, it->lrank);
    it->index++;
    return true;
}

/* Node peers one after the other, from the next local rank on: i is 1 to
 * node_size - 1. */
static int direct_peer(const direct_build_t *b, int i)
{
    return hce_layout_rank(b->layout, b->node,
                           (b->layout->lrank[b->me] + i) % b->node_size);
}

static void direct_add_ready(const direct_build_t *b, uint32_t lane, int to)
{
    hce_plan_add_op(b->plan, HCE_OP_SIGNAL, lane, 0);
    hce_plan_add_post(b->plan, to, HCE_SLOT_READY, 1);
}

/* To all who write into my output. */
static void direct_add_entry(const direct_build_t *b)
{
    uint32_t lane = hce_plan_add_lane(b->plan, HCE_LANE_ENTRY, -1, 0, 0);
    direct_carried_t it = carried_begin(b->layout, b->me);
    int i;

    for (i = 1; i < b->node_size; i++) {
        direct_add_ready(b, lane, direct_peer(b, i));
    }
    while (carried_next(&it)) {
        direct_add_ready(b, lane, it.slice);
    }
}

/* My slice to its carrier on one other node, spread over the contexts. */
static void direct_add_puts(const direct_build_t *b, int node)
{
    int carrier = hce_layout_carrier(b->layout, b->me, node);
    const hce_plan_chunks_t *chunks = &b->chunks;
    uint32_t lanes[HCE_PLAN_MAX_CONTEXTS];
    uint32_t context, j;
    uint64_t at;

    for (j = 0; j < chunks->count; j++) {
        context = j % chunks->contexts;
        at = j * chunks->width;
        if (j < chunks->contexts) {
            lanes[j] = hce_plan_add_lane(b->plan, HCE_LANE_PROXY, carrier,
                                         context, 0);
        }
        hce_plan_add_op(b->plan, HCE_OP_PUT, lanes[context],
                        hce_plan_chunk_len(chunks, j));
        hce_plan_add_src(b->plan, b->me, HCE_BUF_SEND, at);
        hce_plan_add_dst(b->plan, carrier, HCE_BUF_RECV,
                         b->me * chunks->len + at);
        if (j < chunks->contexts) {
            /* Later ops of the lane start after this one. */
            hce_plan_add_wait(b->plan, carrier, HCE_SLOT_READY, 1);
        }
        hce_plan_add_post(b->plan, carrier, HCE_SLOT_FLOW + context,
                          j / chunks->contexts + 1);
    }
}

/* To all node peers: destinations, posts, and for a lane's first op its
 * waits. */
static void direct_add_spread(const direct_build_t *b, int slice, int index,
                              uint32_t j)
{
    uint64_t at = slice * b->chunks.len + j * b->chunks.width;
    int i, peer;

    for (i = 1; i < b->node_size; i++) {
        peer = direct_peer(b, i);
        hce_plan_add_dst(b->plan, peer, HCE_BUF_RECV, at);
        hce_plan_add_post(b->plan, peer, HCE_SLOT_LOCAL + index, j + 1);
        if (j == 0) {
            hce_plan_add_wait(b->plan, peer, HCE_SLOT_READY, 1);
        }
    }
}

/* My slice to my node peers, and to my output unless it is there. */
static void direct_add_own_copies(const direct_build_t *b)
{
    uint32_t lane, j;
    uint64_t at;

    if (b->node_size == 1 && b->in_place) {
        return;
    }
    lane = hce_plan_add_lane(b->plan, HCE_LANE_COPY, b->me, 0, 0);
    for (j = 0; j < b->chunks.count; j++) {
        at = j * b->chunks.width;
        hce_plan_add_op(b->plan, HCE_OP_COPY, lane,
                        hce_plan_chunk_len(&b->chunks, j));
        hce_plan_add_src(b->plan, b->me, HCE_BUF_SEND, at);
        if (!b->in_place) {
            hce_plan_add_dst(b->plan, b->me, HCE_BUF_RECV,
                             b->me * b->chunks.len + at);
        }
        direct_add_spread(b, b->me, 0, j);
    }
}

/* One chunk that I carry, from where it arrived to my node peers. */
static void direct_add_carried_copy(const direct_build_t *b, uint32_t lane,
                                    const direct_carried_t *it, uint32_t j)
{
    const hce_plan_chunks_t *chunks = &b->chunks;

    hce_plan_add_op(b->plan, HCE_OP_COPY, lane, hce_plan_chunk_len(chunks, j));
    hce_plan_add_src(b->plan, b->me, HCE_BUF_RECV,
                     it->slice * chunks->len + j * chunks->width);
    hce_plan_add_wait(b->plan, it->slice, HCE_SLOT_FLOW + j % chunks->contexts,
                      j / chunks->contexts + 1);
    direct_add_spread(b, it->slice, it->index + 1, j);
}

/* Chunk by chunk over all slices: that is how they arrive. */
static void direct_add_carried_copies(const direct_build_t *b)
{
    direct_carried_t it = carried_begin(b->layout, b->me);
    uint32_t first = b->plan->num_lanes, j;

    if (b->node_size == 1) {
        return;
    }
    while (carried_next(&it)) {
        hce_plan_add_lane(b->plan, HCE_LANE_COPY, it.slice, 0, 0);
    }
    for (j = 0; j < b->chunks.count; j++) {
        it = carried_begin(b->layout, b->me);
        while (carried_next(&it)) {
            direct_add_carried_copy(b, first + it.index, &it, j);
        }
    }
}

/* All that others write into my output has come. */
static void direct_add_done(const direct_build_t *b)
{
    direct_carried_t it = carried_begin(b->layout, b->me);
    uint32_t context, rise;
    int i, peer;

    while (carried_next(&it)) {
        for (context = 0; context < b->chunks.contexts; context++) {
            rise = hce_plan_context_chunks(&b->chunks, context);
            if (rise > 0) {
                hce_plan_add_done_wait(b->plan, it.slice,
                                       HCE_SLOT_FLOW + context, rise);
            }
        }
    }
    for (i = 1; i < b->node_size; i++) {
        peer = direct_peer(b, i);
        hce_plan_add_done_wait(b->plan, peer, HCE_SLOT_LOCAL, b->chunks.count);
        it = carried_begin(b->layout, peer);
        while (carried_next(&it)) {
            hce_plan_add_done_wait(
                b->plan, peer, HCE_SLOT_LOCAL + 1 + it.index, b->chunks.count);
        }
    }
}

static hce_status_t direct_build(const hce_plan_params_t *params,
                                 hce_plan_t **plan_p)
{
    const hce_layout_t *layout = params->layout;
    direct_build_t b = {
        .layout = layout,
        .chunks = hce_plan_chunks(params),
        .me = params->rank,
        .node = layout->node[params->rank],
        .node_size = layout->node_size[layout->node[params->rank]],
        .in_place = params->in_place,
    };
    hce_status_t status;
    int i;

    assert(params->coll == HCE_COLL_ALLGATHER);
    status = hce_plan_create(params, hce_direct_allgather.path, &b.plan);
    if (status != HCE_OK) {
        return status;
    }
    direct_add_entry(&b);
    for (i = 1; i < layout->nnodes; i++) {
        direct_add_puts(&b, (b.node + i) % layout->nnodes);
    }
    direct_add_own_copies(&b);
    direct_add_carried_copies(&b);
    direct_add_done(&b);
    status = hce_plan_finish(b.plan);
    if (status == HCE_OK) {
        *plan_p = b.plan;
    }
    return status;
}

static const char *direct_refuse(const hce_plan_params_t *params)
{
    /* A bound: puts to all nodes and copies of all slices. */
    uint64_t ops = (uint64_t)hce_plan_num_chunks(params->len, params->width) *
                   2 * params->layout->nranks;

    if (params->coll != HCE_COLL_ALLGATHER) {
        return "direct here is for AllGather only";
    }
    return ops <= HCE_PLAN_MAX_OPS ? NULL
                                   : "too many chunks for so many ranks: a "
                                     "rank's plan is limited to 2^24 ops";
}

static void direct_traffic(const hce_plan_params_t *params, int from_node,
                           int to_node, uint64_t *bytes_p, uint64_t *puts_p)
{
    uint64_t ranks =
        from_node == to_node ? 0 : params->layout->node_size[from_node];

    *bytes_p = ranks * params->len;
    *puts_p = params->len == 0
                  ? 0
                  : ranks * hce_plan_num_chunks(params->len, params->width);
}

const hce_plan_builder_t hce_direct_allgather = {
    .path = "direct",
    .coll = HCE_COLL_ALLGATHER,
    .build = direct_build,
    .refuse = direct_refuse,
    .traffic = direct_traffic,
};
