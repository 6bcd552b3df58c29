/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Loop transport: the table of memory that peers may write. A key is an
 * index with a generation, so that a key kept too long names nothing.
 * mem_lock guards the table; no write by a peer is under way without it.
 */
#include "config.h"

#include "rma_proxy/loop/loop.h"

#include "util/log.h"
#include "util/math.h"

#include <stdlib.h>
#include <string.h>

typedef struct loop_mem {
    uint64_t id;
} loop_mem_t;

static loop_region_t *region_of(loop_t *loop, uint64_t id)
{
    uint32_t index = (uint32_t)id;

    if (index >= loop->num_regions || !loop->regions[index].used ||
        loop->regions[index].generation != (uint32_t)(id >> 32))
        return NULL;
    return &loop->regions[index];
}

/* Caller holds mem_lock. */
static hce_status_t region_find_free(loop_t *loop, uint32_t *index_p)
{
    loop_region_t *regions;
    uint32_t num;

    for (uint32_t i = 0; i < loop->num_regions; i++) {
        if (!loop->regions[i].used) {
            *index_p = i;
            return HCE_OK;
        }
    }
    num = hce_max(16u, loop->num_regions * 2);
    regions = realloc(loop->regions, num * sizeof(*regions));
    if (regions == NULL)
        return HCE_ERR_NO_MEMORY;
    memset(regions + loop->num_regions, 0,
           (num - loop->num_regions) * sizeof(*regions));
    *index_p = loop->num_regions;
    loop->regions = regions;
    loop->num_regions = num;
    return HCE_OK;
}

hce_status_t hce_loop_mem_register(hce_transport_t *transport, void *addr,
                                   size_t len, hce_transport_mem_t **mem_p)
{
    loop_t *loop = loop_of(transport);
    loop_mem_t *mem = malloc(sizeof(*mem));
    hce_status_t status = HCE_ERR_NO_MEMORY;
    loop_region_t *region;
    uint32_t index;

    if (mem == NULL)
        goto err;
    pthread_mutex_lock(&loop->mem_lock);
    status = region_find_free(loop, &index);
    if (status == HCE_OK) {
        region = &loop->regions[index];
        region->addr = addr;
        region->len = len;
        region->used = true;
        region->generation++;
        mem->id = (uint64_t)region->generation << 32 | index;
    }
    pthread_mutex_unlock(&loop->mem_lock);
    if (status != HCE_OK)
        goto err;
    *mem_p = (hce_transport_mem_t *)mem;
    return HCE_OK;

err:
    hce_log(ERROR, PROXY, "loop: no memory to register %zu bytes", len);
    free(mem);
    return status;
}

void hce_loop_mem_deregister(hce_transport_t *transport,
                             hce_transport_mem_t *mem)
{
    loop_t *loop = loop_of(transport);
    loop_region_t *region;

    pthread_mutex_lock(&loop->mem_lock);
    region = region_of(loop, ((loop_mem_t *)mem)->id);
    if (region != NULL)
        region->used = false;
    pthread_mutex_unlock(&loop->mem_lock);
    free(mem);
}

hce_status_t hce_loop_mem_pack(hce_transport_mem_t *mem, void *key,
                               size_t *len_p)
{
    memcpy(key, &((loop_mem_t *)mem)->id, sizeof(uint64_t));
    *len_p = sizeof(uint64_t);
    return HCE_OK;
}

hce_status_t hce_loop_key_unpack(hce_transport_t *transport, int peer,
                                 const void *key, size_t len,
                                 hce_transport_key_t **key_p)
{
    loop_mem_t *mem = NULL;

    if (len != sizeof(mem->id)) {
        hce_log(ERROR, PROXY, "loop: rank %d sent a key of %zu bytes", peer,
                len);
        return HCE_ERR_TRANSPORT;
    }
    mem = malloc(sizeof(*mem));
    if (mem == NULL)
        return HCE_ERR_NO_MEMORY;
    memcpy(&mem->id, key, len);
    *key_p = (hce_transport_key_t *)mem;
    return HCE_OK;
}

void hce_loop_key_destroy(hce_transport_key_t *key)
{
    free(key);
}

uint64_t hce_loop_key_id(const hce_transport_key_t *key)
{
    return ((const loop_mem_t *)key)->id;
}

bool hce_loop_mem_covers(loop_t *loop, uint64_t id, uint64_t addr,
                         uint64_t len)
{
    const loop_region_t *region = region_of(loop, id);
    uint64_t start;

    if (region == NULL)
        return false;
    start = (uintptr_t)region->addr;
    return addr >= start && addr - start <= region->len &&
           len <= region->len - (addr - start);
}
