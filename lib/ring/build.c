/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * A ring over nodes. The slices of a node go on from carrier to carrier; each
 * chunk is put to the next carrier once it has arrived, before it is copied
 * to the node peers: both read what has come, neither waits for the other.
 * A flow is what one carrier puts to another in one context and direction,
 * counted 1, 2, 3 in the order of its lane: hop by hop, by local rank, part
 * and chunk. Sender and receiver count alike, each from the layout.
 * A ready(t -> s) is told to node peers and to the carriers that put to t,
 * and answered by their data, that t's completion waits for.
 */
#include "config.h"

#include "ring/build.h"

#include "ring/ring.h"
#include "util/log.h"
#include "util/math.h"

#include <assert.h>
#include <stdlib.h>

/* A carrier of a neighbouring node, by direction and local rank. */
typedef struct ring_flow {
    uint32_t came[HCE_PLAN_MAX_CONTEXTS]; /* chunks, from prev */
    uint32_t sent[HCE_PLAN_MAX_CONTEXTS]; /* chunks, to next */
    uint32_t lane[HCE_PLAN_MAX_CONTEXTS]; /* to next, where sent > 0 */
} ring_flow_t;

typedef struct ring_build {
    hce_plan_t *plan;
    const hce_plan_params_t *params;
    const hce_layout_t *layout;
    const hce_ring_shape_t *shape;
    ring_flow_t *flows; /* [HCE_RING_DIRS * max_node_size] */
    int me;
    int node;
    int node_size;
    int step;      /* local ranks from one slice that I carry to the next */
    int places[2]; /* slices between mine and those of a distance, by dir */
} ring_build_t;

/* A slice on its way: travels in dir, and has come distance hops. */
typedef struct ring_slice {
    int rank;
    int dir;
    int distance;
    int place; /* numbers slices alike on all ranks of a node */
} ring_slice_t;

int hce_ring_next(const hce_layout_t *layout, int node, int dir)
{
    return (node + (dir == HCE_RING_CW ? 1 : layout->nnodes - 1)) %
           layout->nnodes;
}

/* The node from which direction dir brings slices here in distance hops. */
static int ring_origin(const ring_build_t *b, int dir, int distance)
{
    int nnodes = b->layout->nnodes;

    return (b->node + (dir == HCE_RING_CW ? nnodes - distance : distance)) %
           nnodes;
}

static int ring_carrier(const ring_build_t *b, int rank, int node)
{
    return hce_layout_carrier(b->layout, b->params->carriers, rank, node);
}

static ring_flow_t *ring_flow(const ring_build_t *b, int dir, int rank)
{
    return &b->flows[dir * b->layout->max_node_size + b->layout->lrank[rank]];
}

/* Does a part travel in dir on this hop? */
static bool ring_travels(const ring_build_t *b, int dir, int hop, int part)
{
    const hce_ring_shape_t *shape = b->shape;

    return dir < shape->dirs && hop < shape->hops &&
           (hop < shape->whole_hops || part == dir);
}

/* Node peers one after the other, from the next local rank on: i is 1 to
 * node_size - 1. */
static int ring_peer(const ring_build_t *b, int i)
{
    return hce_layout_rank(b->layout, b->node,
                           (b->layout->lrank[b->me] + i) % b->node_size);
}

static int ring_local_slot(const ring_build_t *b, int place, int part)
{
    return HCE_SLOT_LOCAL + place * b->shape->num_parts + part;
}

static uint64_t ring_place(const ring_build_t *b, int slice, int part,
                           uint32_t j)
{
    const hce_ring_part_t *p = &b->shape->parts[part];

    return (uint64_t)slice * b->params->len + p->offset + j * p->chunks.width;
}

/* ---- entry ---- */

static void ring_add_ready(const ring_build_t *b, uint32_t lane, int to)
{
    hce_plan_add_op(b->plan, HCE_OP_SIGNAL, lane, 0);
    hce_plan_add_post(b->plan, to, HCE_SLOT_READY, 1);
}

/* Does a carrier of the node before put something to me? */
static bool ring_has_flow(const ring_build_t *b, int dir, int prev)
{
    int distance, from, lrank;

    for (distance = 1; distance <= b->shape->hops; distance++) {
        from = ring_origin(b, dir, distance);
        for (lrank = b->layout->lrank[b->me];
             lrank < b->layout->node_size[from]; lrank += b->step) {
            if (ring_carrier(b, hce_layout_rank(b->layout, from, lrank),
                             b->layout->node[prev]) == prev) {
                return true;
            }
        }
    }
    return false;
}

