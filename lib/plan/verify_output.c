/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Is what a rank's output holds at its completion what the collective says?
 * AllGather: each slice is its rank's. Reductions: sums of all, added up in
 * one order where all ranks have them.
 */
#include "config.h"

#include "plan/verify_content.h"

#include "util/math.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static bool content_fault_output(hce_verify_content_t *c, int rank, int slice,
                                 uint32_t index)
{
    const hce_verify_area_t *area = hce_verify_content_area(c, rank, slice);
    const hce_verify_segment_t *s = &area->segments[index];
    uint64_t base = slice * c->v->len, start = base + s->start;
    uint64_t end = base + hce_verify_area_end(area, index);

    if (s->value.set == HCE_VERIFY_NONE) {
        return hce_verify_fault(c->v,
                                "bytes %" PRIu64 " to %" PRIu64 " of the "
                                "output of rank %d were never written",
                                start, end, rank);
    }
    return hce_verify_fault(
        c->v,
        "bytes %" PRIu64 " to %" PRIu64 " of the output of rank %d hold byte "
        "%" PRIu64
        " and on of %s %u in launch %u, not of rank %d in launch %d",
        start, end, rank, s->value.offset,
        s->value.set < (uint32_t)c->v->nranks ? "rank" : "set", s->value.set,
        s->value.launch, slice, c->launch);
}

static bool content_check_slice(hce_verify_content_t *c, int rank, int slice,
                                uint32_t launch)
{
    const hce_verify_area_t *area = hce_verify_content_area(c, rank, slice);
    uint32_t i;

    for (i = 0; i < area->num; i++) {
        const hce_verify_value_t *value = &area->segments[i].value;

        if (value->set != (uint32_t)slice || value->launch != launch ||
            value->offset != area->segments[i].start) {
            return content_fault_output(c, rank, slice, i);
        }
    }
    return true;
}

/* Bytes from at to end of an area are the sum of all ranks' bytes there. */
static bool content_check_sum(hce_verify_content_t *c, int rank,
                              const hce_verify_area_t *area, uint64_t end)
{
    uint64_t offset = hce_verify_coll(c->v) == HCE_COLL_REDUCE_SCATTER
                          ? rank * c->v->len
                          : 0;
    bool whole = area->len == c->v->len;
    uint32_t i;

    for (i = 0; i < area->num && area->segments[i].start < end; i++) {
        const hce_verify_segment_t *s = &area->segments[i];
        uint64_t at = whole ? s->start + offset : s->start;

        if (!whole && hce_verify_area_end(area, i) <= offset) {
            continue;
        }
        if (s->value.set != c->full || s->value.offset != at ||
            s->value.launch != (uint32_t)c->launch) {
            return hce_verify_fault(
                c->v,
                "launch %d: the output of rank %d at byte %" PRIu64 " is not "
                "the sum of all ranks' (set %u, byte %" PRIu64
                ", launch %u)",
                c->launch, rank, at - offset, s->value.set, s->value.offset,
                s->value.launch);
        }
    }
    return true;
}

/* All outputs of an AllReduce are added up in the same order, that of the
 * first one that was complete: so they are equal to the last bit. */
static bool content_check_orders(hce_verify_content_t *c, int rank)
{
    const hce_verify_area_t *area = hce_verify_content_area(c, rank, 0);
    uint32_t i = 0, k = 0;
    size_t size = area->num * sizeof(*c->orders);

    if (c->orders == NULL) {
        c->orders = malloc(size);
        if (c->orders == NULL) {
            return hce_verify_no_memory(c->v);
        }
        memcpy(c->orders, area->segments, size);
        c->num_orders = area->num;
    }
    while (i < area->num && k < c->num_orders) {
        uint64_t here = hce_verify_area_end(area, i);
        uint64_t there = k + 1 < c->num_orders ? c->orders[k + 1].start
                                               : area->len;

        if (area->segments[i].value.order != c->orders[k].value.order) {
            return hce_verify_fault(
                c->v,
                "launch %d: the output of rank %d at byte %" PRIu64 " is "
                "added up in another order than another rank's",
                c->launch, rank,
                hce_max(area->segments[i].start, c->orders[k].start));
        }
        i += here <= there;
        k += there <= here;
    }
    return true;
}

static bool content_check_reduced(hce_verify_content_t *c, int rank)
{
    uint64_t at = 0;
    int index = hce_verify_output_index(c->v, rank, &at);
    const hce_verify_area_t *area = hce_verify_content_area(c, rank, index);

    return content_check_sum(c, rank, area, at + c->v->len) &&
           (hce_verify_coll(c->v) != HCE_COLL_ALLREDUCE ||
            content_check_orders(c, rank));
}

bool hce_verify_content_check(hce_verify_content_t *c, int rank, int launch)
{
    int slice;

    c->launch = launch;
    if (c->v->len == 0) {
        return true;
    }
    if (hce_verify_coll(c->v) != HCE_COLL_ALLGATHER) {
        return content_check_reduced(c, rank);
    }
    for (slice = 0; slice < c->v->nranks; slice++) {
        if (!content_check_slice(c, rank, slice, launch)) {
            return false;
        }
    }
    return true;
}
