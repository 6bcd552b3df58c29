/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Steps and bytes of paths; fitting alpha and beta to measurements.
 */
#include "config.h"

#include "model/cost.h"

#include <math.h>
#include <string.h>

#define EAGER_MAX_HOPS 8 /* nodes; as the builder of eager has it */

static int smallest_node(const hce_layout_t *layout)
{
    int node, least = layout->node_size[0];

    for (node = 1; node < layout->nnodes; node++)
        if (layout->node_size[node] < least)
            least = layout->node_size[node];
    return least;
}

/* The most links by which a ring over ranks 0..R-1 enters one node. */
static int most_entries(const hce_layout_t *layout)
{
    int node, i, rank, most = 0;

    for (node = 0; node < layout->nnodes; node++) {
        int entries = 0;

        for (i = 0; i < layout->node_size[node]; i++) {
            rank = hce_layout_rank(layout, node, i);
            entries +=
                layout->node[(rank + layout->nranks - 1) % layout->nranks] !=
                node;
        }
        most = entries > most ? entries : most;
    }
    return most;
}

/* All leaders send to all, or with many nodes in steps that double. */
static double eager_steps(const hce_layout_t *layout)
{
    return layout->nnodes <= EAGER_MAX_HOPS ? 1 : ceil(log2(layout->nnodes));
}

bool hce_cost_allgather(const char *path, const hce_layout_t *layout,
                        uint64_t len, hce_cost_terms_t *terms_p)
{
    int nnodes = layout->nnodes, nranks = layout->nranks;
    /* Into the node that has least itself, all slices of the others come; on
     * a single node, all slices are copied. */
    double slices = nnodes > 1 ? nranks - smallest_node(layout) : nranks;
    double steps;

    if (strcmp(path, "direct") == 0) {
        steps = 1;
    } else if (strcmp(path, "ring") == 0) {
        steps = nnodes > 1 ? nnodes - 1 : 1;
    } else if (strcmp(path, "ring_short") == 0) {
        steps = nnodes > 1 ? nnodes / 2 : 1;
    } else if (strcmp(path, "eager") == 0) {
        steps = eager_steps(layout);
    } else if (strcmp(path, "flat") == 0) {
        steps = nranks > 1 ? nranks - 1 : 1;
        if (nnodes > 1)
            slices = (double)(nranks - 1) * most_entries(layout);
    } else {
        return false;
    }
    *terms_p =
        (hce_cost_terms_t){.steps = steps, .bytes = slices * (double)len};
    return true;
}

double hce_cost_seconds(const hce_cost_terms_t *terms,
                        const hce_cost_figure_t *figure)
{
    return terms->steps * figure->alpha_s + terms->bytes / figure->beta_bps;
}

/* Sums of the normal equations: each sample is divided by its time. */
typedef struct fit {
    double ss, sb, bb; /* steps and bytes */
    double s1, b1;     /* with the time, which is 1 */
} fit_t;

static double fit_error(const hce_cost_sample_t *samples, size_t num,
                        double alpha, double inverse)
{
    double sum = 0;
    size_t i;

    for (i = 0; i < num; i++) {
        double e = (alpha * samples[i].terms.steps +
                    inverse * samples[i].terms.bytes) /
                       samples[i].seconds -
                   1;

        sum += e * e;
    }
    return sqrt(sum / (double)num);
}

bool hce_cost_fit(const hce_cost_sample_t *samples, size_t num,
                  hce_cost_figure_t *figure_p, double *error_p)
{
    double det, alpha, inverse;
    fit_t f = {0};
    size_t i;

    for (i = 0; i < num; i++) {
        double s = samples[i].terms.steps / samples[i].seconds;
        double b = samples[i].terms.bytes / samples[i].seconds;

        f.ss += s * s;
        f.sb += s * b;
        f.bb += b * b;
        f.s1 += s;
        f.b1 += b;
    }
    det = f.ss * f.bb - f.sb * f.sb;
    if (num < 2 || !(det > 1e-12 * f.ss * f.bb))
        return false;
    alpha = (f.s1 * f.bb - f.b1 * f.sb) / det;
    inverse = (f.b1 * f.ss - f.s1 * f.sb) / det;
    /* The best on the border, where the best of all lies beyond it. */
    if (alpha < 0) {
        alpha = 0;
        inverse = f.b1 / f.bb;
    } else if (!(inverse > 0)) {
        return false; /* more bytes take no longer: nothing was measured */
    }
    *figure_p = (hce_cost_figure_t){.alpha_s = alpha, .beta_bps = 1 / inverse};
    *error_p = fit_error(samples, num, alpha, inverse);
    return true;
}
