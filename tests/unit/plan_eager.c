/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The path eager: what its plans look like, and that slots that are used too
 * early or in the wrong place are found.
 */
#include "config.h"

#include "plan_world.h"

#include "direct/direct.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define EAGER   (&hce_eager_allgather)
#define LEN     100
#define SCRATCH 100000

static void begin(world_t *w, const char *nodes, int nranks)
{
    world_init(w, nodes, nranks, LEN);
    w->params.limits = (hce_plan_limits_t){
        .scratch = SCRATCH, .parcel = SCRATCH, .reads = true};
}

static uint64_t count_puts(const world_t *w, int rank)
{
    hce_plan_totals_t totals;

    hce_plan_count(w->plans[rank], &totals);
    return totals.puts;
}

/* One node: a copy to show, one for each slice; nobody else's memory is
 * written, and no slot but the peers' is read. */
static void one_node(void **state)
{
    const hce_plan_t *plan;
    uint32_t i;
    world_t w;

    begin(&w, "1", 3);
    world_build(&w, EAGER);
    plan = w.plans[1];
    assert_int_equal(plan->num_ops, 4);
    for (i = 0; i < plan->num_ops; i++) {
        const hce_plan_ref_t *refs = &plan->refs[plan->ops[i].ref];

        assert_int_equal(refs[1].rank, 1);
        assert_true(refs[0].rank == 1 || refs[0].buf == HCE_BUF_SCRATCH);
    }
    assert_int_equal(plan->num_touches, 2);
    assert_int_equal(plan->touches[0].bufs, 1 << HCE_BUF_SCRATCH);
    assert_int_equal(plan->net_bufs, 0);
    world_assert_right(&w, EAGER);
    w.params.in_place = true;
    world_build(&w, EAGER);
    assert_int_equal(w.plans[1]->num_ops, 3);
    world_assert_right(&w, EAGER);
    world_cleanup(&w);
}

/* Where peers cannot be read, a leader gathers and copies. */
static void one_node_pushed(void **state)
{
    world_t w;

    begin(&w, "1", 3);
    w.params.limits.reads = false;
    world_build(&w, EAGER);
    assert_int_equal(w.plans[0]->num_ops, 2);
    assert_int_equal(w.plans[1]->num_ops, 1);
    world_assert_right(&w, EAGER);
    world_cleanup(&w);
}

/* Leaders send their node's slices to all others, once; the rest put none. */
static void one_hop(void **state)
{
    uint32_t at = 0;
    world_t w;

    begin(&w, "4,2,1", 7);
    world_build(&w, EAGER);
    assert_int_equal(count_puts(&w, 0), 2);
    assert_int_equal(count_puts(&w, 1), 0);
    assert_int_equal(count_puts(&w, 4), 2);
    assert_int_equal(count_puts(&w, 6), 2);
    assert_int_equal(world_find_op(&w, 0, HCE_OP_PUT, &at)->len, 4 * LEN);
    assert_int_equal(w.plans[1]->num_ops, 1);
    assert_int_equal(w.plans[0]->net_bufs, 1 << HCE_BUF_SCRATCH);
    world_assert_right(&w, EAGER);
    world_cleanup(&w);
}

/* Many nodes: log2 steps. */
static void doubling(void **state)
{
    uint64_t bytes, puts;
    world_t w;

    begin(&w, "11", 22);
    world_build(&w, EAGER);
    assert_int_equal(count_puts(&w, 4), 4);
    world_assert_right(&w, EAGER);
    EAGER->traffic(&w.params, 5, 3, &bytes, &puts);
    assert_int_equal(bytes, 4 * LEN);
    EAGER->traffic(&w.params, 5, 2, &bytes, &puts);
    assert_int_equal(bytes + puts, 0);
    EAGER->traffic(&w.params, 5, 8, &bytes, &puts); /* back by 8 of 11 */
    assert_int_equal(bytes, 6 * LEN);
    /* In one hop if more steps would need a larger parcel. */
    w.params.limits.parcel = 2 * LEN;
    world_build(&w, EAGER);
    assert_int_equal(count_puts(&w, 4), 10);
    world_assert_right(&w, EAGER);
    world_cleanup(&w);
}

