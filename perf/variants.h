/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * What is measured one after the other at each size: the calls as the command
 * line describes them or, with --path each, every path there is.
 */
#ifndef HCE_PERF_VARIANTS_H
#define HCE_PERF_VARIANTS_H

#include "job.h"

typedef struct hce_perf_variant {
    char label[24]; /* "ring, 1 dir" */
    hce_call_params_t call;
} hce_perf_variant_t;

/* The same on all ranks. Freed by free(). */
hce_status_t hce_perf_variants_create(hce_perf_job_t *job,
                                      hce_perf_variant_t **variants_p,
                                      int *num_p);

#endif
