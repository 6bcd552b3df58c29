/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * AllGather by half-rings by payload. Each slice is split into a clockwise
 * and a counter-clockwise half, and each half makes N - 1 hops in its
 * direction. In one direction only, the whole slice goes clockwise: half the
 * flows, where both directions would share a port.
 */
#include "config.h"

#include "ring/ring.h"

#include "ring/build.h"

static void ring_shape(const hce_plan_params_t *params,
                       hce_ring_shape_t *shape)
{
    *shape = (hce_ring_shape_t){
        .dirs = params->dirs == 1 ? 1 : 2,
        .hops = params->layout->nnodes - 1,
    };
    if (shape->dirs == 1) {
        hce_ring_cut_whole(params, shape);
    } else {
        hce_ring_cut_halves(params, shape);
    }
}

static hce_status_t ring_build(const hce_plan_params_t *params,
                               hce_plan_t **plan_p)
{
    hce_ring_shape_t shape;

    ring_shape(params, &shape);
    return hce_ring_build(params, hce_ring_allgather.path, &shape, plan_p);
}

/* A link carries a part of every slice but those of the node it leads to. */
static void ring_traffic(const hce_plan_params_t *params, int from_node,
                         int to_node, uint64_t *bytes_p, uint64_t *puts_p)
{
    const hce_layout_t *layout = params->layout;
    hce_ring_shape_t shape;
    int dir;

    ring_shape(params, &shape);
    *bytes_p = 0;
    *puts_p = 0;
    for (dir = 0; dir < shape.dirs && from_node != to_node; dir++) {
        if (hce_ring_next(layout, from_node, dir) == to_node) {
            hce_ring_add_traffic(
                &shape.parts[dir],
                (uint64_t)(layout->nranks - layout->node_size[to_node]),
                bytes_p, puts_p);
        }
    }
}

const hce_plan_builder_t hce_ring_allgather = {
    .path = "ring",
    .coll = HCE_COLL_ALLGATHER,
    .build = ring_build,
    .refuse = hce_ring_refuse,
    .traffic = ring_traffic,
};
