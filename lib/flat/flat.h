/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Plans of the path "flat": the baseline to compare with. Pure.
 */
#ifndef HCE_FLAT_FLAT_H
#define HCE_FLAT_FLAT_H

#include "plan/plan.h"

/* A ring over all ranks in order, as if there were no nodes. */
extern const hce_plan_builder_t hce_flat_allgather;

#endif
