/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Moving data and posting. The engine's owner only; no locks. Memory is
 * allocated only where the list of allowed buffers grows.
 */
#include <config.h>

#include "ce/host/host.h"

#include "ce/host/copy.h"
#include "util/log.h"
#include "util/math.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#define MAPPED_MAX   16 /* destinations of one pass over the source */
#define OUTBOX_PIECE (32u * 1024) /* published at once: readers overlap */

hce_counter_t *hce_ce_counters(hce_ce_t *ce)
{
    return ce->seg->counters;
}

void *hce_ce_board(hce_ce_t *ce, int lrank)
{
    return ce->peers[lrank].seg->head->board;
}

/* Without pidfds the link tells: it breaks with the process, but also when
 * the peer closes in good order. */
bool hce_ce_peer_gone(hce_ce_t *ce, int lrank)
{
    const hce_ce_peer_t *peer = &ce->peers[lrank];
    struct pollfd fd = {peer->pidfd, POLLIN, 0};

    if (peer->is_local)
        return false;
    if (fd.fd < 0)
        fd = (struct pollfd){peer->link, 0, 0};
    return poll(&fd, 1, 0) > 0;
}

/* Its pid and addresses mean this peer: its process has not ended, and its
 * link is whole, so it has not become another program either. */
static bool is_valid_pid(const hce_ce_peer_t *peer)
{
    struct pollfd fds[2] = {{peer->pidfd, POLLIN, 0}, {peer->link, 0, 0}};

    return peer->is_local || poll(fds, 2, 0) == 0;
}

static hce_status_t vm_copy(hce_ce_t *ce, const hce_ce_copy_t *copy,
                            const hce_ce_dst_t *dst)
{
    const hce_ce_peer_t *peer = &ce->peers[dst->target->lrank];
    int error;

    if (!is_valid_pid(peer)) {
        hce_log(ERROR, CE, "rank %d has ended or closed its communicator",
                peer->rank);
        return HCE_ERR_GONE;
    }
    error = hce_ce_vm_write(peer->pid, dst->target->remote + dst->offset,
                            copy->src, copy->len);
    if (error == 0)
        return HCE_OK;
    hce_log(ERROR, CE,
            "process_vm_writev of %zu bytes to %#llx of rank %d: %s",
            copy->len, (unsigned long long)(dst->target->remote + dst->offset),
            peer->rank, strerror(error));
    return error == ESRCH ? HCE_ERR_GONE : HCE_ERR_SYSTEM;
}

static int num_staged(const hce_ce_copy_t *copy)
{
    int i, num = 0;

    for (i = 0; i < copy->num_dsts; i++)
        num += copy->dsts[i].target->how == HCE_CE_STAGED;
    return num;
}

/* With one destination the ring does as well. */
static bool is_by_outbox(const hce_ce_copy_t *copy)
{
    return copy->len > 0 && num_staged(copy) > 1;
}

/* Bytes that copy takes of the ring to lrank. */
static size_t ring_need(const hce_ce_copy_t *copy, int lrank, bool by_outbox)
{
    size_t each =
        by_outbox ? hce_div_up(copy->len, OUTBOX_PIECE) * HCE_CE_RING_POST_SIZE
                  : hce_ce_ring_need(copy->len);
    size_t need = 0;
    int i;

    for (i = 0; i < copy->num_dsts; i++) {
        if (copy->dsts[i].target->how == HCE_CE_STAGED &&
            copy->dsts[i].target->lrank == lrank)
            need += each;
    }
    return need;
}

/* Everything that can be refused, before anything is written. */
static hce_status_t copy_check(hce_ce_t *ce, const hce_ce_copy_t *copy,
                               int *bad_lrank_p)
{
    bool by_outbox = is_by_outbox(copy);
    const hce_ce_target_t *target;
    uint64_t offset;
    int i;

    assert(copy->len <= HCE_CE_QUANTUM);
    for (i = 0; i < copy->num_dsts; i++) {
        target = copy->dsts[i].target;
        offset = copy->dsts[i].offset;
        if (offset > target->len || copy->len > target->len - offset) {
            hce_log(ERROR, CE,
                    "copy to %llu + %zu of a buffer of %llu bytes of rank %d",
                    (unsigned long long)offset, copy->len,
                    (unsigned long long)target->len,
                    ce->peers[target->lrank].rank);
            *bad_lrank_p = target->lrank;
            return HCE_ERR_INTERNAL;
        }
        if (target->how == HCE_CE_STAGED &&
            !hce_ce_ring_has_room(&ce->peers[target->lrank].tx,
                                  ring_need(copy, target->lrank, by_outbox)))
            return HCE_ERR_NO_RESOURCE;
    }
    if (by_outbox &&
        !hce_ce_outbox_has_room(&ce->outbox, ce->ring_ends, copy->len))
        return HCE_ERR_NO_RESOURCE;
    return HCE_OK;
}

