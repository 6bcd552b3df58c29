/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The list of variants, from the library's table of paths.
 */
#include <config.h>

#include "variants.h"

#include "core/paths.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A ring in one direction is another path to measure, unless it was said in
 * how many it is to send, or there is nowhere to send. */
static bool has_both(const hce_perf_job_t *job,
                     const hce_plan_builder_t *builder)
{
    return strcmp(builder->path, "ring") == 0 && job->attr.num_nodes > 1 &&
           !(job->opts->call.field_mask & HCE_CALL_PARAM_DIRS);
}

static void add(const hce_perf_job_t *job, const char *path, int dirs,
                hce_perf_variant_t *variant)
{
    variant->call = job->opts->call;
    variant->call.path = path;
    variant->call.field_mask |= HCE_CALL_PARAM_PATH;
    if (dirs > 0) {
        variant->call.dirs = dirs;
        variant->call.field_mask |= HCE_CALL_PARAM_DIRS;
    }
    snprintf(variant->label, sizeof(variant->label), "%s%s", path,
             dirs == 1 ? ", 1 dir" : "");
}

static int add_each(const hce_perf_job_t *job, hce_perf_variant_t *list)
{
    int i, num = 0;

    for (i = 0; hce_paths[i] != NULL; i++) {
        if (hce_paths[i]->coll != job->opts->coll->number)
            continue;
        if (has_both(job, hce_paths[i])) {
            add(job, hce_paths[i]->path, 2, &list[num++]);
            add(job, hce_paths[i]->path, 1, &list[num++]);
        } else {
            add(job, hce_paths[i]->path, 0, &list[num++]);
        }
    }
    return num;
}

hce_status_t hce_perf_variants_create(hce_perf_job_t *job,
                                      hce_perf_variant_t **variants_p,
                                      int *num_p)
{
    hce_perf_variant_t *list;
    int i, most = 1;

    for (i = 0; hce_paths[i] != NULL; i++)
        most += 2;
    list = calloc((size_t)most, sizeof(*list));
    if (list == NULL)
        return hce_perf_job_fail(job, HCE_ERR_NO_MEMORY, "list of paths");
    if (job->opts->each) {
        *num_p = add_each(job, list);
    } else {
        list[0].call = job->opts->call;
        *num_p = 1;
    }
    *variants_p = list;
    return HCE_OK;
}
