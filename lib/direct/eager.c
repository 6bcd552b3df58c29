/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * AllGather of small slices: nobody waits for an entry before sending; data
 * go to scratch memory together with the sender's call. On one node a rank
 * shows its slice in its own slot and reads the others'. Else a leader a node
 * gathers the node's slices, sends them as one parcel to the other leaders,
 * and copies what has come to its node: in one hop, or for many nodes in
 * log2 steps with twice as many slices each (Bruck).
 *
 * Slots need no further credit: whoever has completed a launch has something
 * from all ranks, so all have completed the one before.
 */
#include "config.h"

#include "direct/direct.h"

#include <assert.h>

#define EAGER_LEADER   0 /* local rank */
#define EAGER_MAX_HOPS 8 /* nodes, up to which all leaders send to all */

/* Counters of a leader's copy lanes. */
#define EAGER_OWN    HCE_SLOT_LOCAL       /* its own slice is gathered */
#define EAGER_SPREAD (HCE_SLOT_LOCAL + 1) /* copies to its node */

typedef struct eager_build {
    hce_plan_t *plan;
    const hce_layout_t *layout;
    uint64_t len;
    int me;
    int node;
    int node_size;
    int leader;
    bool in_place;
    bool doubles; /* in steps, not in one hop */
    uint32_t spreads; /* ops that copy to the node so far */
} eager_build_t;

static bool eager_pulls(const hce_plan_params_t *params)
{
    return params->layout->nnodes == 1 && params->limits.reads;
}

/* Slices on num nodes from node on, going round. */
static uint64_t eager_count(const hce_layout_t *layout, int node, int num)
{
    int end = node + num;

    if (end < layout->nnodes) {
        return layout->node_first[end] - layout->node_first[node];
    }
    return layout->nranks - layout->node_first[node] +
           (num == layout->nnodes && node == 0
                ? 0
                : layout->node_first[end - layout->nnodes]);
}

/* Nodes whose slices are sent in the step that goes back dist nodes. */
static int eager_step_nodes(const hce_layout_t *layout, int dist)
{
    return dist < layout->nnodes - dist ? dist : layout->nnodes - dist;
}

/* The largest parcel of any leader. */
static uint64_t eager_parcel(const hce_plan_params_t *params, bool doubles)
{
    const hce_layout_t *layout = params->layout;
    uint64_t most = layout->max_node_size, count;
    int dist, node;

    for (dist = 1; doubles && dist < layout->nnodes; dist *= 2) {
        for (node = 0; node < layout->nnodes; node++) {
            count = eager_count(layout, node, eager_step_nodes(layout, dist));
            most = count > most ? count : most;
        }
    }
    return most * params->len;
}

static bool eager_doubles(const hce_plan_params_t *params)
{
    return params->layout->nnodes > EAGER_MAX_HOPS &&
           eager_parcel(params, true) <= params->limits.parcel;
}

/* Where a slice is in the slot of a node's leader. In steps each begins with
 * its own node's, so that what it sends on lies together. */
static uint64_t eager_place(const eager_build_t *b, int at_node, int rank)
{
    const hce_layout_t *layout = b->layout;
    int place = layout->node_first[layout->node[rank]] + layout->lrank[rank];

    if (b->doubles) {
        place += layout->nranks - layout->node_first[at_node];
    }
    return place % layout->nranks * b->len;
}

static int eager_leader_of(const eager_build_t *b, int node)
{
    return hce_layout_rank(b->layout, node, EAGER_LEADER);
}

static int eager_peer(const eager_build_t *b, int i)
{
    return hce_layout_rank(b->layout, b->node,
                           (b->layout->lrank[b->me] + i) % b->node_size);
}

/* ---- one node: show and read ---- */

static void eager_add_pull(const eager_build_t *b, int from)
{
    uint32_t lane = hce_plan_add_lane(b->plan, HCE_LANE_COPY, from, 0, 0);

    hce_plan_add_op(b->plan, HCE_OP_COPY, lane, b->len);
    hce_plan_add_scratch_src(b->plan, from, 0);
    hce_plan_add_dst(b->plan, b->me, HCE_BUF_RECV, from * b->len);
    hce_plan_add_wait(b->plan, from, HCE_SLOT_READY, 1);
}

static void eager_add_own_copy(const eager_build_t *b)
{
    uint32_t lane;

    if (b->in_place) {
        return;
    }
    lane = hce_plan_add_lane(b->plan, HCE_LANE_COPY, b->me, 0, 0);
    hce_plan_add_op(b->plan, HCE_OP_COPY, lane, b->len);
    hce_plan_add_src(b->plan, b->me, HCE_BUF_SEND, 0);
    hce_plan_add_dst(b->plan, b->me, HCE_BUF_RECV, b->me * b->len);
}

