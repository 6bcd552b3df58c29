/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Memory that peers may write, where it is our code that writes for them. An
 * id is an index with a generation: one kept too long names nothing. Lock
 * order: the lock of a table is taken last.
 */
#ifndef HCE_RMA_PROXY_REGIONS_H
#define HCE_RMA_PROXY_REGIONS_H

#include <hce/hce.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct hce_region {
    uint64_t addr;
    uint64_t len;
    uint32_t generation;
    bool used;
} hce_region_t;

typedef struct hce_regions {
    /* The table, and every write of a peer's data: once hce_regions_remove
     * has returned, nothing is written there any more. */
    pthread_mutex_t lock;
    hce_region_t *regions;
    uint32_t num;
} hce_regions_t;

void hce_regions_init(hce_regions_t *table);
void hce_regions_cleanup(hce_regions_t *table);

/* Any thread. */
hce_status_t hce_regions_add(hce_regions_t *table, const void *addr,
                             size_t len, uint64_t *id_p);
void hce_regions_remove(hce_regions_t *table, uint64_t id);

/* May a peer write [addr, addr + len)? Caller holds the lock, until it has
 * written. */
bool hce_regions_covers(const hce_regions_t *table, uint64_t id, uint64_t addr,
                        uint64_t len);

static inline void hce_regions_lock(hce_regions_t *table)
{
    pthread_mutex_lock(&table->lock);
}

static inline void hce_regions_unlock(hce_regions_t *table)
{
    pthread_mutex_unlock(&table->lock);
}

#endif
