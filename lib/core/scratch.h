/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Scratch memory: what plans call SCRATCH and STAGE. Allocated, mapped by
 * node peers and registered with the network once, when a communicator is
 * created; a launch uses one slot of it, the next one the other. Created and
 * closed by the caller, used by the engine's owner.
 */
#ifndef HCE_CORE_SCRATCH_H
#define HCE_CORE_SCRATCH_H

#include <hce/hce.h>
#include <stdbool.h>
#include <stdint.h>
#include "ce/ce.h"
#include "plan/plan.h"
#include "rma_proxy/proxy.h"

/* What a rank tells the others. */
typedef struct hce_scratch_notice {
    uint64_t addr;
    uint16_t can_read; /* its node peers' scratch memory */
    uint16_t can_pull; /* any memory of theirs */
    uint32_t key_len;
    uint8_t key[HCE_TRANSPORT_MAX_KEY];
} hce_scratch_notice_t;

typedef struct hce_scratch_peer {
    hce_ce_target_t target;   /* on my node: its scratch memory */
    hce_transport_key_t *key; /* elsewhere: opened when a plan needs it */
} hce_scratch_peer_t;

typedef struct hce_scratch {
    char *addr; /* NULL without any */
    uint64_t len;
    uint64_t stage; /* where STAGE begins */
    uint32_t window;
    hce_proxy_mem_t *mem; /* NULL without a network */
    hce_scratch_notice_t *notices; /* [size] */
    hce_scratch_peer_t *peers;     /* [size] */
    uint64_t launches; /* owner: that have used it; chooses the slot */
    bool is_in_use;    /* by others, at the end: never given back */
} hce_scratch_t;

/* Collective, after copy engine and proxy were opened. Sets comm->limits. */
hce_status_t hce_scratch_open(hce_comm_h comm, uint64_t deadline);
void hce_scratch_close(hce_comm_h comm);

/* Owner: call was completed, this rank reads nothing any more for it. */
void hce_scratch_complete(hce_comm_h comm, uint64_t call);
/* Caller, before close: waits a while until node peers are done with the
 * last call, in which they may read this rank's scratch memory. */
void hce_scratch_settle(hce_comm_h comm);

/* Caller, owning the engine: makes the scratch memory of a rank on another
 * node reachable for puts. */
hce_status_t hce_scratch_connect(hce_comm_h comm, int rank);

#endif
