/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The communicator inside. Each part has its own file and its own owner:
 * "caller" is the thread that makes calls on the communicator, "owner" the
 * engine's owner.
 */
#ifndef HCE_CORE_COMM_H
#define HCE_CORE_COMM_H

#include <stdatomic.h>
#include "boot/boot.h"
#include "ce/ce.h"
#include "core/dispatch.h"
#include "core/engine.h"
#include "core/fault.h"
#include "core/launch.h"
#include "core/plans.h"
#include "core/run.h"
#include "core/scratch.h"
#include "core/stats.h"
#include "core/stream.h"
#include "core/window.h"
#include "rma_proxy/proxy.h"
#include "util/clock.h"
#include "util/layout.h"

#define HCE_COMM_MAGIC 0x484345434f4d4dull /* "HCECOMM" */

/* The control connection costs a system call: a busy owner looks at it now
 * and then, one that goes to sleep watches its descriptor. */
#define HCE_COMM_BOOT_NS (2 * HCE_NS_PER_MS)

/* The way out: the caller asks for the flush, the owner makes it and goes on
 * progressing, since others flush towards this rank. */
typedef enum hce_comm_leaving {
    HCE_COMM_STAYS,
    HCE_COMM_FLUSHES,
    HCE_COMM_LEAVES
} hce_comm_leaving_t;

struct hce_comm {
    hce_pollable_t pollable; /* first: the engine sees this */
    uint64_t magic;          /* HCE_COMM_MAGIC while the handle is good */
    int rank;
    hce_device_t device;
    uint64_t timeout_ns; /* 0: none */
    uint64_t boot_ns;    /* owner: next look at the control connection */
    hce_layout_t *layout;
    hce_boot_t *boot;
    hce_ce_t *ce;
    hce_proxy_t *proxy; /* NULL on one node */
    hce_scratch_t scratch;
    hce_plan_limits_t limits; /* of what plans may use here */
    int fds[HCE_TRANSPORT_MAX_FDS + 1];
    int num_fds;
    struct hce_stream stream; /* what NULL means */
    hce_fault_t fault;        /* any thread */
    hce_queue_t queue;        /* caller to owner */
    hce_plans_t plans;        /* caller */
    hce_dispatch_memo_t memo; /* caller */
    hce_window_h windows;     /* caller */
    hce_run_t run;            /* owner */
    hce_stats_t stats;        /* written by owner, read by any */
    atomic_int leaving;       /* hce_comm_leaving_t */
    hce_comm_h next;          /* list of all, see comm.c */
};

/* NULL handles, handles of other things and handles in a forked child. */
hce_status_t hce_comm_check(hce_comm_h comm, const char *call);

/* Rows of descriptors in the engine's epoll set: after connects too. */
hce_status_t hce_comm_watch(hce_comm_h comm);
void hce_comm_unwatch(hce_comm_h comm);

static inline int hce_comm_size(hce_comm_h comm)
{
    return comm->layout->nranks;
}

#endif
