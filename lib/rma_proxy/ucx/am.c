/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * UCX transport: sending active messages. Those of one endpoint stay in order
 * as long as each fits one fragment: they travel on one lane.
 */
#include "config.h"

#include "rma_proxy/ucx/ucx.h"

#include "util/log.h"
#include "util/math.h"

#include <string.h>

#define UCX_PIECE (64 * HCE_KIB) /* payload that fits one fragment */

void hce_ucx_header_fill(const ucx_t *ucx, ucx_header_t *header)
{
    memcpy(header->secret, ucx->params.secret, sizeof(header->secret));
    header->rank = (uint32_t)ucx->params.rank;
}

static ucp_request_param_t send_param(ucx_op_t *op)
{
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                        UCP_OP_ATTR_FIELD_USER_DATA |
                        UCP_OP_ATTR_FIELD_FLAGS,
        .flags = UCP_AM_SEND_FLAG_EAGER,
        .cb.send = op != NULL ? hce_ucx_op_sent : hce_ucx_request_done,
        .user_data = op,
    };

    return param;
}

static hce_status_t op_send(ucx_op_t *op, ucx_am_t id, const void *payload,
                            size_t len)
{
    ucp_request_param_t param = send_param(op);
    ucx_ep_t *ep = op->ep;

    if (id == UCX_AM_FLUSH)
        param.flags |= UCP_AM_SEND_FLAG_REPLY;
    else
        ep->dirty = true;
    return hce_ucx_op_posted(
        op, ucp_am_send_nbx(ep->ep, id, &op->header, sizeof(op->header),
                            payload, len, &param));
}

/* A put repeated after NO_RESOURCE writes some bytes twice, the same ones:
 * no signal can be between. */
hce_status_t hce_ucx_am_put(ucx_ep_t *ep, const ucx_header_t *target,
                            const void *src, size_t len,
                            hce_transport_req_t *req)
{
    size_t piece = hce_max(UCX_PIECE, hce_div_up(len, UCX_PIECES));
    hce_status_t status = HCE_OK;
    size_t done = 0;

    if (ep->num_free < hce_div_up(len, piece))
        return HCE_ERR_NO_RESOURCE;
    while (done < len && status == HCE_OK) {
        size_t part = hce_min(piece, len - done);
        ucx_op_t *op = hce_ucx_op_take(ep, req);

        op->header.offset = target->offset + done;
        op->header.value = target->value;
        status = op_send(op, UCX_AM_PUT, (const char *)src + done, part);
        done += part;
    }
    return status;
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

void hce_ucx_am_answer(ucp_ep_h ep, ucx_am_t id, ucx_header_t *header)
{
    ucp_request_param_t param = send_param(NULL);
    ucs_status_ptr_t result = ucp_am_send_nbx(
        ep, id, header, header == NULL ? 0 : sizeof(*header), NULL, 0,
        &param);

    /* Whoever waits for it sees the endpoint fail. */
    if (UCS_PTR_IS_ERR(result))
        hce_log(DEBUG, PROXY, "ucx: answer %d: %s", id,
                ucs_status_string(UCS_PTR_STATUS(result)));
}

void hce_ucx_am_ring(ucx_ep_t *ep)
{
    hce_ucx_am_answer(ep->ep, UCX_AM_BELL, NULL);
}
