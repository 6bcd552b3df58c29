/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * A small cache of plans: building one allocates, repeating a call does not.
 * Touched by the caller only.
 */
#ifndef HCE_CORE_PLANS_H
#define HCE_CORE_PLANS_H

#include <hce/hce.h>
#include <stdbool.h>
#include "plan/plan.h"

#define HCE_PLANS_SIZE 32

struct hce_dispatch_choice;

typedef struct hce_plans_item {
    hce_plan_t *plan;
    const hce_plan_builder_t *builder;
    uint64_t used;  /* clock of the cache, for replacing the oldest */
    uint32_t users; /* launches that hold it */
    bool is_cached; /* else freed by its last user */
    char line[1024]; /* the choice, for people */
} hce_plans_item_t;

typedef struct hce_plans {
    hce_plans_item_t *items[HCE_PLANS_SIZE];
    uint64_t clock;
} hce_plans_t;

/* What plans depend on beside the choice. */
typedef struct hce_plans_call {
    hce_coll_t coll;
    hce_datatype_t datatype; /* of reductions; else 0, like op */
    hce_redop_t op;
    uint64_t len;
    bool in_place;
} hce_plans_call_t;

/* The plan for a call: from the cache, or built, its peers connected and (in
 * a debug build) verified. Give it back with hce_plans_put. */
hce_status_t hce_plans_get(hce_comm_h comm, const hce_plans_call_t *call,
                           const struct hce_dispatch_choice *choice,
                           hce_plans_item_t **item_p);
void hce_plans_put(hce_plans_item_t *item);
void hce_plans_cleanup(hce_plans_t *plans);

#endif
