/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Plans as a table and as JSON.
 */
#include "config.h"

#include "plan/show.h"

#include "plan_world.h"

#include "direct/direct.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#ifdef HCE_HAVE_JANSSON
#include <jansson.h>
#endif

static const char table[] =
    "all_gather direct, rank 0 of 3 on node 0 of 2, 150 bytes a rank, "
    "out of place, chunks of 100, contexts 1\n"
    "8 ops in 4 lanes; 2 puts of 150 bytes, 6 copies of 450 bytes\n"
    "lane 0: entry, 2 ops\n"
    "lane 1: proxy, rank 2, cw, context 0, 2 ops\n"
    "lane 2: copy, rank 0, 2 ops\n"
    "lane 3: copy, rank 2, 2 ops\n"
    "     0 signal lane 0, 0 bytes; posts ready(1)=1\n"
    "     1 signal lane 0, 0 bytes; posts ready(2)=1\n"
    "     2 put    lane 1, 100 bytes: send(0)+0 -> recv(2)+0; "
    "waits ready(2)>=1; posts flow cw 0(2)=1\n"
    "     3 put    lane 1, 50 bytes: send(0)+100 -> recv(2)+100; "
    "posts flow cw 0(2)=2\n"
    "     4 copy   lane 2, 100 bytes: send(0)+0 -> recv(0)+0 recv(1)+0; "
    "waits ready(1)>=1; posts local 0(1)=1\n"
    "     5 copy   lane 2, 50 bytes: send(0)+100 -> recv(0)+100 "
    "recv(1)+100; posts local 0(1)=2\n"
    "     6 copy   lane 3, 100 bytes: recv(0)+300 -> recv(1)+300; "
    "waits flow cw 0(2)>=1 ready(1)>=1; posts local 1(1)=1\n"
    "     7 copy   lane 3, 50 bytes: recv(0)+400 -> recv(1)+400; "
    "waits flow cw 0(2)>=2; posts local 1(1)=2\n"
    "  done flow cw 0(2)>=2 local 0(1)>=2\n";

/* What a writer leaves in a temporary file; the caller frees it. */
static char *written(hce_status_t (*write)(const hce_plan_t *, FILE *),
                     const hce_plan_t *plan)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    assert_non_null(out);
    assert_int_equal(write(plan, out), HCE_OK);
    assert_int_equal(fclose(out), 0);
    return text;
}

static hce_status_t print(const hce_plan_t *plan, FILE *out)
{
    hce_plan_print(plan, out);
    return HCE_OK;
}

static void printed_table(void **state)
{
    char *text;
    world_t w;

    world_init(&w, "2,1", 3, 150);
    world_build(&w, &hce_direct_allgather);
    text = written(print, w.plans[0]);
    assert_string_equal(text, table);
    free(text);
    world_cleanup(&w);
}

/* What a built plan does not have: slots, ccw, scratch, a reduction. */
static void printed_rest(void **state)
{
    hce_plan_t *plan;
    char *text;
    world_t w;

    world_init(&w, "1", 1, 8);
    w.params.in_place = true;
    plan = world_begin(&w, 0);
    hce_plan_add_op(plan, HCE_OP_REDUCE,
                    hce_plan_add_lane(plan, HCE_LANE_REDUCE, 0, 0, 0), 8);
    hce_plan_add_src(plan, 0, HCE_BUF_SCRATCH, 16);
    hce_plan_set_slots(plan, 4, 8);
    hce_plan_add_src(plan, 0, HCE_BUF_STAGE, 0);
    hce_plan_add_dst(plan, 0, HCE_BUF_RECV, 0);
    hce_plan_add_wait(plan, 0, HCE_SLOT_FLOW + 17, -3);
    assert_int_equal(hce_plan_finish(plan), HCE_OK);
    text = written(print, plan);
    assert_non_null(strstr(text, "in place"));
    assert_non_null(
        strstr(text, "reduce lane 0, 8 bytes: scratch(0)+16[4 x 8] "
                     "stage(0)+0 -> recv(0)+0; waits flow ccw 1(0)>=-3\n"));
    free(text);
    world_cleanup(&w);
}

