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
#include "core/dispatch.h"
#include "plan/plan.h"

#define HCE_PLANS_SIZE 32

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

/* The plan for a call: from the cache, or built, its peers connected and (in
 * a debug build) verified. Give it back with hce_plans_put. */
hce_status_t hce_plans_get(hce_comm_h comm, const hce_dispatch_call_t *call,
                           bool in_place, const hce_dispatch_choice_t *choice,
                           hce_plans_item_t **item_p);
void hce_plans_put(hce_plans_item_t *item);
void hce_plans_cleanup(hce_plans_t *plans);

#endif