static void mapped_copy(const hce_ce_copy_t *copy)
{
    char *dsts[MAPPED_MAX];
    int i, n = 0;

    for (i = 0; i < copy->num_dsts; i++) {
        if (copy->dsts[i].target->how != HCE_CE_MAP)
            continue;
        dsts[n++] = copy->dsts[i].target->local + copy->dsts[i].offset;
        if (n == MAPPED_MAX) {
            hce_ce_loop_copy(dsts, n, copy->src, copy->len, copy->streaming);
            n = 0;
        }
    }
    if (n > 0)
        hce_ce_loop_copy(dsts, n, copy->src, copy->len, copy->streaming);
}

/* Once into the outbox, from where all take it. */
static void outbox_copy(hce_ce_t *ce, const hce_ce_copy_t *copy)
{
    uint64_t at = hce_ce_outbox_take(&ce->outbox, copy->len);
    hce_ce_ring_refer_t refer = {.streaming = copy->streaming};
    const hce_ce_dst_t *dst;
    size_t done;
    char *to;
    int i;

    for (done = 0; done < copy->len; done += refer.len) {
        refer.offset = at + done;
        refer.len = (uint32_t)hce_min(copy->len - done, OUTBOX_PIECE);
        to = ce->outbox.data + refer.offset;
        hce_ce_loop_copy(&to, 1, (const char *)copy->src + done, refer.len,
                         false);
        for (i = 0; i < copy->num_dsts; i++) {
            dst = &copy->dsts[i];
            if (dst->target->how == HCE_CE_STAGED)
                hce_ce_ring_refer(&ce->peers[dst->target->lrank].tx,
                                  dst->target->remote + dst->offset + done,
                                  &refer);
        }
    }
}

static void staged_copy(hce_ce_t *ce, const hce_ce_copy_t *copy)
{
    bool by_outbox = is_by_outbox(copy);
    const hce_ce_dst_t *dst;
    hce_ce_peer_t *peer;
    int i;

    if (by_outbox)
        outbox_copy(ce, copy);
    for (i = 0; i < copy->num_dsts; i++) {
        dst = &copy->dsts[i];
        if (dst->target->how != HCE_CE_STAGED)
            continue;
        peer = &ce->peers[dst->target->lrank];
        if (by_outbox)
            hce_ce_outbox_mark(&ce->outbox, dst->target->lrank, &peer->tx);
        else
            hce_ce_ring_put(&peer->tx, dst->target->remote + dst->offset,
                            copy->src, copy->len);
        /* No post may be possible before the peer makes room. */
        hce_ce_seg_ring_bell(peer->seg);
    }
}

hce_status_t hce_ce_copy(hce_ce_t *ce, const hce_ce_copy_t *copy,
                         int *bad_lrank_p)
{
    const hce_ce_dst_t *dst;
    hce_status_t status;
    int i;

    status = copy_check(ce, copy, bad_lrank_p);
    if (status != HCE_OK || copy->len == 0)
        return status;
    staged_copy(ce, copy); /* first: it gives others something to do */
    mapped_copy(copy);
    for (i = 0; i < copy->num_dsts; i++) {
        dst = &copy->dsts[i];
        if (dst->target->how != HCE_CE_VM)
            continue;
        status = vm_copy(ce, copy, dst);
        if (status != HCE_OK) {
            *bad_lrank_p = dst->target->lrank;
            return status;
        }
    }
    return HCE_OK;
}

bool hce_ce_can_read(const hce_ce_t *ce)
{
    int l;

    for (l = 0; l < ce->num_lranks; l++)
        if (!ce->peers[l].map_windows && ce->peers[l].how == HCE_CE_STAGED)
            return false;
    return true;
}

bool hce_ce_can_pull(const hce_ce_t *ce)
{
    int l;

    for (l = 0; l < ce->num_lranks; l++)
        if (ce->peers[l].how != HCE_CE_MAP && !ce->peers[l].can_vm)
            return false;
    return true;
}

static hce_status_t vm_read(hce_ce_t *ce, const hce_ce_dst_t *src, void *into,
                            size_t len)
{
    const hce_ce_peer_t *peer = &ce->peers[src->target->lrank];
    uint64_t from = src->target->remote + src->offset;
    int error;

    if (!is_valid_pid(peer)) {
        hce_log(ERROR, CE, "rank %d has ended or closed its communicator",
                peer->rank);
        return HCE_ERR_GONE;
    }
    error = hce_ce_vm_read(peer->pid, from, into, len);
    if (error == 0)
        return HCE_OK;
    hce_log(ERROR, CE,
            "process_vm_readv of %zu bytes at %#llx of rank %d: %s", len,
            (unsigned long long)from, peer->rank, strerror(error));
    return error == ESRCH ? HCE_ERR_GONE : HCE_ERR_SYSTEM;
}