static void ring_add_entry(const ring_build_t *b)
{
    uint32_t lane = hce_plan_add_lane(b->plan, HCE_LANE_ENTRY, -1, 0, 0);
    const hce_layout_t *layout = b->layout;
    /* With two nodes both directions come from the same carriers. */
    int dirs = layout->nnodes == 2 ? 1 : b->shape->dirs;
    int i, dir, node, prev;

    for (i = 1; i < b->node_size; i++) {
        ring_add_ready(b, lane, ring_peer(b, i));
    }
    if (b->shape->hops == 0 || layout->lrank[b->me] >= b->step) {
        return;
    }
    for (dir = 0; dir < dirs; dir++) {
        node = ring_origin(b, dir, 1);
        for (i = 0; i < layout->node_size[node]; i++) {
            prev = hce_layout_rank(layout, node, i);
            if (ring_has_flow(b, dir, prev)) {
                ring_add_ready(b, lane, prev);
            }
        }
    }
}

/* ---- chunks ---- */

/* The last op waits until chunk j of a part that is not mine is here. */
static void ring_add_arrival(const ring_build_t *b, const ring_slice_t *s,
                             int part, uint32_t j)
{
    uint32_t context = j % b->shape->parts[part].chunks.contexts;
    int prev;

    if (s->distance == 0) {
        hce_plan_add_wait(b->plan, s->rank, ring_local_slot(b, s->place, part),
                          j + 1);
        return;
    }
    prev = ring_carrier(b, s->rank, ring_origin(b, s->dir, 1));
    hce_plan_add_wait(b->plan, prev,
                      HCE_SLOT_FLOW + s->dir * HCE_PLAN_MAX_CONTEXTS +
                          (int)context,
                      ring_flow(b, s->dir, prev)->came[context]);
}

static void ring_add_put(const ring_build_t *b, const ring_slice_t *s,
                         int part, uint32_t j)
{
    const hce_plan_chunks_t *chunks = &b->shape->parts[part].chunks;
    int next = ring_carrier(b, s->rank,
                            hce_ring_next(b->layout, b->node, s->dir));
    ring_flow_t *flow = ring_flow(b, s->dir, next);
    uint32_t context = j % chunks->contexts;
    uint64_t at = ring_place(b, s->rank, part, j);

    if (flow->sent[context] == 0) {
        flow->lane[context] = hce_plan_add_lane(b->plan, HCE_LANE_PROXY, next,
                                                (int)context, s->dir);
    }
    hce_plan_add_op(b->plan, HCE_OP_PUT, flow->lane[context],
                    hce_plan_chunk_len(chunks, j));
    if (s->rank == b->me) {
        hce_plan_add_src(b->plan, b->me, HCE_BUF_SEND,
                         ring_place(b, 0, part, j));
    } else {
        hce_plan_add_src(b->plan, b->me, HCE_BUF_RECV, at);
    }
    hce_plan_add_dst(b->plan, next, HCE_BUF_RECV, at);
    if (s->rank != b->me) {
        ring_add_arrival(b, s, part, j);
    }
    if (flow->sent[context] == 0) {
        /* Later ops of the lane start after this one. */
        hce_plan_add_wait(b->plan, next, HCE_SLOT_READY, 1);
    }
    hce_plan_add_post(b->plan, next,
                      HCE_SLOT_FLOW + s->dir * HCE_PLAN_MAX_CONTEXTS +
                          (int)context,
                      ++flow->sent[context]);
}

/* Chunk j of a part to all node peers, and of my own slice to my output. */
static void ring_add_copy(const ring_build_t *b, uint32_t lane,
                          const ring_slice_t *s, int part, uint32_t j)
{
    const hce_plan_chunks_t *chunks = &b->shape->parts[part].chunks;
    uint64_t at = ring_place(b, s->rank, part, j);
    int i, peer;

    hce_plan_add_op(b->plan, HCE_OP_COPY, lane, hce_plan_chunk_len(chunks, j));
    if (s->rank == b->me) {
        hce_plan_add_src(b->plan, b->me, HCE_BUF_SEND,
                         ring_place(b, 0, part, j));
    } else {
        hce_plan_add_src(b->plan, b->me, HCE_BUF_RECV, at);
        ring_add_arrival(b, s, part, j);
    }
    if (s->rank == b->me && !b->params->in_place) {
        hce_plan_add_dst(b->plan, b->me, HCE_BUF_RECV, at);
    }
    for (i = 1; i < b->node_size; i++) {
        peer = ring_peer(b, i);
        hce_plan_add_dst(b->plan, peer, HCE_BUF_RECV, at);
        hce_plan_add_post(b->plan, peer, ring_local_slot(b, s->place, part),
                          j + 1);
        if (j == 0) {
            hce_plan_add_wait(b->plan, peer, HCE_SLOT_READY, 1);
        }
    }
}

