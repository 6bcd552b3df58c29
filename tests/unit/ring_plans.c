/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Plans of both rings, beyond what the verifier proves: the published
 * geometry of chunks, who sends how much to whom, that chunks go on as they
 * arrive; and that planted faults are found.
 */
#include "config.h"

#include "plan_world.h"

#include "core/paths.h"
#include "ring/ring.h"
#include "util/math.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const hce_plan_builder_t *const rings[] = {&hce_ring_allgather,
                                                  &hce_ring_short_allgather};

/* What a rank's plan puts, by direction. */
typedef struct sent {
    uint64_t puts[2];
    uint64_t bytes[2];
    uint64_t widest;
} sent_t;

static sent_t count_sent(const hce_plan_t *plan)
{
    sent_t sent = {{0, 0}, {0, 0}, 0};
    uint32_t i;

    for (i = 0; i < plan->num_ops; i++) {
        const hce_plan_op_t *op = &plan->ops[i];
        int dir = plan->lanes[op->lane].direction;

        if (op->kind == HCE_OP_PUT) {
            sent.puts[dir]++;
            sent.bytes[dir] += op->len;
            sent.widest = hce_max(sent.widest, op->len);
        }
    }
    return sent;
}

/* One row of the table: two nodes, so that each half makes one hop. */
static void assert_geometry(uint64_t len, uint64_t width, uint64_t cw,
                            uint64_t ccw, uint64_t chunks)
{
    hce_plan_t *plan;
    sent_t sent;
    world_t w;

    world_init(&w, "2", 2, len);
    w.params.contexts = 4;
    w.params.width = width;
    assert_int_equal(hce_ring_allgather.build(&w.params, &plan), HCE_OK);
    sent = count_sent(plan);
    assert_int_equal(sent.bytes[0], cw);
    assert_int_equal(sent.bytes[1], ccw);
    assert_int_equal(sent.puts[0], chunks);
    assert_int_equal(sent.puts[1], chunks);
    assert_int_equal(sent.widest, width);
    hce_plan_destroy(plan);
    world_cleanup(&w);
}

static void published_geometry(void **state)
{
    const char *srcdir = getenv("srcdir");
    char name[4096], line[256];
    uint64_t v[7];
    int rows = 0;
    FILE *in;

    snprintf(name, sizeof(name), "%s/tests/data/chunk_width.tsv",
             srcdir != NULL ? srcdir : "..");
    in = fopen(name, "re");
    assert_non_null(in);
    while (fgets(line, sizeof(line), in) != NULL) {
        if (sscanf(line,
                   "%" SCNu64 "%" SCNu64 "%" SCNu64 "%" SCNu64 "%" SCNu64
                   "%" SCNu64 "%" SCNu64,
                   &v[0], &v[1], &v[2], &v[3], &v[4], &v[5], &v[6]) != 7) {
            continue;
        }
        assert_int_equal(hce_paths_width_whole(v[0] * HCE_MIB, 4),
                         v[3] * HCE_MIB);
        assert_int_equal(hce_paths_width("ring", v[0] * HCE_MIB, 4),
                         v[4] * HCE_MIB);
        assert_geometry(v[0] * HCE_MIB, v[3] * HCE_MIB, v[1] * HCE_MIB,
                        v[2] * HCE_MIB, v[5]);
        assert_geometry(v[0] * HCE_MIB, v[4] * HCE_MIB, v[1] * HCE_MIB,
                        v[2] * HCE_MIB, v[6]);
        rows++;
    }
    fclose(in);
    assert_int_equal(rows, 5);
}

static void odd_halves(void **state)
{
    assert_int_equal(hce_ring_cw_len(0), 0);
    assert_int_equal(hce_ring_cw_len(1), 1);
    assert_int_equal(hce_ring_cw_len(2), 1);
    assert_int_equal(hce_ring_cw_len(7), 3);
}

