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

/* What a message carries behind its header: bytes, or a list of them. */
typedef struct load {
    const void *addr;
    size_t len; /* or the number of parts */
    bool parts; /* addr is ucp_dt_iov_t[] */
} load_t;

static ucs_status_ptr_t start(ucx_op_t *op, ucx_am_t id, const load_t *load,
                              bool at_once)
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
    if (load->parts) {
        param.op_attr_mask |= UCP_OP_ATTR_FIELD_DATATYPE;
        param.datatype = ucp_dt_make_iov();
    }
    return ucp_am_send_nbx(op->ep->ep, id, &op->header, sizeof(op->header),
                           load->addr, load->len, &param);
}

/* Refused although there is room: UCX has no way to send so much at once,
 * with the settings of this user or with this version. */
static bool is_too_long(ucx_op_t *op, ucs_status_ptr_t result)
{
    return UCS_PTR_STATUS(result) == UCS_ERR_NO_RESOURCE &&
           hce_ucx_am_ring(op->ep);
}

static hce_status_t op_send(ucx_op_t *op, ucx_am_t id, const load_t *load)
{
    ucx_ep_t *ep = op->ep;
    bool at_once = ep->peer->ucx->am_puts && !ep->requests;
    ucs_status_ptr_t result = start(op, id, load, at_once);
    hce_status_t status;

    if (at_once && load->len > 0 && is_too_long(op, result)) {
        hce_log(INFO, PROXY, "ucx: what is sent to rank %d is queued by UCX",
                ep->peer->rank);
        ep->requests = true;
        result = start(op, id, load, false);
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
    return op_send(op, UCX_AM_PUT, &(load_t){.addr = src, .len = len});
}

/* An op to peer with a place for its payload. */
static hce_status_t op_take_payload(ucx_peer_t *peer, hce_transport_req_t *req,
                                    ucx_op_t **op_p)
{
    int i = __builtin_ctz(~peer->payloads_used);
    ucx_op_t *op;

    if (peer->status != HCE_OK)
        return peer->status;
    if (i >= UCX_MESSAGES)
        return HCE_ERR_NO_RESOURCE;
    op = hce_ucx_op_take(&peer->eps[0], req);
    if (op == NULL)
        return HCE_ERR_NO_RESOURCE;
    peer->payloads_used |= 1u << i;
    op->payload = i;
    *op_p = op;
    return HCE_OK;
}

static hce_status_t check_mail(const ucx_peer_t *peer, int rank, size_t len)
{
    if (peer != NULL && len <= HCE_TRANSPORT_MAX_MESSAGE)
        return HCE_OK;
    hce_log(ERROR, PROXY, "ucx: %zu bytes to rank %d, %s", len, rank,
            peer == NULL ? "not connected" : "too long");
    return HCE_ERR_INTERNAL;
}

hce_status_t hce_ucx_message(hce_transport_t *transport, int rank,
                             uint64_t offset, const void *payload, size_t len,
                             uint32_t word, uint64_t value)
{
    ucx_peer_t *peer = ucx_of(transport)->peers[rank];
    hce_status_t status = check_mail(peer, rank, len);
    ucx_op_t *op;

    if (status == HCE_OK)
        status = op_take_payload(peer, NULL, &op);
    if (status != HCE_OK)
        return status;
    op->header.word = word;
    op->header.offset = offset;
    op->header.value = value;
    if (len > 0)
        memcpy(peer->payloads[op->payload], payload, len);
    return op_send(op, UCX_AM_MESSAGE,
                   &(load_t){.addr = peer->payloads[op->payload], .len = len});
}

hce_status_t hce_ucx_parcel(hce_transport_t *transport, int rank,
                            const hce_transport_parcel_t *parcel,
                            hce_transport_req_t *req)
{
    ucx_peer_t *peer = ucx_of(transport)->peers[rank];
    hce_status_t status = check_mail(peer, rank, parcel->mail_len);
    ucx_parcel_t head = {.addr = parcel->remote_addr,
                         .region = hce_ucx_key_region(parcel->key),
                         .mail_len = (uint32_t)parcel->mail_len};
    ucx_op_t *op;
    char *at;

    if (status == HCE_OK)
        status = op_take_payload(peer, req, &op);
    if (status != HCE_OK)
        return status;
    at = peer->payloads[op->payload];
    memcpy(at, &head, sizeof(head));
    memcpy(at + sizeof(head), parcel->mail, parcel->mail_len);
    op->header.word = parcel->word;
    op->header.offset = parcel->mail_offset;
    op->header.value = parcel->value;
    op->iov[0].buffer = at;
    op->iov[0].length = sizeof(head) + parcel->mail_len;
    op->iov[1].buffer = (void *)parcel->data;
    op->iov[1].length = parcel->data_len;
    return op_send(op, UCX_AM_PARCEL,
                   &(load_t){.addr = op->iov, .len = 2, .parts = true});
}

/* With my address: a peer that has not connected to me could not answer. */
hce_status_t hce_ucx_am_flush(ucx_ep_t *ep)
{
    ucx_t *ucx = ep->peer->ucx;
    ucx_op_t *op = hce_ucx_op_take(ep, NULL);

    if (op == NULL)
        return HCE_ERR_NO_RESOURCE;
    op->header.value = ep->flush;
    return op_send(op, UCX_AM_FLUSH,
                   &(load_t){.addr = ucx->addr, .len = ucx->addr_len});
}

hce_status_t hce_ucx_am_tell(ucx_ep_t *ep, ucx_am_t id, uint32_t word,
                             uint64_t value)
{
    ucx_op_t *op = hce_ucx_op_take(ep, NULL);

    if (op == NULL)
        return HCE_ERR_NO_RESOURCE;
    op->header.word = word;
    op->header.value = value;
    return op_send(op, id, &(load_t){.addr = NULL});
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
