/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The paths there are, and the rules for how wide their chunks are: what the
 * dispatcher chooses from, and tools show. Pure: no communicator.
 */
#ifndef HCE_CORE_PATHS_H
#define HCE_CORE_PATHS_H

#include "plan/plan.h"

#define HCE_PATHS_NAMES_SIZE 128
#define HCE_PATHS_WIDTH_UNIT (8 * 1024) /* of widths by rule, bytes */

/* All builders of all collectives, ends with NULL. Those of one collective
 * are in order of preference. */
extern const hce_plan_builder_t *const hce_paths[];

/* NULL if the collective has no path of that name. */
const hce_plan_builder_t *hce_paths_find(hce_coll_t coll, const char *path);

/* "direct, flat": the paths of a collective; returns buf. */
const char *hce_paths_names(hce_coll_t coll, char buf[HCE_PATHS_NAMES_SIZE]);

/* "RMA proxy ring + CE": what moves data on a path; "CE" on one node. */
const char *hce_paths_means(const char *path, bool has_proxy);

/* Bytes of a chunk by rule. Whole slices: min(P/C, 64 MiB) for P bytes a rank
 * and C contexts. Half slices: clamp(P/2/C, 8 MiB, 64 MiB). Both are rounded
 * up to 8 KiB. */
uint64_t hce_paths_width_whole(uint64_t len, int contexts);
uint64_t hce_paths_width_half(uint64_t len, int contexts);

/* The one that a path uses: for half slices where the path cuts slices in
 * halves, from 128 MiB a rank and 4 contexts on, else for whole slices. */
uint64_t hce_paths_width(const char *path, uint64_t len, int contexts);

/* The same, but never wider than what can be spread while the next chunk
 * arrives. */
uint64_t hce_paths_width_auto(const char *path, uint64_t len, int contexts);

#endif
