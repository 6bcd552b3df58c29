/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 */
#include "config.h"

#include "shapes.h"

#include "direct/direct.h"
#include "flat/flat.h"
#include "ring/ring.h"
#include "util/math.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_NODES     12
#define MAX_NODE_SIZE 8
#define LIMIT         (UINT64_C(1) << 44) /* enough for all that is drawn */
#define MAX_RANKS     (MAX_NODES * MAX_NODE_SIZE)

static const hce_plan_builder_t *const builders[] = {
    &hce_direct_allgather,
    &hce_eager_allgather,
    &hce_ring_allgather,
    &hce_ring_short_allgather,
    &hce_flat_allgather,
};

static uint64_t below(uint64_t *state, uint64_t limit)
{
    return hce_rand_next(state) % limit;
}

/* 1..limit, each power of two as likely as the others. */
static uint64_t log_below(uint64_t *state, uint64_t limit)
{
    int bits = 0;

    while (limit >> bits > 1) {
        bits++;
    }
    bits = below(state, bits + 1);
    return hce_min((UINT64_C(1) << bits) + below(state, UINT64_C(1) << bits),
                   limit);
}

/* Nodes of equal or any sizes; ranks in blocks, in turn, or anywhere. */
static int draw_colors(uint64_t *state, int *color)
{
    int nodes = 1 + below(state, MAX_NODES), size[MAX_NODES], nranks = 0;
    int equal = 1 + below(state, MAX_NODE_SIZE), i, j, left;
    bool uneven = below(state, 2);

    for (i = 0; i < nodes; i++) {
        size[i] = uneven ? 1 + (int)below(state, MAX_NODE_SIZE) : equal;
        for (j = 0; j < size[i]; j++) {
            color[nranks++] = i;
        }
    }
    switch (below(state, 3)) {
    case 0:
        break;
    case 1: /* in turn, as long as a node has ranks left */
        for (j = 0, left = 0; left < nranks; j++) {
            for (i = 0; i < nodes; i++) {
                if (j < size[i]) {
                    color[left++] = i;
                }
            }
        }
        break;
    default:
        for (i = nranks - 1; i > 0; i--) {
            int other = below(state, i + 1), swap = color[i];

            color[i] = color[other];
            color[other] = swap;
        }
    }
    return nranks;
}

uint64_t shape_ops(const hce_plan_builder_t *builder,
                   const hce_layout_t *layout, uint64_t chunks)
{
    uint64_t ranks = layout->nranks, ready;

    if (builder == &hce_flat_allgather) {
        return ranks * (1 + chunks * ranks);
    }
    if (builder == &hce_eager_allgather) {
        return ranks * (ranks + 2) + (uint64_t)layout->nnodes * layout->nnodes;
    }
    if (builder == &hce_direct_allgather) {
        ready = ranks * (layout->max_node_size - 1 + layout->nnodes - 1);
        return ready + ranks * chunks * (2 * layout->nnodes - 1);
    }
    /* From both neighbours; each half may have a chunk more. */
    ready = ranks * (3 * layout->max_node_size - 1);
    return ready + ranks * (chunks + 1) * (2 * layout->nnodes - 1);
}

/* Bytes that make about so many chunks, and often odd ones. */
static void draw_bytes(uint64_t *state, uint64_t chunks,
                       hce_plan_params_t *params)
{
    params->width = log_below(state, 64 * HCE_MIB);
    switch (below(state, 8)) {
    case 0:
        params->len = below(state, 5);
        params->width = hce_max(params->width, 5 / chunks + 1);
        break;
    case 1: /* the width must grow */
        params->len = chunks * 64 * HCE_PLAN_MAX_CHUNKS;
        if (chunks == HCE_PLAN_MAX_CHUNKS) {
            params->width = 1 + below(state, 64);
        } else {
            params->width = params->len / chunks;
        }
        break;
    default:
        params->len = params->width * chunks - below(state, params->width);
    }
}

void shape_draw(uint64_t seed, uint64_t index, uint64_t max_ops,
                shape_t *shape_p)
{
    uint64_t state = seed * UINT64_C(0x100000001b3) + index, chunks;
    const hce_plan_builder_t *builder;
    int color[MAX_RANKS], nranks;
    hce_layout_t *layout = NULL;

    do {
        hce_layout_destroy(layout);
        nranks = draw_colors(&state, color);
        if (hce_layout_create(nranks, color, &layout) != HCE_OK) {
            abort();
        }
        builder =
            builders[below(&state, sizeof(builders) / sizeof(builders[0]))];
    } while (shape_ops(builder, layout, 1) > max_ops);

    chunks = log_below(&state, HCE_PLAN_MAX_CHUNKS);
    while (shape_ops(builder, layout, chunks) > max_ops) {
        chunks = (chunks + 1) / 2;
    }
    *shape_p = (shape_t){.builder = builder, .layout = layout};
    shape_p->params = (hce_plan_params_t){
        .layout = layout,
        .coll = HCE_COLL_ALLGATHER,
        .limits = {.scratch = LIMIT,
                   .parcel = LIMIT,
                   .reads = below(&state, 2),
                   .pulls = below(&state, 2)},
        .contexts = log_below(&state, HCE_PLAN_MAX_CONTEXTS),
        .carriers = below(&state, 2) * log_below(&state, MAX_NODE_SIZE),
        .dirs = builder == &hce_ring_short_allgather ? 2
                                                     : 1 + below(&state, 2),
    };
    draw_bytes(&state, chunks, &shape_p->params);
}

void shape_make(const hce_plan_builder_t *builder, const char *nodes,
                int nranks, hce_layout_map_t map, shape_t *shape_p)
{
    int *color = calloc(nranks, sizeof(*color));
    const char *why;

    *shape_p = (shape_t){.builder = builder};
    if (color == NULL ||
        hce_layout_parse(nodes, map, nranks, color, &why) != HCE_OK ||
        hce_layout_create(nranks, color, &shape_p->layout) != HCE_OK) {
        abort();
    }
    free(color);
    shape_p->params = (hce_plan_params_t){
        .layout = shape_p->layout,
        .limits = {.scratch = LIMIT, .parcel = LIMIT, .reads = true,
                   .pulls = true},
        .coll = HCE_COLL_ALLGATHER,
        .contexts = 1,
        .width = 1,
    };
}

void shape_free(shape_t *shape)
{
    hce_layout_destroy(shape->layout);
}

void shape_print(const shape_t *shape)
{
    const hce_plan_params_t *params = &shape->params;
    int i;

    printf("%s, %" PRIu64 " bytes a rank, width %" PRIu64 ", contexts %d, "
           "carriers %d, directions %d, node of each rank:",
           shape->builder->path, params->len, params->width, params->contexts,
           params->carriers, params->dirs);
    for (i = 0; i < shape->layout->nranks; i++) {
        printf(" %d", shape->layout->node[i]);
    }
    putchar('\n');
}
