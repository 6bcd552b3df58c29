/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The host copy engine's objects, shared by its files only. Peers are indexed
 * by local rank, this rank included.
 */
#ifndef HCE_CE_HOST_HOST_H
#define HCE_CE_HOST_HOST_H

#include <pthread.h>
#include <sys/types.h>

#include "ce/ce.h"
#include "ce/host/link.h"
#include "ce/host/mem.h"
#include "ce/host/outbox.h"
#include "ce/host/ring.h"
#include "ce/host/segment.h"

#define HCE_CE_REASON_LEN 192

typedef struct hce_ce_peer {
    int rank;
    bool is_local;    /* of this process (perhaps this rank itself) */
    bool can_vm;      /* process_vm_readv and _writev work with it */
    bool map_windows; /* windows of exportable memory are reached as mapped */
    bool stages;      /* writes to me through its ring */
    hce_ce_how_t how; /* memory in no window */
    int link;         /* connected socket, -1 if is_local */
    int pidfd;        /* -1 if is_local or there is none */
    pid_t pid;
    hce_ce_seg_t *seg;
    uint64_t seg_addr;    /* of its segment in its address space */
    hce_ce_ring_end_t tx; /* in its segment, filled by me */
    hce_ce_ring_end_t rx; /* in my segment, filled by it */
} hce_ce_peer_t;

/* What one peer registered as (part of) a window. */
typedef struct hce_ce_share {
    uint64_t addr;
    uint64_t len;
    char *local; /* where addr is here; NULL: not mapped */
    hce_ce_import_t *import;
} hce_ce_share_t;

typedef struct hce_ce_window {
    uint32_t id;
    uint64_t mem; /* serial of my allocation that is held; 0: none */
    hce_ce_share_t shares[];
} hce_ce_window_t;

struct hce_ce {
    hce_boot_t *boot;
    int rank, lrank;
    int num_lranks;
    uint32_t num_counters;
    hce_ce_peer_t *peers; /* [num_lranks] */
    hce_ce_seg_t *seg;    /* mine */
    hce_ce_link_t link;   /* used by open and the window calls only */
    uint64_t deadline;    /* of open */

    /* Engine's owner only. */
    uint64_t seen; /* events at the last hce_ce_progress */
    hce_ce_range_t *ranges;
    size_t num_ranges, max_ranges;
    hce_ce_outbox_t outbox;        /* mine */
    hce_ce_ring_end_t **ring_ends; /* [num_lranks] of the peers' tx */
    hce_status_t ring_status;      /* first error of a ring, kept */
    int ring_bad;                  /* its writer */

    /* lock protects windows and num_windows: the caller's thread adds and
     * removes, the engine's owner looks up. Never held while blocking. */
    pthread_mutex_t lock;
    hce_ce_window_t **windows; /* by rising id */
    size_t num_windows, max_windows;
    uint32_t last_window;

    /* What hce_ce_fail said last: the caller's thread only. */
    char fail_text[HCE_CE_REASON_LEN];
};

/* Logs an error and keeps its text, to be told to the other ranks. Returns
 * status. The caller's thread only. */
hce_status_t hce_ce_fail(hce_ce_t *ce, hce_status_t status, const char *format,
                         ...) __attribute__((format(printf, 3, 4)));

/* Second half of what all ranks do together: nobody returns from here before
 * all have come. The common status; what ("open its copy engine") and the
 * text of hce_ce_fail are logged by the others. */
hce_status_t hce_ce_agree(hce_ce_t *ce, hce_status_t status, uint64_t deadline,
                          const char *what);

/* How peer's memory in no window is reached: tries, and sets peer->how and
 * peer->map_windows. An error if HCE_HOST_COPY asks for what cannot be. */
hce_status_t hce_ce_probe_peer(hce_ce_t *ce, int lrank);

/* All of src to the peer's address space, however often the kernel stops in
 * between. 0 or an errno. */
int hce_ce_vm_write(pid_t pid, uint64_t remote, const char *src, size_t len);
/* The same the other way. */
int hce_ce_vm_read(pid_t pid, uint64_t remote, char *dst, size_t len);

/* Index of window id, or num_windows. Caller holds lock. */
size_t hce_ce_window_find(const hce_ce_t *ce, uint32_t id);

/* Removes all windows. */
void hce_ce_windows_cleanup(hce_ce_t *ce);

#endif