/* No plan puts to another node than the two beside its own. */
static void assert_neighbours(const world_t *w, int rank)
{
    const hce_plan_t *plan = w->plans[rank];
    int nnodes = w->layout->nnodes, node = w->layout->node[rank];
    uint32_t i;

    for (i = 0; i < plan->num_lanes; i++) {
        const hce_plan_lane_t *lane = &plan->lanes[i];
        int step = lane->direction == 0 ? 1 : nnodes - 1;

        if (lane->kind == HCE_LANE_PROXY) {
            assert_int_equal(w->layout->node[lane->peer],
                             (node + step) % nnodes);
        }
    }
}

/* 250 bytes are halves of 125, two chunks each, or three chunks as a whole. */
static void hops(void **state)
{
    static const struct {
        const char *nodes;
        const hce_plan_builder_t *builder;
        int nranks, dirs;
        uint64_t puts[2], bytes[2];
    } cases[] = {
        {"5", &hce_ring_allgather, 5, 2, {4 * 2, 4 * 2}, {500, 500}},
        {"5", &hce_ring_allgather, 5, 1, {4 * 3, 0}, {1000, 0}},
        {"5", &hce_ring_short_allgather, 5, 2, {2 * 3, 2 * 3}, {500, 500}},
        /* A whole slice in its halves' chunks, then the opposite's half. */
        {"4", &hce_ring_short_allgather, 4, 2, {4 + 2, 4 + 2}, {375, 375}},
        {"2", &hce_ring_short_allgather, 2, 2, {2, 2}, {125, 125}},
        {"2", &hce_ring_allgather, 2, 2, {2, 2}, {125, 125}},
        {"3", &hce_ring_short_allgather, 6, 2, {3, 3}, {250, 250}},
    };
    size_t i;
    int rank;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        world_t w;

        world_init(&w, cases[i].nodes, cases[i].nranks, 250);
        w.params.dirs = cases[i].dirs;
        world_build(&w, cases[i].builder);
        world_assert_right(&w, cases[i].builder);
        for (rank = 0; rank < cases[i].nranks; rank++) {
            sent_t sent = count_sent(w.plans[rank]);

            assert_memory_equal(sent.puts, cases[i].puts, sizeof(sent.puts));
            assert_memory_equal(sent.bytes, cases[i].bytes,
                                sizeof(sent.bytes));
            assert_neighbours(&w, rank);
        }
        world_cleanup(&w);
    }
}

/* What is sent on waits for its own arrival, not for a copy or for more. */
static void forwards_as_it_arrives(void **state)
{
    size_t r;

    for (r = 0; r < 2; r++) {
        uint32_t i, forwarded = 0;
        world_t w;

        world_init(&w, "5", 10, 250);
        world_build(&w, rings[r]);
        for (i = 0; i < w.plans[2]->num_ops; i++) {
            const hce_plan_t *plan = w.plans[2];
            const hce_plan_op_t *op = &plan->ops[i];
            const hce_plan_wait_t *wait = &plan->waits[op->wait];

            if (op->kind != HCE_OP_PUT ||
                plan->refs[op->ref].buf == HCE_BUF_SEND) {
                continue;
            }
            assert_int_equal(op->num_wait, 1);
            assert_true(wait->slot >= HCE_SLOT_FLOW &&
                        wait->slot < HCE_SLOT_NET);
            forwarded++;
        }
        assert_true(forwarded > 0);
        world_cleanup(&w);
    }
}

static void chunk_j_on_context_j_mod_c(void **state)
{
    uint32_t i, seen = 0;
    world_t w;

    world_init(&w, "3", 3, 1000);
    w.params.contexts = 3;
    world_build(&w, &hce_ring_allgather);
    for (i = 0; i < w.plans[1]->num_ops; i++) {
        const hce_plan_t *plan = w.plans[1];
        const hce_plan_op_t *op = &plan->ops[i];
        const hce_plan_lane_t *lane = &plan->lanes[op->lane];
        uint64_t in_half = plan->refs[op->ref + op->num_src].offset % 1000 -
                           (lane->direction == 1 ? 500 : 0);

        if (op->kind == HCE_OP_PUT) {
            assert_int_equal(lane->context, in_half / 100 % 3);
            seen++;
        }
    }
    assert_int_equal(seen, 2 * 2 * 5);
    world_cleanup(&w);
}