/* ---- slices ---- */

/* What my node begins: my own slice, and those of node peers that I carry. */
static void ring_add_first_hop(const ring_build_t *b, int dir)
{
    ring_slice_t s = {.dir = dir};
    int lrank, part;
    uint32_t j;

    for (lrank = b->layout->lrank[b->me]; lrank < b->node_size;
         lrank += b->step) {
        s.rank = hce_layout_rank(b->layout, b->node, lrank);
        s.place = lrank;
        for (part = 0; part < b->shape->num_parts; part++) {
            if (!ring_travels(b, dir, 0, part)) {
                continue;
            }
            for (j = 0; j < b->shape->parts[part].chunks.count; j++) {
                ring_add_put(b, &s, part, j);
            }
        }
    }
}

static void ring_add_own_copies(const ring_build_t *b)
{
    const ring_slice_t s = {.rank = b->me,
                            .place = b->layout->lrank[b->me]};
    uint32_t lane, j;
    int part;

    if (b->node_size == 1 && b->params->in_place) {
        return;
    }
    for (part = 0; part < b->shape->num_parts; part++) {
        lane = hce_plan_add_lane(b->plan, HCE_LANE_COPY, b->me, 0, part);
        for (j = 0; j < b->shape->parts[part].chunks.count; j++) {
            ring_add_copy(b, lane, &s, part, j);
        }
    }
}

/* A part that arrives: each chunk goes on first, where it does, then to the
 * node peers. */
static void ring_add_part(const ring_build_t *b, const ring_slice_t *s,
                          int part)
{
    const hce_plan_chunks_t *chunks = &b->shape->parts[part].chunks;
    int prev = ring_carrier(b, s->rank, ring_origin(b, s->dir, 1));
    ring_flow_t *flow = ring_flow(b, s->dir, prev);
    uint32_t lane = 0, j;

    if (b->node_size > 1) {
        lane = hce_plan_add_lane(b->plan, HCE_LANE_COPY, s->rank, 0, part);
    }
    for (j = 0; j < chunks->count; j++) {
        flow->came[j % chunks->contexts]++;
        if (ring_travels(b, s->dir, s->distance, part)) {
            ring_add_put(b, s, part, j);
        }
        if (b->node_size > 1) {
            ring_add_copy(b, lane, s, part, j);
        }
    }
}

/* All that I carry of the node that lies distance hops back. */
static void ring_add_node(ring_build_t *b, int dir, int distance)
{
    int from = ring_origin(b, dir, distance), lrank, part;
    ring_slice_t s = {.dir = dir, .distance = distance};

    /* Places count clockwise distances, whichever way a slice comes. */
    if (dir == HCE_RING_CCW) {
        b->places[dir] -= b->layout->node_size[from];
    }
    for (lrank = b->layout->lrank[b->me]; lrank < b->layout->node_size[from];
         lrank += b->step) {
        s.rank = hce_layout_rank(b->layout, from, lrank);
        s.place = b->places[dir] + lrank;
        for (part = 0; part < b->shape->num_parts; part++) {
            if (ring_travels(b, dir, distance - 1, part)) {
                ring_add_part(b, &s, part);
            }
        }
    }
    if (dir == HCE_RING_CW) {
        b->places[dir] += b->layout->node_size[from];
    }
}

/* ---- completion ---- */

static void ring_add_done_place(const ring_build_t *b, int peer, int place)
{
    int part;

    for (part = 0; part < b->shape->num_parts; part++) {
        hce_plan_add_done_wait(b->plan, peer,
                               ring_local_slot(b, place, part),
                               b->shape->parts[part].chunks.count);
    }
}

/* What a node peer copies to me: its own slice, and all that it carries. */
static void ring_add_done_peer(const ring_build_t *b, int peer)
{
    const hce_layout_t *layout = b->layout;
    int place = b->node_size, distance, from, lrank = layout->lrank[peer];

    ring_add_done_place(b, peer, lrank);
    if (lrank >= b->step) {
        return;
    }
    for (distance = 1; distance < layout->nnodes; distance++) {
        from = ring_origin(b, HCE_RING_CW, distance);
        for (lrank = layout->lrank[peer]; lrank < layout->node_size[from];
             lrank += b->step) {
            ring_add_done_place(b, peer, place + lrank);
        }
        place += layout->node_size[from];
    }
}

