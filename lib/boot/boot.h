/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Bootstrap and control: how ranks find each other, agree on small data, and
 * learn of each other's end. One TCP star a group: rank 0 is the hub, each
 * other rank has one connection to it, kept until hce_boot_destroy. A hub that
 * leaves before the others hands them over to the next rank.
 *
 * Threads: blocking calls by one thread at a time; hce_boot_progress may run
 * in another thread meanwhile (a mutex inside). Callbacks come from whichever
 * thread progresses, without the mutex held.
 */
#ifndef HCE_BOOT_BOOT_H
#define HCE_BOOT_BOOT_H

#include "util/config.h"

#include <hce/hce.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct hce_boot hce_boot_t;

extern const hce_config_table_t hce_boot_config;

/* HCE_BOOTSTRAP_TIMEOUT; 0 is none. */
uint64_t hce_boot_timeout_ns(void);

/* Why a group ends, told to all ranks. */
typedef struct hce_boot_news {
    int32_t status; /* hce_status_t */
    int32_t rank;   /* to blame, or -1 */
    char text[480];
} hce_boot_news_t;

/* What a rank's heartbeat says of it, to find whom a stall is due to. */
typedef struct hce_boot_report {
    uint64_t call;     /* number of the last call this rank entered */
    int32_t waits_for; /* rank whose post it waits for, or -1 */
    uint32_t reserved;
} hce_boot_report_t;

typedef struct hce_boot_params {
    hce_bootstrap_t bootstrap;
    int rank, size;                   /* with HCE_BOOTSTRAP_TCP */
    const hce_unique_id_t *unique_id; /* with HCE_BOOTSTRAP_TCP */
    uint64_t deadline;                /* hce_clock_ns() time */
    uint64_t silence_ns;              /* no heartbeat for so long; 0 is off */
} hce_boot_params_t;

/* Listens at once, as the settings say; they are initialised. */
hce_status_t hce_boot_unique_id_create(hce_unique_id_t *id_p);

/* Set before the first hce_boot_progress. Called at most once each group:
 * the first news wins. */
typedef void (*hce_boot_news_cb_t)(void *arg, const hce_boot_news_t *news);

/* On failure the error has been logged with all that was tried and why it
 * failed. Ranks that got as far as connecting fail together. With env and
 * pmix the n-th call of one rank meets the n-th of the others: calls of one
 * process must begin in the same order on all ranks. */
hce_status_t hce_boot_create(const hce_boot_params_t *params,
                             hce_boot_t **boot_p);
void hce_boot_destroy(hce_boot_t *boot); /* after goodbye, or abruptly */

int hce_boot_rank(const hce_boot_t *boot);
int hce_boot_size(const hce_boot_t *boot);
const char *hce_boot_name(const hce_boot_t *boot); /* "pmix", "env", "tcp" */

#define HCE_BOOT_SECRET_SIZE 16
/* Secret of the group, 16 bytes, the same on all ranks. */
const uint8_t *hce_boot_secret(const hce_boot_t *boot);

/* out has size * len bytes; in and out may not overlap. Return HCE_OK, the
 * news' status, or HCE_ERR_TIMEOUT. All ranks call in the same order. */
hce_status_t hce_boot_allgather(hce_boot_t *boot, const void *in, size_t len,
                                void *out, uint64_t deadline);
/* lens[size] and *out_p (malloc'd, concatenated by rank; caller frees). */
hce_status_t hce_boot_allgatherv(hce_boot_t *boot, const void *in, size_t len,
                                 size_t *lens, void **out_p,
                                 uint64_t deadline);
hce_status_t hce_boot_barrier(hce_boot_t *boot, uint64_t deadline);

/* New group of the ranks with my color, in order of (key, rank). *boot_p is
 * NULL for HCE_SPLIT_NONE. */
hce_status_t hce_boot_split(hce_boot_t *boot, int color, int key,
                            uint64_t deadline, hce_boot_t **boot_p);

void hce_boot_set_news_cb(hce_boot_t *boot, hce_boot_news_cb_t cb, void *arg);

/* Reads and answers what has come, sends heartbeats that are due, detects
 * gone and silent ranks. Never blocks. Whoever has called it once must go on
 * to call it when hce_boot_fd is readable and at hce_boot_next_ns: from then
 * on the others take its silence for a fault. */
void hce_boot_progress(hce_boot_t *boot);
/* Readable when hce_boot_progress has something to do (an epoll fd). */
int hce_boot_fd(const hce_boot_t *boot);
/* When hce_boot_progress must run next at the latest. */
uint64_t hce_boot_next_ns(hce_boot_t *boot);

/* For the heartbeats from now on. Cheap; any thread. */
void hce_boot_set_report(hce_boot_t *boot, const hce_boot_report_t *report);

/* My call has made no progress within its deadline: the hub follows who waits
 * for whom in the latest reports and tells all ranks whom it found:
 * "rank 3 has not entered call 17", "rank 3 waits for rank 5". */
void hce_boot_stuck(hce_boot_t *boot, uint64_t call, int waits_for,
                    const char *text);

/* Ends the group for all ranks, this one included (its callback comes too,
 * from here or from a later progress). The first news wins everywhere: the
 * callback may blame another rank. Any thread. */
void hce_boot_abort(hce_boot_t *boot, const hce_boot_news_t *news);

/* Orderly end: tells the others that this rank leaves, and waits until all
 * have left or left_ns has passed. A rank that said goodbye is not "gone". The
 * others go on watching each other. After news it only waits until these are
 * sent. */
void hce_boot_goodbye(hce_boot_t *boot, uint64_t left_ns);

/* In the child after fork: closes descriptors, touches nothing else. */
void hce_boot_forked(hce_boot_t *boot);

#endif
