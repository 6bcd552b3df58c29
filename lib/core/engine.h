/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The engine: makes progress for all communicators of the process. It has one
 * owner at a time: a caller that waits, else the progress thread. The owner
 * turns; nobody else touches what a pollable's progress touches, but through
 * rings and atomics.
 */
#ifndef HCE_CORE_ENGINE_H
#define HCE_CORE_ENGINE_H

#include <hce/hce.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct hce_pollable hce_pollable_t;

/* What the engine needs of a thing that makes progress. All are called by the
 * owner. */
typedef struct hce_pollable_ops {
    /* True if something moved. */
    bool (*progress)(hce_pollable_t *pollable);
    /* Work is outstanding that needs progress though nobody waits. */
    bool (*is_busy)(hce_pollable_t *pollable);
    /* Before sleeping: false if there is work. Afterwards: awake. */
    bool (*arm)(hce_pollable_t *pollable);
    void (*awake)(hce_pollable_t *pollable);
    /* Moment at which progress must run though no descriptor is readable. */
    uint64_t (*next_ns)(hce_pollable_t *pollable);
    /* In the child after fork: close descriptors. */
    void (*forked)(hce_pollable_t *pollable);
} hce_pollable_ops_t;

struct hce_pollable {
    const hce_pollable_ops_t *ops;
    hce_pollable_t *next;
};

/* First get starts the progress thread, last put ends it. */
hce_status_t hce_engine_get(void);
void hce_engine_put(void);

/* Eventfd that wakes the engine from other processes. */
int hce_engine_doorbell(void);

/* True in a child that was forked while the engine existed: every handle is
 * dead there. */
bool hce_engine_is_forked(void);

/* From any thread; they take the ownership meanwhile. */
void hce_engine_add(hce_pollable_t *pollable);
void hce_engine_remove(hce_pollable_t *pollable);

/* A descriptor that ends the engine's sleep. */
hce_status_t hce_engine_watch(int fd);
void hce_engine_unwatch(int fd);

/* Own the engine without progress, to change what progress uses. */
void hce_engine_acquire(void);
void hce_engine_release(void);

/* There is new work that nobody waits for. */
void hce_engine_kick(void);

/* Somebody looks for the end of such work without waiting for it. */
void hce_engine_rouse(void);

/* Progress everything until done(arg). done is called by the owner and must
 * be cheap; it may also be called by other owners on behalf of this one. */
void hce_engine_wait(bool (*done)(void *arg), void *arg);

/* How often the progress thread was switched to. */
uint64_t hce_engine_wakes(void);

#endif
