/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Builder helpers, chunk geometry and the places of counters.
 */
#include "config.h"

#include "plan_world.h"

#include "util/math.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define SEED 20241105u

/* Ops of two lanes, added in turn, with all that an op can have. */
static void add_in_turn(hce_plan_t *plan, uint32_t num)
{
    uint32_t lanes[2], i;

    lanes[0] = hce_plan_add_lane(plan, HCE_LANE_PROXY, 1, 3, 1);
    lanes[1] = hce_plan_add_lane(plan, HCE_LANE_COPY, 0, 0, 0);
    for (i = 0; i < num; i++) {
        hce_plan_add_op(plan, i % 2 == 0 ? HCE_OP_PUT : HCE_OP_COPY,
                        lanes[i % 2], i);
        hce_plan_add_src(plan, 0, HCE_BUF_SEND, i);
        hce_plan_add_dst(plan, i % 2, HCE_BUF_RECV, 10 * i);
        hce_plan_add_wait(plan, 1, HCE_SLOT_FLOW + i % 3, i / 3 + 1);
        hce_plan_add_post(plan, 1, HCE_SLOT_FLOW + i % 2, i / 2 + 1);
    }
    hce_plan_add_done_wait(plan, 1, HCE_SLOT_FLOW, 1000);
    hce_plan_add_done_wait(plan, 1, HCE_SLOT_LOCAL, -1);
}

static void finish_sorts_lanes(void **state)
{
    const uint32_t num = 1001;
    hce_plan_t *plan;
    world_t w;
    uint32_t i;

    world_init(&w, "1,1", 2, 0);
    plan = world_begin(&w, 0);
    add_in_turn(plan, num);
    assert_int_equal(hce_plan_finish(plan), HCE_OK);

    assert_int_equal(plan->num_ops, num);
    assert_int_equal(plan->num_lanes, 2);
    assert_int_equal(plan->lanes[0].kind, HCE_LANE_PROXY);
    assert_int_equal(plan->lanes[0].peer, 1);
    assert_int_equal(plan->lanes[0].context, 3);
    assert_int_equal(plan->lanes[0].direction, 1);
    assert_int_equal(plan->lanes[0].first, 0);
    assert_int_equal(plan->lanes[0].num_ops, 501);
    assert_int_equal(plan->lanes[1].first, 501);
    assert_int_equal(plan->lanes[1].num_ops, 500);
    for (i = 0; i < num; i++) {
        const hce_plan_op_t *op = &plan->ops[i];

        assert_int_equal(plan->lane_ops[i % 2 * 501 + i / 2], i);
        assert_int_equal(op->len, i);
        assert_int_equal(op->num_src + op->num_dst, 2);
        assert_int_equal(plan->refs[op->ref].offset, i);
        assert_int_equal(plan->refs[op->ref].depth, 1);
        assert_int_equal(plan->refs[op->ref + 1].offset, 10 * i);
        assert_int_equal(plan->waits[op->wait].value, i / 3 + 1);
        assert_int_equal(plan->posts[op->post].value, i / 2 + 1);
    }
    assert_int_equal(plan->num_done_wait, 2);
    assert_int_equal(plan->waits[plan->done_wait].value, 1000);
    world_cleanup(&w);
}

static void assert_rise(const hce_plan_rise_t *rise, int slot, int64_t value)
{
    assert_int_equal(rise->rank, 1);
    assert_int_equal(rise->slot, slot);
    assert_int_equal(rise->rise, value);
}

static void finish_computes_rises(void **state)
{
    hce_plan_t *plan;
    world_t w;

    world_init(&w, "1,1", 2, 0);
    plan = world_begin(&w, 0);
    hce_plan_add_rise(plan, 1, HCE_SLOT_FLOW + 2, 77);
    hce_plan_add_rise(plan, 1, HCE_SLOT_READY, 1);
    add_in_turn(plan, 11);
    assert_int_equal(hce_plan_finish(plan), HCE_OK);

    /* The local counter is only waited for at a value of an earlier launch,
     * so this launch says nothing about its rise. */
    assert_int_equal(plan->num_in, 4);
    assert_rise(&plan->in[0], HCE_SLOT_READY, 1);
    assert_rise(&plan->in[1], HCE_SLOT_FLOW, 1000);
    assert_rise(&plan->in[2], HCE_SLOT_FLOW + 1, 4);
    assert_rise(&plan->in[3], HCE_SLOT_FLOW + 2, 77);
    assert_int_equal(plan->num_out, 2);
    assert_rise(&plan->out[0], HCE_SLOT_FLOW, 6);
    assert_rise(&plan->out[1], HCE_SLOT_FLOW + 1, 5);
    world_cleanup(&w);
}

static void empty_plan(void **state)
{
    hce_plan_totals_t totals;
    hce_plan_t *plan;
    world_t w;

    world_init(&w, "1", 1, 0);
    plan = world_begin(&w, 0);
    assert_int_equal(hce_plan_finish(plan), HCE_OK);
    hce_plan_count(plan, &totals);
    assert_int_equal(totals.puts + totals.copies, 0);
    assert_int_equal(plan->num_in + plan->num_out, 0);
    world_cleanup(&w);
    hce_plan_destroy(NULL);
}

/* More than an op can hold is refused when the plan is finished. */
static void too_many_posts(void **state)
{
    hce_plan_t *plan;
    uint32_t i;
    world_t w;

    world_init(&w, "1,1", 2, 0);
    plan = world_begin(&w, 0);
    hce_plan_add_op(plan, HCE_OP_SIGNAL,
                    hce_plan_add_lane(plan, HCE_LANE_ENTRY, -1, 0, 0), 0);
    for (i = 0; i < 70000; i++) {
        hce_plan_add_post(plan, 1, HCE_SLOT_FLOW, i + 1);
    }
    assert_int_equal(hce_plan_finish(plan), HCE_ERR_UNSUPPORTED);
    w.plans[0] = NULL;
    world_cleanup(&w);
}

