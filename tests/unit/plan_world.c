/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 */
#include "config.h"

#include "plan_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

void world_init(world_t *w, const char *nodes, int nranks, uint64_t len)
{
    int color[WORLD_MAX_RANKS];
    const char *why;

    memset(w, 0, sizeof(*w));
    assert_true(nranks <= WORLD_MAX_RANKS);
    assert_int_equal(
        hce_layout_parse(nodes, HCE_LAYOUT_BLOCK, nranks, color, &why),
        HCE_OK);
    assert_int_equal(hce_layout_create(nranks, color, &w->layout), HCE_OK);
    w->params = (hce_plan_params_t){
        .layout = w->layout,
        .len = len,
        .width = 100,
        .coll = HCE_COLL_ALLGATHER,
        .contexts = 1,
    };
}

static void world_drop(world_t *w)
{
    int rank;

    for (rank = 0; rank < w->layout->nranks; rank++) {
        hce_plan_destroy(w->plans[rank]);
        w->plans[rank] = NULL;
    }
}

void world_cleanup(world_t *w)
{
    world_drop(w);
    hce_layout_destroy(w->layout);
}

void world_build(world_t *w, const hce_plan_builder_t *builder)
{
    hce_plan_params_t params = w->params;

    world_drop(w);
    for (params.rank = 0; params.rank < w->layout->nranks; params.rank++) {
        assert_null(builder->refuse(&params));
        assert_int_equal(builder->build(&params, &w->plans[params.rank]),
                         HCE_OK);
    }
}

hce_plan_t *world_begin(world_t *w, int rank)
{
    hce_plan_params_t params = w->params;

    params.rank = rank;
    assert_null(w->plans[rank]);
    assert_int_equal(hce_plan_create(&params, "made", &w->plans[rank]),
                     HCE_OK);
    return w->plans[rank];
}

void world_assert_right(world_t *w, const hce_plan_builder_t *builder)
{
    hce_status_t status =
        hce_plan_verify(w->plans, w->layout->nranks, builder, &w->report);

    if (status != HCE_OK) {
        fail_msg("refused: %s", w->report.text);
    }
    assert_int_equal(w->report.full,
                     w->layout->nranks <= HCE_VERIFY_MAX_FULL_RANKS);
    assert_non_null(strstr(w->report.text,
                           w->report.full ? "full proof" : "checked by rank"));
}

void world_assert_fault(world_t *w, const hce_plan_builder_t *builder,
                        const char *what)
{
    hce_status_t status =
        hce_plan_verify(w->plans, w->layout->nranks, builder, &w->report);

    if (status != HCE_ERR_INTERNAL || strstr(w->report.text, what) == NULL) {
        fail_msg("expected \"%s\", got %s: %s", what,
                 hce_status_string(status), w->report.text);
    }
    printf("%s\n", w->report.text);
}

hce_plan_op_t *world_find_op(world_t *w, int rank, hce_plan_kind_t kind,
                             uint32_t *index)
{
    hce_plan_t *plan = w->plans[rank];

    for (; *index < plan->num_ops; ++*index) {
        if (plan->ops[*index].kind == kind) {
            return &plan->ops[*index];
        }
    }
    fail_msg("rank %d has no such op", rank);
    return NULL;
}
