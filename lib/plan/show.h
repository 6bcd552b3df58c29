/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Plans as text for people (a table of ops) and as JSON for programs; the
 * format of the latter is in docs/PLAN.md.
 */
#ifndef HCE_PLAN_SHOW_H
#define HCE_PLAN_SHOW_H

#include <stdio.h>
#include "plan/plan.h"

#define HCE_PLAN_NAME_SIZE 24 /* of a slot or a collective */

const char *hce_plan_kind_string(hce_plan_kind_t kind);
const char *hce_plan_buf_string(hce_plan_buf_t buf);
const char *hce_plan_lane_kind_string(hce_plan_lane_kind_t kind);
const char *hce_plan_coll_string(hce_coll_t coll);

/* "ready", "flow cw 3", "local 0"; returns name. */
const char *hce_plan_slot_string(int slot, char name[HCE_PLAN_NAME_SIZE]);

/* One rank's plan, an op a line in plan order. */
void hce_plan_print(const hce_plan_t *plan, FILE *out);

/* One rank's plan as a JSON object. HCE_ERR_UNSUPPORTED in a build without
 * jansson. */
hce_status_t hce_plan_write_json(const hce_plan_t *plan, FILE *out);

#endif
