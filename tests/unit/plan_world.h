/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * All ranks' plans of one call, for tests: from a builder, or made by hand.
 */
#ifndef HCE_TESTS_UNIT_PLAN_WORLD_H
#define HCE_TESTS_UNIT_PLAN_WORLD_H

#include "plan/verify.h"

#define WORLD_MAX_RANKS 320

typedef struct world {
    hce_layout_t *layout;
    hce_plan_params_t params;
    hce_plan_t *plans[WORLD_MAX_RANKS];
    hce_verify_report_t report;
} world_t;

/* "2,1" sizes of nodes, ranks in blocks; one context, chunks of 100 bytes. */
void world_init(world_t *w, const char *nodes, int nranks, uint64_t len);
void world_cleanup(world_t *w);

/* Builds, or builds again, with w->params. */
void world_build(world_t *w, const hce_plan_builder_t *builder);

/* Begins a plan made by hand; hce_plan_finish is up to the test. */
hce_plan_t *world_begin(world_t *w, int rank);

/* Verifies with builder's formula, or none; the plans must be right, or be
 * refused with a text that contains what. */
void world_assert_right(world_t *w, const hce_plan_builder_t *builder);
void world_assert_fault(world_t *w, const hce_plan_builder_t *builder,
                        const char *what);

/* The first op of a kind from index on, and the index of it. */
hce_plan_op_t *world_find_op(world_t *w, int rank, hce_plan_kind_t kind,
                             uint32_t *index);

#endif
