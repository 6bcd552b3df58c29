/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * What ops move: puts, alone or as parcels, and copies in quanta. An op is
 * started once its waits are met, then stepped until its data are done.
 */
#include "config.h"

#include "core/run.h"

#include <assert.h>

#include "core/comm.h"
#include "reduce/reduce.h"
#include "util/math.h"

static void start_put(hce_comm_h comm, const hce_plan_op_t *op,
                      hce_run_lane_t *state)
{
    const hce_plan_t *plan = comm->run.launch->plan;
    const hce_plan_ref_t *src = &plan->refs[op->ref], *dst = src + 1;
    hce_proxy_put_t *put = &state->put;

    put->src = hce_run_place(comm, src);
    put->mem = hce_run_place_mem(comm, src);
    put->len = op->len;
    put->remote_addr = hce_run_place_remote(comm, dst, &put->key);
    put->peer = dst->rank;
    put->context = plan->lanes[op->lane].context;
    put->posted = 0;
    if (op->len > 0) /* else it is a signal, as plans count it */
        hce_stats_count_put(&comm->stats, dst->rank, put->context, op->len);
}

/* A put that tells of my entry carries it. */
static bool is_parcel(hce_comm_h comm, const hce_plan_op_t *op)
{
    return op->kind == HCE_OP_PUT && op->num_post > 0 &&
           comm->run.launch->plan->posts[op->post].slot == HCE_SLOT_READY;
}

static hce_status_t post_parcel(hce_comm_h comm, const hce_plan_op_t *op,
                                hce_run_lane_t *state)
{
    const hce_plan_post_t *post = &comm->run.launch->plan->posts[op->post];
    const hce_entry_t *entry = &comm->run.launch->entry;
    uint32_t index = hce_plan_counter_index(comm->layout, post->owner,
                                            post->slot);
    hce_proxy_letter_t letter = {
        .payload = entry,
        .len = HCE_ENTRY_CALL_SIZE,
        .parity = (int)(entry->call.number % 2),
        .slot = post->slot,
        .value = comm->run.out_base[index] + (uint64_t)post->value,
    };
    hce_status_t status;

    assert(op->num_post == 1 && post->owner == state->put.peer);
    status = hce_proxy_parcel(comm->proxy, &state->put, &letter);
    if (status == HCE_OK)
        state->posted = 1;
    return status == HCE_ERR_NO_RESOURCE ? HCE_INPROGRESS : status;
}

/* HCE_OK: the data are on their way, in order before a signal to the peer. */
static hce_status_t step_put(hce_comm_h comm, const hce_plan_op_t *op,
                             hce_run_lane_t *state)
{
    hce_status_t status = is_parcel(comm, op)
                              ? post_parcel(comm, op, state)
                              : hce_proxy_put(comm->proxy, &state->put);

    if (status < 0)
        hce_fault_on_transport(comm, state->put.peer, status,
                               "a put was refused");
    return status;
}

static void start_copy(hce_comm_h comm, const hce_plan_op_t *op,
                       hce_run_lane_t *state)
{
    const hce_plan_ref_t *dst =
        &comm->run.launch->plan->refs[op->ref + op->num_src];
    unsigned i;

    state->copied = 0;
    for (i = 0; i < op->num_dst && op->len > 0; i++)
        hce_stats_count_copy(&comm->stats, dst[i].rank, op->len);
}

/* The next len bytes of a source, put to into if they are not in reach. */
static hce_status_t find_source(hce_comm_h comm, const hce_plan_ref_t *ref,
                                uint64_t done, size_t len, void *into,
                                const void **at_p)
{
    hce_ce_dst_t place = hce_run_place_node(comm, ref);
    hce_status_t status;

    if (ref->rank == comm->rank) {
        *at_p = hce_run_place(comm, ref) + done;
        return HCE_OK;
    }
    place.offset += done;
    status = hce_ce_read(comm->ce, &place, len, into, at_p);
    if (status != HCE_OK)
        hce_fault_on_transport(comm, ref->rank, status,
                               "a read of its memory failed");
    return status;
}

static hce_status_t spread(hce_comm_h comm, const hce_ce_copy_t *copy)
{
    int bad_lrank = 0;
    hce_status_t status = hce_ce_copy(comm->ce, copy, &bad_lrank);

    if (status < 0 && status != HCE_ERR_NO_RESOURCE)
        hce_fault_on_transport(
            comm,
            hce_layout_rank(comm->layout, comm->layout->node[comm->rank],
                            bad_lrank),
            status, "a copy into its memory failed");
    return status;
}

