/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Faults planted into built plans: the verifier finds each, and says where.
 */
#include "config.h"

#include "plan_world.h"

#include "direct/direct.h"
#include "flat/flat.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

/* 2 nodes of 2, three chunks; rank 0 carries the slice of rank 2. */
static void begin(world_t *w, bool in_place)
{
    world_init(w, "2", 4, 300);
    w->params.in_place = in_place;
    world_build(w, &hce_direct_allgather);
    world_assert_right(w, &hce_direct_allgather);
}

static hce_plan_op_t *nth_op(world_t *w, int rank, hce_plan_kind_t kind, int n)
{
    hce_plan_op_t *op;
    uint32_t index = 0;

    for (op = world_find_op(w, rank, kind, &index); n > 0; n--) {
        index++;
        op = world_find_op(w, rank, kind, &index);
    }
    return op;
}

/* Copies 0 to 2 of rank 0 are its own slice, 3 to 5 what it carries. */
#define FIRST_CARRIED 3

static void end(world_t *w, const char *what)
{
    world_assert_fault(w, NULL, what);
    world_cleanup(w);
}

static void lost_wait(void **state)
{
    world_t w;

    begin(&w, false);
    nth_op(&w, 0, HCE_OP_COPY, FIRST_CARRIED + 1)->num_wait = 0;
    end(&w, "rank 0 op 9 (copy of 100 bytes, lane 3: copy, rank 2) does not "
            "wait for the write of what it reads at byte 700 of recv of rank "
            "0: rank 2 op 3 (put of 100 bytes, lane 1: proxy, peer 0, context "
            "0)");
}

/* A wait for one chunk less than what is read. */
static void weak_wait(void **state)
{
    hce_plan_op_t *op;
    world_t w;

    begin(&w, false);
    op = nth_op(&w, 0, HCE_OP_COPY, FIRST_CARRIED + 2);
    assert_int_equal(w.plans[0]->waits[op->wait].value, 3);
    w.plans[0]->waits[op->wait].value = 2;
    end(&w, "does not wait for the");
}

static void doubled_write(void **state)
{
    hce_plan_op_t *op;
    world_t w;

    begin(&w, false);
    op = nth_op(&w, 0, HCE_OP_PUT, 1);
    w.plans[0]->refs[op->ref + 1].offset -= 100;
    end(&w, "writes for the second time at byte 0 of recv of rank 2");
}

static void doubled_destination(void **state)
{
    hce_plan_op_t *op;
    world_t w;

    begin(&w, false);
    op = nth_op(&w, 0, HCE_OP_COPY, 1);
    assert_int_equal(op->num_dst, 2);
    w.plans[0]->refs[op->ref + 1] = w.plans[0]->refs[op->ref + 2];
    end(&w, "writes for the second time at byte 100 of recv of rank 1");
}

static void swapped_offset(void **state)
{
    hce_plan_op_t *op;
    world_t w;

    begin(&w, false);
    op = nth_op(&w, 0, HCE_OP_PUT, 0);
    w.plans[0]->refs[op->ref].offset = 100;
    op = nth_op(&w, 0, HCE_OP_PUT, 1);
    w.plans[0]->refs[op->ref].offset = 0;
    end(&w, "hold byte 100 and on of rank 0 in launch 0, not of rank 0 in "
            "launch 0");
}

/* A copy from the carrier's output before its place: another's slice, and
 * in the first launch not there at all. */
static void wrong_source(void **state)
{
    hce_plan_op_t *op;
    world_t w;

    begin(&w, false);
    op = nth_op(&w, 0, HCE_OP_COPY, FIRST_CARRIED);
    w.plans[0]->refs[op->ref].offset = 300;
    world_assert_fault(&w, NULL, "does not wait");
    w.plans[0]->refs[op->ref].offset = 0;
    end(&w, "does not wait");
}

static void write_before_entry(void **state)
{
    world_t w;

    begin(&w, false);
    nth_op(&w, 0, HCE_OP_PUT, 0)->num_wait = 0;
    world_assert_fault(&w, NULL,
                       "writes recv of rank 2, perhaps before the "
                       "entry of rank 2");
    world_build(&w, &hce_direct_allgather);
    nth_op(&w, 3, HCE_OP_COPY, 0)->num_wait = 0;
    end(&w, "writes recv of rank 2, perhaps before the entry of rank 2");
}

