/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The builders: what their plans look like, beyond what the verifier proves.
 */
#include "config.h"

#include "plan_world.h"

#include "direct/direct.h"
#include "flat/flat.h"
#include "util/math.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const hce_plan_builder_t *const builders[] = {&hce_direct_allgather,
                                                     &hce_flat_allgather};

static void assert_totals(const world_t *w, int rank, uint64_t puts,
                          uint64_t copies)
{
    hce_plan_totals_t totals;

    hce_plan_count(w->plans[rank], &totals);
    assert_int_equal(totals.puts, puts);
    assert_int_equal(totals.copies, copies);
}

/* 4 ranks on node 0, 2 on node 1; two chunks a slice. */
static void direct_totals(void **state)
{
    world_t w;

    world_init(&w, "4,2", 6, 150);
    world_build(&w, &hce_direct_allgather);
    /* Own slice to four outputs, one slice carried to three. */
    assert_totals(&w, 0, 2, 2 * (4 + 3));
    assert_totals(&w, 1, 2, 2 * (4 + 3));
    /* Nothing to carry: there is no third rank on node 1. */
    assert_totals(&w, 3, 2, 2 * 4);
    /* Own slice to two outputs, two slices carried to one. */
    assert_totals(&w, 4, 2, 2 * (2 + 2 * 1));
    w.params.in_place = true;
    world_build(&w, &hce_direct_allgather);
    assert_totals(&w, 0, 2, 2 * (3 + 3));
    assert_totals(&w, 4, 2, 2 * (1 + 2 * 1));
    world_cleanup(&w);
}

/* Each rank serves its next node first; an output is written by its node
 * peers and by those whose slices it carries, and only they are told. */
static void direct_order(void **state)
{
    const hce_plan_t *plan;
    uint32_t index = 0, i, entries = 0;
    world_t w;

    world_init(&w, "4", 8, 100);
    world_build(&w, &hce_direct_allgather);
    plan = w.plans[4];
    for (i = 0; i < plan->num_lanes; i++) {
        static const int carriers[] = {6, 0, 2};

        if (plan->lanes[i].kind == HCE_LANE_PROXY) {
            assert_int_equal(plan->lanes[i].peer, carriers[index++]);
        } else if (plan->lanes[i].kind == HCE_LANE_ENTRY) {
            entries = plan->lanes[i].num_ops;
        }
    }
    assert_int_equal(index, 3);
    assert_int_equal(entries, 4);
    for (i = 0; i < entries; i++) {
        static const int told[] = {5, 2, 0, 6};

        assert_int_equal(plan->posts[plan->ops[i].post].owner, told[i]);
        assert_int_equal(plan->posts[plan->ops[i].post].slot, HCE_SLOT_READY);
    }
    world_cleanup(&w);
}

/* Copies in plan order: own slice first, then as chunks arrive. */
static void direct_copy_order(void **state)
{
    static const uint64_t places[] = {0, 100, 1200, 800, 400, 1300, 900, 500};
    const hce_plan_t *plan;
    uint32_t i, at = 0;
    world_t w;

    world_init(&w, "4", 8, 200);
    w.params.in_place = true;
    world_build(&w, &hce_direct_allgather);
    plan = w.plans[0];
    for (i = 0; i < plan->num_ops; i++) {
        if (plan->ops[i].kind == HCE_OP_COPY) {
            assert_int_equal(plan->refs[plan->ops[i].ref + 1].offset,
                             places[at++]);
        }
    }
    assert_int_equal(at, 8);
    world_cleanup(&w);
}

/* No more contexts than chunks; chunk j goes through context j mod C. */
static void contexts(void **state)
{
    size_t b;

    for (b = 0; b < 2; b++) {
        uint32_t i, lanes = 0, seen = 0;
        world_t w;

        world_init(&w, "1,1", 2, 500);
        w.params.contexts = 3;
        world_build(&w, builders[b]);
        for (i = 0; i < w.plans[0]->num_lanes; i++) {
            const hce_plan_lane_t *lane = &w.plans[0]->lanes[i];

            if (lane->kind == HCE_LANE_PROXY) {
                assert_int_equal(lane->context, lanes++);
                assert_int_equal(lane->num_ops, lane->context < 2 ? 2 : 1);
            }
        }
        for (i = 0; i < w.plans[0]->num_ops; i++) {
            const hce_plan_op_t *op = &w.plans[0]->ops[i];

            if (op->kind == HCE_OP_PUT) {
                assert_int_equal(w.plans[0]->lanes[op->lane].context,
                                 w.plans[0]->refs[op->ref].offset / 100 % 3);
                seen++;
            }
        }
        assert_int_equal(lanes, 3);
        assert_int_equal(seen, 5);
        w.params.len = 150;
        world_build(&w, builders[b]);
        for (i = 0; i < w.plans[0]->num_lanes; i++) {
            assert_true(w.plans[0]->lanes[i].context < 2);
        }
        world_cleanup(&w);
    }
}

