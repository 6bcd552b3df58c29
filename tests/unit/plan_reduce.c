/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Paths of reductions are proved on many shapes, and spoilt ones are refuted.
 */
#include "config.h"

#include "plan_world.h"

#include "core/paths.h"
#include "direct/direct.h"
#include "util/datatype.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#define SCRATCH 65536

static void begin(world_t *w, hce_coll_t coll, int nranks, size_t count)
{
    static const hce_datatype_t datatypes[] = {HCE_INT8, HCE_FLOAT16,
                                               HCE_FLOAT32, HCE_FLOAT64};
    hce_datatype_t datatype = datatypes[(size_t)nranks % 4];

    world_init(w, "1", nranks, count * hce_datatype_size(datatype));
    w->params.coll = coll;
    w->params.datatype = datatype;
    w->params.op = HCE_AVG;
    w->params.limits = (hce_plan_limits_t){.scratch = SCRATCH};
}

/* In and out of place, where peers' memory can be read and where not. */
static void prove(const hce_plan_builder_t *builder, int nranks, size_t count)
{
    world_t w;
    int how;

    begin(&w, builder->coll, nranks, count);
    for (how = 0; how < 4; how++) {
        w.params.in_place = how & 1;
        w.params.limits.pulls = w.params.limits.reads = how & 2;
        if (builder->refuse(&w.params) != NULL) {
            continue;
        }
        world_build(&w, builder);
        world_assert_right(&w, builder);
    }
    world_cleanup(&w);
}

static void shapes_are_proved(void **state)
{
    static const size_t counts[] = {0, 1, 3, 7, 1000, 4097};
    size_t i;
    int p, nranks, proved = 0;

    for (p = 0; hce_paths[p] != NULL; p++) {
        if (hce_paths[p]->coll == HCE_COLL_ALLGATHER) {
            continue;
        }
        for (nranks = 1; nranks <= 9; nranks++) {
            for (i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
                prove(hce_paths[p], nranks, counts[i]);
                proved++;
            }
        }
    }
    assert_true(proved > 0);
}

static hce_plan_op_t *sum_of(world_t *w, int rank)
{
    uint32_t index = 0;

    return world_find_op(w, rank, HCE_OP_REDUCE, &index);
}

static void lose_source(world_t *w)
{
    hce_plan_op_t *op = sum_of(w, 1);

    op->ref++;
    op->num_src--;
}

/* The same contribution for another one. */
static void take_twice(world_t *w)
{
    hce_plan_op_t *op = sum_of(w, 1);

    w->plans[1]->refs[op->ref] = w->plans[1]->refs[op->ref + 1];
}

static void divide_never(world_t *w)
{
    sum_of(w, 1)->is_last = false;
}

/* Others' buffers are read though they may be gone. */
static void forget_entry(world_t *w)
{
    hce_plan_op_t *op = sum_of(w, 1);

    w->plans[1]->waits[op->wait].value = 0;
}

/* Nobody waits for the rank that reads its memory. */
static void leave_early(world_t *w)
{
    w->plans[2]->waits[w->plans[2]->done_wait].value = 0;
}

static void faults_are_found(void **state)
{
    static const struct {
        void (*spoil)(world_t *w);
        const char *says;
    } cases[] = {
        {lose_source, "contribution"},
        {take_twice, "twice"},
        {divide_never, "completes its sums, but is not the last"},
        {forget_entry, "perhaps before the entry of rank 2"},
        {leave_early, "perhaps after the completion of rank 2"},
    };
    size_t i;
    world_t w;

    begin(&w, HCE_COLL_ALLREDUCE, 4, 100);
    w.params.limits.pulls = true;
    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        world_build(&w, &hce_direct_allreduce);
        cases[i].spoil(&w);
        world_assert_fault(&w, &hce_direct_allreduce, cases[i].says);
    }
    world_cleanup(&w);
}

/* Many sources, and little scratch memory where it is needed. */
static void refusals(void **state)
{
    world_t w;

    begin(&w, HCE_COLL_ALLREDUCE, 4, SCRATCH);
    assert_non_null(hce_direct_allreduce.refuse(&w.params));
    w.params.limits.pulls = true;
    assert_null(hce_direct_allreduce.refuse(&w.params));
    world_cleanup(&w);

    world_init(&w, "2", 4, 64);
    w.params.coll = HCE_COLL_ALLREDUCE;
    w.params.limits.pulls = true;
    assert_non_null(hce_direct_allreduce.refuse(&w.params));
    world_cleanup(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_are_proved),
        cmocka_unit_test(faults_are_found),
        cmocka_unit_test(refusals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
