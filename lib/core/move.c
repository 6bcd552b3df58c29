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

void hce_run_move_start(hce_comm_h comm, const hce_plan_op_t *op,
                        hce_run_lane_t *state)
{
    if (op->kind == HCE_OP_PUT)
        start_put(comm, op, state);
    else if (op->kind == HCE_OP_COPY)
        start_copy(comm, op, state);
}

hce_status_t hce_run_move(hce_comm_h comm, const hce_plan_op_t *op,
                          hce_run_lane_t *state)
{
    switch (op->kind) {
    case HCE_OP_PUT:
        return step_put(comm, op, state);
    case HCE_OP_COPY:
        return step_copy(comm, op, state);
    case HCE_OP_SIGNAL:
        return HCE_OK;
    default: /* no builder makes others yet; the dispatcher cannot choose it */
        return HCE_ERR_INTERNAL;
    }
}
