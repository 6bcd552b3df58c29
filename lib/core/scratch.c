/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Scratch memory: allocated alike on all ranks, described to each other.
 */
#include "config.h"

#include "core/scratch.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/comm.h"
#include "core/values.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/math.h"

/* Slots begin at cache lines of their own. */
#define SLOT_UNIT 64

/* How long node peers may take to be done with my memory at the end. */
#define SETTLE_NS (2 * HCE_NS_PER_SEC)

static uint64_t slot_len(void)
{
    return hce_round_up(hce_core_values.scratch, SLOT_UNIT);
}

/* Calls that a rank of my node has completed: the last word of its board. */
static _Atomic uint64_t *completed(hce_comm_h comm, int lrank)
{
    char *board = hce_ce_board(comm->ce, lrank);

    return (_Atomic uint64_t *)(board + HCE_CE_BOARD_SIZE - sizeof(uint64_t));
}

static hce_status_t allocate(hce_comm_h comm, uint64_t deadline)
{
    hce_scratch_t *scratch = &comm->scratch;
    size_t size = (size_t)hce_comm_size(comm);
    hce_status_t status;
    void *addr;

    scratch->notices = calloc(size, sizeof(*scratch->notices));
    scratch->peers = calloc(size, sizeof(*scratch->peers));
    if (scratch->notices == NULL || scratch->peers == NULL) {
        hce_log(ERROR, CORE, "no memory to describe %zu ranks' scratch", size);
        return HCE_ERR_NO_MEMORY;
    }
    status = hce_ce_mem_alloc(scratch->len, &addr);
    if (status != HCE_OK)
        return status;
    scratch->addr = addr;
    status = hce_ce_window_add(comm->ce, addr, scratch->len, deadline,
                               &scratch->window);
    if (status == HCE_OK)
        status = hce_ce_allow(comm->ce, addr, scratch->len);
    if (status == HCE_OK && comm->proxy != NULL && scratch->len > 0)
        status = hce_proxy_register(comm->proxy, addr, scratch->len,
                                    &scratch->mem);
    return status;
}

static hce_status_t exchange(hce_comm_h comm, uint64_t deadline)
{
    hce_scratch_t *scratch = &comm->scratch;
    hce_scratch_notice_t mine = {
        .addr = (uint64_t)(uintptr_t)scratch->addr,
        .can_read = hce_ce_can_read(comm->ce),
        .can_pull = hce_ce_can_pull(comm->ce),
    };
    const void *key;
    size_t key_len;

    if (scratch->mem != NULL) {
        key = hce_proxy_key(scratch->mem, &key_len);
        memcpy(mine.key, key, key_len);
        mine.key_len = (uint32_t)key_len;
    }
    return hce_boot_allgather(comm->boot, &mine, sizeof(mine),
                              scratch->notices, deadline);
}

static hce_status_t reach_node(hce_comm_h comm)
{
    hce_scratch_t *scratch = &comm->scratch;
    const hce_layout_t *layout = comm->layout;
    hce_ce_buf_t buf = {.len = scratch->len, .window = scratch->window};
    hce_status_t status = HCE_OK;
    int r;

    for (r = 0; r < hce_comm_size(comm) && status == HCE_OK; r++) {
        buf.addr = scratch->notices[r].addr;
        if (!hce_layout_same_node(layout, comm->rank, r))
            continue;
        status = hce_ce_reach(comm->ce, layout->lrank[r], &buf,
                              &scratch->peers[r].target);
        if (status == HCE_OK && scratch->len > 0 &&
            scratch->notices[comm->rank].can_read != 0 &&
            scratch->peers[r].target.how == HCE_CE_STAGED) {
            hce_log(ERROR, CORE,
                    "rank %d has not mapped the scratch memory of rank %d",
                    comm->rank, r);
            status = HCE_ERR_SYSTEM;
        }
    }
    return status;
}

