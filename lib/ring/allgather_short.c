/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * AllGather by half-rings by distance: a slice goes both ways, whole, to the
 * nodes that are nearest that way. Where the number of nodes is even, one
 * node lies opposite, and the last hop to it is made by one half from either
 * side. As many bytes as the ring by payload, in half as many hops.
 */
#include "config.h"

#include "ring/ring.h"

#include "ring/build.h"

static void short_shape(const hce_plan_params_t *params,
                        hce_ring_shape_t *shape)
{
    int nnodes = params->layout->nnodes;

    *shape = (hce_ring_shape_t){
        .dirs = 2,
        .whole_hops = (nnodes - 1) / 2,
        .hops = nnodes / 2,
    };
    if (shape->hops > shape->whole_hops) {
        hce_ring_cut_halves(params, shape);
    } else {
        hce_ring_cut_whole(params, shape);
    }
}

static hce_status_t short_build(const hce_plan_params_t *params,
                                hce_plan_t **plan_p)
{
    hce_ring_shape_t shape;

    short_shape(params, &shape);
    return hce_ring_build(params, hce_ring_short_allgather.path, &shape,
                          plan_p);
}

static const char *short_refuse(const hce_plan_params_t *params)
{
    return params->dirs == 1 && params->layout->nnodes > 1
               ? "half-rings by distance need both directions"
               : hce_ring_refuse(params);
}

/* A link carries whole slices of the nodes up to whole_hops - 1 behind its
 * beginning, and one half of those of the next. */
static void short_traffic(const hce_plan_params_t *params, int from_node,
                          int to_node, uint64_t *bytes_p, uint64_t *puts_p)
{
    const hce_layout_t *layout = params->layout;
    hce_ring_shape_t shape;
    int dir, hop, part, node;

    short_shape(params, &shape);
    *bytes_p = 0;
    *puts_p = 0;
    for (dir = 0; dir < shape.dirs && from_node != to_node; dir++) {
        if (hce_ring_next(layout, from_node, dir) != to_node) {
            continue;
        }
        node = from_node;
        for (hop = 0; hop < shape.hops; hop++) {
            for (part = 0; part < shape.num_parts; part++) {
                if (hop < shape.whole_hops || part == dir) {
                    hce_ring_add_traffic(&shape.parts[part],
                                         (uint64_t)layout->node_size[node],
                                         bytes_p, puts_p);
                }
            }
            node = hce_ring_next(layout, node, 1 - dir);
        }
    }
}

const hce_plan_builder_t hce_ring_short_allgather = {
    .path = "ring_short",
    .coll = HCE_COLL_ALLGATHER,
    .build = short_build,
    .refuse = short_refuse,
    .traffic = short_traffic,
};
