/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Segments and doorbells.
 */
#include <config.h>

#include "ce/host/segment.h"

#include "ce/host/outbox.h"
#include "util/log.h"
#include "util/math.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RING_ALIGN 4096 /* an unused ring shares no page with a used one */

/* Segments that ranks of this process own, and all reference counts. Peers
 * of the same process find each other's segment here: one mapping, so that
 * tools which follow addresses see one object. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static hce_ce_seg_t *own_segs;
static uint64_t last_serial;

typedef struct offsets {
    size_t probes, counters, rings, ring_data, outbox, end;
} offsets_t;

static offsets_t offsets_get(const hce_ce_seg_shape_t *shape)
{
    size_t num = (size_t)shape->num_lranks;
    offsets_t at;

    at.probes = hce_round_up(sizeof(hce_ce_seg_head_t), 64);
    at.counters = hce_round_up(at.probes + num * sizeof(uint64_t), 64);
    at.rings = hce_round_up(
        at.counters + shape->num_counters * sizeof(hce_counter_t), 64);
    at.ring_data =
        hce_round_up(at.rings + num * sizeof(hce_ce_ring_t), RING_ALIGN);
    at.outbox = at.ring_data + num * HCE_CE_RING_SIZE;
    at.end = at.outbox + HCE_CE_OUTBOX_SIZE;
    return at;
}

/* Sets what follows from the mapping. */
static void seg_init(hce_ce_seg_t *seg, const hce_ce_seg_shape_t *shape)
{
    offsets_t at = offsets_get(shape);
    char *base = seg->shm.addr;

    seg->shape = *shape;
    seg->refs = 1;
    seg->head = (hce_ce_seg_head_t *)base;
    seg->probes = (_Atomic uint64_t *)(base + at.probes);
    seg->counters = (hce_counter_t *)(base + at.counters);
    seg->rings = (hce_ce_ring_t *)(base + at.rings);
    seg->ring_data = base + at.ring_data;
    seg->outbox = base + at.outbox;
}

static hce_status_t seg_alloc(hce_ce_seg_t **seg_p)
{
    *seg_p = calloc(1, sizeof(**seg_p));
    if (*seg_p == NULL) {
        hce_log(ERROR, CE, "no memory for a segment");
        return HCE_ERR_NO_MEMORY;
    }
    return HCE_OK;
}

hce_status_t hce_ce_seg_create(const hce_ce_seg_shape_t *shape, int rank,
                               int doorbell, hce_ce_seg_t **seg_p)
{
    hce_ce_seg_t *seg;
    hce_status_t status;

    status = seg_alloc(&seg);
    if (status != HCE_OK)
        return status;
    status = hce_shm_create("hce-seg", offsets_get(shape).end, &seg->shm);
    if (status != HCE_OK)
        goto err_free;
    seg->doorbell = fcntl(doorbell, F_DUPFD_CLOEXEC, 3);
    if (seg->doorbell < 0) {
        hce_log(ERROR, CE, "doorbell %d: dup: %m", doorbell);
        status = errno == EMFILE ? HCE_ERR_NO_MEMORY : HCE_ERR_INVALID_ARG;
        goto err_shm;
    }
    seg_init(seg, shape);
    seg->head->magic = HCE_CE_SEG_MAGIC;
    seg->head->version = HCE_CE_SEG_VERSION;
    seg->head->rank = rank;
    status = hce_ce_process_token(seg->head->id.token);
    if (status != HCE_OK)
        goto err_doorbell;
    pthread_mutex_lock(&lock);
    seg->head->id.serial = ++last_serial;
    seg->next = own_segs;
    own_segs = seg;
    pthread_mutex_unlock(&lock);
    *seg_p = seg;
    return HCE_OK;

err_doorbell:
    close(seg->doorbell);
err_shm:
    hce_shm_destroy(&seg->shm);
err_free:
    free(seg);
    return status;
}

hce_ce_seg_t *hce_ce_seg_get(const hce_ce_mem_id_t *id)
{
    hce_ce_seg_t *seg;

    pthread_mutex_lock(&lock);
    for (seg = own_segs; seg != NULL; seg = seg->next) {
        if (memcmp(&seg->head->id, id, sizeof(*id)) == 0) {
            seg->refs++;
            break;
        }
    }
    pthread_mutex_unlock(&lock);
    return seg;
}