static void set_limits(hce_comm_h comm)
{
    hce_transport_attr_t attr = {0};
    int r;

    if (comm->proxy != NULL)
        hce_proxy_query(comm->proxy, &attr);
    comm->limits = (hce_plan_limits_t){
        .scratch = slot_len(),
        .parcel = attr.parcel,
        .reads = true,
        .pulls = true,
    };
    for (r = 0; r < hce_comm_size(comm); r++) {
        comm->limits.reads &= comm->scratch.notices[r].can_read != 0;
        comm->limits.pulls &= comm->scratch.notices[r].can_pull != 0;
    }
}

hce_status_t hce_scratch_open(hce_comm_h comm, uint64_t deadline)
{
    hce_scratch_t *scratch = &comm->scratch;
    hce_status_t status;

    scratch->stage = HCE_PLAN_SLOTS * slot_len();
    scratch->len = 2 * scratch->stage;
    status = allocate(comm, deadline);
    if (status == HCE_OK)
        status = exchange(comm, deadline);
    if (status == HCE_OK)
        status = reach_node(comm);
    if (status == HCE_OK)
        set_limits(comm);
    return status;
}

hce_status_t hce_scratch_connect(hce_comm_h comm, int rank)
{
    const hce_scratch_notice_t *notice = &comm->scratch.notices[rank];
    hce_scratch_peer_t *peer = &comm->scratch.peers[rank];

    if (peer->key != NULL)
        return HCE_OK;
    return hce_proxy_key_open(comm->proxy, rank, notice->key, notice->key_len,
                              &peer->key);
}

void hce_scratch_complete(hce_comm_h comm, uint64_t call)
{
    /* Release: my reads of others' memory come before it; pairs with the
     * load in are_peers_done(). */
    atomic_store_explicit(completed(comm, comm->layout->lrank[comm->rank]),
                          call, memory_order_release);
}

typedef struct settle {
    hce_comm_h comm;
    uint64_t deadline;
} settle_t;

static bool are_peers_done(hce_comm_h comm)
{
    const hce_layout_t *layout = comm->layout;
    int lrank, node = layout->node[comm->rank];

    if (comm->scratch.launches == 0)
        return true;
    for (lrank = 0; lrank < layout->node_size[node]; lrank++)
        if (atomic_load_explicit(completed(comm, lrank),
                                 memory_order_acquire) < comm->queue.calls &&
            !hce_ce_peer_gone(comm->ce, lrank))
            return false;
    return true;
}

static bool is_settled(void *arg)
{
    const settle_t *settle = arg;

    return are_peers_done(settle->comm) ||
           hce_fault_status(&settle->comm->fault) != HCE_OK ||
           hce_clock_ns() >= settle->deadline;
}

void hce_scratch_settle(hce_comm_h comm)
{
    settle_t settle = {comm, hce_clock_deadline(SETTLE_NS)};

    hce_engine_wait(is_settled, &settle);
    comm->scratch.is_in_use = !are_peers_done(comm);
    if (comm->scratch.is_in_use)
        hce_log(WARN, CORE,
                "rank %d keeps its scratch memory: node peers may read it",
                comm->rank);
}

void hce_scratch_close(hce_comm_h comm)
{
    hce_scratch_t *scratch = &comm->scratch;
    int r;

    for (r = 0; scratch->peers != NULL && r < hce_comm_size(comm); r++)
        if (scratch->peers[r].key != NULL)
            hce_proxy_key_close(comm->proxy, scratch->peers[r].key);
    if (scratch->mem != NULL)
        hce_proxy_deregister(comm->proxy, scratch->mem);
    if (scratch->window != 0)
        hce_ce_window_remove(comm->ce, scratch->window);
    if (scratch->addr != NULL && !scratch->is_in_use)
        (void)hce_ce_mem_free(scratch->addr);
    free(scratch->peers);
    free(scratch->notices);
    memset(scratch, 0, sizeof(*scratch));
}
