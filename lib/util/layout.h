/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Which rank is on which node: pure integers, shared by topology, plans and
 * core. Nodes are numbered in order of their lowest rank.
 */
#ifndef HCE_UTIL_LAYOUT_H
#define HCE_UTIL_LAYOUT_H

#include <hce/hce.h>

typedef struct hce_layout {
    int nranks;
    int nnodes;
    int max_node_size;
    int *node;       /* [nranks] node of a rank */
    int *lrank;      /* [nranks] index of a rank in its node */
    int *node_size;  /* [nnodes] */
    int *node_first; /* [nnodes] where a node starts in ranks[] */
    int *ranks;      /* [nranks] ranks, node by node, ascending in each */
} hce_layout_t;

/* color[r]: any number >= 0, equal for the ranks of one node. The layout
 * keeps no reference to it. Destroy with hce_layout_destroy. */
hce_status_t hce_layout_create(int nranks, const int *color,
                               hce_layout_t **layout_p);
void hce_layout_destroy(hce_layout_t *layout);

/* Rank with local rank lrank on node. */
static inline int hce_layout_rank(const hce_layout_t *layout, int node,
                                  int lrank)
{
    return layout->ranks[layout->node_first[node] + lrank];
}

/* How many ranks of node carry slices, where at most most are wanted; 0: all
 * of them. */
static inline int hce_layout_carriers(const hce_layout_t *layout, int most,
                                      int node)
{
    int size = layout->node_size[node];

    return most > 0 && most < size ? most : size;
}

/* The rank of node that carries (receives, sends on and spreads) the slice
 * of rank, with most carriers a node. With all of them the owner itself is
 * the carrier on its own node. */
static inline int hce_layout_carrier(const hce_layout_t *layout, int most,
                                     int rank, int node)
{
    return hce_layout_rank(layout, node,
                           layout->lrank[rank] %
                               hce_layout_carriers(layout, most, node));
}

static inline int hce_layout_same_node(const hce_layout_t *layout, int a,
                                       int b)
{
    return layout->node[a] == layout->node[b];
}

/* "4" = nodes of equal size, "3,1,2" = sizes; map block or cyclic. Fills
 * color[nranks]. HCE_ERR_INVALID_ARG with *why_p set to a static text. */
typedef enum { HCE_LAYOUT_BLOCK, HCE_LAYOUT_CYCLIC } hce_layout_map_t;
hce_status_t hce_layout_parse(const char *nodes, hce_layout_map_t map,
                              int nranks, int *color, const char **why_p);

#endif
