/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * One turn of a communicator: what has come from node peers, from the
 * network and from the control connection, then the running launch.
 */
#include "config.h"

#include "core/pollable.h"

#include "core/comm.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/math.h"

static hce_comm_h comm_of(hce_pollable_t *pollable)
{
    return (hce_comm_h)pollable; /* its first member */
}

static bool progress_ce(hce_comm_h comm)
{
    int bad_lrank = 0;
    hce_status_t status = hce_ce_progress(comm->ce, &bad_lrank);

    if (status >= 0)
        return status == HCE_INPROGRESS;
    if (hce_fault_status(&comm->fault) == HCE_OK) {
        int node = comm->layout->node[comm->rank];
        int rank = hce_layout_rank(comm->layout, node, bad_lrank);

        hce_fault_raise(comm, status, rank,
                        "rank %d wrote to rank %d outside of its buffer",
                        rank, comm->rank);
    }
    return false;
}

/* Release and acquire: what the flush moved is at its target when the caller
 * sees HCE_COMM_LEAVES. */
static void progress_flush(hce_comm_h comm)
{
    if (atomic_load_explicit(&comm->leaving, memory_order_acquire) ==
            HCE_COMM_FLUSHES &&
        hce_proxy_test_flush(comm->proxy) != HCE_INPROGRESS)
        atomic_store_explicit(&comm->leaving, HCE_COMM_LEAVES,
                              memory_order_release);
}

static bool progress(hce_pollable_t *pollable)
{
    hce_comm_h comm = comm_of(pollable);
    bool moved;

    hce_log_set_rank(comm->rank);
    moved = progress_ce(comm);
    if (comm->proxy != NULL) {
        moved |= hce_proxy_progress(comm->proxy, comm->run.counters);
        progress_flush(comm);
    }
    if (hce_clock_ns() >= comm->boot_ns) {
        hce_boot_progress(comm->boot);
        comm->boot_ns = hce_clock_ns() + HCE_COMM_BOOT_NS;
    }
    return hce_run_progress(comm) || moved;
}

static bool is_busy(hce_pollable_t *pollable)
{
    hce_comm_h comm = comm_of(pollable);

    return hce_queue_head(&comm->queue) != NULL ||
           atomic_load_explicit(&comm->leaving, memory_order_relaxed) !=
               HCE_COMM_STAYS;
}

static bool arm(hce_pollable_t *pollable)
{
    hce_comm_h comm = comm_of(pollable);

    comm->boot_ns = 0; /* after the sleep it may be what woke us */
    return hce_ce_arm(comm->ce) &&
           (comm->proxy == NULL || hce_proxy_arm(comm->proxy));
}

static void awake(hce_pollable_t *pollable)
{
    hce_ce_awake(comm_of(pollable)->ce);
}

static uint64_t next_ns(hce_pollable_t *pollable)
{
    hce_comm_h comm = comm_of(pollable);

    return hce_min(hce_boot_next_ns(comm->boot), hce_run_next_ns(&comm->run));
}

static void forked(hce_pollable_t *pollable)
{
    hce_comm_h comm = comm_of(pollable);

    hce_boot_forked(comm->boot);
    hce_ce_forked(comm->ce);
    if (comm->proxy != NULL)
        hce_proxy_forked(comm->proxy);
}

const hce_pollable_ops_t hce_comm_pollable_ops = {
    .progress = progress,
    .is_busy = is_busy,
    .arm = arm,
    .awake = awake,
    .next_ns = next_ns,
    .forked = forked,
};