static void eager_add_pulls(const eager_build_t *b)
{
    uint32_t lane;
    int i;

    lane = hce_plan_add_lane(b->plan, HCE_LANE_COPY, b->me, 0, 0);
    hce_plan_add_op(b->plan, HCE_OP_COPY, lane, b->len);
    hce_plan_add_src(b->plan, b->me, HCE_BUF_SEND, 0);
    hce_plan_add_scratch_dst(b->plan, b->me, 0);
    for (i = 1; i < b->node_size; i++) {
        hce_plan_add_post(b->plan, eager_peer(b, i), HCE_SLOT_READY, 1);
    }
    eager_add_own_copy(b);
    for (i = 1; i < b->node_size; i++) {
        eager_add_pull(b, eager_peer(b, i));
    }
}

/* ---- leaders ---- */

/* My slice to the leader's slot. */
static void eager_add_gather(const eager_build_t *b)
{
    uint32_t lane = hce_plan_add_lane(b->plan, HCE_LANE_COPY, b->me, 0, 0);

    hce_plan_add_op(b->plan, HCE_OP_COPY, lane, b->len);
    hce_plan_add_src(b->plan, b->me, HCE_BUF_SEND, 0);
    hce_plan_add_scratch_dst(b->plan, b->leader,
                             eager_place(b, b->node, b->me));
    hce_plan_add_post(b->plan, b->leader,
                      b->me == b->leader ? EAGER_OWN : HCE_SLOT_READY, 1);
}

static void eager_wait_gathered(const eager_build_t *b)
{
    int i;

    hce_plan_add_wait(b->plan, b->me, EAGER_OWN, 1);
    for (i = 1; i < b->node_size; i++) {
        hce_plan_add_wait(b->plan, eager_peer(b, i), HCE_SLOT_READY, 1);
    }
}

/* Those that send to my leader in the steps before dist, or at all. */
static void eager_wait_leaders(const eager_build_t *b, int dist)
{
    int step, from;

    for (step = 1; step < dist; step = b->doubles ? 2 * step : step + 1) {
        from = eager_leader_of(b, (b->node + step) % b->layout->nnodes);
        hce_plan_add_wait(b->plan, from, HCE_SLOT_READY, 1);
    }
}

/* The slices of num nodes from mine on to the leader dist nodes back. */
static void eager_add_put(const eager_build_t *b, int dist, int num)
{
    const hce_layout_t *layout = b->layout;
    int node = (b->node + layout->nnodes - dist) % layout->nnodes;
    int to = eager_leader_of(b, node);
    uint32_t lane = hce_plan_add_lane(b->plan, HCE_LANE_PROXY, to, 0, 0);

    hce_plan_add_op(b->plan, HCE_OP_PUT, lane,
                    eager_count(layout, b->node, num) * b->len);
    hce_plan_add_scratch_src(b->plan, b->me, eager_place(b, b->node, b->me));
    hce_plan_add_scratch_dst(b->plan, to, eager_place(b, node, b->me));
    eager_wait_gathered(b);
    if (b->doubles) {
        eager_wait_leaders(b, dist);
    }
    hce_plan_add_post(b->plan, to, HCE_SLOT_READY, 1);
}

static void eager_add_puts(const eager_build_t *b)
{
    int dist;

    for (dist = 1; b->doubles && dist < b->layout->nnodes; dist *= 2) {
        eager_add_put(b, dist, eager_step_nodes(b->layout, dist));
    }
    for (dist = 1; !b->doubles && dist < b->layout->nnodes; dist++) {
        eager_add_put(b, dist, 1);
    }
}

/* num slices that lie together in my slot and in outputs, to my node; not to
 * the rank whose own slice it is. */
static void eager_add_spread(eager_build_t *b, uint32_t lane, int rank,
                             uint64_t num)
{
    int i, peer;

    hce_plan_add_op(b->plan, HCE_OP_COPY, lane, num * b->len);
    hce_plan_add_scratch_src(b->plan, b->me, eager_place(b, b->node, rank));
    for (i = 0; i < b->node_size; i++) {
        peer = eager_peer(b, i);
        if (b->in_place && peer == rank) {
            continue;
        }
        hce_plan_add_dst(b->plan, peer, HCE_BUF_RECV, rank * b->len);
        if (peer != b->me) {
            hce_plan_add_post(b->plan, peer, EAGER_SPREAD, b->spreads + 1);
        }
    }
    if (b->spreads++ == 0) {
        /* Later ops of the lane start after this one. */
        eager_wait_gathered(b);
        eager_wait_leaders(b, b->layout->nnodes);
    }
}

