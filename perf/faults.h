/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Planted faults: what one rank does wrong on request, so that tests can see
 * that the library and the checks notice.
 */
#ifndef HCE_PERF_FAULTS_H
#define HCE_PERF_FAULTS_H

#include "opts.h"

#include <stddef.h>

/* A call about to be made. */
typedef struct hce_perf_call {
    size_t count;
    hce_datatype_t type;
    hce_call_params_t params;
} hce_perf_call_t;

/* Before call number (from 1) of rank: sleeps, ends this process or changes
 * *call as the faults say. */
void hce_perf_faults_apply(const hce_perf_faults_t *faults, int rank,
                           uint64_t number, hce_perf_call_t *call);

#endif
