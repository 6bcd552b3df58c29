/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * UCX transport: the address that a rank tells the others. A head, the key of
 * the inbox (none where puts are active messages), then the worker addresses,
 * each part padded to 8 bytes.
 */
#include "config.h"

#include "rma_proxy/ucx/ucx.h"

#include "util/log.h"
#include "util/math.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define UCX_ADDRESS_MAGIC 0x68637501u /* and version */

typedef struct ucx_address_head {
    uint32_t magic;
    uint32_t contexts;
    uint64_t inbox;
    uint32_t key_len;
    uint32_t worker_len[UCX_MAX_CONTEXTS];
    uint32_t reserved;
} ucx_address_head_t;

static_assert(sizeof(ucx_address_head_t) == 88, "wire size");

static size_t padded(size_t len)
{
    return (size_t)hce_round_up(len, 8);
}

static size_t address_size(const ucx_address_head_t *head)
{
    size_t size = sizeof(*head) + padded(head->key_len);

    for (uint32_t i = 0; i < head->contexts; i++)
        size += padded(head->worker_len[i]);
    return size;
}

static void address_fill(char *to, const ucx_address_head_t *head,
                         const void *key, ucp_address_t *const *addrs)
{
    memcpy(to, head, sizeof(*head));
    to += sizeof(*head);
    if (head->key_len > 0)
        memcpy(to, key, head->key_len);
    to += padded(head->key_len);
    for (uint32_t i = 0; i < head->contexts; i++) {
        memcpy(to, addrs[i], head->worker_len[i]);
        to += padded(head->worker_len[i]);
    }
}

hce_status_t hce_ucx_address_create(ucx_t *ucx, void **addr_p, size_t *len_p)
{
    ucx_address_head_t head = {.magic = UCX_ADDRESS_MAGIC,
                               .contexts = (uint32_t)ucx->params.contexts,
                               .inbox = (uintptr_t)ucx->params.inbox};
    ucp_address_t *addrs[UCX_MAX_CONTEXTS];
    ucs_status_t status = UCS_OK;
    uint32_t done = 0;
    void *key = NULL;
    char *to = NULL;
    size_t len = 0;

    if (!ucx->am_puts)
        status = ucp_rkey_pack(ucx->context, ucx->inbox, &key, &len);
    if (status != UCS_OK)
        goto out;
    head.key_len = (uint32_t)len;
    for (; done < head.contexts; done++) {
        status = ucp_worker_get_address(ucx->workers[done].worker,
                                        &addrs[done], &len);
        if (status != UCS_OK)
            goto out_release;
        head.worker_len[done] = (uint32_t)len;
    }
    to = calloc(1, address_size(&head));
    if (to == NULL) {
        status = UCS_ERR_NO_MEMORY;
        goto out_release;
    }
    address_fill(to, &head, key, addrs);
    *addr_p = to;
    *len_p = address_size(&head);

out_release:
    while (done-- > 0)
        ucp_worker_release_address(ucx->workers[done].worker, addrs[done]);
    if (key != NULL)
        ucp_rkey_buffer_release(key);
out:
    if (status != UCS_OK)
        hce_log(ERROR, PROXY, "ucx: own address: %s",
                ucs_status_string(status));
    return status == UCS_OK ? HCE_OK : HCE_ERR_TRANSPORT;
}

hce_status_t hce_ucx_address_parse(const void *addr, size_t len,
                                   ucx_address_view_t *view_p)
{
    ucx_address_view_t view = {0};
    ucx_address_head_t head;
    const char *at = addr;

    if (len < sizeof(head))
        return HCE_ERR_TRANSPORT;
    memcpy(&head, addr, sizeof(head));
    if (head.magic != UCX_ADDRESS_MAGIC || head.contexts == 0 ||
        head.contexts > UCX_MAX_CONTEXTS || address_size(&head) != len)
        return HCE_ERR_TRANSPORT;
    view.contexts = (int)head.contexts;
    view.inbox = head.inbox;
    at += sizeof(head);
    view.key = head.key_len > 0 ? at : NULL;
    at += padded(head.key_len);
    for (int i = 0; i < view.contexts; i++) {
        view.workers[i] = (const ucp_address_t *)at;
        at += padded(head.worker_len[i]);
    }
    *view_p = view;
    return HCE_OK;
}