/* A completion that does not wait for the last chunk. */
static void write_after_completion(void **state)
{
    hce_plan_t *plan;
    world_t w;

    begin(&w, false);
    plan = w.plans[1];
    assert_int_equal(plan->waits[plan->done_wait + 2].slot,
                     HCE_SLOT_LOCAL + 1);
    plan->waits[plan->done_wait + 2].value = 2;
    end(&w, "writes recv of rank 1, perhaps after the completion of rank 1");
}

static void in_place_overwrite(void **state)
{
    hce_plan_op_t *op;
    world_t w;

    begin(&w, true);
    op = nth_op(&w, 0, HCE_OP_PUT, 0);
    w.plans[0]->refs[op->ref + 1].offset = 650;
    world_assert_fault(&w, NULL, "overwrites the slice of rank 2 in place");

    /* An out of place plan run in place. */
    w.params.in_place = false;
    world_build(&w, &hce_direct_allgather);
    for (int rank = 0; rank < 4; rank++) {
        w.plans[rank]->params.in_place = true;
    }
    end(&w, "overwrites the slice of rank 0 in place");
}

static void wrong_rise(void **state)
{
    world_t w;

    begin(&w, false);
    w.plans[2]->in[0].rise++;
    world_assert_fault(&w, NULL,
                       "by rank 0: rises by 1 for its writer, by 2 for its");
    w.plans[2]->in[0].rise -= 2;
    world_assert_fault(&w, NULL, "rises are not positive");
    world_build(&w, &hce_direct_allgather);
    w.plans[0]->out[1].rise = 9;
    end(&w, "rises by 9 for its writer");
}

static void lost_post(void **state)
{
    world_t w;

    begin(&w, false);
    nth_op(&w, 0, HCE_OP_PUT, 2)->num_post = 0;
    world_assert_fault(&w, NULL, "its rise is 3 but no op posts that");
    world_build(&w, &hce_direct_allgather);
    w.plans[0]->num_out--;
    end(&w, "that is not in its list of rises");
}

static void unknown_counter(void **state)
{
    hce_plan_op_t *op;
    world_t w;

    begin(&w, false);
    op = nth_op(&w, 0, HCE_OP_COPY, FIRST_CARRIED + 1);
    w.plans[0]->waits[op->wait].slot++;
    world_assert_fault(&w, NULL, "its rise is less");
    w.plans[0]->waits[op->wait].slot = HCE_SLOT_LOCAL;
    end(&w, "waits for a counter that is not there");
}

static void two_lanes_one_counter(void **state)
{
    hce_plan_op_t *op;
    world_t w;

    world_init(&w, "2", 4, 300);
    w.params.contexts = 2;
    world_build(&w, &hce_direct_allgather);
    op = nth_op(&w, 1, HCE_OP_PUT, 1);
    w.plans[1]->posts[op->post].slot = HCE_SLOT_FLOW;
    end(&w, "counter 'flow cw 0' of rank 3 by rank 1: two lanes, 1 and 2");
}

static void falling_values(void **state)
{
    hce_plan_op_t *op;
    world_t w;

    begin(&w, false);
    op = nth_op(&w, 1, HCE_OP_PUT, 1);
    w.plans[1]->posts[op->post].value = 1;
    end(&w, "makes it 1 after 1");
}

static void missing_put(void **state)
{
    world_t w;

    begin(&w, false);
    nth_op(&w, 0, HCE_OP_PUT, 1)->len = 0;
    world_assert_fault(&w, &hce_direct_allgather,
                       "traffic from node 0 to node 1: 500 bytes in 5 puts, "
                       "by formula 600 bytes in 6");
    end(&w, "were never written");
}

static void wrong_formula(const hce_plan_params_t *params, int from, int to,
                          uint64_t *bytes_p, uint64_t *puts_p)
{
    hce_direct_allgather.traffic(params, from, to, bytes_p, puts_p);
    *puts_p += from == 1 && to == 0;
}

