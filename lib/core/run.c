/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The life of a launch: started when its stream has reached it, run until its
 * lanes have ended and the completion waits hold, then completed.
 */
#include "config.h"

#include "core/run.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/comm.h"
#include "core/quiet.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/math.h"

/* A launch that does not move is looked at this often. */
#define LOOK_NS (20 * HCE_NS_PER_MS)

/* How long the puts of a launch that failed may take to end. */
#define DRAIN_NS (1 * HCE_NS_PER_SEC)

/* Bytes read and written on the node. AllGather: each slice is read once and
 * written to every rank. Reductions: inputs are read, outputs written. */
static uint64_t footprint(hce_comm_h comm, const hce_plan_t *plan)
{
    const hce_plan_params_t *params = &plan->params;
    const hce_layout_t *layout = comm->layout;
    uint64_t local = (uint64_t)layout->node_size[layout->node[comm->rank]];

    if (params->coll == HCE_COLL_ALLGATHER)
        return (local + 1) * hce_plan_recv_len(params);
    return local * (hce_plan_send_len(params) + hce_plan_recv_len(params));
}

/* A quantum of a copy, or of a reduction: of each source that a node has, of
 * one from elsewhere, and of the sum. */
static size_t bounce_len(hce_comm_h comm)
{
    size_t parts = (size_t)comm->layout->max_node_size + 2;

    return hce_max(parts * HCE_RUN_REDUCE_QUANTUM, (size_t)HCE_CE_QUANTUM);
}

hce_status_t hce_run_init(hce_comm_h comm)
{
    hce_run_t *run = &comm->run;
    uint32_t counters = hce_plan_num_counters(comm->layout);

    memset(run, 0, sizeof(*run));
    run->counters = hce_ce_counters(comm->ce);
    run->in_base = calloc(counters, sizeof(*run->in_base));
    run->out_base = calloc(counters, sizeof(*run->out_base));
    run->peers = calloc((size_t)hce_comm_size(comm), sizeof(*run->peers));
    run->bounce = malloc(bounce_len(comm));
    if (run->in_base == NULL || run->out_base == NULL ||
        run->peers == NULL || run->bounce == NULL) {
        hce_log(ERROR, CORE, "no memory for %u counters", counters);
        hce_run_cleanup(comm);
        return HCE_ERR_NO_MEMORY;
    }
    return HCE_OK;
}

void hce_run_cleanup(hce_comm_h comm)
{
    hce_run_t *run = &comm->run;

    free(run->in_base);
    free(run->out_base);
    free(run->peers);
    free(run->bounce);
    free(run->lanes);
    free(run->active);
    memset(run, 0, sizeof(*run));
}

hce_status_t hce_run_reserve(hce_comm_h comm, const hce_plan_t *plan)
{
    hce_run_t *run = &comm->run;
    hce_status_t status = HCE_OK;
    hce_run_lane_t *lanes;
    uint32_t *active;

    if (plan->num_lanes <= run->lanes_size)
        return HCE_OK;
    hce_engine_acquire(); /* a running launch uses them */
    lanes = realloc(run->lanes, plan->num_lanes * sizeof(*lanes));
    if (lanes != NULL)
        run->lanes = lanes;
    active = realloc(run->active, plan->num_lanes * sizeof(*active));
    if (active != NULL)
        run->active = active;
    if (lanes == NULL || active == NULL)
        status = HCE_ERR_NO_MEMORY;
    else
        run->lanes_size = plan->num_lanes;
    hce_engine_release();
    return status;
}

bool hce_run_is_met(hce_comm_h comm, const hce_plan_wait_t *wait)
{
    const hce_run_t *run = &comm->run;
    uint32_t index;

    /* READY counts once the peer's call has been compared with mine. */
    if (wait->slot == HCE_SLOT_READY && wait->value == 1)
        return run->peers[wait->writer].is_ready;
    index = hce_plan_counter_index(comm->layout, wait->writer, wait->slot);
    return hce_counter_geq(hce_counter_read(&run->counters[index]),
                           run->in_base[index] + (uint64_t)wait->value);
}

static void set_state(hce_comm_h comm, hce_run_state_t state)
{
    hce_run_state_t was = comm->run.state;

    assert((was == HCE_RUN_IDLE && state == HCE_RUN_LANES) ||
           (was == HCE_RUN_LANES && state == HCE_RUN_ARRIVALS) ||
           state == HCE_RUN_IDLE);
    hce_log(TRACE, CORE, "launch state %d to %d", was, state);
    comm->run.state = state;
}

static void start(hce_comm_h comm, hce_launch_t *launch)
{
    hce_run_t *run = &comm->run;
    const hce_plan_t *plan = launch->plan;
    uint32_t i;

    run->launch = launch;
    run->num_active = 0;
    for (i = 0; i < plan->num_lanes; i++) {
        memset(&run->lanes[i], 0, sizeof(run->lanes[i]));
        if (plan->lanes[i].num_ops > 0)
            run->active[run->num_active++] = i;
    }
    run->first_copy = 0;
    run->done_wait = 0;
    if (plan->scratch_len > 0 || plan->stage_len > 0)
        run->slot = comm->scratch.launches++;
    run->is_streaming = hce_ce_streams(footprint(comm, plan));
    hce_run_peers_start(comm);
    hce_run_stall_start(comm);
    set_state(comm, HCE_RUN_LANES);
}

