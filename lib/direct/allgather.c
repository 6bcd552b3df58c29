/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * AllGather, one hop between nodes. A rank copies its slice to its node
 * peers; the slice's carrier on the own node (the rank itself, unless
 * carriers are few) puts it to the carrier on every other node, nodes taken
 * in order from the own one; a carrier copies each chunk to its node peers
 * once it has arrived. Between two carriers, slices follow each other by
 * local rank and are counted through. Every ready(t -> s) is answered by data
 * s -> t, if only by the signal of a chunk of no bytes, that t's completion
 * waits for: so a rank never has more than two readies at one peer.
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
    int most; /* carriers a node; 0: all */
    bool in_place;
} direct_build_t;

/* Walks the slices that one rank carries, in the order in which they are
 * expected: senders serve their next node first, so the node before ours
 * comes first. Number index in that order is copy lane index + 1. */
typedef struct direct_carried {
    const hce_layout_t *layout;
    int carrier;
    int most;     /* carriers a node */
    int distance; /* nodes back from the carrier's */
    int lrank;    /* of the slice on its node */
    int slice;
    int sender; /* who puts it to the carrier */
    int before; /* slices that the sender puts there before it */
    int index;
} direct_carried_t;

static direct_carried_t carried_begin(const direct_build_t *b, int carrier)
{
    return (direct_carried_t){
        .layout = b->layout,
        .carrier = carrier,
        .most = b->most,
        .lrank = -1,
        .index = -1,
    };
}

/* Slices of a node are put by its carriers in order of local rank: how many
 * of those for one receiver (every step-th) come before lrank's. */
static int slices_before(int carriers, int step, int lrank)
{
    int before = 0, other;

    for (other = lrank - step; other >= 0; other -= step) {
        before += other % carriers == lrank % carriers;
    }
    return before;
}

