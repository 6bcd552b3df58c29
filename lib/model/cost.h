/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Closed forms of what an AllGather costs on each path: steps one after the
 * other, alpha each, and bytes through the port of a node, beta bytes a
 * second. Pure: the dispatcher chooses by them, hce_perf fits them.
 */
#ifndef HCE_MODEL_COST_H
#define HCE_MODEL_COST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "util/layout.h"

/* What a path asks of the network: time = steps * alpha + bytes / beta. */
typedef struct hce_cost_terms {
    double steps;
    double bytes;
} hce_cost_terms_t;

/* What a network gives to a path. */
typedef struct hce_cost_figure {
    double alpha_s;  /* seconds a step */
    double beta_bps; /* bytes a second into a node */
} hce_cost_figure_t;

/* False if there is no closed form for the path. */
bool hce_cost_allgather(const char *path, const hce_layout_t *layout,
                        uint64_t len, hce_cost_terms_t *terms_p);

double hce_cost_seconds(const hce_cost_terms_t *terms,
                        const hce_cost_figure_t *figure);

/* One measurement. */
typedef struct hce_cost_sample {
    hce_cost_terms_t terms;
    double seconds; /* above 0 */
} hce_cost_sample_t;

/* Least squares of the relative error, neither figure below 0. *error_p: the
 * root of the mean square that is left. False: fewer than two samples, or
 * samples that do not tell the two apart. */
bool hce_cost_fit(const hce_cost_sample_t *samples, size_t num,
                  hce_cost_figure_t *figure_p, double *error_p);

/* Built in, for where nothing was measured: by kind of network ("tcp",
 * "rdma", "loop", "none": one node), path and directions of a ring. False if
 * there is none for the path. */
bool hce_cost_builtin(const char *kind, const char *path, int dirs,
                      hce_cost_figure_t *figure_p);

#endif
