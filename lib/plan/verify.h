/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Proves plans right: replays three launches of all ranks back to back, out
 * of place and in place. What is proved is listed in docs/PLAN.md. Pure.
 */
#ifndef HCE_PLAN_VERIFY_H
#define HCE_PLAN_VERIFY_H

#include "plan/plan.h"

#define HCE_VERIFY_MAX_FULL_RANKS 256

typedef struct hce_verify_report {
    bool full;        /* all ranks replayed, else the checks by rank */
    bool is_untraced; /* what comes through scratch memory was only counted */
    uint64_t ops;     /* looked at */
    char text[512];   /* what was proved, or the first fault: ranks, lane, op,
                         bytes and counters by name */
} hce_verify_report_t;

/* plans[rank] of one launch, the same for all three. builder gives the
 * traffic formula; it may be NULL to skip that check (planted faults).
 * HCE_OK when everything is proved, else HCE_ERR_INTERNAL. */
hce_status_t hce_plan_verify(hce_plan_t *const *plans, int nranks,
                             const hce_plan_builder_t *builder,
                             hce_verify_report_t *report_p);

/* Builds all ranks' plans, out of place and in place, and verifies both;
 * beyond HCE_VERIFY_MAX_FULL_RANKS the checks by rank. */
hce_status_t hce_plan_verify_builder(const hce_plan_builder_t *builder,
                                     const hce_plan_params_t *params,
                                     hce_verify_report_t *report_p);

/* Checks params->rank alone, in the placement of params, for jobs whose plans
 * do not fit into memory together: with each rank that it shares a counter
 * with, both agree on how much that rises; its output is covered exactly by
 * what they put there; what it forwards it has waited for; and on alike nodes
 * its plan is the next node's, turned. */
hce_status_t hce_plan_verify_rank(const hce_plan_builder_t *builder,
                                  const hce_plan_params_t *params,
                                  hce_verify_report_t *report_p);

#endif
