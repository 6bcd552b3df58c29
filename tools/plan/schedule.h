/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * When each op of all ranks' plans would run, if every chunk took one step:
 * each op starts as early as its counters, its lane and its resource allow.
 * A context of a rank puts one chunk a step in each direction, whoever the
 * peer; every other lane runs one op a step. Ops of no bytes take no time.
 * This orders events for a picture; it is no model of a machine.
 */
#ifndef HCE_TOOLS_PLAN_SCHEDULE_H
#define HCE_TOOLS_PLAN_SCHEDULE_H

#include "plan/read.h"

#define HCE_TOOLS_NEVER INT32_MAX

typedef struct hce_tools_schedule {
    int32_t **start;    /* [rank][op], steps; or HCE_TOOLS_NEVER */
    int32_t *completed; /* [rank] when done holds; or HCE_TOOLS_NEVER */
    int32_t steps;      /* until the last op has ended */
    uint64_t num_never; /* ops that cannot start: the plans are stuck */
    int stuck_rank;     /* the first of them */
    uint32_t stuck_op;
} hce_tools_schedule_t;

/* Plans of all ranks. late_rank enters late_steps after the others; none if
 * it is negative. False: no memory. */
bool hce_tools_schedule_create(const hce_plan_set_t *set, int late_rank,
                               int late_steps, hce_tools_schedule_t *s_p);
void hce_tools_schedule_destroy(const hce_plan_set_t *set,
                                hce_tools_schedule_t *s);

static inline int hce_tools_op_steps(const hce_plan_op_t *op)
{
    return op->len > 0 ? 1 : 0;
}

#endif
