/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Plans of the paths "direct" and "eager": straight to where data belong, in
 * one hop between nodes, one pass inside a node. Pure.
 */
#ifndef HCE_DIRECT_DIRECT_H
#define HCE_DIRECT_DIRECT_H

#include "plan/plan.h"

/* Every rank puts its slice to its carrier on each remote node; carriers and
 * owners spread slices over their node. */
extern const hce_plan_builder_t hce_direct_allgather;

/* Small slices: no handshake, through slots of scratch memory; in log2 hops
 * where there are many nodes. */
extern const hce_plan_builder_t hce_eager_allgather;

/* In one pass over the inputs of all ranks; one node. */
extern const hce_plan_builder_t hce_direct_reduce_scatter;
extern const hce_plan_builder_t hce_direct_allreduce;

#endif