#ifdef HCE_HAVE_JANSSON

static json_int_t number(const json_t *object, const char *key)
{
    json_t *value = json_object_get(object, key);

    assert_true(json_is_integer(value));
    return json_integer_value(value);
}

static void assert_text(const json_t *object, const char *key,
                        const char *want)
{
    assert_string_equal(json_string_value(json_object_get(object, key)), want);
}

static void assert_refs(const json_t *refs, const hce_plan_ref_t *want,
                        size_t num)
{
    size_t i;

    assert_int_equal(json_array_size(refs), num);
    for (i = 0; i < num; i++) {
        const json_t *ref = json_array_get(refs, i);

        assert_text(ref, "buffer", hce_plan_buf_string(want[i].buf));
        assert_int_equal(number(ref, "rank"), want[i].rank);
        assert_true((uint64_t)number(ref, "offset") == want[i].offset);
        assert_int_equal(number(ref, "depth"), want[i].depth);
        assert_true((uint64_t)number(ref, "stride") == want[i].stride);
    }
}

static void assert_waits(const json_t *waits, const hce_plan_wait_t *want,
                         size_t num)
{
    size_t i;

    assert_int_equal(json_array_size(waits), num);
    for (i = 0; i < num; i++) {
        const json_t *wait = json_array_get(waits, i);

        assert_int_equal(number(wait, "writer"), want[i].writer);
        assert_int_equal(number(wait, "slot"), want[i].slot);
        assert_true(number(wait, "value") == want[i].value);
    }
}

static void assert_posts(const json_t *posts, const hce_plan_post_t *want,
                         size_t num)
{
    size_t i;

    assert_int_equal(json_array_size(posts), num);
    for (i = 0; i < num; i++) {
        const json_t *post = json_array_get(posts, i);

        assert_int_equal(number(post, "owner"), want[i].owner);
        assert_int_equal(number(post, "slot"), want[i].slot);
        assert_true(number(post, "value") == want[i].value);
    }
}

static void assert_rises(const json_t *rises, const char *who,
                         const hce_plan_rise_t *want, size_t num)
{
    size_t i;

    assert_int_equal(json_array_size(rises), num);
    for (i = 0; i < num; i++) {
        const json_t *rise = json_array_get(rises, i);

        assert_int_equal(number(rise, who), want[i].rank);
        assert_int_equal(number(rise, "slot"), want[i].slot);
        assert_true(number(rise, "rise") == want[i].rise);
    }
}

static void assert_ops(const json_t *ops, const hce_plan_t *plan)
{
    uint32_t i;

    assert_int_equal(json_array_size(ops), plan->num_ops);
    for (i = 0; i < plan->num_ops; i++) {
        const json_t *json = json_array_get(ops, i);
        const hce_plan_op_t *op = &plan->ops[i];

        assert_text(json, "kind", hce_plan_kind_string(op->kind));
        assert_int_equal(number(json, "lane"), op->lane);
        assert_true((uint64_t)number(json, "bytes") == op->len);
        assert_refs(json_object_get(json, "src"), &plan->refs[op->ref],
                    op->num_src);
        assert_refs(json_object_get(json, "dst"),
                    &plan->refs[op->ref + op->num_src], op->num_dst);
        assert_waits(json_object_get(json, "wait"), &plan->waits[op->wait],
                     op->num_wait);
        assert_posts(json_object_get(json, "post"), &plan->posts[op->post],
                     op->num_post);
    }
}

