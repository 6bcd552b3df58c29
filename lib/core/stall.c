/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * A launch that does not move: who is waited for, has anybody made another
 * call, is the deadline over.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>

#include "core/comm.h"
#include "util/clock.h"
#include "util/log.h"

/* Others' calls are looked for after this time without progress. */
#define STRANGERS_NS (100 * HCE_NS_PER_MS)

/* How long the hub may take to find whom a stall is due to. */
#define VERDICT_NS (5 * HCE_NS_PER_SEC)

/* First unmet wait of the heads of my lanes, or of completion. */
static const hce_plan_wait_t *first_unmet(hce_comm_h comm)
{
    hce_run_t *run = &comm->run;
    const hce_plan_t *plan = run->launch->plan;
    const hce_plan_op_t *op;
    uint32_t i, w, lane;

    for (i = 0; i < run->num_active; i++) {
        lane = run->active[i];
        if (run->lanes[lane].next == plan->lanes[lane].num_ops)
            continue;
        op = &plan->ops[plan->lane_ops[plan->lanes[lane].first +
                                       run->lanes[lane].next]];
        for (w = 0; w < op->num_wait; w++)
            if (!hce_run_is_met(comm, &plan->waits[op->wait + w]))
                return &plan->waits[op->wait + w];
    }
    for (w = run->done_wait; w < plan->num_done_wait; w++)
        if (!hce_run_is_met(comm, &plan->waits[plan->done_wait + w]))
            return &plan->waits[plan->done_wait + w];
    return NULL;
}

static void report(hce_comm_h comm, int waits_for)
{
    hce_boot_report_t mine = {
        .call = comm->run.launch->entry.call.number,
        .waits_for = waits_for,
    };

    hce_boot_set_report(comm->boot, &mine);
}

void hce_run_stall_start(hce_comm_h comm)
{
    comm->run.moved_ns = hce_clock_ns();
    comm->run.looked_ns = comm->run.moved_ns;
    comm->run.is_blamed = false;
    report(comm, -1);
}

/* What was last waited for has come: others may not be told of it for ever. */
void hce_run_stall_end(hce_comm_h comm)
{
    report(comm, -1);
}

/* A rank whose READY I do not expect in this call has entered another one:
 * the plans of our calls do not meet, and no data would ever tell. */
static void look_for_strangers(hce_comm_h comm)
{
    hce_run_t *run = &comm->run;
    const hce_entry_t *mine = &run->launch->entry;
    hce_entry_t theirs;
    uint32_t index;
    int r;

    for (r = 0; r < hce_comm_size(comm); r++) {
        if (r == comm->rank || run->peers[r].is_ready)
            continue;
        index = hce_plan_counter_index(comm->layout, r, HCE_SLOT_READY);
        if (!hce_counter_geq(hce_counter_read(&run->counters[index]),
                             run->in_base[index] + 1))
            continue;
        theirs = *hce_entry_of(comm, r, mine->call.number);
        if (theirs.call.number != mine->call.number)
            continue; /* it is ahead: a later call of another plan */
        if (hce_entry_check(comm, mine, r, &theirs) != HCE_OK)
            return;
    }
}

/* What a wait is for, in words. */
static void describe_wait(const hce_plan_wait_t *wait, char *buf, size_t size)
{
    int flow = wait->slot - HCE_SLOT_FLOW;

    if (wait->slot == HCE_SLOT_READY)
        snprintf(buf, size, "the entry of rank %d", wait->writer);
    else if (wait->slot < HCE_SLOT_NET)
        snprintf(buf, size, "chunk %" PRId64 " of rank %d on context %d",
                 wait->value, wait->writer, flow % HCE_PLAN_MAX_CONTEXTS);
    else
        snprintf(buf, size, "copy %" PRId64 " of rank %d on lane %d",
                 wait->value, wait->writer, wait->slot - HCE_SLOT_LOCAL);
}

static void check_deadline(hce_comm_h comm, uint64_t now,
                           const hce_plan_wait_t *unmet)
{
    hce_run_t *run = &comm->run;
    const hce_launch_t *launch = run->launch;
    uint64_t idle = now - run->moved_ns;
    char call[160], what[80] = "its own transfers";
    char text[400];

    if (launch->timeout_ns == 0 || idle < launch->timeout_ns)
        return;
    hce_entry_describe(&launch->entry.call, call, sizeof(call));
    if (unmet != NULL)
        describe_wait(unmet, what, sizeof(what));
    snprintf(text, sizeof(text), "%s%s%s made no progress for %.1f s, "
             "waiting for %s", launch->name, launch->name[0] ? ": " : "",
             call, (double)idle / HCE_NS_PER_SEC, what);
    if (!run->is_blamed) {
        hce_log(WARN, FAULT, "%s", text);
        hce_boot_stuck(comm->boot, launch->entry.call.number,
                       unmet == NULL ? -1 : unmet->writer, text);
        run->is_blamed = true;
    } else if (idle > launch->timeout_ns + VERDICT_NS) {
        hce_fault_raise(comm, HCE_ERR_TIMEOUT,
                        unmet == NULL ? comm->rank : unmet->writer,
                        "rank %d: %s", comm->rank, text);
    }
}

void hce_run_stall_check(hce_comm_h comm, uint64_t now)
{
    hce_run_t *run = &comm->run;
    bool has_moved = run->moved_ns > run->looked_ns;
    const hce_plan_wait_t *unmet;

    run->looked_ns = now;
    if (has_moved) {
        report(comm, -1);
        return;
    }
    unmet = first_unmet(comm);
    report(comm, unmet == NULL ? -1 : unmet->writer);
    if (now - run->moved_ns >= STRANGERS_NS)
        look_for_strangers(comm);
    hce_fault_check_suspect(comm, now, run->moved_ns);
    check_deadline(comm, now, unmet);
}
