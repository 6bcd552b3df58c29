/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Reductions made by hand: that right ones are proved, on one node in one pass
 * and around a ring between nodes, and that contributions lost, added twice or
 * in another order are found, as are sources read too early or too late.
 */
#include "config.h"

#include "plan_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define RANKS 3
#define SHARD 8
#define LEN   (RANKS * SHARD)

static void begin(world_t *w, const char *nodes, hce_coll_t coll,
                  bool in_place)
{
    world_init(w, nodes, RANKS, coll == HCE_COLL_ALLREDUCE ? LEN : SHARD);
    w->params.coll = coll;
    w->params.datatype = HCE_FLOAT32;
    w->params.op = HCE_SUM;
    w->params.in_place = in_place;
}

static void finish(world_t *w)
{
    int rank;

    for (rank = 0; rank < RANKS; rank++) {
        assert_int_equal(hce_plan_finish(w->plans[rank]), HCE_OK);
    }
}

/* All ranks of a node tell each other ready. */
static void add_entry(hce_plan_t *plan, int rank)
{
    uint32_t lane = hce_plan_add_lane(plan, HCE_LANE_ENTRY, -1, 0, 0);
    int i;

    for (i = 1; i < RANKS; i++) {
        hce_plan_add_op(plan, HCE_OP_SIGNAL, lane, 0);
        hce_plan_add_post(plan, (rank + i) % RANKS, HCE_SLOT_READY, 1);
    }
}

/* All have read what they read of mine, and written what they wrote. */
static void add_done(hce_plan_t *plan, int rank)
{
    int i;

    for (i = 1; i < RANKS; i++) {
        hce_plan_add_done_wait(plan, (rank + i) % RANKS, HCE_SLOT_LOCAL, 1);
    }
}

/* Each rank adds one shard of all, from left to right, for all. */
static void make_one_pass(world_t *w, bool in_place)
{
    int rank, i;

    begin(w, "1", HCE_COLL_ALLREDUCE, in_place);
    for (rank = 0; rank < RANKS; rank++) {
        hce_plan_t *plan = world_begin(w, rank);
        uint64_t at = (uint64_t)rank * SHARD;

        add_entry(plan, rank);
        hce_plan_add_op(plan, HCE_OP_REDUCE,
                        hce_plan_add_lane(plan, HCE_LANE_REDUCE, -1, 0, 0),
                        SHARD);
        hce_plan_set_last(plan);
        for (i = 0; i < RANKS; i++) {
            hce_plan_add_src(plan, i, HCE_BUF_SEND, at);
        }
        for (i = 0; i < RANKS; i++) {
            hce_plan_add_dst(plan, i, HCE_BUF_RECV, at);
        }
        for (i = 1; i < RANKS; i++) {
            hce_plan_add_wait(plan, (rank + i) % RANKS, HCE_SLOT_READY, 1);
            hce_plan_add_post(plan, (rank + i) % RANKS, HCE_SLOT_LOCAL, 1);
        }
        add_done(plan, rank);
    }
    finish(w);
}

static hce_plan_op_t *reduce_op(world_t *w, int rank)
{
    uint32_t at = 0;

    return world_find_op(w, rank, HCE_OP_REDUCE, &at);
}

static void one_pass(void **state)
{
    int in_place;

    for (in_place = 0; in_place < 2; in_place++) {
        world_t w;

        make_one_pass(&w, in_place);
        world_assert_right(&w, NULL);
        world_cleanup(&w);
    }
}

static void one_pass_spoiled(void **state)
{
    hce_plan_op_t *op;
    hce_plan_ref_t *refs;
    world_t w;

    make_one_pass(&w, false);
    op = reduce_op(&w, 1);
    refs = &w.plans[1]->refs[op->ref];
    /* Rank 2's contribution is lost: rank 1's takes its place, or nothing. */
    refs[2].rank = 1;
    world_assert_fault(&w, NULL, "adds the contribution of rank 1 twice");
    refs[2].rank = 2;
    refs[2].offset = 0;
    world_assert_fault(&w, NULL, "adds bytes that do not belong together");
    refs[2].offset = SHARD;
    /* To the place of another shard. */
    refs[3].offset = 0;
    world_assert_fault(&w, NULL, "does not wait for the write that it");
    refs[3].offset = SHARD;
    world_assert_right(&w, NULL);
    /* Half of the shard is left out. */
    op->len = SHARD / 2;
    world_assert_fault(&w, NULL, "is not the sum of all ranks'");
    op->len = SHARD / 2 + 1;
    world_assert_fault(&w, NULL, "does not add whole elements");
    op->len = SHARD;
    /* A peer's memory is read before its entry, or after its completion. */
    op->num_wait--;
    world_assert_fault(&w, NULL, "perhaps before the entry of rank");
    op->num_wait++;
    w.plans[0]->waits[w.plans[0]->done_wait].value = 0;
    world_assert_fault(&w, NULL, "perhaps after the completion of rank 0");
    world_cleanup(&w);

    /* A contribution fewer. */
    make_one_pass(&w, true);
    op = reduce_op(&w, 2);
    memmove(&w.plans[2]->refs[op->ref + 2], &w.plans[2]->refs[op->ref + 3],
            RANKS * sizeof(hce_plan_ref_t));
    op->num_src--;
    world_assert_fault(&w, NULL, "is the last, but contributions are missing");
    op->is_last = false;
    world_assert_fault(&w, NULL, "is not the sum of all ranks'");
    world_cleanup(&w);

    /* Nobody would divide an average. */
    make_one_pass(&w, false);
    reduce_op(&w, 0)->is_last = false;
    world_assert_fault(&w, NULL, "completes its sums, but is not the last");
    world_cleanup(&w);
}