static void wrong_traffic(void **state)
{
    hce_plan_builder_t builder = hce_direct_allgather;
    world_t w;

    begin(&w, false);
    builder.traffic = wrong_formula;
    world_assert_fault(&w, &builder, "traffic from node 1 to node 0");
    world_cleanup(&w);
}

static void out_of_bounds(void **state)
{
    hce_plan_ref_t *ref;
    world_t w;

    begin(&w, false);
    ref = &w.plans[0]->refs[nth_op(&w, 0, HCE_OP_PUT, 0)->ref];
    ref->offset = 201;
    world_assert_fault(&w, NULL, "send of rank 0 has 300 bytes, not 201 + 10");
    ref->offset = UINT64_MAX;
    world_assert_fault(&w, NULL, "send of rank 0 has 300 bytes");
    ref->offset = 100;
    ref->depth = 3;
    ref->stride = 51;
    world_assert_fault(&w, NULL, "its last slot is out of bounds");
    ref->depth = 1;
    ref[1].rank = 4;
    end(&w, "a rank or buffer that is not there");
}

static void out_of_reach(void **state)
{
    hce_plan_op_t *op;
    world_t w;

    begin(&w, false);
    op = nth_op(&w, 0, HCE_OP_PUT, 0);
    w.plans[0]->refs[op->ref + 1].rank = 3;
    world_assert_fault(&w, NULL, "not its lane's peer");
    w.plans[0]->refs[op->ref + 1].rank = 2;
    w.plans[0]->refs[op->ref].rank = 1;
    world_assert_fault(&w, NULL, "reads what it cannot reach");
    world_build(&w, &hce_direct_allgather);
    op = nth_op(&w, 0, HCE_OP_COPY, 0);
    w.plans[0]->refs[op->ref + 2].rank = 3;
    world_assert_fault(&w, NULL, "writes to another node");
    w.plans[0]->refs[op->ref + 2] =
        (hce_plan_ref_t){.rank = 1, .buf = HCE_BUF_SEND, .depth = 1};
    world_assert_fault(&w, NULL, "writes into an input");
    world_build(&w, &hce_direct_allgather);
    op = nth_op(&w, 0, HCE_OP_COPY, 0);
    w.plans[0]->posts[op->post] =
        (hce_plan_post_t){.owner = 2, .slot = HCE_SLOT_FLOW, .value = 1};
    end(&w, "posts to another node");
}

static void malformed(void **state)
{
    uint32_t *lane_ops, swap;
    world_t w;

    begin(&w, false);
    lane_ops = &w.plans[0]->lane_ops[w.plans[0]->lanes[1].first];
    swap = lane_ops[0];
    lane_ops[0] = lane_ops[1];
    lane_ops[1] = swap;
    world_assert_fault(&w, NULL, "does not hold its ops in plan order");
    world_build(&w, &hce_direct_allgather);
    w.plans[0]->lanes[3].num_ops--;
    world_assert_fault(&w, NULL, "an op is in no lane");
    world_build(&w, &hce_direct_allgather);
    nth_op(&w, 0, HCE_OP_PUT, 0)->kind = HCE_OP_COPY;
    world_assert_fault(&w, NULL, "in a lane of another kind");
    world_build(&w, &hce_direct_allgather);
    nth_op(&w, 0, HCE_OP_PUT, 0)->num_dst = 0;
    world_assert_fault(&w, NULL, "do not fit its kind");
    world_build(&w, &hce_direct_allgather);
    w.plans[1]->params.len = 301;
    end(&w, "its plan was built for another call than that of rank 0");
}

/* What a builder gives is what hce_plan_verify_builder looks at, in both
 * placements. */
static hce_status_t build_faulty(const hce_plan_params_t *params,
                                 hce_plan_t **plan_p)
{
    hce_status_t status = hce_direct_allgather.build(params, plan_p);

    if (status == HCE_OK && params->in_place && params->rank == 3) {
        (*plan_p)->ops[(*plan_p)->num_ops - 1].num_wait = 0;
    }
    return status;
}

static hce_status_t build_none(const hce_plan_params_t *params,
                               hce_plan_t **plan_p)
{
    return params->rank < 3 ? hce_direct_allgather.build(params, plan_p)
                            : HCE_ERR_NO_MEMORY;
}

