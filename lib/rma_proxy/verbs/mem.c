/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Verbs transport: registrations, one a device, and the keys that name them
 * to peers. Any thread.
 */
#include "config.h"

#include "rma_proxy/verbs/verbs.h"

#include "util/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Data may overtake data; the 8 bytes that say that they are there come by
 * WRITEs without this leave, and pass nothing. */
#ifdef IBV_ACCESS_RELAXED_ORDERING
#define DATA_ORDER IBV_ACCESS_RELAXED_ORDERING
#else
#define DATA_ORDER 0
#endif
#define DATA_ACCESS                                                           \
    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | DATA_ORDER)

/* A registration of no bytes has none with the devices. */
typedef struct verbs_mem {
    int num;
    struct ibv_mr *mr[VERBS_DEVICES];
} verbs_mem_t;

typedef struct verbs_key {
    uint32_t rkey[VERBS_DEVICES];
} verbs_key_t;

static void mem_free(verbs_mem_t *mem)
{
    for (int i = 0; i < mem->num; i++)
        (void)ibv_dereg_mr(mem->mr[i]);
    free(mem);
}

hce_status_t hce_verbs_mem_register(hce_transport_t *transport, void *addr,
                                    size_t len, hce_transport_mem_t **mem_p)
{
    verbs_t *verbs = verbs_of(transport);
    verbs_mem_t *mem = calloc(1, sizeof(*mem));

    if (mem == NULL)
        return HCE_ERR_NO_MEMORY;
    for (int i = 0; len > 0 && i < verbs->num_devices; i++) {
        verbs_device_t *device = &verbs->devices[i];

        mem->mr[i] = ibv_reg_mr(device->pd, addr, len, DATA_ACCESS);
        if (mem->mr[i] == NULL && errno == EFAULT)
            mem->mr[i] = hce_verbs_dmabuf_register(device->pd, addr, len);
        if (mem->mr[i] == NULL) {
            hce_log(ERROR, PROXY, "verbs: %s: registering %zu bytes: %m%s",
                    device->name, len,
                    errno == ENOMEM ? " (see ulimit -l)" : "");
            mem_free(mem);
            return HCE_ERR_TRANSPORT;
        }
        mem->num++;
    }
    *mem_p = (hce_transport_mem_t *)mem;
    return HCE_OK;
}

void hce_verbs_mem_deregister(hce_transport_t *transport,
                              hce_transport_mem_t *mem)
{
    mem_free((verbs_mem_t *)mem);
}

hce_status_t hce_verbs_mem_pack(hce_transport_mem_t *mem_h, void *key,
                                size_t *len_p)
{
    const verbs_mem_t *mem = (const verbs_mem_t *)mem_h;
    verbs_key_t packed = {.rkey = {0}};

    for (int i = 0; i < mem->num; i++)
        packed.rkey[i] = mem->mr[i]->rkey;
    memcpy(key, &packed, sizeof(packed));
    *len_p = sizeof(packed);
    return HCE_OK;
}

hce_status_t hce_verbs_key_unpack(hce_transport_t *transport, int peer,
                                  const void *packed, size_t len,
                                  hce_transport_key_t **key_p)
{
    verbs_key_t *key;

    if (len != sizeof(*key)) {
        hce_log(ERROR, PROXY, "verbs: rank %d sent a key of %zu bytes", peer,
                len);
        return HCE_ERR_TRANSPORT;
    }
    key = malloc(sizeof(*key));
    if (key == NULL)
        return HCE_ERR_NO_MEMORY;
    memcpy(key, packed, len);
    *key_p = (hce_transport_key_t *)key;
    return HCE_OK;
}

void hce_verbs_key_destroy(hce_transport_key_t *key)
{
    free(key);
}

void hce_verbs_mem_lkeys(const hce_transport_mem_t *mem_h,
                         uint32_t lkey[VERBS_DEVICES])
{
    const verbs_mem_t *mem = (const verbs_mem_t *)mem_h;

    for (int i = 0; i < VERBS_DEVICES; i++)
        lkey[i] = i < mem->num ? mem->mr[i]->lkey : 0;
}

void hce_verbs_key_rkeys(const hce_transport_key_t *key,
                         uint32_t rkey[VERBS_DEVICES])
{
    memcpy(rkey, ((const verbs_key_t *)key)->rkey, sizeof(verbs_key_t));
}
