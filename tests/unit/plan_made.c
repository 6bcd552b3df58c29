/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Plans made by hand for what the builders do not do: pulling, slots with
 * credits, reductions, order by way of a third rank, deadlocks.
 */
#include "config.h"

#include "plan_world.h"

#include "plan/verify_priv.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define LEN 100

static void signal_to(hce_plan_t *plan, uint32_t lane, int owner, int slot)
{
    hce_plan_add_op(plan, HCE_OP_SIGNAL, lane, 0);
    hce_plan_add_post(plan, owner, slot, 1);
}

static void copy(hce_plan_t *plan, uint32_t lane, hce_plan_ref_t src,
                 hce_plan_ref_t dst)
{
    hce_plan_add_op(plan, HCE_OP_COPY, lane, LEN);
    hce_plan_add_src(plan, src.rank, src.buf, src.offset);
    hce_plan_add_dst(plan, dst.rank, dst.buf, dst.offset);
}

static hce_plan_ref_t send_of(int rank)
{
    return (hce_plan_ref_t){.rank = rank, .buf = HCE_BUF_SEND};
}

static hce_plan_ref_t recv_of(int rank, int slice)
{
    return (hce_plan_ref_t){
        .rank = rank, .buf = HCE_BUF_RECV, .offset = slice * LEN};
}

static void copy_own(hce_plan_t *plan, int rank)
{
    copy(plan, hce_plan_add_lane(plan, HCE_LANE_COPY, rank, 0, 0),
         send_of(rank), recv_of(rank, rank));
}

static void finish(world_t *w)
{
    for (int rank = 0; rank < w->layout->nranks; rank++) {
        assert_int_equal(hce_plan_finish(w->plans[rank]), HCE_OK);
    }
}

/* Two ranks of a node read each other's input; says: the reader tells when
 * it is done. extra adds further ops. */
static void make_pull(world_t *w, bool says,
                      void (*extra)(hce_plan_t *plan, int rank))
{
    world_init(w, "1", 2, LEN);
    for (int rank = 0; rank < 2; rank++) {
        hce_plan_t *plan = world_begin(w, rank);
        int other = 1 - rank;
        uint32_t lane = hce_plan_add_lane(plan, HCE_LANE_ENTRY, -1, 0, 0);

        signal_to(plan, lane, other, HCE_SLOT_READY);
        copy_own(plan, rank);
        lane = hce_plan_add_lane(plan, HCE_LANE_COPY, other, 0, 0);
        copy(plan, lane, send_of(other), recv_of(rank, other));
        hce_plan_add_wait(plan, other, HCE_SLOT_READY, 1);
        if (says || rank == 1) {
            hce_plan_add_post(plan, other, HCE_SLOT_LOCAL, 1);
        }
        extra(plan, rank);
        if (says || rank == 0) {
            hce_plan_add_done_wait(plan, other, HCE_SLOT_LOCAL, 1);
        }
    }
    finish(w);
}

static void no_extra(hce_plan_t *plan, int rank)
{
}

static void pull(void **state)
{
    world_t w;

    make_pull(&w, true, no_extra);
    world_assert_right(&w, NULL);
    world_cleanup(&w);
}

static void read_after_completion(void **state)
{
    world_t w;

    make_pull(&w, false, no_extra);
    world_assert_fault(
        &w, NULL,
        "reads send of rank 1, perhaps after the completion of rank 1");
    world_cleanup(&w);
}

static void read_before_entry(void **state)
{
    world_t w;

    make_pull(&w, true, no_extra);
    w.plans[1]->ops[2].num_wait = 0;
    world_assert_fault(
        &w, NULL, "reads send of rank 0, perhaps before the entry of rank 0");
    world_cleanup(&w);
}

/* Rank 0 passes its slice to rank 1 in chunks of LEN through slots in the
 * scratch memory of rank 1, which gives credit for what it has taken out. */
typedef struct slots {
    int chunks;
    int depth;
    int lag;        /* credit j + 1 - lag before chunk j */
    bool by_launch; /* the slot is chosen by the launch, not by the chunk */
    bool ready;     /* rank 1 tells rank 0 ready, which need not know */
} slots_t;