static void refused(void **state)
{
    world_t w;

    begin(&w, "4", 8);
    assert_null(EAGER->refuse(&w.params));
    w.params.limits.scratch = 8 * LEN - 1;
    assert_non_null(strstr(EAGER->refuse(&w.params), "HCE_SCRATCH"));
    w.params.limits.scratch = 8 * LEN;
    assert_null(EAGER->refuse(&w.params));
    w.params.limits.parcel = 2 * LEN - 1;
    assert_non_null(strstr(EAGER->refuse(&w.params), "larger than a parcel"));
    w.params.limits.parcel = 0;
    assert_non_null(strstr(EAGER->refuse(&w.params), "no parcels"));
    w.params.coll = HCE_COLL_LAST;
    assert_non_null(strstr(EAGER->refuse(&w.params), "AllGather"));
    world_cleanup(&w);
}

static void set_depth(world_t *w, int depth)
{
    uint32_t i;
    int r;

    for (r = 0; r < w->layout->nranks; r++) {
        for (i = 0; i < w->plans[r]->num_refs; i++) {
            if (w->plans[r]->refs[i].buf == HCE_BUF_SCRATCH) {
                w->plans[r]->refs[i].depth = depth;
            }
        }
    }
}

/* One slot is too few: the next launch overwrites what is still read. */
static void one_slot(void **state)
{
    static const struct {
        const char *nodes;
        int nranks;
        bool reads;
    } shapes[] = {{"1", 3, true}, {"1", 3, false}, {"2,1", 3, true},
                  {"11", 22, true}};
    size_t i;

    for (i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        world_t w;

        begin(&w, shapes[i].nodes, shapes[i].nranks);
        w.params.limits.reads = shapes[i].reads;
        world_build(&w, EAGER);
        set_depth(&w, 1);
        world_assert_fault(&w, EAGER, "not in its launch's slot");
        /* With a leader on one node completion is credit enough. */
        if (!shapes[i].reads) {
            world_assert_right(&w, NULL);
        } else {
            world_assert_fault(&w, NULL, "does not wait for the ");
        }
        world_cleanup(&w);
    }
}

static void spoiled(void **state)
{
    hce_plan_op_t *op;
    uint32_t at = 0;
    world_t w;

    /* The leader sends before all its node's slices are there. */
    begin(&w, "2,2", 4);
    world_build(&w, EAGER);
    op = world_find_op(&w, 0, HCE_OP_PUT, &at);
    op->num_wait--;
    world_assert_fault(&w, EAGER, "may complete before rank");
    op->num_wait++;
    /* To the place of another node's slices. */
    w.plans[0]->refs[op->ref + 1].offset += LEN;
    world_assert_fault(&w, NULL, "does not wait for");
    w.plans[0]->refs[op->ref + 1].offset -= LEN;
    /* Beyond the slot. */
    w.plans[0]->refs[op->ref + 1].offset = SCRATCH - LEN;
    world_assert_fault(&w, EAGER, "its last slot is out of bounds");
    world_cleanup(&w);

    /* A reader does not wait until the slice is shown. */
    begin(&w, "1", 2);
    world_build(&w, EAGER);
    at = 2;
    w.plans[0]->waits[world_find_op(&w, 0, HCE_OP_COPY, &at)->wait].value = 0;
    world_assert_fault(&w, EAGER, "may complete before rank");
    world_build(&w, EAGER);
    w.plans[1]->scratch_len = 0;
    world_assert_fault(&w, EAGER, "scratch of rank 1 has 0");
    world_build(&w, EAGER);
    w.plans[0]->params.limits.reads = w.plans[1]->params.limits.reads = false;
    world_assert_fault(&w, EAGER, "reads what a node peer owns");
    world_cleanup(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_node), cmocka_unit_test(one_node_pushed),
        cmocka_unit_test(one_hop),  cmocka_unit_test(doubling),
        cmocka_unit_test(refused),  cmocka_unit_test(one_slot),
        cmocka_unit_test(spoiled),
    };

    return cmocka_run_group_tests_name("plan_eager", tests, NULL, NULL);
}
