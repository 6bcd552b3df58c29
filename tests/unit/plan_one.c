/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Checks of one rank: right plans pass on every path, and each planted fault
 * of the rank or of one that it counts on is found.
 */
#include "config.h"

#include "plan_world.h"

#include "core/paths.h"
#include "direct/direct.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#define ME    2 /* the rank that is checked */
#define OTHER 0 /* puts to it */

/* What the builder below spoils, and on which rank. */
static void (*spoil)(hce_plan_t *plan);
static int spoiled_rank;

static hce_plan_op_t *first_op(hce_plan_t *plan, hce_plan_kind_t kind)
{
    hce_plan_op_t *op = plan->ops;

    while (op->kind != kind) {
        op++;
    }
    return op;
}

static void nothing(hce_plan_t *plan)
{
}

static void shorten_put(hce_plan_t *plan)
{
    first_op(plan, HCE_OP_PUT)->len--;
}

static void lengthen_put(hce_plan_t *plan)
{
    first_op(plan, HCE_OP_PUT)->len++;
}

static void misplace_put(hce_plan_t *plan)
{
    plan->refs[first_op(plan, HCE_OP_PUT)->ref + 1].offset++;
}

static void raise_less(hce_plan_t *plan)
{
    plan->out[plan->num_out - 1].rise--;
}

static void count_on_less(hce_plan_t *plan)
{
    plan->in[0].rise++;
}

/* The copy of what arrives first forgets to wait for it. */
static void forget_wait(hce_plan_t *plan)
{
    hce_plan_op_t *op = first_op(plan, HCE_OP_COPY);

    while (plan->refs[op->ref].buf != HCE_BUF_RECV) {
        op++;
    }
    plan->waits[op->wait].value = 0;
}

static void turn_otherwise(hce_plan_t *plan)
{
    first_op(plan, HCE_OP_SIGNAL)->num_post = 0;
}

static hce_status_t build(const hce_plan_params_t *params, hce_plan_t **plan_p)
{
    hce_status_t status = hce_direct_allgather.build(params, plan_p);

    if (status == HCE_OK && params->rank == spoiled_rank) {
        spoil(*plan_p);
    }
    return status;
}

static void faults_found(void **state)
{
    static const struct {
        void (*spoil)(hce_plan_t *plan);
        int rank;
        const char *what; /* NULL: none */
    } cases[] = {
        {nothing, ME, NULL},
        {shorten_put, OTHER, "of the output of rank 2 is never written"},
        {lengthen_put, OTHER, "of the output of rank 2 is written twice"},
        {misplace_put, OTHER, "what does not belong there"},
        {raise_less, OTHER, "for its writer"},
        {count_on_less, ME, "for its owner"},
        {forget_wait, ME, "does not itself wait"},
        {turn_otherwise, ME, "turned by one node"},
    };
    hce_plan_builder_t builder = hce_direct_allgather;
    hce_verify_report_t report;
    hce_status_t status;
    size_t i;
    world_t w;

    builder.build = build;
    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        world_init(&w, "2", 4, 350);
        w.params.rank = ME;
        spoil = cases[i].spoil;
        spoiled_rank = cases[i].rank;
        status = hce_plan_verify_rank(&builder, &w.params, &report);
        assert_false(report.full);
        if (status != (cases[i].what == NULL ? HCE_OK : HCE_ERR_INTERNAL) ||
            (cases[i].what != NULL &&
             strstr(report.text, cases[i].what) == NULL)) {
            fail_msg("case %zu: '%s', expected '%s'", i, report.text,
                     cases[i].what);
        }
        world_cleanup(&w);
    }
}

static void right_on_all_paths(void **state)
{
    hce_verify_report_t report;
    world_t w;
    int i;

    world_init(&w, "3,1,2", 6, 351);
    w.params.contexts = 2;
    for (i = 0; hce_paths[i] != NULL; i++) {
        if (hce_paths[i]->coll != HCE_COLL_ALLGATHER ||
            hce_paths[i]->refuse(&w.params) != NULL) {
            continue;
        }
        for (w.params.rank = 0; w.params.rank < 6; w.params.rank++) {
            w.params.in_place = !w.params.in_place;
            if (hce_plan_verify_rank(hce_paths[i], &w.params, &report) !=
                HCE_OK) {
                fail_msg("%s: %s", hce_paths[i]->path, report.text);
            }
        }
    }
    world_cleanup(&w);
}

/* Leaves out the last byte of what a leader copies to its node. */
static hce_status_t build_short(const hce_plan_params_t *params,
                                hce_plan_t **plan_p)
{
    hce_status_t status = hce_eager_allgather.build(params, plan_p);
    hce_plan_op_t *op;

    if (status == HCE_OK && params->rank == 0) {
        op = &(*plan_p)->ops[(*plan_p)->num_ops - 1];
        op->len--;
    }
    return status;
}

/* Most bytes come by way of other ranks' scratch memory. */
static void scratch_is_counted(void **state)
{
    hce_plan_builder_t builder = hce_eager_allgather;
    hce_verify_report_t report;
    world_t w;

    world_init(&w, "24", 48, 40);
    for (w.params.rank = 0; w.params.rank < 2; w.params.rank++) {
        builder.build = hce_eager_allgather.build;
        assert_int_equal(hce_plan_verify_rank(&builder, &w.params, &report),
                         HCE_OK);
        assert_non_null(strstr(report.text, "is counted, not traced"));
        builder.build = build_short;
        assert_int_equal(hce_plan_verify_rank(&builder, &w.params, &report),
                         HCE_ERR_INTERNAL);
        assert_non_null(strstr(report.text, "is never written"));
    }
    world_cleanup(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(faults_found),
        cmocka_unit_test(right_on_all_paths),
        cmocka_unit_test(scratch_is_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
