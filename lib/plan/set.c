/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 */
#include "config.h"

#include "plan/read.h"

#include <stdlib.h>
#include <string.h>

void hce_plan_set_cleanup(hce_plan_set_t *set)
{
    int i;

    for (i = 0; i < set->num; i++) {
        hce_plan_destroy(set->plans[i]);
    }
    free(set->plans);
    hce_layout_destroy(set->layout);
    memset(set, 0, sizeof(*set));
}

#ifndef HCE_HAVE_JANSSON

hce_status_t hce_plan_set_read(FILE *in, hce_plan_set_t *set_p,
                               char why[HCE_PLAN_READ_WHY_SIZE])
{
    snprintf(why, HCE_PLAN_READ_WHY_SIZE, "this build has no jansson");
    return HCE_ERR_UNSUPPORTED;
}

#endif
