/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * UCX transport: registered memory, here and at peers. Registering may run
 * in any thread: the UCP context is made for that. A packed key is the id of
 * the region, then, where puts are UCX's, UCX's key.
 */
#include "config.h"

#include "rma_proxy/ucx/ucx.h"

#include "util/log.h"

#include <stdlib.h>
#include <string.h>

typedef struct ucx_mem {
    ucx_t *ucx;
    ucp_mem_h handle; /* NULL where puts are active messages */
    uint64_t region;
} ucx_mem_t;

typedef struct ucx_key {
    uint64_t region;
    int contexts; /* handles; none where puts are active messages */
    ucp_rkey_h handles[];
} ucx_key_t;

static hce_status_t mem_map(ucx_mem_t *mem, void *addr, size_t len)
{
    ucp_mem_map_params_t params = {.field_mask =
                                       UCP_MEM_MAP_PARAM_FIELD_ADDRESS |
                                       UCP_MEM_MAP_PARAM_FIELD_LENGTH,
                                   .address = addr,
                                   .length = len};
    ucs_status_t status;

    mem->handle = NULL;
    if (mem->ucx->am_puts)
        return HCE_OK;
    status = ucp_mem_map(mem->ucx->context, &params, &mem->handle);
    if (status == UCS_OK)
        return HCE_OK;
    hce_log(ERROR, PROXY, "ucx: registering %zu bytes: %s", len,
            ucs_status_string(status));
    return hce_ucx_status(status);
}

static void mem_unmap(ucx_mem_t *mem)
{
    ucs_status_t status;

    if (mem->handle == NULL)
        return;
    status = ucp_mem_unmap(mem->ucx->context, mem->handle);
    if (status != UCS_OK)
        hce_log(ERROR, PROXY, "ucx: deregistering: %s",
                ucs_status_string(status));
}

hce_status_t hce_ucx_mem_register(hce_transport_t *transport, void *addr,
                                  size_t len, hce_transport_mem_t **mem_p)
{
    ucx_t *ucx = ucx_of(transport);
    ucx_mem_t *mem = malloc(sizeof(*mem));
    hce_status_t status;

    if (mem == NULL)
        return HCE_ERR_NO_MEMORY;
    mem->ucx = ucx;
    status = mem_map(mem, addr, len);
    if (status != HCE_OK)
        goto err_free;
    status = hce_regions_add(&ucx->regions, addr, len, &mem->region);
    if (status != HCE_OK)
        goto err_unmap;
    *mem_p = (hce_transport_mem_t *)mem;
    return HCE_OK;

err_unmap:
    mem_unmap(mem);
err_free:
    free(mem);
    return status;
}

void hce_ucx_mem_deregister(hce_transport_t *transport,
                            hce_transport_mem_t *mem_h)
{
    ucx_mem_t *mem = (ucx_mem_t *)mem_h;

    hce_regions_remove(&mem->ucx->regions, mem->region);
    mem_unmap(mem);
    free(mem);
}

hce_status_t hce_ucx_mem_pack(hce_transport_mem_t *mem_h, void *key,
                              size_t *len_p)
{
    ucx_mem_t *mem = (ucx_mem_t *)mem_h;
    size_t skip = sizeof(mem->region);
    ucs_status_t status;
    void *packed;
    size_t len;

    memcpy(key, &mem->region, skip);
    if (mem->handle == NULL) {
        *len_p = skip;
        return HCE_OK;
    }
    status = ucp_rkey_pack(mem->ucx->context, mem->handle, &packed, &len);
    if (status != UCS_OK) {
        hce_log(ERROR, PROXY, "ucx: packing a key: %s",
                ucs_status_string(status));
        return hce_ucx_status(status);
    }
    if (skip + len <= HCE_TRANSPORT_MAX_KEY) {
        memcpy((char *)key + skip, packed, len);
        *len_p = skip + len;
    } else {
        hce_log(ERROR, PROXY, "ucx: a key of %zu bytes, %zu at most", len,
                HCE_TRANSPORT_MAX_KEY - skip);
    }
    ucp_rkey_buffer_release(packed);
    return skip + len <= HCE_TRANSPORT_MAX_KEY ? HCE_OK : HCE_ERR_UNSUPPORTED;
}

/* UCX's key belongs to one endpoint: one for each context. */
static hce_status_t handles_unpack(ucx_peer_t *peer, const void *packed,
                                   ucx_key_t *key)
{
    for (; key->contexts < peer->ucx->params.contexts; key->contexts++) {
        ucs_status_t status = ucp_ep_rkey_unpack(
            peer->eps[key->contexts].ep, packed, &key->handles[key->contexts]);

        if (status != UCS_OK) {
            hce_log(ERROR, PROXY, "ucx: key of rank %d: %s", peer->rank,
                    ucs_status_string(status));
            return hce_ucx_status(status);
        }
    }
    return HCE_OK;
}

hce_status_t hce_ucx_key_unpack(hce_transport_t *transport, int rank,
                                const void *packed, size_t len,
                                hce_transport_key_t **key_p)
{
    ucx_t *ucx = ucx_of(transport);
    ucx_peer_t *peer = ucx->peers[rank];
    size_t skip = sizeof(uint64_t);
    hce_status_t status = HCE_OK;
    ucx_key_t *key;

    if (peer == NULL || len < skip || (len == skip) != ucx->am_puts) {
        hce_log(ERROR, PROXY, "ucx: key of rank %d: %zu bytes%s", rank, len,
                peer == NULL ? ", not connected" : "");
        return HCE_ERR_TRANSPORT;
    }
    if (peer->status != HCE_OK)
        return peer->status;
    key = calloc(1, sizeof(*key) +
                        (size_t)ucx->params.contexts * sizeof(ucp_rkey_h));
    if (key == NULL)
        return HCE_ERR_NO_MEMORY;
    memcpy(&key->region, packed, skip);
    if (!ucx->am_puts)
        status = handles_unpack(peer, (const char *)packed + skip, key);
    if (status != HCE_OK) {
        hce_ucx_key_destroy((hce_transport_key_t *)key);
        return status;
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
