/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * ReduceScatter and AllReduce inside a node, in one pass: the owner of a shard
 * reads it from all ranks, adds up in order of rank, and writes the sum where
 * it belongs. Where the memory of node peers cannot be read, they copy their
 * parts of the shard into the owner's scratch memory first; the order of
 * additions is the same.
 */
#include "config.h"

#include "direct/direct.h"
#include "util/datatype.h"

#define REDUCE_MAX_RANKS 256 /* sources of an op */

/* Counters of node peers. */
#define REDUCE_DONE   HCE_SLOT_LOCAL       /* the writer's shard is complete */
#define REDUCE_COPIED (HCE_SLOT_LOCAL + 1) /* its part of my shard is here */

typedef struct reduce_build {
    hce_plan_t *plan;
    const hce_plan_params_t *params;
    int me;
    int n;
} reduce_build_t;

/* Where the shard of a rank begins in SEND; whole elements. */
static uint64_t shard_start(const hce_plan_params_t *params, int rank)
{
    uint64_t size = hce_datatype_size(params->datatype), count;

    if (params->coll == HCE_COLL_REDUCE_SCATTER) {
        return params->len * (uint64_t)rank;
    }
    count = params->len / size;
    return count * (uint64_t)rank / (uint64_t)params->layout->nranks * size;
}

static uint64_t shard_len(const hce_plan_params_t *params, int rank)
{
    return shard_start(params, rank + 1) - shard_start(params, rank);
}

/* No shard is longer; parts of different ranks lie so far from each other. */
static uint64_t part_stride(const hce_plan_params_t *params)
{
    uint64_t size = hce_datatype_size(params->datatype);

    if (params->coll == HCE_COLL_REDUCE_SCATTER) {
        return params->len;
    }
    return (params->len / size / (uint64_t)params->layout->nranks + 1) * size;
}

static int peer_of(const reduce_build_t *b, int i)
{
    return (b->me + i) % b->n;
}

static void add_entry(const reduce_build_t *b)
{
    uint32_t lane = hce_plan_add_lane(b->plan, HCE_LANE_ENTRY, -1, 0, 0);
    int i;

    for (i = 1; i < b->n; i++) {
        hce_plan_add_op(b->plan, HCE_OP_SIGNAL, lane, 0);
        hce_plan_add_post(b->plan, peer_of(b, i), HCE_SLOT_READY, 1);
    }
}

/* My parts of the others' shards, to their scratch memory. */
static void add_pushes(const reduce_build_t *b)
{
    uint32_t lane;
    int i, owner;

    for (i = 1; i < b->n; i++) {
        owner = peer_of(b, i);
        lane = hce_plan_add_lane(b->plan, HCE_LANE_COPY, owner, 0, 0);
        hce_plan_add_op(b->plan, HCE_OP_COPY, lane,
                        shard_len(b->params, owner));
        hce_plan_add_src(b->plan, b->me, HCE_BUF_SEND,
                         shard_start(b->params, owner));
        hce_plan_add_scratch_dst(b->plan, owner,
                                 (uint64_t)b->me * part_stride(b->params));
        hce_plan_add_post(b->plan, owner, REDUCE_COPIED, 1);
    }
}

static void add_source(const reduce_build_t *b, int rank)
{
    if (rank == b->me || b->params->limits.pulls) {
        hce_plan_add_src(b->plan, rank, HCE_BUF_SEND,
                         shard_start(b->params, b->me));
    } else {
        hce_plan_add_scratch_src(b->plan, b->me,
                                 (uint64_t)rank * part_stride(b->params));
    }
}

static void add_sum(const reduce_build_t *b)
{
    uint32_t lane = hce_plan_add_lane(b->plan, HCE_LANE_REDUCE, -1, 0, 0);
    bool scatters = b->params->coll == HCE_COLL_REDUCE_SCATTER;
    int i;

    hce_plan_add_op(b->plan, HCE_OP_REDUCE, lane,
                    shard_len(b->params, b->me));
    hce_plan_set_last(b->plan);
    for (i = 0; i < b->n; i++) {
        add_source(b, i);
    }
    for (i = 0; i < (scatters ? 1 : b->n); i++) {
        hce_plan_add_dst(b->plan, peer_of(b, i), HCE_BUF_RECV,
                         scatters ? 0 : shard_start(b->params, b->me));
    }
    for (i = 1; i < b->n; i++) {
        hce_plan_add_wait(b->plan, peer_of(b, i), HCE_SLOT_READY, 1);
        if (!b->params->limits.pulls) {
            hce_plan_add_wait(b->plan, peer_of(b, i), REDUCE_COPIED, 1);
        }
        hce_plan_add_post(b->plan, peer_of(b, i), REDUCE_DONE, 1);
    }
}

static hce_status_t reduce_build(const hce_plan_params_t *params,
                                 hce_plan_t **plan_p)
{
    reduce_build_t b = {
        .params = params, .me = params->rank, .n = params->layout->nranks};
    hce_status_t status = hce_plan_create(params, "direct", &b.plan);
    int i;

    if (status != HCE_OK) {
        return status;
    }
    add_entry(&b);
    if (!params->limits.pulls) {
        add_pushes(&b);
    }
    add_sum(&b);
    /* The others have read what is mine, and written what they write to me. */
    for (i = 1; i < b.n; i++) {
        hce_plan_add_done_wait(b.plan, peer_of(&b, i), REDUCE_DONE, 1);
    }
    status = hce_plan_finish(b.plan);
    if (status == HCE_OK) {
        *plan_p = b.plan;
    }
    return status;
}

static const char *reduce_refuse(const hce_plan_params_t *params)
{
    uint64_t n = (uint64_t)params->layout->nranks;

    if (params->layout->nnodes > 1) {
        return "it adds up inside a node, and there are several";
    }
    if (n > REDUCE_MAX_RANKS) {
        return "there are more than 256 ranks";
    }
    if (!params->limits.pulls &&
        part_stride(params) > params->limits.scratch / n) {
        return "memory of node peers cannot be read, and their parts do not "
               "fit the scratch memory (HCE_SCRATCH)";
    }
    return NULL;
}

static void reduce_traffic(const hce_plan_params_t *params, int from_node,
                           int to_node, uint64_t *bytes_p, uint64_t *puts_p)
{
    *bytes_p = *puts_p = 0; /* there is one node */
}

const hce_plan_builder_t hce_direct_reduce_scatter = {
    .path = "direct",
    .coll = HCE_COLL_REDUCE_SCATTER,
    .build = reduce_build,
    .refuse = reduce_refuse,
    .traffic = reduce_traffic,
};

const hce_plan_builder_t hce_direct_allreduce = {
    .path = "direct",
    .coll = HCE_COLL_ALLREDUCE,
    .build = reduce_build,
    .refuse = reduce_refuse,
    .traffic = reduce_traffic,
};
