/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Engines: a few threads a device and process, each of which takes the head
 * of any channel that can go on, after a random delay. A head that waits is
 * polled by one engine at growing intervals, since nothing tells of a store
 * to host memory; engines with nothing to do sleep.
 */
#include "soft.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { POLL_FIRST_US = 20, POLL_LAST_US = 1000 };

static soft_queue_t queues[SOFT_MAX_DEVICES][SOFT_MAX_QUEUES];
static bool is_started[SOFT_MAX_DEVICES];
static bool is_polled[SOFT_MAX_DEVICES];

soft_queue_t *soft_queue_pick(int dev, unsigned index)
{
    return &queues[dev][index % (unsigned)soft_settings.connections];
}

soft_op_t *soft_op_make(soft_op_kind_t kind, size_t num)
{
    soft_op_t *op = calloc(1, sizeof(*op));

    if (op == NULL)
        soft_die("no memory");
    op->kind = kind;
    op->num = num;
    if (kind == SOFT_OP_COPY)
        op->copies = calloc(num, sizeof(*op->copies));
    if (kind == SOFT_OP_MEMOP)
        op->memops = calloc(num, sizeof(*op->memops));
    return op;
}

soft_op_t *soft_op_clone(const soft_op_t *like)
{
    soft_op_t *op = soft_op_make(like->kind, like->num);

    op->is_batch = like->is_batch;
    op->is_peer = like->is_peer;
    if (like->kind == SOFT_OP_COPY)
        memcpy(op->copies, like->copies, like->num * sizeof(*op->copies));
    if (like->kind == SOFT_OP_MEMOP)
        memcpy(op->memops, like->memops, like->num * sizeof(*op->memops));
    return op;
}

void soft_op_free(soft_op_t *op)
{
    free(op->copies);
    free(op->memops);
    free(op->deps);
    free(op);
}

/* Can the head go on, or come to its end after an error? */
static bool is_ready(soft_op_t *op)
{
    size_t i;

    if (soft_sticky != HCE_CU_OK)
        return true;
    for (i = 0; i < op->num_deps; i++) {
        if (op->deps[i].stream->done < op->deps[i].seq)
            return false;
    }
    return op->kind != SOFT_OP_MEMOP || soft_memop_step(op);
}

static soft_queue_t *queue_find(int dev, unsigned *start, bool *waits_p)
{
    unsigned i, count = (unsigned)soft_settings.connections;
    soft_queue_t *queue;

    *waits_p = false;
    for (i = 0; i < count; i++) {
        queue = &queues[dev][(*start + i) % count];
        if (queue->head == NULL || queue->busy)
            continue;
        if (is_ready(queue->head)) {
            *start += i + 1;
            return queue;
        }
        *waits_p = true;
    }
    return NULL;
}

/* Until news, or for a while where somebody has to poll. */
static void engine_sleep(int dev, bool polls, unsigned *nap_us)
{
    struct timespec until;

    if (!polls || is_polled[dev]) {
        pthread_cond_wait(&soft_news, &soft_lock);
        return;
    }
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += *nap_us * 1000l;
    until.tv_sec += until.tv_nsec / 1000000000l;
    until.tv_nsec %= 1000000000l;
    is_polled[dev] = true;
    if (pthread_cond_timedwait(&soft_news, &soft_lock, &until) == ETIMEDOUT)
        *nap_us += *nap_us < POLL_LAST_US ? *nap_us / 4 : 0;
    is_polled[dev] = false;
}

static void op_run(soft_op_t *op, uint64_t *random)
{
    unsigned expected = HCE_CU_OK;
    soft_result_t result = HCE_CU_OK;

    if (soft_sticky != HCE_CU_OK)
        return;
    if (soft_settings.jitter_us > 0 && soft_random(random) % 4 == 0)
        usleep(soft_random(random) % (unsigned)soft_settings.jitter_us);
    if (op->kind == SOFT_OP_COPY)
        result = soft_copy_run(op, random);
    if (result != HCE_CU_OK)
        atomic_compare_exchange_strong(&soft_sticky, &expected, result);
}

static void *engine(void *arg)
{
    int dev = (int)(intptr_t)arg % SOFT_MAX_DEVICES;
    uint64_t random =
        soft_seed((uint64_t)(intptr_t)arg * 7919 + (uint64_t)getpid() % 64);
    unsigned start = soft_random(&random), nap_us = POLL_FIRST_US;
    soft_queue_t *queue;
    soft_op_t *op;
    bool waits;

    pthread_mutex_lock(&soft_lock);
    for (;;) {
        queue = queue_find(dev, &start, &waits);
        if (queue == NULL) {
            engine_sleep(dev, waits, &nap_us);
            continue;
        }
        nap_us = POLL_FIRST_US;
        op = queue->head;
        queue->busy = true;
        /* Somebody else polls the other heads meanwhile. */
        pthread_cond_broadcast(&soft_news);
        pthread_mutex_unlock(&soft_lock);
        op_run(op, &random);
        pthread_mutex_lock(&soft_lock);
        queue->head = op->next;
        if (queue->head == NULL)
            queue->tail = &queue->head;
        queue->busy = false;
        op->stream->done = op->seq;
        soft_op_free(op);
        pthread_cond_broadcast(&soft_news);
    }
    return NULL;
}

void soft_engines_start(int dev)
{
    pthread_t thread;
    int i;

    if (is_started[dev])
        return;
    is_started[dev] = true;
    for (i = 0; i < SOFT_MAX_QUEUES; i++)
        queues[dev][i].tail = &queues[dev][i].head;
    for (i = 0; i < soft_settings.engines; i++) {
        if (pthread_create(&thread, NULL, engine,
                           (void *)(intptr_t)(i * SOFT_MAX_DEVICES + dev)))
            soft_die("no thread for an engine");
        pthread_detach(thread);
    }
}