static bool carried_next(direct_carried_t *it)
{
    const hce_layout_t *layout = it->layout;
    int node = layout->node[it->carrier], from;
    int step = hce_layout_carriers(layout, it->most, node);

    if (layout->lrank[it->carrier] >= step) {
        return false;
    }
    if (it->lrank >= 0) {
        it->lrank += step;
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
    it->sender = hce_layout_carrier(layout, it->most, it->slice, from);
    it->before = slices_before(hce_layout_carriers(layout, it->most, from),
                               step, it->lrank);
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
    direct_carried_t it = carried_begin(b, b->me);
    int i;

    for (i = 1; i < b->node_size; i++) {
        direct_add_ready(b, lane, direct_peer(b, i));
    }
    while (carried_next(&it)) {
        if (it.before == 0) {
            direct_add_ready(b, lane, it.sender);
        }
    }
}

/* Where chunk j of the slice of local rank lrank of my node is, and when. */
static void direct_add_put_source(const direct_build_t *b, int lrank,
                                  uint32_t j)
{
    int slice = hce_layout_rank(b->layout, b->node, lrank);
    uint64_t at = j * b->chunks.width;

    if (slice == b->me) {
        hce_plan_add_src(b->plan, b->me, HCE_BUF_SEND, at);
    } else {
        hce_plan_add_src(b->plan, b->me, HCE_BUF_RECV,
                         slice * b->chunks.len + at);
        hce_plan_add_wait(b->plan, slice, HCE_SLOT_LOCAL, j + 1);
    }
}

/* The slice of local rank lrank, which I carry, to its carrier on one other
 * node, spread over the contexts; lanes are made for the first one. */
static void direct_add_put_slice(const direct_build_t *b, int node, int lrank,
                                 uint32_t *lanes)
{
    int slice = hce_layout_rank(b->layout, b->node, lrank);
    int carrier = hce_layout_carrier(b->layout, b->most, slice, node);
    int before =
        slices_before(hce_layout_carriers(b->layout, b->most, b->node),
                      hce_layout_carriers(b->layout, b->most, node), lrank);
    const hce_plan_chunks_t *chunks = &b->chunks;
    uint32_t context, j;

    for (j = 0; j < chunks->count; j++) {
        bool first = before == 0 && j < chunks->contexts;

        context = j % chunks->contexts;
        if (first) {
            lanes[context] = hce_plan_add_lane(b->plan, HCE_LANE_PROXY,
                                               carrier, context, 0);
        }
        hce_plan_add_op(b->plan, HCE_OP_PUT, lanes[context],
                        hce_plan_chunk_len(chunks, j));
        direct_add_put_source(b, lrank, j);
        hce_plan_add_dst(b->plan, carrier, HCE_BUF_RECV,
                         slice * chunks->len + j * chunks->width);
        if (first) {
            /* Later ops of the lane start after this one. */
            hce_plan_add_wait(b->plan, carrier, HCE_SLOT_READY, 1);
        }
        hce_plan_add_post(b->plan, carrier, HCE_SLOT_FLOW + context,
                          before * hce_plan_context_chunks(chunks, context) +
                              j / chunks->contexts + 1);
    }
}

/* To one carrier of another node after the other: all that goes to it. */
static void direct_add_puts(const direct_build_t *b, int node)
{
    int mine = hce_layout_carriers(b->layout, b->most, b->node);
    int theirs = hce_layout_carriers(b->layout, b->most, node);
    uint32_t lanes[HCE_PLAN_MAX_CONTEXTS];
    int lrank, to;

    if (b->layout->lrank[b->me] >= mine) {
        return;
    }
    for (to = 0; to < theirs; to++) {
        for (lrank = b->layout->lrank[b->me]; lrank < b->node_size;
             lrank += mine) {
            if (lrank % theirs == to) {
                direct_add_put_slice(b, node, lrank, lanes);
            }
        }
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
    uint32_t context = j % chunks->contexts;

    hce_plan_add_op(b->plan, HCE_OP_COPY, lane, hce_plan_chunk_len(chunks, j));
    hce_plan_add_src(b->plan, b->me, HCE_BUF_RECV,
                     it->slice * chunks->len + j * chunks->width);
    hce_plan_add_wait(
        b->plan, it->sender, HCE_SLOT_FLOW + context,
        it->before * hce_plan_context_chunks(chunks, context) +
            j / chunks->contexts + 1);
    direct_add_spread(b, it->slice, it->index + 1, j);
}

/* Chunk by chunk over all slices: that is how they arrive. */
static void direct_add_carried_copies(const direct_build_t *b)
{
    direct_carried_t it = carried_begin(b, b->me);
    uint32_t first = b->plan->num_lanes, j;

    if (b->node_size == 1) {
        return;
    }
    while (carried_next(&it)) {
        hce_plan_add_lane(b->plan, HCE_LANE_COPY, it.slice, 0, 0);
    }
    for (j = 0; j < b->chunks.count; j++) {
        it = carried_begin(b, b->me);
        while (carried_next(&it)) {
            direct_add_carried_copy(b, first + it.index, &it, j);
        }
    }
}

/* All that others write into my output has come. */
static void direct_add_done(const direct_build_t *b)
{
    direct_carried_t it = carried_begin(b, b->me);
    uint32_t context, rise;
    int i, peer;

    while (carried_next(&it)) {
        for (context = 0; context < b->chunks.contexts; context++) {
            /* A sender's last slice raises the counter furthest; waiting
             * for those before it does no harm. */
            rise = (it.before + 1) *
                   hce_plan_context_chunks(&b->chunks, context);
            if (rise > 0) {
                hce_plan_add_done_wait(b->plan, it.sender,
                                       HCE_SLOT_FLOW + context, rise);
            }
        }
    }
    for (i = 1; i < b->node_size; i++) {
        peer = direct_peer(b, i);
        hce_plan_add_done_wait(b->plan, peer, HCE_SLOT_LOCAL, b->chunks.count);
        it = carried_begin(b, peer);
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
        .most = params->carriers,
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
