/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * hce_plan show: the ops of one rank or of all.
 */
#include "config.h"

#include "commands.h"
#include "source.h"

#include "plan/show.h"

#include <stdlib.h>

/* One rank's object, or a list of the objects of all ranks. */
static bool show_json(const hce_plan_set_t *set, bool list, FILE *out)
{
    hce_status_t status = HCE_OK;
    int i;

    for (i = 0; status == HCE_OK && i < set->num; i++) {
        if (list) {
            fputs(i == 0 ? "[\n" : ",\n", out);
        }
        status = hce_plan_write_json(set->plans[i], out);
    }
    if (list) {
        fputs("]\n", out);
    }
    return status == HCE_OK;
}

static void show_table(const hce_plan_set_t *set, FILE *out)
{
    int i;

    for (i = 0; i < set->num; i++) {
        if (i > 0) {
            fputc('\n', out);
        }
        hce_plan_print(set->plans[i], out);
    }
}

int hce_tools_show(const hce_tools_opts_t *opts, FILE *out)
{
    int rank = opts->rank;
    hce_plan_set_t set;
    bool ok = true;

    if (rank == HCE_TOOLS_NOT_GIVEN) {
        rank = opts->from != NULL ? HCE_TOOLS_ALL_RANKS : 0;
    }
    if (!hce_tools_source_open(opts, rank, &set)) {
        return HCE_TOOLS_EXIT_FAULT;
    }
    if (opts->json) {
        ok = show_json(&set, rank == HCE_TOOLS_ALL_RANKS, out);
    } else {
        show_table(&set, out);
    }
    hce_plan_set_cleanup(&set);
    return ok ? EXIT_SUCCESS : HCE_TOOLS_EXIT_FAULT;
}
