/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The verifier's words: faults, and names of ops and counters in them.
 */
#include "config.h"

#include "plan/verify_priv.h"

#include "plan/show.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

const char *hce_verify_reserve(const hce_verify_report_t *report)
{
    return report->is_untraced ? "; what comes through scratch memory is "
                                 "counted, not traced"
                               : "";
}

bool hce_verify_fault(hce_verify_t *v, const char *format, ...)
{
    va_list args;

    if (v->status != HCE_OK) {
        return false;
    }
    v->status = HCE_ERR_INTERNAL;
    va_start(args, format);
    vsnprintf(v->report->text, sizeof(v->report->text), format, args);
    va_end(args);
    return false;
}

bool hce_verify_no_memory(hce_verify_t *v)
{
    hce_verify_fault(v, "out of memory while verifying");
    if (v->status == HCE_ERR_INTERNAL) {
        v->status = HCE_ERR_NO_MEMORY;
    }
    return false;
}

const char *hce_verify_name_op(const hce_verify_t *v, uint32_t op_index,
                               char name[HCE_VERIFY_NAME_SIZE])
{
    int rank = hce_verify_op_rank(v, op_index);
    const hce_plan_t *plan = v->plans[rank];
    uint32_t index = op_index - v->op_base[rank];
    const hce_plan_op_t *op = &plan->ops[index];
    const hce_plan_lane_t *lane = &plan->lanes[op->lane];
    char peer[40] = "";

    if (lane->kind == HCE_LANE_PROXY) {
        snprintf(peer, sizeof(peer), ", peer %d, context %u", lane->peer,
                 lane->context);
    } else if (lane->peer >= 0) {
        snprintf(peer, sizeof(peer), ", rank %d", lane->peer);
    }
    snprintf(name, HCE_VERIFY_NAME_SIZE,
             "rank %d op %u (%s of %" PRIu64 " bytes, lane %u: %s%s)", rank,
             index, hce_plan_kind_string(op->kind), op->len, op->lane,
             hce_plan_lane_kind_string(lane->kind), peer);
    return name;
}

const char *hce_verify_name_counter(const hce_verify_counter_t *counter,
                                    char name[HCE_VERIFY_NAME_SIZE])
{
    char slot[HCE_PLAN_NAME_SIZE];

    snprintf(name, HCE_VERIFY_NAME_SIZE, "counter '%s' of rank %d by rank %d",
             hce_plan_slot_string(counter->slot, slot), counter->owner,
             counter->writer);
    return name;
}
