/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Running one launch: its lanes step when their waits are met, until the plan
 * is complete. One launch of a communicator runs at a time. All by the
 * engine's owner, but for what says "caller".
 */
#ifndef HCE_CORE_RUN_H
#define HCE_CORE_RUN_H

#include <hce/hce.h>
#include <stdbool.h>
#include "ce/ce.h"
#include "core/launch.h"
#include "plan/plan.h"
#include "rma_proxy/proxy.h"
#include "util/counter.h"

typedef enum hce_run_state {
    HCE_RUN_IDLE,   /* no launch */
    HCE_RUN_LANES,  /* ops are left */
    HCE_RUN_ARRIVALS /* all mine are done, others write to me */
} hce_run_state_t;

/* Where a lane is: op next, of which some has been done. */
typedef struct hce_run_lane {
    uint32_t next;     /* ops of the lane that have ended */
    uint32_t posted;   /* posts of op next that were made */
    uint64_t copied;   /* bytes of a COPY */
    bool is_started;   /* its waits were met */
    bool is_moved;     /* its data are done, posts are left */
    hce_proxy_put_t put;
} hce_run_lane_t;

/* A key of a peer's window, kept from launch to launch. */
typedef struct hce_run_key {
    uint32_t window;
    hce_transport_key_t *key;
} hce_run_key_t;

/* Bytes of each source that a reduction takes at once: all of them and the
 * sum fit the caches. */
#define HCE_RUN_REDUCE_QUANTUM (32u * 1024)

/* Destinations of a copy: ranks of a node. */
#define HCE_RUN_MAX_DSTS 256

#define HCE_RUN_KEYS 4 /* kept for a peer */

/* A peer as the running launch sees it. */
typedef struct hce_run_peer {
    bool is_ready;          /* entered this launch, same call */
    uint32_t touches;       /* buffers of it that my plan accesses */
    hce_ce_target_t send;   /* its SEND, on my node */
    hce_ce_target_t recv;   /* its RECV, on my node */
    uint64_t addr;          /* its RECV, on another node */
    hce_transport_key_t *key;
    bool is_own_key; /* opened for this launch only */
    uint8_t next_key; /* to be replaced next */
    hce_run_key_t keys[HCE_RUN_KEYS];
} hce_run_peer_t;

typedef struct hce_run {
    hce_run_state_t state;
    hce_launch_t *launch;
    hce_counter_t *counters;
    uint64_t *in_base;  /* of my counters, by index */
    uint64_t *out_base; /* of those I write; index by (owner, slot) */
    hce_run_peer_t *peers;
    hce_run_lane_t *lanes;
    uint32_t *active; /* lanes with ops left */
    uint32_t num_active;
    uint32_t lanes_size;  /* allocated; caller grows it while it owns */
    uint32_t first_copy;  /* turn of the copy lanes */
    uint32_t num_unready; /* peers of the plan that have not entered */
    uint32_t done_wait;   /* completion waits that are met */
    uint64_t slot; /* of scratch memory, before mod depth */
    char *bounce;  /* what is read from peers or added up, not in place */
    bool is_streaming;
    bool is_blamed; /* the hub was asked who is stuck */
    uint64_t failed_ns; /* when an error stopped it, 0: no error */
    uint64_t moved_ns;
    uint64_t looked_ns; /* last look at a launch that does not move */
} hce_run_t;

hce_status_t hce_run_init(hce_comm_h comm);
void hce_run_cleanup(hce_comm_h comm);

/* Caller: room for the lanes of plan. Caller owns the engine not yet. */
hce_status_t hce_run_reserve(hce_comm_h comm, const hce_plan_t *plan);

/* Keys of a window that goes away. Owner. */
void hce_run_forget_window(hce_comm_h comm, uint32_t window);

/* Starts, steps and ends launches of the queue. True if something moved. */
bool hce_run_progress(hce_comm_h comm);

/* When hce_run_progress must look at a launch that does not move. */
uint64_t hce_run_next_ns(const hce_run_t *run);

/* Is counter (me, writer, slot) at least value, counted from the base? */
bool hce_run_is_met(hce_comm_h comm, const hce_plan_wait_t *wait);

/* Peers (peer.c). */
void hce_run_peers_start(hce_comm_h comm);
bool hce_run_peers_progress(hce_comm_h comm);
void hce_run_peers_end(hce_comm_h comm);

/* Where a ref of the running launch is (place.c). Mine: its address and
 * registration. Of a node peer, or mine: as the copy engine reaches it. On
 * another node: address there and key. */
char *hce_run_place(hce_comm_h comm, const hce_plan_ref_t *ref);
hce_proxy_mem_t *hce_run_place_mem(hce_comm_h comm,
                                   const hce_plan_ref_t *ref);
hce_ce_dst_t hce_run_place_node(hce_comm_h comm, const hce_plan_ref_t *ref);
uint64_t hce_run_place_remote(hce_comm_h comm, const hce_plan_ref_t *ref,
                              hce_transport_key_t **key_p);

/* Data of an op (move.c). HCE_OK: all of it has moved, or is on its way in
 * order before a post to the same peer. HCE_INPROGRESS: call again. */
void hce_run_move_start(hce_comm_h comm, const hce_plan_op_t *op,
                        hce_run_lane_t *state);
hce_status_t hce_run_move(hce_comm_h comm, const hce_plan_op_t *op,
                          hce_run_lane_t *state);

/* Lanes (lane.c): true if something moved. */
bool hce_run_lanes_progress(hce_comm_h comm);

/* Stalls (stall.c): deadlines, reports, calls that do not meet. */
void hce_run_stall_start(hce_comm_h comm);
void hce_run_stall_check(hce_comm_h comm, uint64_t now_ns);
void hce_run_stall_end(hce_comm_h comm);

#endif