static void verified_builder(void **state)
{
    hce_plan_builder_t builder = hce_direct_allgather;
    hce_verify_report_t report;
    world_t w;

    world_init(&w, "2", 4, 300);
    assert_int_equal(
        hce_plan_verify_builder(&hce_direct_allgather, &w.params, &report),
        HCE_OK);
    assert_true(report.full);
    assert_non_null(strstr(report.text, "out of place and in place"));
    /* 2 signals, 3 puts, 6 copies a rank. */
    assert_int_equal(report.ops, 2 * 4 * 11);
    builder.build = build_faulty;
    assert_int_equal(hce_plan_verify_builder(&builder, &w.params, &report),
                     HCE_ERR_INTERNAL);
    assert_non_null(strstr(report.text, "does not wait"));
    builder.build = build_none;
    assert_int_equal(hce_plan_verify_builder(&builder, &w.params, &report),
                     HCE_ERR_NO_MEMORY);
    assert_non_null(strstr(report.text, "could not be built"));
    world_cleanup(&w);
}

/* What replaces the replay beyond 256 ranks. */
static void faults_by_rank(void **state)
{
    const int nranks = 258;
    hce_plan_op_t *op;
    world_t w;

    world_init(&w, "129", nranks, 200);
    world_build(&w, &hce_direct_allgather);
    world_assert_right(&w, &hce_direct_allgather);

    nth_op(&w, 257, HCE_OP_PUT, 1)->len = 0;
    world_assert_fault(&w, NULL, "of the output of rank 1 are never written");
    world_build(&w, &hce_direct_allgather);
    op = nth_op(&w, 256, HCE_OP_COPY, 2 + 128);
    w.plans[256]->refs[op->ref].offset -= 100;
    world_assert_fault(&w, NULL, "what does not belong there");
    w.plans[256]->refs[op->ref + 1].offset -= 100;
    world_assert_fault(&w, NULL, "is written for the second time");
    world_build(&w, &hce_direct_allgather);
    op = nth_op(&w, 4, HCE_OP_COPY, 200);
    w.plans[4]->waits[op->wait].value = 1;
    world_assert_fault(&w, NULL,
                       "does not wait for the write of what it "
                       "reads");
    world_cleanup(&w);
}

/* Right plans, but one rank serves its peers in another order. */
static void not_turned(void **state)
{
    hce_plan_params_t params;
    hce_plan_t *plan;
    world_t w;

    world_init(&w, "129", 258, 0);
    world_build(&w, &hce_flat_allgather);
    world_assert_right(&w, &hce_flat_allgather);
    hce_plan_destroy(w.plans[7]);
    params = w.params;
    params.rank = 7;
    params.in_place = true;
    assert_int_equal(hce_flat_allgather.build(&params, &plan), HCE_OK);
    plan->params.in_place = false;
    w.plans[7] = plan;
    world_assert_fault(&w, NULL, "rank 7 on the next node has");
    world_cleanup(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lost_wait),
        cmocka_unit_test(weak_wait),
        cmocka_unit_test(doubled_write),
        cmocka_unit_test(doubled_destination),
        cmocka_unit_test(swapped_offset),
        cmocka_unit_test(wrong_source),
        cmocka_unit_test(write_before_entry),
        cmocka_unit_test(write_after_completion),
        cmocka_unit_test(in_place_overwrite),
        cmocka_unit_test(wrong_rise),
        cmocka_unit_test(lost_post),
        cmocka_unit_test(unknown_counter),
        cmocka_unit_test(two_lanes_one_counter),
        cmocka_unit_test(falling_values),
        cmocka_unit_test(missing_put),
        cmocka_unit_test(wrong_traffic),
        cmocka_unit_test(out_of_bounds),
        cmocka_unit_test(out_of_reach),
        cmocka_unit_test(malformed),
        cmocka_unit_test(verified_builder),
        cmocka_unit_test(faults_by_rank),
        cmocka_unit_test(not_turned),
    };

    return cmocka_run_group_tests_name("plan_faults", tests, NULL, NULL);
}
