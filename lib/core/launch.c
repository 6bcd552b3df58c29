/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The ring of launches of a communicator.
 */
#include "config.h"

#include "core/launch.h"

#include <stdlib.h>
#include <string.h>

#include "core/comm.h"
#include "core/engine.h"
#include "util/log.h"

hce_status_t hce_queue_init(hce_queue_t *queue)
{
    memset(queue, 0, sizeof(*queue));
    queue->slots = calloc(HCE_QUEUE_DEPTH, sizeof(*queue->slots));
    if (queue->slots == NULL) {
        hce_log(ERROR, CORE, "no memory for the queue of launches");
        return HCE_ERR_NO_MEMORY;
    }
    return HCE_OK;
}

void hce_queue_cleanup(hce_queue_t *queue)
{
    free(queue->slots);
    queue->slots = NULL;
}

static hce_launch_t *slot(hce_queue_t *queue, uint64_t number)
{
    return &queue->slots[number % HCE_QUEUE_DEPTH];
}

static void release_buf(hce_comm_h comm, hce_launch_buf_t *buf)
{
    if (buf->is_own_mem)
        hce_proxy_deregister(comm->proxy, buf->mem);
    buf->is_own_mem = false;
    buf->mem = NULL;
}

void hce_queue_reap(hce_comm_h comm)
{
    hce_queue_t *queue = &comm->queue;
    /* Acquire: the owner has finished with the slot; pairs with
     * hce_queue_pop. */
    uint64_t done = atomic_load_explicit(&queue->done, memory_order_acquire);
    hce_launch_t *launch;

    while (queue->reaped < done) {
        launch = slot(queue, queue->reaped++);
        release_buf(comm, &launch->send);
        release_buf(comm, &launch->recv);
        hce_plans_put(launch->item);
    }
}

static uint64_t num_queued(const hce_queue_t *queue)
{
    /* Acquire: the owner has finished with the slots; pairs with
     * hce_queue_pop. */
    return queue->calls - atomic_load_explicit(&queue->done,
                                               memory_order_acquire);
}

static bool is_half_free(void *arg)
{
    return num_queued(arg) <= HCE_QUEUE_DEPTH / 2;
}

/* Who finds the queue full waits for many slots, not for one: the ownership
 * of the engine would change hands at each call. */
hce_launch_t *hce_queue_acquire(hce_comm_h comm)
{
    hce_queue_t *queue = &comm->queue;

    if (num_queued(queue) == HCE_QUEUE_DEPTH)
        hce_engine_wait(is_half_free, queue);
    hce_queue_reap(comm);
    return slot(queue, queue->calls);
}

void hce_queue_push(hce_queue_t *queue)
{
    queue->calls++;
    /* Release: the slot is filled before it is seen; pairs with
     * hce_queue_head. */
    atomic_store_explicit(&queue->pushed, queue->calls, memory_order_release);
}

hce_launch_t *hce_queue_head(hce_queue_t *queue)
{
    uint64_t done = atomic_load_explicit(&queue->done, memory_order_relaxed);

    if (done == atomic_load_explicit(&queue->pushed, memory_order_acquire))
        return NULL;
    return slot(queue, done);
}

void hce_queue_pop(hce_queue_t *queue)
{
    atomic_store_explicit(
        &queue->done,
        atomic_load_explicit(&queue->done, memory_order_relaxed) + 1,
        memory_order_release);
}
