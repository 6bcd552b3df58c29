/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * UCX transport: sending active messages. Those of one endpoint stay in
 * order: they travel on one lane, each in one piece.
 */
#include "config.h"

#include "rma_proxy/ucx/ucx.h"

#include "util/log.h"

#include <string.h>

void hce_ucx_header_fill(const ucx_t *ucx, ucx_header_t *header)
{
    memcpy(header->secret, ucx->params.secret, sizeof(header->secret));
    header->rank = (uint32_t)ucx->params.rank;
}

static ucs_status_ptr_t start(ucx_op_t *op, ucx_am_t id, const void *payload,
                              size_t len, bool at_once)
{
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                        UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS,
        .flags = UCP_AM_SEND_FLAG_EAGER,
        .cb.send = hce_ucx_op_sent,
        .user_data = op,
    };

    if (at_once)
        param.op_attr_mask |= UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL;
    return ucp_am_send_nbx(op->ep->ep, id, &op->header, sizeof(op->header),
                           payload, len, &param);
}

/* Refused although there is room: UCX has no way to send so much at once,
 * with the settings of this user or with this version. */
static bool is_too_long(ucx_op_t *op, ucs_status_ptr_t result)
{
    return UCS_PTR_STATUS(result) == UCS_ERR_NO_RESOURCE &&
           hce_ucx_am_ring(op->ep);
}

static hce_status_t op_send(ucx_op_t *op, ucx_am_t id, const void *payload,
                            size_t len)
{
    ucx_ep_t *ep = op->ep;
    bool at_once = ep->peer->ucx->am_puts && !ep->requests;
    ucs_status_ptr_t result = start(op, id, payload, len, at_once);
    hce_status_t status;

    if (at_once && len > 0 && is_too_long(op, result)) {
        hce_log(INFO, PROXY, "ucx: %zu bytes to rank %d are queued by UCX",
                len, ep->peer->rank);
        ep->requests = true;
        result = start(op, id, payload, len, false);
    }
    status = hce_ucx_op_posted(op, result);
    if (status == HCE_OK && id != UCX_AM_FLUSH)
        ep->dirty = true;
    return status;
}

hce_status_t hce_ucx_am_put(ucx_ep_t *ep, const ucx_header_t *target,
                            const void *src, size_t len,
                            hce_transport_req_t *req)
{
    ucx_op_t *op = hce_ucx_op_take(ep, req);

    if (op == NULL)
        return HCE_ERR_NO_RESOURCE;
    op->header.offset = target->offset;
    op->header.value = target->value;
    return op_send(op, UCX_AM_PUT, src, len);
}

hce_status_t hce_ucx_message(hce_transport_t *transport, int rank,
                             uint64_t offset, const void *payload, size_t len,
                             uint32_t word, uint64_t value)
{
    ucx_peer_t *peer = ucx_of(transport)->peers[rank];
    ucx_op_t *op;
    int i;

    if (peer == NULL || len > HCE_TRANSPORT_MAX_MESSAGE) {
        hce_log(ERROR, PROXY, "ucx: %zu bytes to rank %d, %s", len, rank,
                peer == NULL ? "not connected" : "too long");
        return HCE_ERR_INTERNAL;
    }
    if (peer->status != HCE_OK)
        return peer->status;
    i = __builtin_ctz(~peer->payloads_used);
    if (i >= UCX_MESSAGES)
        return HCE_ERR_NO_RESOURCE;
    op = hce_ucx_op_take(&peer->eps[0], NULL);
    if (op == NULL)
        return HCE_ERR_NO_RESOURCE;
    peer->payloads_used |= 1u << i;
    op->payload = i;
    op->header.word = word;
    op->header.offset = offset;
    op->header.value = value;
    if (len > 0)
        memcpy(peer->payloads[i], payload, len);
    return op_send(op, UCX_AM_MESSAGE, peer->payloads[i], len);
}

/* With my address: a peer that has not connected to me could not answer. */
hce_status_t hce_ucx_am_flush(ucx_ep_t *ep)
{
    ucx_t *ucx = ep->peer->ucx;
    ucx_op_t *op = hce_ucx_op_take(ep, NULL);

    if (op == NULL)
        return HCE_ERR_NO_RESOURCE;
    op->header.value = ep->flush;
    return op_send(op, UCX_AM_FLUSH, ucx->addr, ucx->addr_len);
}

hce_status_t hce_ucx_am_tell(ucx_ep_t *ep, ucx_am_t id, uint32_t word,
                             uint64_t value)
{
    ucx_op_t *op = hce_ucx_op_take(ep, NULL);

    if (op == NULL)
        return HCE_ERR_NO_RESOURCE;
    op->header.word = word;
    op->header.value = value;
    return op_send(op, id, NULL, 0);
}

bool hce_ucx_am_ring(ucx_ep_t *ep)
{
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_FLAGS,
        .flags = UCP_AM_SEND_FLAG_EAGER,
        .cb.send = hce_ucx_request_done,
    };

    if (ep->peer->status != HCE_OK)
        return false;
    if (ep->peer->ucx->am_puts)
        param.op_attr_mask |= UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL;
    return ucp_am_send_nbx(ep->ep, UCX_AM_BELL, NULL, 0, NULL, 0, &param) ==
           NULL;
}
