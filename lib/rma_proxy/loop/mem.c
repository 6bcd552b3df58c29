/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Loop transport: registrations, and the keys that name them to peers.
 */
#include "config.h"

#include "rma_proxy/loop/loop.h"

#include "util/log.h"

#include <stdlib.h>
#include <string.h>

/* A registration here, or the key of one at a peer. */
typedef struct loop_mem {
    uint64_t id;
} loop_mem_t;

hce_status_t hce_loop_mem_register(hce_transport_t *transport, void *addr,
                                   size_t len, hce_transport_mem_t **mem_p)
{
    loop_mem_t *mem = malloc(sizeof(*mem));
    hce_status_t status;

    if (mem == NULL)
        return HCE_ERR_NO_MEMORY;
    status =
        hce_regions_add(&loop_of(transport)->regions, addr, len, &mem->id);
    if (status != HCE_OK) {
        free(mem);
        return status;
    }
    *mem_p = (hce_transport_mem_t *)mem;
    return HCE_OK;
}

void hce_loop_mem_deregister(hce_transport_t *transport,
                             hce_transport_mem_t *mem_h)
{
    loop_mem_t *mem = (loop_mem_t *)mem_h;

    hce_regions_remove(&loop_of(transport)->regions, mem->id);
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
                                 const void *packed, size_t len,
                                 hce_transport_key_t **key_p)
{
    loop_mem_t *key;

    if (len != sizeof(key->id)) {
        hce_log(ERROR, PROXY, "loop: rank %d sent a key of %zu bytes", peer,
                len);
        return HCE_ERR_TRANSPORT;
    }
    key = malloc(sizeof(*key));
    if (key == NULL)
        return HCE_ERR_NO_MEMORY;
    memcpy(&key->id, packed, len);
    *key_p = (hce_transport_key_t *)key;
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
