/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Statistics of a communicator.
 */
#include "config.h"

#include "core/stats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/comm.h"
#include "core/engine.h"
#include "util/log.h"

static void add(atomic_uint_fast64_t *number, uint64_t amount)
{
    atomic_fetch_add_explicit(number, amount, memory_order_relaxed);
}

static uint64_t get(atomic_uint_fast64_t *number)
{
    return atomic_load_explicit(number, memory_order_relaxed);
}

hce_status_t hce_stats_init(hce_stats_t *stats, int size, int contexts)
{
    memset(stats, 0, sizeof(*stats));
    stats->contexts = contexts;
    stats->peers = calloc((size_t)size * (size_t)contexts,
                          sizeof(*stats->peers));
    if (stats->peers == NULL) {
        hce_log(ERROR, CORE, "no memory for the statistics");
        return HCE_ERR_NO_MEMORY;
    }
    pthread_mutex_init(&stats->lock, NULL);
    return HCE_OK;
}

void hce_stats_cleanup(hce_stats_t *stats)
{
    if (stats->peers == NULL)
        return;
    pthread_mutex_destroy(&stats->lock);
    free(stats->peers);
    stats->peers = NULL;
}

void hce_stats_set_choice(hce_stats_t *stats, const char *line)
{
    /* Only the caller writes it: to read it, it needs no lock. */
    if (strcmp(stats->choice, line) == 0)
        return;
    pthread_mutex_lock(&stats->lock);
    snprintf(stats->choice, sizeof(stats->choice), "%s", line);
    pthread_mutex_unlock(&stats->lock);
}

void hce_stats_count_put(hce_stats_t *stats, int peer, int context,
                         uint64_t len)
{
    hce_stats_peer_t *to =
        &stats->peers[(size_t)peer * (size_t)stats->contexts +
                      (size_t)context];

    add(&stats->puts, 1);
    add(&stats->put_bytes, len);
    add(&to->puts, 1);
    add(&to->put_bytes, len);
}

void hce_stats_count_copy(hce_stats_t *stats, int peer, uint64_t len)
{
    hce_stats_peer_t *to =
        &stats->peers[(size_t)peer * (size_t)stats->contexts];

    add(&stats->copies, 1);
    add(&stats->copy_bytes, len);
    add(&to->copies, 1);
    add(&to->copy_bytes, len);
}

hce_status_t hce_comm_get_stats(hce_comm_h comm, hce_comm_stats_t *stats_p)
{
    hce_status_t status = hce_comm_check(comm, "hce_comm_get_stats");
    hce_stats_t *stats;

    if (status != HCE_OK)
        return status;
    if (stats_p == NULL) {
        hce_log(ERROR, CORE, "hce_comm_get_stats: stats_p is NULL");
        return HCE_ERR_INVALID_ARG;
    }
    stats = &comm->stats;
    *stats_p = (hce_comm_stats_t){
        .calls = get(&stats->calls),
        .puts = get(&stats->puts),
        .put_bytes = get(&stats->put_bytes),
        .copies = get(&stats->copies),
        .copy_bytes = get(&stats->copy_bytes),
        .retries = comm->proxy ? hce_proxy_retries(comm->proxy) : 0,
        .progress_wakes = hce_engine_wakes(),
    };
    pthread_mutex_lock(&stats->lock);
    memcpy(stats_p->choice, stats->choice, sizeof(stats_p->choice));
    pthread_mutex_unlock(&stats->lock);
    return HCE_OK;
}

hce_status_t hce_comm_get_peer_stats(hce_comm_h comm, int peer, int context,
                                     hce_peer_stats_t *stats_p)
{
    hce_status_t status = hce_comm_check(comm, "hce_comm_get_peer_stats");
    hce_stats_peer_t *to;

    if (status != HCE_OK)
        return status;
    if (peer < 0 || peer >= hce_comm_size(comm) || context < 0 ||
        context >= HCE_PLAN_MAX_CONTEXTS || stats_p == NULL) {
        hce_log(ERROR, CORE,
                "hce_comm_get_peer_stats: peer %d and context %d must be in "
                "0..%d and 0..%d, and stats_p not NULL",
                peer, context, hce_comm_size(comm) - 1,
                HCE_PLAN_MAX_CONTEXTS - 1);
        return HCE_ERR_INVALID_ARG;
    }
    if (context >= comm->stats.contexts) {
        memset(stats_p, 0, sizeof(*stats_p));
        return HCE_OK;
    }
    to = &comm->stats.peers[(size_t)peer * (size_t)comm->stats.contexts +
                            (size_t)context];
    *stats_p = (hce_peer_stats_t){
        .puts = get(&to->puts),
        .put_bytes = get(&to->put_bytes),
        .copies = get(&to->copies),
        .copy_bytes = get(&to->copy_bytes),
    };
    return HCE_OK;
}