/* Does the slice of next lie behind that of rank, here and there? */
static bool eager_follows(const eager_build_t *b, int rank, int next)
{
    bool own = b->layout->node[rank] == b->node ||
               b->layout->node[next] == b->node;

    return next == rank + 1 && !(own && b->in_place) &&
           eager_place(b, b->node, next) ==
               eager_place(b, b->node, rank) + b->len;
}

/* The first rank whose slice does not go along with that of rank. */
static int eager_run_end(const eager_build_t *b, int rank)
{
    int next = rank + 1;

    while (next < b->layout->nranks && eager_follows(b, next - 1, next)) {
        next++;
    }
    return next;
}

/* All slices, in the order of the output. In place a slice that only its
 * owner is left for is nobody's. */
static void eager_add_spreads(eager_build_t *b)
{
    uint32_t lane = hce_plan_add_lane(b->plan, HCE_LANE_COPY, -1, 0, 0);
    int rank, next;

    for (rank = 0; rank < b->layout->nranks; rank = next) {
        next = eager_run_end(b, rank);
        if (!b->in_place || b->node_size > 1 || rank != b->me) {
            eager_add_spread(b, lane, rank, next - rank);
        }
    }
}

/* The last of the leader's copies that is for me. */
static void eager_add_done(const eager_build_t *b)
{
    int rank, count = 0, last = 0;

    for (rank = 0; rank < b->layout->nranks; rank = eager_run_end(b, rank)) {
        count++;
        if (!b->in_place || rank != b->me) {
            last = count;
        }
    }
    hce_plan_add_done_wait(b->plan, b->leader, EAGER_SPREAD, last);
}

static void eager_add_all(eager_build_t *b)
{
    if (b->layout->nranks == 1) {
        eager_add_own_copy(b);
    } else if (eager_pulls(&b->plan->params)) {
        eager_add_pulls(b);
    } else {
        eager_add_gather(b);
        if (b->me == b->leader) {
            eager_add_puts(b);
            eager_add_spreads(b);
        } else {
            eager_add_done(b);
        }
    }
}

static hce_status_t eager_build(const hce_plan_params_t *params,
                                hce_plan_t **plan_p)
{
    const hce_layout_t *layout = params->layout;
    eager_build_t b = {
        .layout = layout,
        .len = params->len,
        .me = params->rank,
        .node = layout->node[params->rank],
        .in_place = params->in_place,
        .doubles = eager_doubles(params),
    };
    hce_status_t status;

    assert(params->coll == HCE_COLL_ALLGATHER);
    b.node_size = layout->node_size[b.node];
    b.leader = eager_leader_of(&b, b.node);
    status = hce_plan_create(params, hce_eager_allgather.path, &b.plan);
    if (status != HCE_OK) {
        return status;
    }
    eager_add_all(&b);
    status = hce_plan_finish(b.plan);
    if (status == HCE_OK) {
        *plan_p = b.plan;
    }
    return status;
}

static const char *eager_refuse(const hce_plan_params_t *params)
{
    const hce_layout_t *layout = params->layout;
    uint64_t slots = eager_pulls(params) ? 1 : layout->nranks;

    if (params->coll != HCE_COLL_ALLGATHER) {
        return "eager here is for AllGather only";
    }
    if (layout->nranks == 1) {
        return NULL;
    }
    if (params->limits.scratch == 0 ||
        params->len > params->limits.scratch / slots) {
        return "the slices are larger than its slots (HCE_SCRATCH)";
    }
    if (layout->nnodes > 1 && params->limits.parcel == 0) {
        return "the transport has no parcels";
    }
    if (layout->nnodes > 1 &&
        eager_parcel(params, false) > params->limits.parcel) {
        return "a node's slices are larger than a parcel of the transport";
    }
    return NULL;
}

static void eager_traffic(const hce_plan_params_t *params, int from_node,
                          int to_node, uint64_t *bytes_p, uint64_t *puts_p)
{
    const hce_layout_t *layout = params->layout;
    int dist = (from_node + layout->nnodes - to_node) % layout->nnodes;
    int num = 1;

    if (eager_doubles(params)) {
        num = (dist & (dist - 1)) == 0 ? eager_step_nodes(layout, dist) : 0;
    }
    *bytes_p = *puts_p = 0;
    if (dist != 0 && num != 0 && params->len > 0) {
        *bytes_p = eager_count(layout, from_node, num) * params->len;
        *puts_p = 1;
    }
}

const hce_plan_builder_t hce_eager_allgather = {
    .path = "eager",
    .coll = HCE_COLL_ALLGATHER,
    .build = eager_build,
    .refuse = eager_refuse,
    .traffic = eager_traffic,
};