static void slots_add_ref(hce_plan_t *plan, const slots_t *s, int j,
                          bool is_src)
{
    uint64_t at = s->by_launch ? 0 : j % s->depth * LEN;

    if (is_src) {
        hce_plan_add_src(plan, 1, HCE_BUF_SCRATCH, at);
    } else {
        hce_plan_add_dst(plan, 1, HCE_BUF_SCRATCH, at);
    }
    if (s->by_launch) {
        hce_plan_set_slots(plan, s->depth, LEN);
    }
}

static void make_giver(world_t *w, const slots_t *s)
{
    hce_plan_t *plan = world_begin(w, 0);
    uint32_t lane, j, chunks = s->chunks;

    lane = hce_plan_add_lane(plan, HCE_LANE_COPY, 0, 0, 0);
    hce_plan_add_op(plan, HCE_OP_COPY, lane, LEN * chunks);
    hce_plan_add_src(plan, 0, HCE_BUF_SEND, 0);
    hce_plan_add_dst(plan, 0, HCE_BUF_RECV, 0);
    lane = hce_plan_add_lane(plan, HCE_LANE_COPY, 0, 0, 0);
    for (j = 0; j < chunks; j++) {
        hce_plan_add_op(plan, HCE_OP_COPY, lane, LEN);
        hce_plan_add_src(plan, 0, HCE_BUF_SEND, j * LEN);
        slots_add_ref(plan, s, j, false);
        hce_plan_add_wait(plan, 1, HCE_SLOT_LOCAL, (int)j + 1 - s->lag);
        hce_plan_add_post(plan, 1, HCE_SLOT_LOCAL, j + 1);
    }
    hce_plan_add_rise(plan, 1, HCE_SLOT_LOCAL, chunks);
    if (s->ready) {
        hce_plan_add_rise(plan, 1, HCE_SLOT_READY, 1);
    }
    hce_plan_add_done_wait(plan, 1, HCE_SLOT_LOCAL + 1, 1);
}

static void make_taker(world_t *w, const slots_t *s)
{
    hce_plan_t *plan = world_begin(w, 1);
    uint32_t lane, j, chunks = s->chunks;

    plan->scratch_len = s->depth * LEN;
    if (s->ready) {
        signal_to(plan, hce_plan_add_lane(plan, HCE_LANE_ENTRY, -1, 0, 0), 0,
                  HCE_SLOT_READY);
    }
    lane = hce_plan_add_lane(plan, HCE_LANE_COPY, 0, 0, 0);
    for (j = 0; j < chunks; j++) {
        hce_plan_add_op(plan, HCE_OP_COPY, lane, LEN);
        slots_add_ref(plan, s, j, true);
        hce_plan_add_dst(plan, 1, HCE_BUF_RECV, j * LEN);
        hce_plan_add_wait(plan, 0, HCE_SLOT_LOCAL, j + 1);
        hce_plan_add_post(plan, 0, HCE_SLOT_LOCAL, j + 1);
    }
    lane = hce_plan_add_lane(plan, HCE_LANE_COPY, 1, 0, 0);
    hce_plan_add_op(plan, HCE_OP_COPY, lane, LEN * chunks);
    hce_plan_add_src(plan, 1, HCE_BUF_SEND, 0);
    hce_plan_add_dst(plan, 1, HCE_BUF_RECV, LEN * chunks);
    hce_plan_add_dst(plan, 0, HCE_BUF_RECV, LEN * chunks);
    hce_plan_add_wait(plan, 0, HCE_SLOT_READY, 1);
    hce_plan_add_post(plan, 0, HCE_SLOT_LOCAL + 1, 1);
}

static void make_slots(world_t *w, slots_t s)
{
    hce_plan_t *plan;

    world_init(w, "1", 2, s.chunks * LEN);
    make_giver(w, &s);
    make_taker(w, &s);
    plan = w->plans[0];
    signal_to(plan, hce_plan_add_lane(plan, HCE_LANE_ENTRY, -1, 0, 0), 1,
              HCE_SLOT_READY);
    plan = w->plans[1];
    hce_plan_add_done_wait(plan, 0, HCE_SLOT_LOCAL, s.chunks);
    finish(w);
}

/* Rank 0 writes no buffer of the call of rank 1, so it need not wait for its
 * ready, and might have to keep any number of them. */
static void ready_without_answer(void **state)
{
    world_t w;

    make_slots(&w,
               (slots_t){.chunks = 4, .depth = 2, .lag = 2, .ready = true});
    world_assert_fault(&w, NULL,
                       "rank 1 may complete before rank 0 has seen "
                       "its ready");
    world_cleanup(&w);
}

