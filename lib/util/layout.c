/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The layout is one block of memory: the object, then its five arrays.
 */
#include <config.h>

#include "util/layout.h"
#include "util/log.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* Nodes by their colors: an open hash table, at most half full. Looking
 * through thousands of nodes for each rank would take longer than making a
 * rank's plan. */
typedef struct node_map {
    int *nodes; /* -1: free */
    uint32_t mask;
} node_map_t;

static bool node_map_init(node_map_t *map, int nranks)
{
    uint32_t size = 2;

    while (size < 2 * (uint32_t)nranks)
        size *= 2;
    map->mask = size - 1;
    map->nodes = malloc(size * sizeof(*map->nodes));
    for (uint32_t i = 0; map->nodes != NULL && i < size; i++)
        map->nodes[i] = -1;
    return map->nodes != NULL;
}

/* Where the node is whose first rank has this color, or where it would be. */
static int *node_map_at(const node_map_t *map, const int *first_rank,
                        const int *color, int wanted)
{
    uint32_t at = ((uint32_t)wanted * 0x9e3779b1u) >> 7;

    for (;; at++) {
        int *node = &map->nodes[at & map->mask];

        if (*node < 0 || color[first_rank[*node]] == wanted)
            return node;
    }
}

static hce_layout_t *layout_alloc(int nranks)
{
    size_t n = (size_t)nranks;
    hce_layout_t *layout = calloc(1, sizeof(*layout) + 5 * n * sizeof(int));
    int *arrays;

    if (layout == NULL)
        return NULL;
    arrays = (int *)(layout + 1);
    layout->nranks = nranks;
    layout->node = arrays;
    layout->lrank = arrays + n;
    layout->ranks = arrays + 2 * n;
    layout->node_size = arrays + 3 * n;
    layout->node_first = arrays + 4 * n;
    return layout;
}

/* Nodes by lowest rank. Until layout_order(), node_first[] holds ranks. */
static void layout_number(hce_layout_t *layout, const node_map_t *map,
                          const int *color)
{
    for (int r = 0; r < layout->nranks; r++) {
        int *node = node_map_at(map, layout->node_first, color, color[r]);

        if (*node < 0) {
            *node = layout->nnodes++;
            layout->node_first[*node] = r;
        }
        layout->node[r] = *node;
        layout->lrank[r] = layout->node_size[*node]++;
    }
}

static void layout_order(hce_layout_t *layout)
{
    int at = 0;

    for (int n = 0; n < layout->nnodes; n++) {
        layout->node_first[n] = at;
        at += layout->node_size[n];
        if (layout->node_size[n] > layout->max_node_size)
            layout->max_node_size = layout->node_size[n];
    }
    for (int r = 0; r < layout->nranks; r++) {
        layout->ranks[layout->node_first[layout->node[r]] + layout->lrank[r]] =
            r;
    }
}

hce_status_t hce_layout_create(int nranks, const int *color,
                               hce_layout_t **layout_p)
{
    node_map_t map = {NULL, 0};
    hce_layout_t *layout;

    if (nranks < 1) {
        hce_log(ERROR, UTIL, "layout: %d ranks, expected at least 1", nranks);
        return HCE_ERR_INVALID_ARG;
    }
    for (int r = 0; r < nranks; r++) {
        if (color[r] < 0) {
            hce_log(ERROR, UTIL,
                    "layout: rank %d has node %d, expected at least 0", r,
                    color[r]);
            return HCE_ERR_INVALID_ARG;
        }
    }
    layout = layout_alloc(nranks);
    if (layout == NULL || !node_map_init(&map, nranks)) {
        free(layout);
        hce_log(ERROR, UTIL, "layout: no memory for %d ranks", nranks);
        return HCE_ERR_NO_MEMORY;
    }
    layout_number(layout, &map, color);
    free(map.nodes);
    layout_order(layout);
    *layout_p = layout;
    return HCE_OK;
}

void hce_layout_destroy(hce_layout_t *layout)
{
    free(layout);
}