/* One quantum of a copy. */
static hce_status_t step_copy(hce_comm_h comm, const hce_plan_op_t *op,
                              hce_run_lane_t *state)
{
    const hce_plan_ref_t *src = &comm->run.launch->plan->refs[op->ref];
    const hce_plan_ref_t *dst = src + op->num_src;
    hce_ce_dst_t dsts[HCE_RUN_MAX_DSTS];
    hce_ce_copy_t copy = {
        .len = hce_min(op->len - state->copied, HCE_CE_QUANTUM),
        .dsts = dsts,
        .num_dsts = op->num_dst,
        .streaming = comm->run.is_streaming,
    };
    char *into = comm->run.bounce;
    hce_status_t status;
    unsigned i;

    if (copy.len == 0)
        return HCE_OK;
    for (i = 0; i < op->num_dst; i++) {
        dsts[i] = hce_run_place_node(comm, &dst[i]);
        dsts[i].offset += state->copied;
    }
    if (op->num_dst == 1 && dst->rank == comm->rank)
        into = hce_run_place(comm, dst) + state->copied;
    status = find_source(comm, src, state->copied, copy.len, into, &copy.src);
    if (status == HCE_OK && (copy.src != into || into == comm->run.bounce))
        status = spread(comm, &copy);
    if (status != HCE_OK)
        return status;
    state->copied += copy.len;
    return state->copied == op->len ? HCE_OK : HCE_INPROGRESS;
}

/* Where destinations are here; false if one of them is not mapped. */
static bool map_dsts(const hce_ce_dst_t *dsts, int num, void **at)
{
    int i;

    for (i = 0; i < num; i++) {
        if (dsts[i].target->how != HCE_CE_MAP)
            return false;
        at[i] = dsts[i].target->local + dsts[i].offset;
    }
    return true;
}

/* Sources of a quantum that begins at done; those that are not mapped are
 * read into the bounce buffer, one behind the other. */
static hce_status_t find_sources(hce_comm_h comm, const hce_plan_op_t *op,
                                 uint64_t done, size_t len, const void **at)
{
    const hce_plan_ref_t *refs = &comm->run.launch->plan->refs[op->ref];
    hce_status_t status = HCE_OK;
    char *into = comm->run.bounce;
    unsigned i;

    assert(op->num_src <= comm->layout->max_node_size + 1);
    for (i = 0; i < op->num_src && status == HCE_OK; i++) {
        into += HCE_RUN_REDUCE_QUANTUM; /* the first part is for the sum */
        status = find_source(comm, &refs[i], done, len, into, &at[i]);
    }
    return status;
}

/* One quantum of a reduction: straight to its destinations if all of them are
 * mapped, else by way of the bounce buffer. */
static hce_status_t step_reduce(hce_comm_h comm, const hce_plan_op_t *op,
                                hce_run_lane_t *state)
{
    const hce_plan_t *plan = comm->run.launch->plan;
    const hce_plan_ref_t *dst = &plan->refs[op->ref + op->num_src];
    const void *srcs[HCE_RUN_MAX_DSTS + 1];
    hce_ce_dst_t dsts[HCE_RUN_MAX_DSTS];
    void *at[HCE_RUN_MAX_DSTS] = {comm->run.bounce};
    hce_reduce_kernel_t kernel;
    hce_reduce_args_t args = {.srcs = srcs, .num_srcs = op->num_src,
                              .dsts = at, .num_dsts = op->num_dst,
                              .streaming = comm->run.is_streaming};
    hce_ce_copy_t copy = {.dsts = dsts, .num_dsts = op->num_dst,
                          .src = comm->run.bounce};
    hce_status_t status;
    unsigned i;

    copy.len = hce_min(op->len - state->copied, HCE_RUN_REDUCE_QUANTUM);
    if (copy.len == 0)
        return HCE_OK;
    status = hce_reduce_kernel_find(plan->params.op, plan->params.datatype,
                                    &kernel);
    if (status == HCE_OK)
        status = find_sources(comm, op, state->copied, copy.len, srcs);
    if (status != HCE_OK)
        return status;
    for (i = 0; i < op->num_dst; i++) {
        dsts[i] = hce_run_place_node(comm, &dst[i]);
        dsts[i].offset += state->copied;
    }
    if (op->is_last && plan->params.op == HCE_AVG)
        args.divisor = (uint32_t)hce_comm_size(comm);
    args.end = copy.len / kernel.elem_size;
    if (map_dsts(dsts, op->num_dst, at)) {
        hce_reduce_run(&kernel, &args);
    } else {
        at[0] = comm->run.bounce;
        args.num_dsts = 1;
        hce_reduce_run(&kernel, &args);
        status = spread(comm, &copy);
    }
    if (status != HCE_OK)
        return status;
    state->copied += copy.len;
    return state->copied == op->len ? HCE_OK : HCE_INPROGRESS;
}

void hce_run_move_start(hce_comm_h comm, const hce_plan_op_t *op,
                        hce_run_lane_t *state)
{
    if (op->kind == HCE_OP_PUT)
        start_put(comm, op, state);
    else if (op->kind == HCE_OP_COPY)
        start_copy(comm, op, state);
    else
        state->copied = 0;
}

hce_status_t hce_run_move(hce_comm_h comm, const hce_plan_op_t *op,
                          hce_run_lane_t *state)
{
    switch (op->kind) {
    case HCE_OP_PUT:
        return step_put(comm, op, state);
    case HCE_OP_COPY:
        return step_copy(comm, op, state);
    case HCE_OP_REDUCE:
        return step_reduce(comm, op, state);
    default: /* HCE_OP_SIGNAL */
        return HCE_OK;
    }
}