/* What the plans say of each other must be for the same reduction. */
static void other_reduction(void **state)
{
    world_t w;

    make_one_pass(&w, false);
    w.plans[1]->params.op = HCE_MAX;
    world_assert_fault(&w, NULL, "built for another call");
    w.plans[1]->params.op = HCE_SUM;
    w.plans[2]->params.datatype = HCE_INT32;
    world_assert_fault(&w, NULL, "built for another call");
    world_cleanup(&w);
}

/* Each rank adds all of it for itself; rank 1 begins with first. */
static void make_naive(world_t *w, hce_coll_t coll, int first)
{
    uint64_t len = coll == HCE_COLL_ALLREDUCE ? LEN : SHARD;
    int rank, i;

    begin(w, "1", coll, false);
    for (rank = 0; rank < RANKS; rank++) {
        hce_plan_t *plan = world_begin(w, rank);
        uint64_t at = coll == HCE_COLL_ALLREDUCE ? 0 : (uint64_t)rank * SHARD;

        add_entry(plan, rank);
        hce_plan_add_op(plan, HCE_OP_REDUCE,
                        hce_plan_add_lane(plan, HCE_LANE_REDUCE, -1, 0, 0),
                        len);
        hce_plan_set_last(plan);
        for (i = 0; i < RANKS; i++) {
            hce_plan_add_src(plan, (i + (rank == 1 ? first : 0)) % RANKS,
                             HCE_BUF_SEND, at);
        }
        hce_plan_add_dst(plan, rank, HCE_BUF_RECV, 0);
        for (i = 1; i < RANKS; i++) {
            hce_plan_add_wait(plan, (rank + i) % RANKS, HCE_SLOT_READY, 1);
            hce_plan_add_post(plan, (rank + i) % RANKS, HCE_SLOT_LOCAL, 1);
        }
        add_done(plan, rank);
    }
    finish(w);
}

static void orders(void **state)
{
    world_t w;

    make_naive(&w, HCE_COLL_ALLREDUCE, 0);
    world_assert_right(&w, NULL);
    world_cleanup(&w);
    /* The same contributions: only the last bits would differ. */
    make_naive(&w, HCE_COLL_ALLREDUCE, 1);
    world_assert_fault(&w, NULL, "is added up in another order");
    world_cleanup(&w);
}

static void scatter(void **state)
{
    hce_plan_op_t *op;
    world_t w;

    make_naive(&w, HCE_COLL_REDUCE_SCATTER, 2); /* an order for each share */
    world_assert_right(&w, NULL);
    op = reduce_op(&w, 1);
    w.plans[1]->refs[op->ref].offset = w.plans[1]->refs[op->ref + 1].offset =
        w.plans[1]->refs[op->ref + 2].offset = 0;
    world_assert_fault(&w, NULL, "is not the sum of all ranks'");
    world_cleanup(&w);
}

/* In place a share is written where it was read; its owner's shares for
 * others, which lie beside it, must be left alone until they are read. */
static void scatter_in_place(void **state)
{
    hce_plan_op_t *op;
    int rank;
    world_t w;

    make_naive(&w, HCE_COLL_REDUCE_SCATTER, 0);
    for (rank = 0; rank < RANKS; rank++) {
        w.plans[rank]->params.in_place = true;
    }
    world_assert_right(&w, NULL);
    op = reduce_op(&w, 0);
    w.plans[0]->refs[op->ref].offset = SHARD / 2;
    world_assert_fault(&w, NULL, "overwrites what it has yet to add");
    world_cleanup(&w);
}

/* ---- around a ring of nodes, with the fused boundary ---- */

/* Rank i of the ring sends chunk i - 1 as it is; what comes is added to the
 * own chunk and sent on; chunk i is complete in the end, and goes on around
 * as it is. Chunks land in scratch memory until they are complete. */
