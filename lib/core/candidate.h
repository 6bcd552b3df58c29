/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Candidates: each path with the geometry it would have for a call, whether
 * it can run, and what it would cost. From facts that all ranks share.
 */
#ifndef HCE_CORE_CANDIDATE_H
#define HCE_CORE_CANDIDATE_H

#include "plan/plan.h"

#define HCE_CANDIDATES_MAX 16

/* What candidates depend on beside the settings. */
typedef struct hce_candidate_call {
    const hce_layout_t *layout;
    hce_plan_limits_t limits;
    const char *kind; /* of network: "tcp", ...; "none": one node */
    const hce_call_params_t *params; /* of the call; never NULL */
    uint64_t len;
    hce_coll_t coll;
    hce_datatype_t datatype; /* of reductions */
    hce_redop_t op;
    int rank;
    int contexts; /* that there are */
} hce_candidate_call_t;

typedef struct hce_candidate {
    const hce_plan_builder_t *builder;
    hce_plan_params_t params;
    const char *refusal; /* why it cannot run, or NULL */
    double seconds;      /* below 0: there are no figures */
} hce_candidate_t;

/* In order of preference. A ring comes once for each number of directions
 * that it may have. Returns how many. */
unsigned hce_candidates_list(const hce_candidate_call_t *call,
                             hce_candidate_t list[HCE_CANDIDATES_MAX]);

/* The cheapest of path, or of all that auto may take where path is NULL; -1:
 * none can run. */
int hce_candidates_best(const hce_candidate_call_t *call,
                        const hce_candidate_t *list, unsigned num,
                        const char *path);

/* "ring", or "ring in 1 direction": returns buf. */
const char *hce_candidate_name(const hce_candidate_t *candidate, char *buf,
                               size_t size);

#endif
