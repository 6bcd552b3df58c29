/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * A changed call never reaches beyond the buffers of the right one.
 */
#include <config.h>

#include "faults.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>

static void sleep_ms(int ms)
{
    struct timespec left = {ms / 1000, (long)(ms % 1000) * 1000000};

    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        continue;
}

static void change_path(hce_call_params_t *params)
{
    bool is_flat = (params->field_mask & HCE_CALL_PARAM_PATH) != 0 &&
                   strcmp(params->path, "flat") == 0;

    params->path = is_flat ? "direct" : "flat";
    params->field_mask |= HCE_CALL_PARAM_PATH;
}

static void change_call(hce_perf_mismatch_t what, hce_perf_call_t *call)
{
    switch (what) {
    case HCE_PERF_MISMATCH_COUNT:
        call->count -= call->count > 0;
        break;
    case HCE_PERF_MISMATCH_TYPE: /* the same bytes, called otherwise */
        call->count *= hce_datatype_size(call->type);
        call->type = call->type == HCE_INT8 ? HCE_UINT8 : HCE_INT8;
        break;
    case HCE_PERF_MISMATCH_PATH:
        change_path(&call->params);
        break;
    }
}

void hce_perf_faults_apply(const hce_perf_faults_t *faults, int rank,
                           uint64_t number, hce_perf_call_t *call)
{
    if (faults->delay_rank == rank)
        sleep_ms(faults->delay_ms);
    if (faults->kill_rank == rank && number == (uint64_t)faults->kill_call)
        raise(SIGKILL);
    if (faults->mismatch_rank == rank && number == 1)
        change_call(faults->mismatch, call);
}