static void slots_with_credits(void **state)
{
    static const slots_t right[] = {
        {.chunks = 4, .depth = 2, .lag = 2},
        {.chunks = 4, .depth = 4, .lag = 4},
        {.chunks = 4, .depth = 4, .lag = 1},
        {.chunks = 3, .depth = 1, .lag = 1},
        {.chunks = 1, .depth = 2, .lag = 2, .by_launch = true},
        {.chunks = 1, .depth = 2, .lag = 1, .by_launch = true},
        {.chunks = 1, .depth = 1, .lag = 1, .by_launch = true},
        /* No credit needed: rank 0 completes after rank 1 has entered, and
         * that is after rank 1 has completed the launch before. */
        {.chunks = 1, .depth = 2, .lag = 3, .by_launch = true},
    };
    size_t i;

    for (i = 0; i < sizeof(right) / sizeof(right[0]); i++) {
        world_t w;

        make_slots(&w, right[i]);
        world_assert_right(&w, NULL);
        world_cleanup(&w);
    }
}

static void slot_too_early(void **state)
{
    static const slots_t wrong[] = {
        {.chunks = 4, .depth = 2, .lag = 3},
        /* Right within a launch, but the next one begins with the slot that
         * was used last. */
        {.chunks = 3, .depth = 2, .lag = 2},
        {.chunks = 4, .depth = 1, .lag = 2},
        {.chunks = 1, .depth = 1, .lag = 2, .by_launch = true},
    };
    size_t i;

    for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        world_t w;

        make_slots(&w, wrong[i]);
        world_assert_fault(&w, NULL, "overwrites at byte");
        assert_non_null(strstr(w.report.text, "of scratch of rank 1"));
        world_cleanup(&w);
    }
}

/* Credits that the taker never gives. */
static void no_credit(void **state)
{
    world_t w;

    make_slots(&w, (slots_t){.chunks = 2, .depth = 1, .lag = 0});
    world_assert_fault(&w, NULL, "deadlock: rank 0 op 1");
    assert_non_null(strstr(w.report.text, "; rank 1 op 0"));
    world_cleanup(&w);
}

/* Each of two ranks on two nodes sends once it has received. */
static void cycle(void **state)
{
    world_t w;

    world_init(&w, "2", 2, LEN);
    for (int rank = 0; rank < 2; rank++) {
        hce_plan_t *plan = world_begin(&w, rank);
        int other = 1 - rank;

        signal_to(plan, hce_plan_add_lane(plan, HCE_LANE_ENTRY, -1, 0, 0),
                  other, HCE_SLOT_READY);
        copy_own(plan, rank);
        hce_plan_add_op(plan, HCE_OP_PUT,
                        hce_plan_add_lane(plan, HCE_LANE_PROXY, other, 0, 0),
                        LEN);
        hce_plan_add_src(plan, rank, HCE_BUF_SEND, 0);
        hce_plan_add_dst(plan, other, HCE_BUF_RECV, rank * LEN);
        hce_plan_add_wait(plan, other, HCE_SLOT_READY, 1);
        hce_plan_add_wait(plan, other, HCE_SLOT_FLOW, 1);
        hce_plan_add_post(plan, other, HCE_SLOT_FLOW, 1);
        hce_plan_add_done_wait(plan, other, HCE_SLOT_FLOW, 1);
    }
    finish(&w);
    world_assert_fault(&w, NULL,
                       "deadlock: rank 0 op 2 (put of 100 bytes, lane 2: "
                       "proxy, peer 1, context 0) waits in launch 0 for "
                       "counter 'flow cw 0' of rank 0 by rank 1 to reach 1 "
                       "(is 0); rank 1 op 2");
    world_cleanup(&w);
}

/* Two copy lanes that could run side by side, but not in plan order. */
static void copy_queue(void **state)
{
    hce_plan_t *plan;
    uint32_t first, second;
    world_t w;

    world_init(&w, "1", 1, 2 * LEN);
    plan = world_begin(&w, 0);
    first = hce_plan_add_lane(plan, HCE_LANE_COPY, 0, 0, 0);
    second = hce_plan_add_lane(plan, HCE_LANE_COPY, 0, 0, 0);
    copy(plan, first, send_of(0), recv_of(0, 0));
    hce_plan_add_wait(plan, 0, HCE_SLOT_LOCAL, 1);
    hce_plan_add_op(plan, HCE_OP_COPY, second, LEN);
    hce_plan_add_src(plan, 0, HCE_BUF_SEND, LEN);
    hce_plan_add_dst(plan, 0, HCE_BUF_RECV, LEN);
    hce_plan_add_post(plan, 0, HCE_SLOT_LOCAL, 1);
    finish(&w);
    world_assert_fault(&w, NULL, "deadlock: rank 0 op 0");
    world_cleanup(&w);
}

