/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * What rings over nodes have in common. A ring says how slices are cut into
 * parts and how many hops the parts travel; the rest follows.
 */
#ifndef HCE_RING_BUILD_H
#define HCE_RING_BUILD_H

#include "plan/plan.h"

#define HCE_RING_CW   0
#define HCE_RING_CCW  1
#define HCE_RING_DIRS 2

/* A piece of a slice that is cut into chunks on its own. */
typedef struct hce_ring_part {
    uint64_t offset; /* in the slice */
    hce_plan_chunks_t chunks;
} hce_ring_part_t;

/* On hops 0 to whole_hops - 1 all parts of a slice travel, in either
 * direction; after those, up to hops, part d travels in direction d. */
typedef struct hce_ring_shape {
    hce_ring_part_t parts[HCE_RING_DIRS];
    int num_parts;
    int dirs; /* 1: nothing travels counter-clockwise */
    int whole_hops;
    int hops;
} hce_ring_shape_t;

/* One part, the whole slice, or the two halves. */
void hce_ring_cut_whole(const hce_plan_params_t *params,
                        hce_ring_shape_t *shape);
void hce_ring_cut_halves(const hce_plan_params_t *params,
                         hce_ring_shape_t *shape);

hce_status_t hce_ring_build(const hce_plan_params_t *params, const char *path,
                            const hce_ring_shape_t *shape,
                            hce_plan_t **plan_p);

/* Why a rank's plan would be too large, or NULL. */
const char *hce_ring_refuse(const hce_plan_params_t *params);

/* Where a direction leads. */
int hce_ring_next(const hce_layout_t *layout, int node, int dir);

/* Adds slices ranks' worth of a part to the traffic of a link. */
void hce_ring_add_traffic(const hce_ring_part_t *part, uint64_t slices,
                          uint64_t *bytes_p, uint64_t *puts_p);

#endif