static void ring_add_put(hce_plan_t *plan, uint32_t lane, int step, int rank)
{
    int next = (rank + 1) % RANKS, prev = (rank + RANKS - 1) % RANKS;
    int chunk = (rank + 2 * RANKS - 1 - step) % RANKS;
    bool whole = step >= RANKS - 1; /* complete from here on */

    hce_plan_add_op(plan, HCE_OP_PUT, lane, SHARD);
    if (whole) {
        hce_plan_add_src(plan, rank, HCE_BUF_RECV, (uint64_t)chunk * SHARD);
        hce_plan_add_dst(plan, next, HCE_BUF_RECV, (uint64_t)chunk * SHARD);
    } else {
        hce_plan_add_src(plan, rank, step == 0 ? HCE_BUF_SEND : HCE_BUF_RECV,
                         (uint64_t)chunk * SHARD);
        hce_plan_add_dst(plan, next, HCE_BUF_SCRATCH,
                         (uint64_t)step * SHARD);
    }
    if (step == 0) {
        hce_plan_add_wait(plan, next, HCE_SLOT_READY, 1);
    } else if (step < RANKS) {
        hce_plan_add_wait(plan, rank, HCE_SLOT_LOCAL, step); /* added up */
    } else {
        hce_plan_add_wait(plan, prev, HCE_SLOT_FLOW, step);
    }
    hce_plan_add_post(plan, next, HCE_SLOT_FLOW, step + 1);
}

/* What came in a step, added to my own of that chunk. */
static void ring_add_sum(hce_plan_t *plan, uint32_t lane, int step, int rank)
{
    int prev = (rank + RANKS - 1) % RANKS;
    int chunk = (rank + 2 * RANKS - 2 - step) % RANKS;

    hce_plan_add_op(plan, HCE_OP_REDUCE, lane, SHARD);
    if (step == RANKS - 2) {
        hce_plan_set_last(plan);
    }
    hce_plan_add_src(plan, rank, HCE_BUF_SCRATCH, (uint64_t)step * SHARD);
    hce_plan_add_src(plan, rank, HCE_BUF_SEND, (uint64_t)chunk * SHARD);
    hce_plan_add_dst(plan, rank, HCE_BUF_RECV, (uint64_t)chunk * SHARD);
    hce_plan_add_wait(plan, prev, HCE_SLOT_FLOW, step + 1);
    hce_plan_add_post(plan, rank, HCE_SLOT_LOCAL, step + 1);
}

static void make_ring(world_t *w, bool in_place)
{
    int rank, step;

    begin(w, "3", HCE_COLL_ALLREDUCE, in_place);
    for (rank = 0; rank < RANKS; rank++) {
        hce_plan_t *plan = world_begin(w, rank);
        int prev = (rank + RANKS - 1) % RANKS;
        uint32_t lane = hce_plan_add_lane(plan, HCE_LANE_ENTRY, -1, 0, 0);

        plan->scratch_len = RANKS * SHARD;
        hce_plan_add_op(plan, HCE_OP_SIGNAL, lane, 0);
        hce_plan_add_post(plan, prev, HCE_SLOT_READY, 1);
        lane = hce_plan_add_lane(plan, HCE_LANE_PROXY, (rank + 1) % RANKS, 0,
                                 0);
        for (step = 0; step < 2 * RANKS - 2; step++) {
            ring_add_put(plan, lane, step, rank);
        }
        lane = hce_plan_add_lane(plan, HCE_LANE_REDUCE, -1, 0, 0);
        for (step = 0; step < RANKS - 1; step++) {
            ring_add_sum(plan, lane, step, rank);
        }
        hce_plan_add_done_wait(plan, prev, HCE_SLOT_FLOW, 2 * RANKS - 2);
    }
    finish(w);
}

static void ring(void **state)
{
    int in_place;

    for (in_place = 0; in_place < 2; in_place++) {
        world_t w;

        make_ring(&w, in_place);
        world_assert_right(&w, NULL);
        world_cleanup(&w);
    }
}

static void ring_spoiled(void **state)
{
    hce_plan_op_t *op;
    world_t w;

    /* A partial sum is added to the wrong chunk of mine. */
    make_ring(&w, false);
    op = reduce_op(&w, 1);
    w.plans[1]->refs[op->ref + 1].offset =
        (w.plans[1]->refs[op->ref + 1].offset + SHARD) % LEN;
    world_assert_fault(&w, NULL, "adds bytes that do not belong together");
    world_cleanup(&w);
    /* It is added before it has come. */
    make_ring(&w, false);
    op = reduce_op(&w, 1);
    w.plans[1]->waits[op->wait].value = 0;
    world_assert_fault(&w, NULL, "adds bytes that do not belong together");
    world_cleanup(&w);
    /* It is sent on before it was added. */
    make_ring(&w, true);
    op = &w.plans[2]->ops[2];
    assert_int_equal(op->kind, HCE_OP_PUT);
    w.plans[2]->waits[op->wait].value = 0;
    world_assert_fault(&w, NULL, "does not wait for");
    world_cleanup(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_pass),        cmocka_unit_test(one_pass_spoiled),
        cmocka_unit_test(other_reduction), cmocka_unit_test(orders),
        cmocka_unit_test(scatter),         cmocka_unit_test(scatter_in_place),
        cmocka_unit_test(ring),            cmocka_unit_test(ring_spoiled),
    };

    return cmocka_run_group_tests_name("plan_sums", tests, NULL, NULL);
}