static void totals(void **state)
{
    hce_plan_totals_t totals;
    hce_plan_t *plan;
    world_t w;

    world_init(&w, "3,1", 4, 100);
    plan = world_begin(&w, 0);
    hce_plan_add_lane(plan, HCE_LANE_COPY, 0, 0, 0);
    hce_plan_add_lane(plan, HCE_LANE_PROXY, 3, 0, 0);
    hce_plan_add_op(plan, HCE_OP_COPY, 0, 30);
    hce_plan_add_src(plan, 0, HCE_BUF_SEND, 0);
    hce_plan_add_dst(plan, 1, HCE_BUF_RECV, 0);
    hce_plan_add_dst(plan, 2, HCE_BUF_RECV, 0);
    hce_plan_add_op(plan, HCE_OP_PUT, 1, 7);
    hce_plan_add_op(plan, HCE_OP_PUT, 1, 5);
    hce_plan_add_op(plan, HCE_OP_PUT, 1, 0); /* only a signal */
    assert_int_equal(hce_plan_finish(plan), HCE_OK);
    hce_plan_count(plan, &totals);
    assert_int_equal(totals.puts, 2);
    assert_int_equal(totals.put_bytes, 12);
    assert_int_equal(totals.copies, 2);
    assert_int_equal(totals.copy_bytes, 60);
    world_cleanup(&w);
}

static void check_chunks(uint64_t len, uint64_t width, int contexts)
{
    hce_plan_params_t params = {
        .len = len, .width = width, .contexts = contexts};
    hce_plan_chunks_t chunks = hce_plan_chunks(&params);
    uint64_t sum = 0;
    uint32_t j, in_contexts = 0;

    assert_true(chunks.count >= 1 && chunks.count <= HCE_PLAN_MAX_CHUNKS);
    assert_int_equal(chunks.count, hce_plan_num_chunks(len, width));
    assert_true(chunks.width >= width);
    if (chunks.width > width) {
        assert_true(hce_div_up(len, width) > HCE_PLAN_MAX_CHUNKS);
        assert_int_equal(chunks.width % 64, 0);
        assert_true(chunks.width < width * 2 + 64 + len / 256);
    }
    for (j = 0; j < chunks.count; j++) {
        uint64_t part = hce_plan_chunk_len(&chunks, j);

        assert_true(part <= chunks.width && (part > 0 || len == 0));
        assert_int_equal(sum, j * chunks.width);
        sum += part;
    }
    assert_true(sum == len);
    for (j = 0; j < HCE_PLAN_MAX_CONTEXTS; j++) {
        if (j < (uint32_t)contexts) {
            in_contexts += hce_plan_context_chunks(&chunks, j);
        }
    }
    assert_int_equal(in_contexts, chunks.count);
}

static void chunk_geometry(void **state)
{
    uint64_t seed = SEED;
    int i;

    check_chunks(0, 1, 1);
    check_chunks(0, UINT64_MAX, 16);
    check_chunks(1, 1, 16);
    check_chunks(256, 1, 3);
    check_chunks(257, 1, 3);
    check_chunks(UINT64_C(1) << 56, 1, 16);
    check_chunks(UINT64_C(1) << 56, UINT64_MAX, 16);
    for (i = 0; i < 20000; i++) {
        uint64_t len = hce_rand_next(&seed) >> (8 + hce_rand_next(&seed) % 56);
        uint64_t width = hce_rand_next(&seed) >> (hce_rand_next(&seed) % 64);

        check_chunks(len, hce_max(width, 1u),
                     1 + hce_rand_next(&seed) % HCE_PLAN_MAX_CONTEXTS);
    }
}

/* Every counter of an owner has a place of its own. */
static void check_counters(const hce_layout_t *layout, int owner)
{
    uint32_t num = hce_plan_num_counters(layout), index, used = 0;
    bool *taken = calloc(num, sizeof(*taken));
    int writer, slot, slots;

    assert_non_null(taken);
    for (writer = 0; writer < layout->nranks; writer++) {
        slots = hce_layout_same_node(layout, owner, writer)
                    ? hce_plan_local_slots(layout)
                    : HCE_SLOT_NET;
        for (slot = 0; slot < slots; slot++) {
            index = hce_plan_counter_index(layout, writer, slot);
            assert_true(index < num);
            assert_false(taken[index]);
            taken[index] = true;
            used++;
            /* Those that a network may write come first, by writer. */
            if (slot < HCE_SLOT_NET) {
                assert_int_equal(index, writer * HCE_SLOT_NET + slot);
            }
        }
    }
    if (layout->node_size[layout->node[owner]] == layout->max_node_size) {
        assert_int_equal(used, num);
    }
    free(taken);
}

static void counters_are_bijective(void **state)
{
    static const char *const nodes[] = {"1", "6", "3,2,1", "1,4,1"};
    size_t i;
    int rank;

    for (i = 0; i < 4; i++) {
        world_t w;

        world_init(&w, nodes[i], 6, 0);
        for (rank = 0; rank < 6; rank++) {
            check_counters(w.layout, rank);
        }
        world_cleanup(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finish_sorts_lanes),
        cmocka_unit_test(finish_computes_rises),
        cmocka_unit_test(empty_plan),
        cmocka_unit_test(too_many_posts),
        cmocka_unit_test(totals),
        cmocka_unit_test(chunk_geometry),
        cmocka_unit_test(counters_are_bijective),
    };

    printf("seed %u\n", SEED);
    return cmocka_run_group_tests_name("plan_build", tests, NULL, NULL);
}
