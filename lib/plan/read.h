/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Plans from JSON, as hce_plan_write_json or anybody else wrote it. The text
 * is trusted in nothing: what is read is safe to print, to verify and to
 * draw, but need not be right.
 */
#ifndef HCE_PLAN_READ_H
#define HCE_PLAN_READ_H

#include <stdio.h>
#include "plan/plan.h"

#define HCE_PLAN_READ_WHY_SIZE  256
#define HCE_PLAN_READ_MAX_RANKS 16384 /* counters have 32-bit numbers */

/* Limits of numbers, so that no sum of them can overflow. */
#define HCE_PLAN_READ_MAX_BYTES (INT64_C(1) << 48)
#define HCE_PLAN_READ_MAX_VALUE (INT64_C(1) << 40)

/* Some ranks' plans of one call, with the layout that they refer to. */
typedef struct hce_plan_set {
    hce_layout_t *layout;
    hce_plan_t **plans;
    int num;
} hce_plan_set_t;

/* One plan, or a list of plans. On failure why says what was expected where:
 * HCE_ERR_INVALID_ARG, HCE_ERR_NO_MEMORY, or HCE_ERR_UNSUPPORTED in a build
 * without jansson. Nothing is logged. */
hce_status_t hce_plan_set_read(FILE *in, hce_plan_set_t *set_p,
                               char why[HCE_PLAN_READ_WHY_SIZE]);
void hce_plan_set_cleanup(hce_plan_set_t *set);

#endif