/* With one carrier a node, all others only copy; bytes between nodes stay. */
static void few_carriers(void **state)
{
    int rank, carriers;

    for (carriers = 1; carriers <= 3; carriers++) {
        uint64_t bytes = 0;
        world_t w;

        world_init(&w, "4", 12, 250);
        w.params.carriers = carriers;
        world_build(&w, &hce_ring_allgather);
        world_assert_right(&w, &hce_ring_allgather);
        for (rank = 0; rank < 12; rank++) {
            sent_t sent = count_sent(w.plans[rank]);

            assert_int_equal(sent.puts[0] > 0, rank % 3 < carriers);
            bytes += sent.bytes[0] + sent.bytes[1];
        }
        assert_int_equal(bytes, 4 * 9 * 250);
        world_cleanup(&w);
    }
}

static hce_plan_op_t *find_forward(world_t *w, int rank)
{
    uint32_t index = 0;
    hce_plan_op_t *op = world_find_op(w, rank, HCE_OP_PUT, &index);

    while (w->plans[rank]->refs[op->ref].buf == HCE_BUF_SEND) {
        index++;
        op = world_find_op(w, rank, HCE_OP_PUT, &index);
    }
    return op;
}

static void planted_faults(void **state)
{
    size_t r;

    for (r = 0; r < 2; r++) {
        hce_plan_op_t *op;
        world_t w;

        world_init(&w, "4", 8, 250);
        /* Sent on one chunk too early. */
        world_build(&w, rings[r]);
        world_assert_right(&w, rings[r]);
        op = find_forward(&w, 3);
        w.plans[3]->waits[op->wait].value--;
        world_assert_fault(&w, rings[r], "rank 3");
        /* The other half's place. */
        world_build(&w, rings[r]);
        op = find_forward(&w, 3);
        w.plans[3]->refs[op->ref + 1].offset += 125;
        world_assert_fault(&w, rings[r], "");
        /* A byte less: the formula of traffic is not met, nor the output. */
        world_build(&w, rings[r]);
        find_forward(&w, 3)->len--;
        world_assert_fault(&w, rings[r], "");
        /* Nobody may write before the target is ready. */
        world_build(&w, rings[r]);
        {
            uint32_t index = 0;

            op = world_find_op(&w, 3, HCE_OP_PUT, &index);
            assert_int_equal(op->num_wait, 1);
            op->num_wait = 0;
        }
        world_assert_fault(&w, rings[r], "");
        world_cleanup(&w);
    }
}

static void refused(void **state)
{
    world_t w;

    world_init(&w, "4", 4, 100);
    w.params.dirs = 1;
    assert_null(hce_ring_allgather.refuse(&w.params));
    assert_non_null(
        strstr(hce_ring_short_allgather.refuse(&w.params), "both"));
    w.params.dirs = 2;
    assert_null(hce_ring_short_allgather.refuse(&w.params));
    w.params.coll = HCE_COLL_LAST;
    assert_non_null(strstr(hce_ring_allgather.refuse(&w.params),
                           "AllGather"));
    world_cleanup(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_geometry),
        cmocka_unit_test(odd_halves),
        cmocka_unit_test(hops),
        cmocka_unit_test(forwards_as_it_arrives),
        cmocka_unit_test(chunk_j_on_context_j_mod_c),
        cmocka_unit_test(few_carriers),
        cmocka_unit_test(planted_faults),
        cmocka_unit_test(refused),
    };

    return cmocka_run_group_tests_name("ring_plans", tests, NULL, NULL);
}