hce_status_t hce_ce_seg_attach(const hce_ce_seg_ticket_t *ticket,
                               const hce_ce_seg_shape_t *shape,
                               hce_ce_seg_t **seg_p)
{
    hce_ce_seg_t *seg;
    hce_status_t status;

    status = seg_alloc(&seg);
    if (status != HCE_OK)
        return status;
    status = hce_shm_map(ticket->fd, offsets_get(shape).end, &seg->shm);
    if (status != HCE_OK)
        goto err_free;
    seg_init(seg, shape);
    if (seg->head->magic != HCE_CE_SEG_MAGIC ||
        seg->head->version != HCE_CE_SEG_VERSION ||
        seg->head->rank != ticket->rank ||
        memcmp(&seg->head->id, &ticket->id, sizeof(ticket->id)) != 0) {
        hce_log(ERROR, CE, "rank %d passed a segment that is not its own",
                ticket->rank);
        status = HCE_ERR_INTERNAL;
        seg->shm.fd = -1; /* still the caller's */
        goto err_shm;
    }
    close(seg->shm.fd); /* the mapping stays */
    seg->shm.fd = -1;
    seg->doorbell = ticket->doorbell;
    *seg_p = seg;
    return HCE_OK;

err_shm:
    hce_shm_destroy(&seg->shm);
err_free:
    free(seg);
    return status;
}

void hce_ce_seg_put(hce_ce_seg_t *seg)
{
    hce_ce_seg_t **link;
    bool last;

    pthread_mutex_lock(&lock);
    last = --seg->refs == 0;
    if (last) {
        for (link = &own_segs; *link != NULL && *link != seg;
             link = &(*link)->next)
            ;
        if (*link == seg)
            *link = seg->next;
    }
    pthread_mutex_unlock(&lock);
    if (!last)
        return;
    if (seg->doorbell >= 0)
        close(seg->doorbell);
    hce_shm_destroy(&seg->shm);
    free(seg);
}

void hce_ce_seg_ring(hce_ce_seg_t *seg, int writer, hce_ce_ring_end_t *end)
{
    end->ring = &seg->rings[writer];
    end->data = seg->ring_data + (size_t)writer * HCE_CE_RING_SIZE;
    end->here = 0;
}

void hce_ce_seg_ring_bell(hce_ce_seg_t *seg)
{
    static const uint64_t one = 1;
    hce_ce_seg_head_t *head = seg->head;
    ssize_t written;

    /* Sequentially consistent, like the two accesses in hce_ce_seg_arm():
     * either this sees sleeping, or the owner sees the new number. It is also
     * the release that hce_ce_seg_events() pairs with. */
    atomic_fetch_add(&head->events, 1);
    if (atomic_load(&head->sleeping) == 0)
        return;
    if (atomic_exchange(&head->sleeping, 0) == 0)
        return; /* another peer has just woken it */
    written = write(seg->doorbell, &one, sizeof(one));
    (void)written; /* fails only when so full that it is readable anyway */
}

uint64_t hce_ce_seg_events(const hce_ce_seg_t *seg)
{
    /* Acquire: what was stored before the bell rang is visible to who has
     * seen it ring; pairs with hce_ce_seg_ring_bell(). */
    return atomic_load_explicit(&seg->head->events, memory_order_acquire);
}

bool hce_ce_seg_arm(hce_ce_seg_t *seg, uint64_t seen)
{
    /* Both sequentially consistent: see hce_ce_seg_ring_bell(). An exchange,
     * because qemu lets a load overtake an earlier store of aarch64, however
     * strong both are, but not an earlier exchange; elsewhere the same. */
    atomic_exchange(&seg->head->sleeping, 1);
    if (atomic_load(&seg->head->events) == seen)
        return true;
    hce_ce_seg_awake(seg);
    return false;
}

void hce_ce_seg_awake(hce_ce_seg_t *seg)
{
    atomic_store_explicit(&seg->head->sleeping, 0, memory_order_relaxed);
}
