/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * UCX transport: registered memory, here and at peers. Registering may run
 * in any thread: the UCP context is made for that. A packed key is the id of
 * the region, for puts by active messages, then UCX's key.
 */
#include "config.h"

#include "rma_proxy/ucx/ucx.h"

#include "util/log.h"

#include <stdlib.h>
#include <string.h>

typedef struct ucx_mem {
    ucx_t *ucx;
    ucp_mem_h handle;
    uint64_t region;
} ucx_mem_t;

typedef struct ucx_key {
    uint64_t region;
    int contexts;
    ucp_rkey_h handles[];
} ucx_key_t;

hce_status_t hce_ucx_mem_register(hce_transport_t *transport, void *addr,
                                  size_t len, hce_transport_mem_t **mem_p)
{
    ucp_mem_map_params_t params = {.field_mask =
                                       UCP_MEM_MAP_PARAM_FIELD_ADDRESS |
                                       UCP_MEM_MAP_PARAM_FIELD_LENGTH,
                                   .address = addr,
                                   .length = len};
    ucx_t *ucx = ucx_of(transport);
    ucx_mem_t *mem = malloc(sizeof(*mem));
    ucs_status_t result = UCS_ERR_NO_MEMORY;
    hce_status_t status;

    if (mem == NULL)
        goto err_map;
    mem->ucx = ucx;
    result = ucp_mem_map(ucx->context, &params, &mem->handle);
    if (result != UCS_OK)
        goto err_map;
    status = hce_regions_add(&ucx->regions, addr, len, &mem->region);
    if (status != HCE_OK)
        goto err_add;
    *mem_p = (hce_transport_mem_t *)mem;
    return HCE_OK;

err_add:
    (void)ucp_mem_unmap(ucx->context, mem->handle);
    free(mem);
    return status;
err_map:
    hce_log(ERROR, PROXY, "ucx: registering %zu bytes: %s", len,
            ucs_status_string(result));
    free(mem);
    return hce_ucx_status(result);
}

void hce_ucx_mem_deregister(hce_transport_t *transport,
                            hce_transport_mem_t *mem_h)
{
    ucx_mem_t *mem = (ucx_mem_t *)mem_h;
    ucs_status_t status;

    hce_regions_remove(&mem->ucx->regions, mem->region);
    status = ucp_mem_unmap(mem->ucx->context, mem->handle);
    if (status != UCS_OK)
        hce_log(ERROR, PROXY, "ucx: deregistering: %s",
                ucs_status_string(status));
    free(mem);
}

hce_status_t hce_ucx_mem_pack(hce_transport_mem_t *mem_h, void *key,
                              size_t *len_p)
{
    ucx_mem_t *mem = (ucx_mem_t *)mem_h;
    size_t skip = sizeof(mem->region);
    void *packed;
    size_t len;
    ucs_status_t status =
        ucp_rkey_pack(mem->ucx->context, mem->handle, &packed, &len);

    if (status != UCS_OK) {
        hce_log(ERROR, PROXY, "ucx: packing a key: %s",
                ucs_status_string(status));
        return hce_ucx_status(status);
    }
    if (skip + len <= HCE_TRANSPORT_MAX_KEY) {
        memcpy(key, &mem->region, skip);
        memcpy((char *)key + skip, packed, len);
        *len_p = skip + len;
    } else {
        hce_log(ERROR, PROXY, "ucx: a key of %zu bytes, %zu at most", len,
                HCE_TRANSPORT_MAX_KEY - skip);
    }
    ucp_rkey_buffer_release(packed);
    return skip + len <= HCE_TRANSPORT_MAX_KEY ? HCE_OK
                                               : HCE_ERR_UNSUPPORTED;
}

/* UCX's key belongs to one endpoint: one for each context. */
hce_status_t hce_ucx_key_unpack(hce_transport_t *transport, int rank,
                                const void *packed, size_t len,
                                hce_transport_key_t **key_p)
{
    ucx_t *ucx = ucx_of(transport);
    ucx_peer_t *peer = ucx->peers[rank];
    int contexts = ucx->params.contexts;
    ucx_key_t *key;

    if (peer == NULL || len < sizeof(key->region)) {
        hce_log(ERROR, PROXY, "ucx: key of rank %d: %zu bytes%s", rank, len,
                peer == NULL ? ", not connected" : "");
        return HCE_ERR_TRANSPORT;
    }
    if (peer->status != HCE_OK)
        return peer->status;
    key = calloc(1, sizeof(*key) + (size_t)contexts * sizeof(ucp_rkey_h));
    if (key == NULL)
        return HCE_ERR_NO_MEMORY;
    memcpy(&key->region, packed, sizeof(key->region));
    for (; key->contexts < contexts; key->contexts++) {
        ucs_status_t status = ucp_ep_rkey_unpack(
            peer->eps[key->contexts].ep,
            (const char *)packed + sizeof(key->region),
            &key->handles[key->contexts]);

        if (status != UCS_OK) {
            hce_log(ERROR, PROXY, "ucx: key of rank %d: %s", rank,
                    ucs_status_string(status));
            hce_ucx_key_destroy((hce_transport_key_t *)key);
            return hce_ucx_status(status);
        }
    }
    *key_p = (hce_transport_key_t *)key;
    return HCE_OK;
}

void hce_ucx_key_destroy(hce_transport_key_t *key_h)
{
    ucx_key_t *key = (ucx_key_t *)key_h;

    for (int i = 0; i < key->contexts; i++)
        ucp_rkey_destroy(key->handles[i]);
    free(key);
}

ucp_mem_h hce_ucx_mem_handle(hce_transport_mem_t *mem)
{
    return ((ucx_mem_t *)mem)->handle;
}

uint64_t hce_ucx_key_region(const hce_transport_key_t *key)
{
    return ((const ucx_key_t *)key)->region;
}

ucp_rkey_h hce_ucx_key_handle(hce_transport_key_t *key, int context)
{
    return ((ucx_key_t *)key)->handles[context];
}
