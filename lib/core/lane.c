/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Lanes of a running launch: the head of each steps when its waits are met.
 * Ops of a lane end in order here, which is stricter than a plan asks.
 */
#include "config.h"

#include "core/comm.h"

/* Most quanta copied in one turn, so that the network is not kept waiting. */
#define COPIES_A_TURN 4

static const hce_plan_op_t *head_op(const hce_plan_t *plan, uint32_t lane,
                                    const hce_run_lane_t *state)
{
    return &plan->ops[plan->lane_ops[plan->lanes[lane].first + state->next]];
}

static bool are_waits_met(hce_comm_h comm, const hce_plan_t *plan,
                          const hce_plan_op_t *op)
{
    unsigned i;

    for (i = 0; i < op->num_wait; i++)
        if (!hce_run_is_met(comm, &plan->waits[op->wait + i]))
            return false;
    return true;
}

static hce_status_t post_remote(hce_comm_h comm, const hce_plan_op_t *op,
                                const hce_plan_lane_t *lane,
                                const hce_plan_post_t *post, uint64_t value)
{
    const hce_entry_t *entry = &comm->run.launch->entry;

    if (post->slot == HCE_SLOT_READY)
        return hce_proxy_message(comm->proxy, post->owner,
                                 (int)(entry->call.number % 2), entry,
                                 sizeof(*entry), post->slot, value);
    return hce_proxy_signal(comm->proxy, post->owner, lane->context,
                            post->slot, value);
}

static hce_status_t make_post(hce_comm_h comm, const hce_plan_op_t *op,
                              const hce_plan_lane_t *lane,
                              const hce_run_lane_t *state)
{
    const hce_plan_post_t *post =
        &comm->run.launch->plan->posts[op->post + state->posted];
    const hce_layout_t *layout = comm->layout;
    uint64_t value =
        comm->run.out_base[hce_plan_counter_index(layout, post->owner,
                                                  post->slot)] +
        (uint64_t)post->value;
    hce_status_t status;

    if (!hce_layout_same_node(layout, comm->rank, post->owner)) {
        status = post_remote(comm, op, lane, post, value);
        if (status < 0 && status != HCE_ERR_NO_RESOURCE)
            hce_fault_on_transport(comm, post->owner, status,
                                   "a signal was refused");
        return status;
    }
    /* A node peer, or I, may use the source once this is seen. */
    if (state->put.req.pending > 0)
        return HCE_INPROGRESS;
    return hce_ce_post(comm->ce, layout->lrank[post->owner],
                       hce_plan_counter_index(layout, comm->rank,
                                              post->slot),
                       value);
}

static void start_op(hce_comm_h comm, const hce_plan_op_t *op,
                     hce_run_lane_t *state)
{
    state->is_started = true;
    state->is_moved = false;
    state->posted = 0;
    hce_run_move_start(comm, op, state);
}

/* One step of the head of a lane: true if something moved. */
static bool step_lane(hce_comm_h comm, uint32_t index)
{
    const hce_plan_t *plan = comm->run.launch->plan;
    const hce_plan_lane_t *lane = &plan->lanes[index];
    hce_run_lane_t *state = &comm->run.lanes[index];
    const hce_plan_op_t *op = head_op(plan, index, state);
    uint64_t before = state->put.posted;
    hce_status_t status;

    if (!state->is_started) {
        if (!are_waits_met(comm, plan, op))
            return false;
        start_op(comm, op, state);
        before = 0;
    }
    if (!state->is_moved) {
        status = hce_run_move(comm, op, state);
        if (status != HCE_OK)
            return op->kind == HCE_OP_PUT ? state->put.posted > before
                                          : status == HCE_INPROGRESS;
        state->is_moved = true;
    }
    for (; state->posted < op->num_post; state->posted++)
        if (make_post(comm, op, lane, state) != HCE_OK)
            return state->put.posted > before;
    state->next++;
    state->is_started = false;
    return true;
}

static bool has_ended(const hce_plan_t *plan, uint32_t index,
                      const hce_run_lane_t *state)
{
    return state->next == plan->lanes[index].num_ops &&
           state->put.req.pending == 0;
}

/* The CPU moves it, in quanta between which the network has its turn. */
static bool is_bulk(const hce_plan_lane_t *lane)
{
    return lane->kind == HCE_LANE_COPY || lane->kind == HCE_LANE_REDUCE;
}

/* All steps that a lane can make now; one that copies or adds makes one. */
static bool progress_lane(hce_comm_h comm, uint32_t index)
{
    const hce_plan_t *plan = comm->run.launch->plan;
    hce_run_lane_t *state = &comm->run.lanes[index];
    bool moved = false;

    while (state->next < plan->lanes[index].num_ops &&
           step_lane(comm, index)) {
        moved = true;
        if (is_bulk(&plan->lanes[index]))
            break;
    }
    if (state->put.req.status != HCE_OK)
        hce_fault_on_transport(comm, state->put.peer, state->put.req.status,
                               "a put failed");
    return moved;
}

/* Lanes that are bulk or not, some of them at most; drops those that have
 * ended. */
static bool progress_kind(hce_comm_h comm, bool bulk, unsigned most)
{
    hce_run_t *run = &comm->run;
    const hce_plan_t *plan = run->launch->plan;
    bool moved = false;
    uint32_t i, k, n = run->num_active, index;

    for (k = 0; k < n && most > 0; k++) {
        i = bulk ? (run->first_copy + k) % n : k;
        index = run->active[i];
        if (is_bulk(&plan->lanes[index]) != bulk)
            continue;
        if (progress_lane(comm, index)) {
            moved = true;
            most--;
        }
    }
    if (bulk)
        run->first_copy = n == 0 ? 0 : (run->first_copy + k) % n;
    return moved;
}

static void drop_ended(hce_run_t *run)
{
    const hce_plan_t *plan = run->launch->plan;
    uint32_t i, kept = 0;

    for (i = 0; i < run->num_active; i++)
        if (!has_ended(plan, run->active[i], &run->lanes[run->active[i]]))
            run->active[kept++] = run->active[i];
    run->num_active = kept;
}

bool hce_run_lanes_progress(hce_comm_h comm)
{
    uint32_t before = comm->run.num_active;
    bool moved = progress_kind(comm, false, UINT32_MAX);

    moved |= progress_kind(comm, true, COPIES_A_TURN);
    drop_ended(&comm->run);
    return moved || comm->run.num_active < before;
}
