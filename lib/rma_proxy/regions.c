/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Memory that peers may write, where it is our code that writes for them.
 */
#include "config.h"

#include "rma_proxy/regions.h"

#include "util/log.h"
#include "util/math.h"

#include <stdlib.h>
#include <string.h>

void hce_regions_init(hce_regions_t *table)
{
    memset(table, 0, sizeof(*table));
    pthread_mutex_init(&table->lock, NULL);
}

void hce_regions_cleanup(hce_regions_t *table)
{
    pthread_mutex_destroy(&table->lock);
    free(table->regions);
}

static hce_region_t *find(const hce_regions_t *table, uint64_t id)
{
    uint32_t index = (uint32_t)id;
    hce_region_t *region;

    if (index >= table->num)
        return NULL;
    region = &table->regions[index];
    return region->used && region->generation == (uint32_t)(id >> 32) ? region
                                                                      : NULL;
}

/* Caller holds the lock. */
static hce_region_t *find_free(hce_regions_t *table)
{
    hce_region_t *regions;
    uint32_t num;

    for (uint32_t i = 0; i < table->num; i++) {
        if (!table->regions[i].used)
            return &table->regions[i];
    }
    num = hce_max(16u, table->num * 2);
    regions = realloc(table->regions, num * sizeof(*regions));
    if (regions == NULL)
        return NULL;
    memset(regions + table->num, 0, (num - table->num) * sizeof(*regions));
    table->regions = regions;
    regions += table->num;
    table->num = num;
    return regions;
}

hce_status_t hce_regions_add(hce_regions_t *table, const void *addr,
                             size_t len, uint64_t *id_p)
{
    hce_region_t *region;

    hce_regions_lock(table);
    region = find_free(table);
    if (region != NULL) {
        region->addr = (uintptr_t)addr;
        region->len = len;
        region->used = true;
        region->generation++;
        *id_p = (uint64_t)region->generation << 32 |
                (uint64_t)(region - table->regions);
    }
    hce_regions_unlock(table);
    if (region != NULL)
        return HCE_OK;
    hce_log(ERROR, PROXY, "no memory to register %zu bytes", len);
    return HCE_ERR_NO_MEMORY;
}

void hce_regions_remove(hce_regions_t *table, uint64_t id)
{
    hce_region_t *region;

    hce_regions_lock(table);
    region = find(table, id);
    if (region != NULL)
        region->used = false;
    hce_regions_unlock(table);
}

bool hce_regions_covers(const hce_regions_t *table, uint64_t id, uint64_t addr,
                        uint64_t len)
{
    const hce_region_t *region = find(table, id);

    return region != NULL && addr >= region->addr &&
           addr - region->addr <= region->len &&
           len <= region->len - (addr - region->addr);
}