static bool are_arrivals_in(hce_comm_h comm)
{
    hce_run_t *run = &comm->run;
    const hce_plan_t *plan = run->launch->plan;

    while (run->done_wait < plan->num_done_wait &&
           hce_run_is_met(comm, &plan->waits[plan->done_wait +
                                             run->done_wait]))
        run->done_wait++;
    return run->done_wait == plan->num_done_wait && run->num_unready == 0;
}

/* The bases of the next launch: the same sums at writer and reader. */
static void add_rises(hce_comm_h comm, const hce_plan_t *plan)
{
    hce_run_t *run = &comm->run;
    uint32_t i;

    for (i = 0; i < plan->num_in; i++)
        run->in_base[hce_plan_counter_index(comm->layout, plan->in[i].rank,
                                            plan->in[i].slot)] +=
            (uint64_t)plan->in[i].rise;
    for (i = 0; i < plan->num_out; i++)
        run->out_base[hce_plan_counter_index(comm->layout, plan->out[i].rank,
                                             plan->out[i].slot)] +=
            (uint64_t)plan->out[i].rise;
}

/* The launch is over, well or not: its stream goes on, its slot is free. */
static void complete(hce_comm_h comm, hce_launch_t *launch)
{
    atomic_fetch_add_explicit(&comm->stats.calls, 1, memory_order_relaxed);
    hce_stream_complete(launch->stream, launch->ticket);
    hce_queue_pop(&comm->queue);
}

static void end(hce_comm_h comm)
{
    hce_launch_t *launch = comm->run.launch;

    hce_run_peers_end(comm);
    hce_run_stall_end(comm);
    hce_scratch_complete(comm, launch->entry.call.number);
    add_rises(comm, launch->plan);
    comm->run.launch = NULL;
    set_state(comm, HCE_RUN_IDLE);
    complete(comm, launch);
}

static bool has_pending_puts(const hce_run_t *run)
{
    uint32_t i;

    for (i = 0; i < run->num_active; i++)
        if (run->lanes[run->active[i]].put.req.pending > 0)
            return true;
    return false;
}

/* Does anybody still use the buffers of the launch that failed? */
static bool is_in_use(hce_comm_h comm, bool must_tell)
{
    bool has_puts = has_pending_puts(&comm->run);
    int rank;

    if (!hce_quiet_are_peers(comm, &rank)) {
        if (must_tell)
            hce_log(WARN, CORE,
                    "rank %d does not answer: it may still write to the "
                    "buffers of the call that failed",
                    rank);
        return true;
    }
    if (has_puts && must_tell)
        hce_log(WARN, CORE,
                "puts of the call that failed do not end: its buffers may "
                "still be read");
    return has_puts;
}

/* After an error nothing more is started. The launch is given back when its
 * puts have ended, which read its buffers, and no node peer writes to them; a
 * peer that is silent may keep them for ever, so that this has a limit. */
static bool fail(hce_comm_h comm)
{
    hce_run_t *run = &comm->run;
    uint64_t now = hce_clock_ns();
    bool is_late;

    if (run->failed_ns == 0)
        run->failed_ns = now;
    run->looked_ns = now;
    is_late = now >= run->failed_ns + DRAIN_NS;
    if (is_in_use(comm, is_late) && !is_late)
        return false;
    run->failed_ns = 0;
    end(comm);
    return true;
}

static bool step(hce_comm_h comm)
{
    hce_run_t *run = &comm->run;
    bool moved = hce_run_peers_progress(comm);

    if (run->state == HCE_RUN_LANES) {
        moved |= hce_run_lanes_progress(comm);
        if (run->num_active == 0)
            set_state(comm, HCE_RUN_ARRIVALS);
    }
    if (run->state == HCE_RUN_ARRIVALS && are_arrivals_in(comm)) {
        end(comm);
        return true;
    }
    return moved;
}

static bool start_next(hce_comm_h comm)
{
    hce_launch_t *launch = hce_queue_head(&comm->queue);

    if (launch == NULL || !hce_stream_reached(launch->stream, launch->ticket))
        return false;
    if (hce_fault_status(&comm->fault) == HCE_OK)
        start(comm, launch);
    else
        complete(comm, launch);
    return true;
}

bool hce_run_progress(hce_comm_h comm)
{
    hce_run_t *run = &comm->run;
    bool moved = false;
    bool is_well = hce_fault_status(&comm->fault) == HCE_OK;
    uint64_t now;

    if (!is_well)
        hce_quiet_set(comm);
    if (run->state == HCE_RUN_IDLE && !start_next(comm))
        return false;
    if (run->state == HCE_RUN_IDLE)
        return true;
    if (!is_well)
        return fail(comm);
    moved = step(comm);
    if (run->state == HCE_RUN_IDLE)
        return true;
    now = hce_clock_ns();
    if (moved)
        run->moved_ns = now;
    if (now >= run->looked_ns + LOOK_NS)
        hce_run_stall_check(comm, now);
    return moved;
}

uint64_t hce_run_next_ns(const hce_run_t *run)
{
    return run->state == HCE_RUN_IDLE ? HCE_TIME_NEVER
                                      : run->looked_ns + LOOK_NS;
}
