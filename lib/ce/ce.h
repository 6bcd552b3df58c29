/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Copy engines: how the ranks of one node reach each other's memory and
 * counters. One hce_ce_t a rank and communicator. Used by the engine's owner
 * only, but for hce_ce_open/close and the window calls (caller's thread).
 */
#ifndef HCE_CE_CE_H
#define HCE_CE_CE_H

#include <hce/hce.h>
#include "boot/boot.h"
#include "util/config.h"
#include "util/counter.h"
#include "util/layout.h"

#define HCE_CE_BOARD_SIZE 1024 /* bytes a rank shows to its node peers */
#define HCE_CE_QUANTUM    (128u * 1024) /* most bytes a hce_ce_copy is given */

typedef struct hce_ce hce_ce_t;

/* How one peer's memory is written. */
typedef enum hce_ce_how {
    HCE_CE_MAP,   /* mapped here, or the same process */
    HCE_CE_VM,    /* process_vm_writev */
    HCE_CE_STAGED /* a shared ring that the peer drains */
} hce_ce_how_t;

typedef struct hce_ce_params {
    const hce_layout_t *layout;
    hce_boot_t *boot;
    uint64_t deadline;
    uint32_t num_counters; /* of mine, the same on all ranks of the node */
    int rank;
    int doorbell; /* eventfd that wakes this rank's engine */
} hce_ce_params_t;

/* A buffer as its owner describes it to its node peers. */
typedef struct hce_ce_buf {
    uint64_t addr; /* in the owner's address space */
    uint64_t len;
    uint32_t window; /* id, or 0: not in a window */
    uint32_t reserved;
} hce_ce_buf_t;

/* A peer's buffer as this rank reaches it. */
typedef struct hce_ce_target {
    char *local;     /* HCE_CE_MAP: address here */
    uint64_t remote; /* else: address there */
    uint64_t len;
    int lrank;
    hce_ce_how_t how;
} hce_ce_target_t;

/* A place in a peer's buffer, to write to or to read from. */
typedef struct hce_ce_dst {
    const hce_ce_target_t *target;
    uint64_t offset;
} hce_ce_dst_t;

/* One source to some destinations. */
typedef struct hce_ce_copy {
    const void *src;
    size_t len; /* <= HCE_CE_QUANTUM */
    const hce_ce_dst_t *dsts;
    int num_dsts;
    bool streaming; /* hce_ce_streams() of the operation it is part of */
} hce_ce_copy_t;

/* Collective over boot's ranks: exchanges segments and doorbells, probes how
 * each peer is reached (HCE_HOST_COPY), logs the choice and its reason. */
hce_status_t hce_ce_open(const hce_ce_params_t *params, hce_ce_t **ce_p);
void hce_ce_close(hce_ce_t *ce);

/* My counters, and my board; the latter is read by peers after a counter that
 * I post tells them to. */
hce_counter_t *hce_ce_counters(hce_ce_t *ce);
void *hce_ce_board(hce_ce_t *ce, int lrank);

/* The source is read once where possible. HCE_OK: done, or on its way in
 * order before later hce_ce_post to the same peers. HCE_ERR_NO_RESOURCE:
 * nothing was copied; try again after progress (the doorbell rings when there
 * is room). Else an error that has been logged; *bad_lrank_p is the peer. */
hce_status_t hce_ce_copy(hce_ce_t *ce, const hce_ce_copy_t *copy,
                         int *bad_lrank_p);

/* len bytes of a node peer's buffer, at offset: *at_p is where they are, in
 * its memory if that is mapped, else in into, which has room for them. The
 * peer must have said by a counter that they are there. Errors are logged;
 * HCE_ERR_UNSUPPORTED where memory of the peer is only reached by a staging
 * ring, see the two calls below. */
hce_status_t hce_ce_read(hce_ce_t *ce, const hce_ce_dst_t *src, size_t len,
                         void *into, const void **at_p);
/* Can windows of exportable memory of this rank's node peers be read? */
bool hce_ce_can_read(const hce_ce_t *ce);
/* And any memory of theirs? */
bool hce_ce_can_pull(const hce_ce_t *ce);

/* Is an operation that reads and writes footprint bytes on this node, all
 * ranks together, better copied past the caches (HCE_NT_THRESHOLD)? */
bool hce_ce_streams(uint64_t footprint);

/* Raise counter index of a node peer, visible after all earlier copies to it;
 * wakes the peer if it sleeps. HCE_OK or HCE_ERR_NO_RESOURCE. */
hce_status_t hce_ce_post(hce_ce_t *ce, int lrank, uint32_t index,
                         uint64_t value);

/* Cheap; fails for a buffer outside of its window. lrank may be this rank, and
 * the same goes for hce_ce_copy and hce_ce_post. */
hce_status_t hce_ce_reach(hce_ce_t *ce, int lrank, const hce_ce_buf_t *buf,
                          hce_ce_target_t *target_p);

/* Call it first in each turn of the engine, before looking at counters: it
 * also marks what hce_ce_arm compares with. Drains staging rings towards me.
 * HCE_OK: nothing moved. HCE_INPROGRESS: something moved. Else an error that
 * has been logged: peer *bad_lrank_p wants to write outside of what
 * hce_ce_allow names, or its ring is damaged; it is returned from now on. */
hce_status_t hce_ce_progress(hce_ce_t *ce, int *bad_lrank_p);

/* Memory of mine that peers may write through staging rings, from here to
 * the matching disallow. Calls may overlap and repeat; owner's thread. */
hce_status_t hce_ce_allow(hce_ce_t *ce, const void *addr, size_t len);
void hce_ce_disallow(hce_ce_t *ce, const void *addr, size_t len);

/* Before sleeping: peers ring the doorbell from now on; false if something
 * has come since the last hce_ce_progress (do not sleep; nothing is armed).
 * After sleeping: hce_ce_awake. */
bool hce_ce_arm(hce_ce_t *ce);
void hce_ce_awake(hce_ce_t *ce);

/* Has the process of a node peer ended? (pidfd) */
bool hce_ce_peer_gone(hce_ce_t *ce, int lrank);
const char *hce_ce_how_string(hce_ce_how_t how);
/* How memory of lrank that is in no window is reached. */
hce_ce_how_t hce_ce_peer_how(const hce_ce_t *ce, int lrank);

/* Collective over the communicator, like all of boot: same order on all
 * ranks. Ids count from 1, the same on all ranks. */
hce_status_t hce_ce_window_add(hce_ce_t *ce, void *buf, size_t size,
                               uint64_t deadline, uint32_t *window_p);
void hce_ce_window_remove(hce_ce_t *ce, uint32_t window);

/* Describe [addr, addr + len) of mine: in a window if one covers it. */
void hce_ce_describe(hce_ce_t *ce, const void *addr, size_t len,
                     hce_ce_buf_t *buf_p);

/* In the child after fork: closes descriptors, touches nothing else. */
void hce_ce_forked(hce_ce_t *ce);

/* Memory that peers can map, aligned to a page. Process-wide, thread-safe.
 * Freeing what is still in a window is HCE_ERR_INVALID_ARG. */
hce_status_t hce_ce_mem_alloc(size_t size, void **ptr_p);
hce_status_t hce_ce_mem_free(void *ptr);
void hce_ce_mem_forked(void); /* in the child after fork, like the above */

extern const hce_config_table_t hce_ce_config;

#endif
