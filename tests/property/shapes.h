/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Shapes of jobs for the property tests: a layout, a path and what to gather.
 */
#ifndef HCE_TESTS_PROPERTY_SHAPES_H
#define HCE_TESTS_PROPERTY_SHAPES_H

#include "plan/plan.h"

typedef struct shape {
    const hce_plan_builder_t *builder;
    hce_layout_t *layout;
    hce_plan_params_t params;
} shape_t;

/* A bound on the ops of all ranks in one launch. */
uint64_t shape_ops(const hce_plan_builder_t *builder,
                   const hce_layout_t *layout, uint64_t chunks);

/* Shape number index of a seed; at most max_ops for the whole job. */
void shape_draw(uint64_t seed, uint64_t index, uint64_t max_ops,
                shape_t *shape_p);

/* "4,2,1" sizes of nodes, block or cyclic. */
void shape_make(const hce_plan_builder_t *builder, const char *nodes,
                int nranks, hce_layout_map_t map, shape_t *shape_p);
void shape_free(shape_t *shape);

/* What is needed to see it again. */
void shape_print(const shape_t *shape);

#endif