/* Three ranks of a node. Rank 0 hears from rank 1 that rank 2 has entered,
 * and rank 2 from rank 1 that rank 0 has written. */
typedef struct relay {
    bool early;   /* rank 0 tells rank 1 before its copy, not with it */
    bool guessed; /* rank 1 does not wait for the entry of rank 2 */
} relay_t;

/* Own slice to another rank, as usual. */
static void add_push(hce_plan_t *plan, int rank, int other)
{
    copy(plan, hce_plan_add_lane(plan, HCE_LANE_COPY, other, 0, 0),
         send_of(rank), recv_of(other, rank));
    hce_plan_add_wait(plan, other, HCE_SLOT_READY, 1);
    hce_plan_add_post(plan, other, HCE_SLOT_LOCAL, 1);
}

static void add_relayed_push(hce_plan_t *plan, const relay_t *relay)
{
    uint32_t lane = hce_plan_add_lane(plan, HCE_LANE_COPY, 2, 0, 0);

    if (relay->early) {
        signal_to(plan, lane, 1, HCE_SLOT_LOCAL + 1);
    }
    copy(plan, lane, send_of(0), recv_of(2, 0));
    hce_plan_add_wait(plan, 1, HCE_SLOT_LOCAL + 1, 1);
    if (!relay->early) {
        hce_plan_add_post(plan, 1, HCE_SLOT_LOCAL + 1, 1);
    }
}

static void add_relay(hce_plan_t *plan, const relay_t *relay)
{
    signal_to(plan, hce_plan_add_lane(plan, HCE_LANE_ENTRY, -1, 0, 0), 0,
              HCE_SLOT_LOCAL + 1);
    if (!relay->guessed) {
        hce_plan_add_wait(plan, 2, HCE_SLOT_READY, 1);
    }
    signal_to(plan, hce_plan_add_lane(plan, HCE_LANE_ENTRY, -1, 0, 0), 2,
              HCE_SLOT_LOCAL + 1);
    hce_plan_add_wait(plan, 0, HCE_SLOT_LOCAL + 1, 1);
}

static void make_relay(world_t *w, relay_t relay)
{
    world_init(w, "1", 3, LEN);
    for (int rank = 0; rank < 3; rank++) {
        hce_plan_t *plan = world_begin(w, rank);
        uint32_t entry = hce_plan_add_lane(plan, HCE_LANE_ENTRY, -1, 0, 0);

        copy_own(plan, rank);
        for (int other = 0; other < 3; other++) {
            if (other != rank && !(rank == 2 && other == 0)) {
                signal_to(plan, entry, other, HCE_SLOT_READY);
            }
            if (other != rank && !(rank == 0 && other == 2)) {
                add_push(plan, rank, other);
            }
        }
        if (rank == 0) {
            add_relayed_push(plan, &relay);
        } else if (rank == 1) {
            add_relay(plan, &relay);
        }
        for (int other = 0; other < 3; other++) {
            if (other != rank) {
                hce_plan_add_done_wait(
                    plan, rank == 2 && other == 0 ? 1 : other,
                    rank == 2 && other == 0 ? HCE_SLOT_LOCAL + 1
                                            : HCE_SLOT_LOCAL,
                    1);
            }
        }
    }
    finish(w);
}

static void order_by_a_third(void **state)
{
    world_t w;

    make_relay(&w, (relay_t){.early = false});
    world_assert_right(&w, NULL);
    world_cleanup(&w);
    make_relay(&w, (relay_t){.early = true});
    world_assert_fault(&w, NULL,
                       "writes recv of rank 2, perhaps after the "
                       "completion of rank 2");
    world_cleanup(&w);
    make_relay(&w, (relay_t){.guessed = true});
    world_assert_fault(&w, NULL,
                       "writes recv of rank 2, perhaps before the "
                       "entry of rank 2");
    world_cleanup(&w);
}

