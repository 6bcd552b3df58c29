/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Launches: one call each, from the caller to the engine's owner through a
 * ring with one writer and one reader. The caller fills a slot and pushes it;
 * the owner runs it and marks it done; the caller reaps it (registrations are
 * undone where that may take long: not by the owner).
 */
#ifndef HCE_CORE_LAUNCH_H
#define HCE_CORE_LAUNCH_H

#include <hce/hce.h>
#include <stdatomic.h>
#include <stdbool.h>
#include "core/entry.h"
#include "plan/plan.h"
#include "rma_proxy/proxy.h"

#define HCE_QUEUE_DEPTH 1024u /* calls queued on one communicator */

struct hce_plans_item;

/* A buffer of a call and its registration for the network. */
typedef struct hce_launch_buf {
    char *addr;
    size_t len;
    hce_proxy_mem_t *mem; /* NULL without a network */
    bool is_own_mem;      /* registered for this call only */
} hce_launch_buf_t;

typedef struct hce_launch {
    struct hce_plans_item *item; /* holds the plan */
    const hce_plan_t *plan;
    hce_launch_buf_t send;
    hce_launch_buf_t recv;
    hce_stream_h stream;
    uint64_t ticket;
    uint64_t timeout_ns; /* 0: none */
    hce_entry_t entry;   /* what peers are told */
    char name[40];
} hce_launch_t;

typedef struct hce_queue {
    hce_launch_t *slots;
    uint64_t calls;         /* caller: pushed so far; numbers the calls */
    uint64_t reaped;        /* caller */
    atomic_uint_fast64_t pushed; /* caller to owner */
    atomic_uint_fast64_t done;   /* owner to caller */
} hce_queue_t;

hce_status_t hce_queue_init(hce_queue_t *queue);
void hce_queue_cleanup(hce_queue_t *queue);

/* Caller: a free slot; waits (making progress) when all are in use. */
hce_launch_t *hce_queue_acquire(hce_comm_h comm);
void hce_queue_push(hce_queue_t *queue);
/* Caller: undo what the launches that are done held. */
void hce_queue_reap(hce_comm_h comm);

/* Owner: the oldest launch that is not done, or NULL. */
hce_launch_t *hce_queue_head(hce_queue_t *queue);
void hce_queue_pop(hce_queue_t *queue);

#endif