static void assert_head(const json_t *root, const hce_plan_t *plan)
{
    const json_t *params = json_object_get(root, "params");
    const json_t *nodes = json_object_get(params, "node_of_rank");
    int i;

    assert_int_equal(number(root, "version"), 1);
    assert_text(root, "path", plan->path);
    assert_text(params, "collective", "all_gather");
    assert_int_equal(number(params, "rank"), plan->params.rank);
    assert_int_equal(number(params, "ranks"), plan->params.layout->nranks);
    assert_int_equal(json_array_size(nodes), plan->params.layout->nranks);
    for (i = 0; i < plan->params.layout->nranks; i++) {
        assert_int_equal(json_integer_value(json_array_get(nodes, i)),
                         plan->params.layout->node[i]);
    }
    assert_true((uint64_t)number(params, "bytes") == plan->params.len);
    assert_int_equal(number(params, "contexts"), plan->params.contexts);
    assert_int_equal(json_is_true(json_object_get(params, "in_place")),
                     plan->params.in_place);
}

static void assert_lanes(const json_t *lanes, const hce_plan_t *plan)
{
    uint32_t i;

    assert_int_equal(json_array_size(lanes), plan->num_lanes);
    for (i = 0; i < plan->num_lanes; i++) {
        const json_t *lane = json_array_get(lanes, i);

        assert_text(lane, "kind",
                    hce_plan_lane_kind_string(plan->lanes[i].kind));
        assert_int_equal(number(lane, "peer"), plan->lanes[i].peer);
        assert_int_equal(number(lane, "context"), plan->lanes[i].context);
        assert_int_equal(number(lane, "direction"), plan->lanes[i].direction);
    }
}

static void assert_json(const hce_plan_t *plan)
{
    char *text = written(hce_plan_write_json, plan);
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, NULL);

    assert_non_null(root);
    assert_head(root, plan);
    assert_lanes(json_object_get(root, "lanes"), plan);
    assert_ops(json_object_get(root, "ops"), plan);
    assert_waits(json_object_get(root, "done"), &plan->waits[plan->done_wait],
                 plan->num_done_wait);
    assert_rises(json_object_get(root, "in"), "writer", plan->in,
                 plan->num_in);
    assert_rises(json_object_get(root, "out"), "owner", plan->out,
                 plan->num_out);
    assert_true((uint64_t)number(root, "scratch_bytes") == plan->scratch_len);
    assert_true((uint64_t)number(root, "stage_bytes") == plan->stage_len);
    json_decref(root);
    free(text);
}

static void json_of_all_ranks(void **state)
{
    world_t w;
    int rank;

    /* Offsets beyond what a double holds exactly. */
    world_init(&w, "3,1,2", 6, (UINT64_C(1) << 56) + 1);
    w.params.contexts = 3;
    w.params.width = UINT64_C(1) << 54;
    world_build(&w, &hce_direct_allgather);
    w.plans[2]->scratch_len = 5;
    w.plans[2]->stage_len = 6;
    for (rank = 0; rank < 6; rank++) {
        assert_json(w.plans[rank]);
    }
    world_cleanup(&w);
}

static void json_cannot_be_written(void **state)
{
    FILE *full = fopen("/dev/full", "w");
    world_t w;

    if (full == NULL) {
        skip();
    }
    setvbuf(full, NULL, _IONBF, 0);
    world_init(&w, "1,1", 2, 10);
    world_build(&w, &hce_direct_allgather);
    assert_int_equal(hce_plan_write_json(w.plans[0], full), HCE_ERR_SYSTEM);
    fclose(full);
    world_cleanup(&w);
}

#else

static void json_is_not_built(void **state)
{
    world_t w;

    world_init(&w, "1,1", 2, 10);
    world_build(&w, &hce_direct_allgather);
    assert_int_equal(hce_plan_write_json(w.plans[0], stdout),
                     HCE_ERR_UNSUPPORTED);
    world_cleanup(&w);
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(printed_table),
        cmocka_unit_test(printed_rest),
#ifdef HCE_HAVE_JANSSON
        cmocka_unit_test(json_of_all_ranks),
        cmocka_unit_test(json_cannot_be_written),
#else
        cmocka_unit_test(json_is_not_built),
#endif
    };

    return cmocka_run_group_tests_name("plan_show", tests, NULL, NULL);
}
