/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Plans of the paths "ring" and "ring_short": rings over nodes, in which
 * chunks are sent on as soon as they have arrived. Pure.
 */
#ifndef HCE_RING_RING_H
#define HCE_RING_RING_H

#include "plan/plan.h"

/* Half-rings by payload: one half of each slice goes around clockwise, the
 * other counter-clockwise, N - 1 hops each. With params.dirs 1 the whole
 * slice goes clockwise. */
extern const hce_plan_builder_t hce_ring_allgather;

/* Half-rings by distance: whole slices go (N - 1) / 2 hops either way; where
 * N is even, the slices of the opposite node come as two halves. */
extern const hce_plan_builder_t hce_ring_short_allgather;

/* Bytes of the clockwise half of a slice: floor(len / 2), or a single byte. */
uint64_t hce_ring_cw_len(uint64_t len);

#endif
