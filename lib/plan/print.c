/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Names, and the table of ops that people read.
 */
#include "config.h"

#include "plan/show.h"

#include <inttypes.h>
#include <stdlib.h>

const char *hce_plan_kind_string(hce_plan_kind_t kind)
{
    static const char *const names[] = {
        [HCE_OP_COPY] = "copy",
        [HCE_OP_PUT] = "put",
        [HCE_OP_REDUCE] = "reduce",
        [HCE_OP_SIGNAL] = "signal",
    };

    return names[kind];
}

const char *hce_plan_buf_string(hce_plan_buf_t buf)
{
    static const char *const names[] = {
        [HCE_BUF_SEND] = "send",
        [HCE_BUF_RECV] = "recv",
        [HCE_BUF_SCRATCH] = "scratch",
        [HCE_BUF_STAGE] = "stage",
    };

    return names[buf];
}

const char *hce_plan_lane_kind_string(hce_plan_lane_kind_t kind)
{
    static const char *const names[] = {
        [HCE_LANE_ENTRY] = "entry",
        [HCE_LANE_PROXY] = "proxy",
        [HCE_LANE_COPY] = "copy",
        [HCE_LANE_REDUCE] = "reduce",
    };

    return names[kind];
}

const char *hce_plan_coll_string(hce_coll_t coll)
{
    static const char *const names[] = {
        [HCE_COLL_ALLGATHER] = "all_gather",
        [HCE_COLL_REDUCE_SCATTER] = "reduce_scatter",
        [HCE_COLL_ALLREDUCE] = "all_reduce",
    };

    return names[coll];
}

const char *hce_plan_slot_string(int slot, char name[HCE_PLAN_NAME_SIZE])
{
    int flow = slot - HCE_SLOT_FLOW;

    if (slot == HCE_SLOT_READY) {
        return "ready";
    }
    if (slot < HCE_SLOT_NET) {
        snprintf(name, HCE_PLAN_NAME_SIZE, "flow %s %d",
                 flow < HCE_PLAN_MAX_CONTEXTS ? "cw" : "ccw",
                 flow % HCE_PLAN_MAX_CONTEXTS);
    } else {
        snprintf(name, HCE_PLAN_NAME_SIZE, "local %d", slot - HCE_SLOT_LOCAL);
    }
    return name;
}

static void print_head(const hce_plan_t *plan, FILE *out)
{
    const hce_plan_params_t *params = &plan->params;
    hce_plan_totals_t totals;

    hce_plan_count(plan, &totals);
    fprintf(out,
            "%s %s, rank %d of %d on node %d of %d, %" PRIu64
            " bytes a rank, %s, chunks of %" PRIu64 ", contexts %d\n",
            hce_plan_coll_string(params->coll), plan->path, params->rank,
            params->layout->nranks, params->layout->node[params->rank],
            params->layout->nnodes, params->len,
            params->in_place ? "in place" : "out of place",
            hce_plan_chunk_width(params->len, params->width),
            params->contexts);
    fprintf(out,
            "%u ops in %u lanes; %" PRIu64 " puts of %" PRIu64
            " bytes, %" PRIu64 " copies of %" PRIu64 " bytes\n",
            plan->num_ops, plan->num_lanes, totals.puts, totals.put_bytes,
            totals.copies, totals.copy_bytes);
}

static void print_lanes(const hce_plan_t *plan, FILE *out)
{
    uint32_t i;

    for (i = 0; i < plan->num_lanes; i++) {
        const hce_plan_lane_t *lane = &plan->lanes[i];

        fprintf(out, "lane %u: %s", i, hce_plan_lane_kind_string(lane->kind));
        if (lane->peer >= 0) {
            fprintf(out, ", rank %d", lane->peer);
        }
        if (lane->kind == HCE_LANE_PROXY) {
            fprintf(out, ", %s, context %u",
                    lane->direction == 0 ? "cw" : "ccw", lane->context);
        }
        fprintf(out, ", %u ops\n", lane->num_ops);
    }
}

static void print_ref(const hce_plan_ref_t *ref, FILE *out)
{
    fprintf(out, " %s(%d)+%" PRIu64, hce_plan_buf_string(ref->buf), ref->rank,
            ref->offset);
    if (ref->depth > 1) {
        fprintf(out, "[%u x %" PRIu64 "]", ref->depth, ref->stride);
    }
}

static void print_wait(const hce_plan_wait_t *wait, FILE *out)
{
    char name[HCE_PLAN_NAME_SIZE];

    fprintf(out, " %s(%d)>=%" PRId64, hce_plan_slot_string(wait->slot, name),
            wait->writer, wait->value);
}

static void print_op(const hce_plan_t *plan, const hce_plan_op_t *op,
                     FILE *out)
{
    char name[HCE_PLAN_NAME_SIZE];
    int i;

    fprintf(out, "%-6s lane %u, %" PRIu64 " bytes%s",
            hce_plan_kind_string(op->kind), op->lane, op->len,
            op->is_last ? ", last" : "");
    for (i = 0; i < op->num_src + op->num_dst; i++) {
        fputs(i == 0 ? ":" : i == op->num_src ? " ->" : "", out);
        print_ref(&plan->refs[op->ref + i], out);
    }
    for (i = 0; i < op->num_wait; i++) {
        fputs(i == 0 ? "; waits" : "", out);
        print_wait(&plan->waits[op->wait + i], out);
    }
    for (i = 0; i < op->num_post; i++) {
        const hce_plan_post_t *post = &plan->posts[op->post + i];

        fprintf(out, "%s %s(%d)=%" PRId64, i == 0 ? "; posts" : "",
                hce_plan_slot_string(post->slot, name), post->owner,
                post->value);
    }
    fputc('\n', out);
}

void hce_plan_print(const hce_plan_t *plan, FILE *out)
{
    uint32_t i;

    print_head(plan, out);
    print_lanes(plan, out);
    for (i = 0; i < plan->num_ops; i++) {
        fprintf(out, "%6u ", i);
        print_op(plan, &plan->ops[i], out);
    }
    fputs("  done", out);
    for (i = 0; i < plan->num_done_wait; i++) {
        print_wait(&plan->waits[plan->done_wait + i], out);
    }
    fputc('\n', out);
}
