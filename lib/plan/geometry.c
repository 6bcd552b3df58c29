/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Arithmetic that all plans share: where a counter is, how a slice is cut
 * into chunks, what a plan moves.
 */
#include "config.h"

#include "plan/plan.h"

#include "util/math.h"

#include <assert.h>
#include <string.h>

/* A widened chunk is whole cache lines, so that neighbours share none. */
#define WIDTH_UNIT 64

int hce_plan_local_slots(const hce_layout_t *layout)
{
    return HCE_SLOT_LOCAL + HCE_PLAN_SLICE_LANES * layout->nranks;
}

uint32_t hce_plan_num_counters(const hce_layout_t *layout)
{
    /* The largest node counts, so that all ranks have equally many. */
    return (uint32_t)layout->nranks * HCE_SLOT_NET +
           (uint32_t)layout->max_node_size * HCE_PLAN_SLICE_LANES *
               layout->nranks;
}

uint32_t hce_plan_counter_index(const hce_layout_t *layout, int writer,
                                int slot)
{
    assert(slot >= 0 && slot < hce_plan_local_slots(layout));

    if (slot < HCE_SLOT_NET) {
        return (uint32_t)writer * HCE_SLOT_NET + slot;
    }
    return (uint32_t)layout->nranks * HCE_SLOT_NET +
           (uint32_t)layout->lrank[writer] * HCE_PLAN_SLICE_LANES *
               layout->nranks +
           (slot - HCE_SLOT_LOCAL);
}

uint64_t hce_plan_send_len(const hce_plan_params_t *params)
{
    return params->coll == HCE_COLL_REDUCE_SCATTER
               ? params->len * (uint64_t)params->layout->nranks
               : params->len;
}

uint64_t hce_plan_recv_len(const hce_plan_params_t *params)
{
    return params->coll == HCE_COLL_ALLGATHER
               ? params->len * (uint64_t)params->layout->nranks
               : params->len;
}

uint64_t hce_plan_chunk_width(uint64_t len, uint64_t width)
{
    assert(width >= 1);

    if (hce_div_up(len, width) <= HCE_PLAN_MAX_CHUNKS) {
        return width;
    }
    return hce_round_up(hce_div_up(len, HCE_PLAN_MAX_CHUNKS), WIDTH_UNIT);
}

uint32_t hce_plan_num_chunks(uint64_t len, uint64_t width)
{
    return hce_max(hce_div_up(len, hce_plan_chunk_width(len, width)), 1u);
}

hce_plan_chunks_t hce_plan_chunks(const hce_plan_params_t *params)
{
    return (hce_plan_chunks_t){
        .len = params->len,
        .width = hce_plan_chunk_width(params->len, params->width),
        .count = hce_plan_num_chunks(params->len, params->width),
        .contexts = params->contexts,
    };
}

uint64_t hce_plan_chunk_len(const hce_plan_chunks_t *chunks, uint32_t j)
{
    assert(j < chunks->count);
    return hce_min(chunks->width, chunks->len - j * chunks->width);
}

uint32_t hce_plan_context_chunks(const hce_plan_chunks_t *chunks,
                                 uint32_t context)
{
    if (context >= chunks->count) {
        return 0;
    }
    return (chunks->count - context - 1) / chunks->contexts + 1;
}

void hce_plan_count(const hce_plan_t *plan, hce_plan_totals_t *totals_p)
{
    uint32_t i;

    memset(totals_p, 0, sizeof(*totals_p));
    for (i = 0; i < plan->num_ops; i++) {
        const hce_plan_op_t *op = &plan->ops[i];

        if (op->len == 0) {
            continue;
        }
        if (op->kind == HCE_OP_PUT) {
            totals_p->puts++;
            totals_p->put_bytes += op->len;
        } else if (op->kind == HCE_OP_COPY) {
            totals_p->copies += op->num_dst;
            totals_p->copy_bytes += op->len * op->num_dst;
        }
    }
}