/* Rank 0 adds two inputs, into its scratch or its output. */
static hce_plan_ref_t reduce_refs[4];

static void add_reduce(hce_plan_t *plan, int rank)
{
    if (rank == 1) {
        hce_plan_add_done_wait(plan, 0, HCE_SLOT_LOCAL + 1, 1);
        return;
    }
    plan->scratch_len = LEN;
    hce_plan_add_op(plan, HCE_OP_REDUCE,
                    hce_plan_add_lane(plan, HCE_LANE_REDUCE, 0, 0, 0),
                    LEN / 2);
    for (int i = 0; i < 4; i++) {
        const hce_plan_ref_t *ref = &reduce_refs[i];

        if (i < 3 && ref->depth > 0) {
            hce_plan_add_src(plan, ref->rank, ref->buf, ref->offset);
        } else if (i == 3) {
            hce_plan_add_dst(plan, ref->rank, ref->buf, ref->offset);
        }
    }
    hce_plan_add_wait(plan, 1, HCE_SLOT_READY, 1);
    hce_plan_add_post(plan, 1, HCE_SLOT_LOCAL + 1, 1);
}

static void make_reduce(world_t *w, hce_plan_ref_t a, hce_plan_ref_t b)
{
    reduce_refs[0] = a;
    reduce_refs[0].depth = 1;
    reduce_refs[1] = b;
    reduce_refs[1].depth = 1;
    reduce_refs[2] = (hce_plan_ref_t){.depth = 0};
    reduce_refs[3] = (hce_plan_ref_t){.rank = 0, .buf = HCE_BUF_SCRATCH};
    make_pull(w, true, add_reduce);
}

static hce_plan_ref_t send_at(int rank, uint64_t offset)
{
    hce_plan_ref_t ref = send_of(rank);

    ref.offset = offset;
    return ref;
}

static void reduction(void **state)
{
    world_t w;

    make_reduce(&w, send_at(0, 50), send_at(1, 50));
    world_assert_right(&w, NULL);
    world_cleanup(&w);
    make_reduce(&w, send_at(0, 50), send_at(1, 49));
    world_assert_fault(&w, NULL, "adds bytes that do not belong together");
    world_cleanup(&w);
    make_reduce(&w, send_at(1, 50), send_at(1, 50));
    world_assert_fault(&w, NULL, "adds the contribution of rank 1 twice");
    world_cleanup(&w);
    /* The sum in place of a slice of the output. */
    make_reduce(&w, send_at(0, 0), send_at(1, 0));
    w.plans[0]->ops[w.plans[0]->num_ops - 1].len = LEN;
    w.plans[0]->refs[w.plans[0]->num_refs - 1].buf = HCE_BUF_RECV;
    w.plans[0]->ops[1].len = 0;
    world_assert_fault(&w, NULL,
                       "bytes 0 to 100 of the output of rank 0 hold "
                       "byte 0 and on of set 2");
    world_cleanup(&w);
}

/* Sets of ranks are one number each, however they came about. */
static void sets(void **state)
{
    hce_verify_sets_t *s = hce_verify_sets_create(256);
    uint32_t forward = 0, backward = 255, number;
    int i, twice = -1;

    assert_non_null(s);
    for (i = 1; i < 256; i++) {
        assert_int_equal(hce_verify_sets_join(s, forward, i, &forward, &twice),
                         HCE_OK);
        assert_true(forward >= 256);
        assert_int_equal(
            hce_verify_sets_join(s, 255 - i, backward, &backward, &twice),
            HCE_OK);
    }
    assert_int_equal(forward, backward);
    assert_int_equal(hce_verify_sets_join(s, 70, forward, &number, &twice),
                     HCE_ERR_INVALID_ARG);
    assert_int_equal(twice, 70);
    hce_verify_sets_destroy(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pull),
        cmocka_unit_test(read_after_completion),
        cmocka_unit_test(read_before_entry),
        cmocka_unit_test(ready_without_answer),
        cmocka_unit_test(slots_with_credits),
        cmocka_unit_test(slot_too_early),
        cmocka_unit_test(no_credit),
        cmocka_unit_test(cycle),
        cmocka_unit_test(copy_queue),
        cmocka_unit_test(order_by_a_third),
        cmocka_unit_test(reduction),
        cmocka_unit_test(sets),
    };

    return cmocka_run_group_tests_name("plan_made", tests, NULL, NULL);
}