hce_status_t hce_ce_read(hce_ce_t *ce, const hce_ce_dst_t *src, size_t len,
                         void *into, const void **at_p)
{
    const hce_ce_target_t *target = src->target;
    const hce_ce_peer_t *peer = &ce->peers[target->lrank];
    hce_status_t status;

    if (src->offset > target->len || len > target->len - src->offset) {
        hce_log(ERROR, CE,
                "read of %llu + %zu of a buffer of %llu bytes of rank %d",
                (unsigned long long)src->offset, len,
                (unsigned long long)target->len, peer->rank);
        return HCE_ERR_INTERNAL;
    }
    if (target->how == HCE_CE_MAP) {
        *at_p = target->local + src->offset;
        return HCE_OK;
    }
    if (!peer->can_vm) {
        hce_log(ERROR, CE, "memory of rank %d can only be staged, not read",
                peer->rank);
        return HCE_ERR_UNSUPPORTED;
    }
    status = vm_read(ce, src, into, len);
    if (status == HCE_OK)
        *at_p = into;
    return status;
}

hce_status_t hce_ce_post(hce_ce_t *ce, int lrank, uint32_t index,
                         uint64_t value)
{
    hce_ce_peer_t *peer = &ce->peers[lrank];

    assert(index < ce->num_counters);
    /* Behind data that the peer has yet to take out a post waits its turn.
     * Once all is taken out, a store comes later than the peer's own stores
     * for earlier posts: hce_ce_ring_is_drained() acquires them. */
    if (peer->how != HCE_CE_STAGED || hce_ce_ring_is_drained(&peer->tx)) {
        hce_counter_post(&peer->seg->counters[index], value);
    } else {
        if (!hce_ce_ring_has_room(&peer->tx, HCE_CE_RING_POST_SIZE))
            return HCE_ERR_NO_RESOURCE;
        hce_ce_ring_post(&peer->tx, index, value);
    }
    hce_ce_seg_ring_bell(peer->seg);
    return HCE_OK;
}

hce_status_t hce_ce_allow(hce_ce_t *ce, const void *addr, size_t len)
{
    size_t max = ce->max_ranges == 0 ? 16 : 2 * ce->max_ranges;
    hce_ce_range_t *more;

    if (ce->num_ranges == ce->max_ranges) {
        more = realloc(ce->ranges, max * sizeof(*more));
        if (more == NULL) {
            hce_log(ERROR, CE, "no memory for %zu buffers in use", max);
            return HCE_ERR_NO_MEMORY;
        }
        ce->ranges = more;
        ce->max_ranges = max;
    }
    ce->ranges[ce->num_ranges++] = (hce_ce_range_t){(uintptr_t)addr, len};
    return HCE_OK;
}

void hce_ce_disallow(hce_ce_t *ce, const void *addr, size_t len)
{
    size_t i;

    for (i = 0; i < ce->num_ranges; i++) {
        if (ce->ranges[i].addr == (uintptr_t)addr && ce->ranges[i].len == len)
            break;
    }
    assert(i < ce->num_ranges);
    if (i < ce->num_ranges)
        ce->ranges[i] = ce->ranges[--ce->num_ranges];
}

static hce_status_t ring_progress(hce_ce_t *ce, hce_ce_peer_t *peer)
{
    const hce_ce_ring_sink_t sink = {.ranges = ce->ranges,
                                     .num_ranges = ce->num_ranges,
                                     .counters = ce->seg->counters,
                                     .num_counters = ce->num_counters,
                                     .outbox = peer->seg->outbox,
                                     .outbox_size = HCE_CE_OUTBOX_SIZE};
    const char *why;
    bool starved;
    hce_status_t status;

    status = hce_ce_ring_drain(&peer->rx, &sink, &starved, &why);
    if (status < 0) {
        hce_log(ERROR, CE, "staging ring of rank %d: %s", peer->rank, why);
        ce->ring_status = status;
        ce->ring_bad = (int)(peer - ce->peers);
        return status;
    }
    if (status == HCE_INPROGRESS && starved)
        hce_ce_seg_ring_bell(peer->seg);
    return status;
}

hce_status_t hce_ce_progress(hce_ce_t *ce, int *bad_lrank_p)
{
    hce_status_t status = ce->ring_status, moved;
    int l;

    /* Before any look at rings and counters: see hce_ce_arm(). */
    ce->seen = hce_ce_seg_events(ce->seg);
    for (l = 0; l < ce->num_lranks && status >= 0; l++) {
        if (!ce->peers[l].stages)
            continue;
        moved = ring_progress(ce, &ce->peers[l]);
        if (moved != HCE_OK)
            status = moved;
    }
    if (status < 0)
        *bad_lrank_p = ce->ring_bad;
    return status;
}

bool hce_ce_arm(hce_ce_t *ce)
{
    return hce_ce_seg_arm(ce->seg, ce->seen);
}

void hce_ce_awake(hce_ce_t *ce)
{
    hce_ce_seg_awake(ce->seg);
}