static void flat_totals(void **state)
{
    world_t w;

    world_init(&w, "2,1", 3, 150);
    world_build(&w, &hce_flat_allgather);
    assert_totals(&w, 0, 0, 2 * 2 + 2); /* next is on its node */
    assert_totals(&w, 1, 2 * 2, 2);
    assert_totals(&w, 2, 2 * 2, 2);
    world_cleanup(&w);
}

static void one_rank(void **state)
{
    size_t b;

    for (b = 0; b < 2; b++) {
        world_t w;

        world_init(&w, "1", 1, 150);
        world_build(&w, builders[b]);
        assert_totals(&w, 0, 0, 2);
        world_assert_right(&w, builders[b]);
        w.params.in_place = true;
        world_build(&w, builders[b]);
        assert_totals(&w, 0, 0, 0);
        world_assert_right(&w, builders[b]);
        world_cleanup(&w);
    }
}

/* No bytes: nothing is moved, but ranks meet as they do with bytes. */
static void no_bytes(void **state)
{
    size_t b;
    int rank;

    for (b = 0; b < 2; b++) {
        uint32_t ops[5];
        world_t w;

        world_init(&w, "2,1,2", 5, 100);
        world_build(&w, builders[b]);
        for (rank = 0; rank < 5; rank++) {
            ops[rank] = w.plans[rank]->num_ops;
        }
        w.params.len = 0;
        world_build(&w, builders[b]);
        for (rank = 0; rank < 5; rank++) {
            assert_int_equal(w.plans[rank]->num_ops, ops[rank]);
            assert_true(w.plans[rank]->num_done_wait > 0);
            assert_totals(&w, rank, 0, 0);
        }
        world_assert_right(&w, builders[b]);
        world_cleanup(&w);
    }
}

static void traffic(void **state)
{
    uint64_t bytes, puts;
    world_t w;

    world_init(&w, "3,1,2", 6, 250);
    hce_direct_allgather.traffic(&w.params, 0, 1, &bytes, &puts);
    assert_int_equal(bytes, 3 * 250);
    assert_int_equal(puts, 3 * 3);
    hce_direct_allgather.traffic(&w.params, 1, 1, &bytes, &puts);
    assert_int_equal(bytes + puts, 0);
    hce_flat_allgather.traffic(&w.params, 0, 1, &bytes, &puts);
    assert_int_equal(bytes, 5 * 250);
    assert_int_equal(puts, 5 * 3);
    hce_flat_allgather.traffic(&w.params, 0, 2, &bytes, &puts);
    assert_int_equal(bytes + puts, 0);
    hce_flat_allgather.traffic(&w.params, 2, 0, &bytes, &puts);
    assert_int_equal(bytes, 5 * 250);
    w.params.len = 0;
    hce_direct_allgather.traffic(&w.params, 0, 1, &bytes, &puts);
    assert_int_equal(bytes + puts, 0);
    hce_flat_allgather.traffic(&w.params, 0, 1, &bytes, &puts);
    assert_int_equal(bytes + puts, 0);
    world_cleanup(&w);
}

static void refused(void **state)
{
    static const int many = 70000;
    int *color = calloc(many, sizeof(*color));
    hce_layout_t *layout;
    size_t b;

    assert_non_null(color);
    assert_int_equal(hce_layout_create(many, color, &layout), HCE_OK);
    for (b = 0; b < 2; b++) {
        hce_plan_params_t params = {
            .layout = layout,
            .len = HCE_MIB,
            .width = 1,
            .contexts = 1,
            .coll = HCE_COLL_ALLGATHER,
        };

        assert_string_equal(builders[b]->path, b == 0 ? "direct" : "flat");
        assert_int_equal(builders[b]->coll, HCE_COLL_ALLGATHER);
        assert_non_null(strstr(builders[b]->refuse(&params), "too many"));
        params.width = HCE_MIB;
        assert_null(builders[b]->refuse(&params));
        params.coll = HCE_COLL_LAST;
        assert_non_null(strstr(builders[b]->refuse(&params), "AllGather"));
    }
    hce_layout_destroy(layout);
    free(color);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(direct_totals),     cmocka_unit_test(direct_order),
        cmocka_unit_test(direct_copy_order), cmocka_unit_test(contexts),
        cmocka_unit_test(flat_totals),       cmocka_unit_test(one_rank),
        cmocka_unit_test(no_bytes),          cmocka_unit_test(traffic),
        cmocka_unit_test(refused),
    };

    return cmocka_run_group_tests_name("plan_paths", tests, NULL, NULL);
}
