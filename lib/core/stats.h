/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * What a communicator has moved, counted where it is done. The owner writes,
 * anybody reads: relaxed atomics, each number exact, no snapshot of all.
 */
#ifndef HCE_CORE_STATS_H
#define HCE_CORE_STATS_H

#include <hce/hce.h>
#include <pthread.h>
#include <stdatomic.h>

typedef struct hce_stats_peer {
    atomic_uint_fast64_t puts, put_bytes, copies, copy_bytes;
} hce_stats_peer_t;

typedef struct hce_stats {
    atomic_uint_fast64_t calls, puts, put_bytes, copies, copy_bytes;
    hce_stats_peer_t *peers; /* [size * contexts] */
    int contexts;
    pthread_mutex_t lock; /* choice */
    char choice[1024];    /* of the last call */
} hce_stats_t;

hce_status_t hce_stats_init(hce_stats_t *stats, int size, int contexts);
void hce_stats_cleanup(hce_stats_t *stats);
void hce_stats_count_put(hce_stats_t *stats, int peer, int context,
                         uint64_t len);
/* Caller: what the dispatcher chose for a call. */
void hce_stats_set_choice(hce_stats_t *stats, const char *line);
void hce_stats_count_copy(hce_stats_t *stats, int peer, uint64_t len);

#endif
