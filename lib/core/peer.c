/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Peers of a running launch: those whose entry the plan waits for. When a
 * peer's READY is seen its call is compared with mine, and its buffer is made
 * reachable.
 */
#include "config.h"

#include <string.h>

#include "core/comm.h"
#include "util/log.h"

static hce_ce_target_t own_target(hce_comm_h comm, const hce_launch_buf_t *buf)
{
    return (hce_ce_target_t){
        .local = buf->addr,
        .len = buf->len,
        .lrank = comm->layout->lrank[comm->rank],
        .how = HCE_CE_MAP,
    };
}

/* My own buffers are reached like the peers'. */
static void reach_self(hce_comm_h comm)
{
    hce_run_peer_t *self = &comm->run.peers[comm->rank];

    self->is_ready = true;
    self->send = own_target(comm, &comm->run.launch->send);
    self->recv = own_target(comm, &comm->run.launch->recv);
}

void hce_run_peers_start(hce_comm_h comm)
{
    hce_run_t *run = &comm->run;
    hce_launch_t *launch = run->launch;
    const hce_plan_t *plan = launch->plan;
    uint32_t i;

    run->num_unready = 0;
    for (i = 0; i < plan->num_in; i++) {
        if (plan->in[i].slot != HCE_SLOT_READY)
            continue;
        run->peers[plan->in[i].rank].is_ready = false;
        run->peers[plan->in[i].rank].touches = 0;
        run->num_unready++;
    }
    for (i = 0; i < plan->num_touches; i++)
        run->peers[plan->touches[i].rank].touches = plan->touches[i].bufs;
    reach_self(comm);
    if (hce_ce_allow(comm->ce, launch->recv.addr, launch->recv.len) != HCE_OK)
        hce_fault_raise(comm, HCE_ERR_NO_MEMORY, comm->rank,
                        "rank %d cannot admit writes to its buffer",
                        comm->rank);
    hce_entry_publish(comm, &launch->entry);
}

/* Keys of windows are kept, others are for one launch. */
static hce_status_t open_key(hce_comm_h comm, int rank,
                             const hce_entry_t *entry)
{
    hce_run_peer_t *peer = &comm->run.peers[rank];
    hce_run_key_t *kept;
    hce_status_t status;
    unsigned i;

    for (i = 0; i < HCE_RUN_KEYS && entry->recv.window != 0; i++) {
        if (peer->keys[i].window == entry->recv.window) {
            peer->key = peer->keys[i].key;
            return HCE_OK;
        }
    }
    status = hce_proxy_key_open(comm->proxy, rank, entry->key,
                                entry->key_len, &peer->key);
    if (status != HCE_OK)
        return status;
    peer->is_own_key = entry->recv.window == 0;
    if (peer->is_own_key)
        return HCE_OK;
    kept = &peer->keys[peer->next_key++ % HCE_RUN_KEYS];
    if (kept->window != 0)
        hce_proxy_key_close(comm->proxy, kept->key);
    *kept = (hce_run_key_t){entry->recv.window, peer->key};
    return HCE_OK;
}

/* The buffers of the call that my ops access. */
static hce_status_t reach(hce_comm_h comm, int rank, const hce_entry_t *entry)
{
    const hce_launch_t *launch = comm->run.launch;
    hce_run_peer_t *peer = &comm->run.peers[rank];
    int lrank = comm->layout->lrank[rank];
    bool sends = peer->touches >> HCE_BUF_SEND & 1;
    bool recvs = peer->touches >> HCE_BUF_RECV & 1;
    hce_status_t status = HCE_OK;

    if ((sends && entry->send.len != launch->send.len) ||
        (recvs && entry->recv.len != launch->recv.len))
        return HCE_ERR_INVALID_ARG;
    if (hce_layout_same_node(comm->layout, comm->rank, rank)) {
        if (sends)
            status = hce_ce_reach(comm->ce, lrank, &entry->send, &peer->send);
        if (recvs && status == HCE_OK)
            status = hce_ce_reach(comm->ce, lrank, &entry->recv, &peer->recv);
        return status;
    }
    peer->addr = entry->recv.addr;
    /* Nothing is put, so that nothing was registered. */
    if (!recvs || entry->recv.len == 0)
        return HCE_OK;
    return open_key(comm, rank, entry);
}

static void meet(hce_comm_h comm, int rank)
{
    const hce_entry_t *mine = &comm->run.launch->entry;
    const hce_entry_t *theirs =
        hce_entry_of(comm, rank, mine->call.number);
    hce_status_t status;

    if (hce_entry_check(comm, mine, rank, theirs) != HCE_OK)
        return;
    status = reach(comm, rank, theirs);
    if (status != HCE_OK) {
        hce_fault_raise(comm, status, rank,
                        "rank %d cannot reach the buffer of rank %d (%s)",
                        comm->rank, rank, hce_status_string(status));
        return;
    }
    comm->run.peers[rank].is_ready = true;
    comm->run.num_unready--;
}

bool hce_run_peers_progress(hce_comm_h comm)
{
    hce_run_t *run = &comm->run;
    const hce_plan_t *plan = run->launch->plan;
    bool moved = false;
    uint32_t i, index;
    int rank;

    for (i = 0; i < plan->num_in && run->num_unready > 0; i++) {
        rank = plan->in[i].rank;
        if (plan->in[i].slot != HCE_SLOT_READY || run->peers[rank].is_ready)
            continue;
        index = hce_plan_counter_index(comm->layout, rank, HCE_SLOT_READY);
        if (!hce_counter_geq(hce_counter_read(&run->counters[index]),
                             run->in_base[index] + 1))
            continue;
        meet(comm, rank);
        moved = true;
        if (hce_fault_status(&comm->fault) != HCE_OK)
            break;
    }
    return moved;
}

void hce_run_peers_end(hce_comm_h comm)
{
    hce_run_t *run = &comm->run;
    hce_launch_t *launch = run->launch;
    const hce_plan_t *plan = launch->plan;
    hce_run_peer_t *peer;
    uint32_t i;

    hce_ce_disallow(comm->ce, launch->recv.addr, launch->recv.len);
    for (i = 0; i < plan->num_in; i++) {
        peer = &run->peers[plan->in[i].rank];
        if (peer->key != NULL && peer->is_own_key)
            hce_proxy_key_close(comm->proxy, peer->key);
        peer->key = NULL;
        peer->is_own_key = false;
        peer->is_ready = false;
    }
}

void hce_run_forget_window(hce_comm_h comm, uint32_t window)
{
    hce_run_key_t *kept;
    int r, i;

    for (r = 0; r < hce_comm_size(comm); r++) {
        for (i = 0; i < HCE_RUN_KEYS; i++) {
            kept = &comm->run.peers[r].keys[i];
            if (kept->window != window)
                continue;
            hce_proxy_key_close(comm->proxy, kept->key);
            *kept = (hce_run_key_t){0, NULL};
        }
    }
}