/* All flows of both directions, then the node: one pass over the counters. */
static void ring_add_done(const ring_build_t *b)
{
    int dir, i, node;
    uint32_t context;

    for (dir = 0; dir < b->shape->dirs && b->shape->hops > 0; dir++) {
        node = ring_origin(b, dir, 1);
        for (i = 0; i < b->layout->node_size[node]; i++) {
            int prev = hce_layout_rank(b->layout, node, i);
            const ring_flow_t *flow = ring_flow(b, dir, prev);

            for (context = 0; context < HCE_PLAN_MAX_CONTEXTS; context++) {
                if (flow->came[context] > 0) {
                    hce_plan_add_done_wait(
                        b->plan, prev,
                        HCE_SLOT_FLOW + dir * HCE_PLAN_MAX_CONTEXTS +
                            (int)context,
                        flow->came[context]);
                }
            }
        }
    }
    for (i = 1; i < b->node_size; i++) {
        ring_add_done_peer(b, ring_peer(b, i));
    }
}

/* ---- the plan ---- */

static void ring_add_all(ring_build_t *b)
{
    bool carries = b->layout->lrank[b->me] < b->step;
    int dir, distance;

    ring_add_entry(b);
    for (dir = 0; dir < b->shape->dirs && carries; dir++) {
        ring_add_first_hop(b, dir);
    }
    ring_add_own_copies(b);
    for (distance = 1; distance <= b->shape->hops && carries; distance++) {
        for (dir = 0; dir < b->shape->dirs; dir++) {
            ring_add_node(b, dir, distance);
        }
    }
    ring_add_done(b);
}

hce_status_t hce_ring_build(const hce_plan_params_t *params, const char *path,
                            const hce_ring_shape_t *shape,
                            hce_plan_t **plan_p)
{
    const hce_layout_t *layout = params->layout;
    int node = layout->node[params->rank];
    ring_build_t b = {
        .params = params,
        .layout = layout,
        .shape = shape,
        .me = params->rank,
        .node = node,
        .node_size = layout->node_size[node],
        .step = hce_layout_carriers(layout, params->carriers, node),
        .places = {layout->node_size[node], layout->nranks},
    };
    hce_status_t status;

    assert(params->coll == HCE_COLL_ALLGATHER);
    b.flows = calloc((size_t)HCE_RING_DIRS * (size_t)layout->max_node_size,
                     sizeof(*b.flows));
    if (b.flows == NULL) {
        hce_log(ERROR, PLAN, "plan '%s' of rank %d: out of memory", path,
                params->rank);
        return HCE_ERR_NO_MEMORY;
    }
    status = hce_plan_create(params, path, &b.plan);
    if (status == HCE_OK) {
        ring_add_all(&b);
        status = hce_plan_finish(b.plan);
    }
    free(b.flows);
    if (status == HCE_OK) {
        *plan_p = b.plan;
    }
    return status;
}

/* ---- shapes ---- */

uint64_t hce_ring_cw_len(uint64_t len)
{
    return len == 1 ? 1 : len / 2;
}

static void ring_cut(const hce_plan_params_t *params, uint64_t offset,
                     uint64_t len, hce_ring_part_t *part)
{
    hce_plan_params_t piece = *params;

    /* The width of the whole slice, so that its chunks are never too many. */
    piece.width = hce_plan_chunk_width(params->len, params->width);
    piece.len = len;
    part->offset = offset;
    part->chunks = hce_plan_chunks(&piece);
}

void hce_ring_cut_whole(const hce_plan_params_t *params,
                        hce_ring_shape_t *shape)
{
    shape->num_parts = 1;
    ring_cut(params, 0, params->len, &shape->parts[0]);
}

void hce_ring_cut_halves(const hce_plan_params_t *params,
                         hce_ring_shape_t *shape)
{
    uint64_t cw = hce_ring_cw_len(params->len);

    shape->num_parts = 2;
    ring_cut(params, 0, cw, &shape->parts[HCE_RING_CW]);
    ring_cut(params, cw, params->len - cw, &shape->parts[HCE_RING_CCW]);
}

const char *hce_ring_refuse(const hce_plan_params_t *params)
{
    /* A bound: two puts and a copy of each chunk, one chunk more a half. */
    uint64_t ops =
        ((uint64_t)hce_plan_num_chunks(params->len, params->width) + 1) * 3 *
            (uint64_t)params->layout->nranks +
        (uint64_t)params->layout->nranks;

    if (params->coll != HCE_COLL_ALLGATHER) {
        return "rings here are for AllGather only";
    }
    return ops <= HCE_PLAN_MAX_OPS ? NULL
                                   : "too many chunks for so many ranks: a "
                                     "rank's plan is limited to 2^24 ops";
}

void hce_ring_add_traffic(const hce_ring_part_t *part, uint64_t slices,
                          uint64_t *bytes_p, uint64_t *puts_p)
{
    *bytes_p += slices * part->chunks.len;
    *puts_p += part->chunks.len == 0 ? 0 : slices * part->chunks.count;
}
