/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * UCX transport: endpoints, puts and signals. Each endpoint has so many ops
 * and no more: that bounds what UCX queues, and nothing is allocated here
 * while data moves.
 */
#include "config.h"

#include "rma_proxy/ucx/ucx.h"

#include "util/log.h"

#include <stdlib.h>

/* UCX has queued all it may: not an error. */
static bool is_full(ucs_status_t status)
{
    return status == UCS_ERR_NO_RESOURCE || status == UCS_ERR_NO_MEMORY;
}

hce_status_t hce_ucx_status(ucs_status_t status)
{
    switch (status) {
    case UCS_OK:
        return HCE_OK;
    case UCS_ERR_NO_RESOURCE:
        return HCE_ERR_NO_RESOURCE;
    case UCS_ERR_NO_MEMORY:
        return HCE_ERR_NO_MEMORY;
    case UCS_ERR_CONNECTION_RESET:
    case UCS_ERR_NOT_CONNECTED:
        return HCE_ERR_GONE;
    default:
        return UCS_IS_ENDPOINT_ERROR(status) ? HCE_ERR_GONE
                                             : HCE_ERR_TRANSPORT;
    }
}

/* Told once; a peer that said goodbye is nobody's error. The endpoints are
 * closed later: this may be called from inside UCX. */
void hce_ucx_peer_fail(ucx_peer_t *peer, hce_status_t status, const char *text)
{
    ucx_t *ucx = peer->ucx;

    if (peer->status != HCE_OK)
        return;
    peer->status = peer->left ? HCE_ERR_TRANSPORT : status;
    ucx->failing = true;
    hce_log(DEBUG, PROXY, "ucx: rank %d%s: %s", peer->rank,
            peer->left ? " (left)" : "", text);
    if (!peer->left)
        ucx->params.error_cb(ucx->params.error_arg, peer->rank, status, text);
}

static void on_ep_error(void *arg, ucp_ep_h ep, ucs_status_t status)
{
    hce_ucx_peer_fail(arg, hce_ucx_status(status), ucs_status_string(status));
}

void hce_ucx_request_done(void *request, ucs_status_t status, void *user_data)
{
    ucp_request_free(request);
}

ucx_op_t *hce_ucx_op_take(ucx_ep_t *ep, hce_transport_req_t *req)
{
    ucx_op_t *op = ep->free;

    if (op == NULL)
        return NULL;
    ep->free = op->next;
    ep->num_free--;
    op->req = req;
    op->payload = -1;
    return op;
}

static void op_give(ucx_op_t *op)
{
    if (op->payload >= 0)
        op->ep->peer->payloads_used &= ~(1u << op->payload);
    op->next = op->ep->free;
    op->ep->free = op;
    op->ep->num_free++;
}

void hce_ucx_op_sent(void *request, ucs_status_t status, void *user_data)
{
    ucx_op_t *op = user_data;

    if (op->req != NULL) {
        if (status != UCS_OK && op->req->status == HCE_OK)
            op->req->status = hce_ucx_status(status);
        op->req->pending--;
    }
    op_give(op);
    ucp_request_free(request);
}

hce_status_t hce_ucx_op_posted(ucx_op_t *op, ucs_status_ptr_t result)
{
    ucx_peer_t *peer = op->ep->peer;

    if (UCS_PTR_IS_PTR(result)) {
        if (op->req != NULL)
            op->req->pending++;
        return HCE_OK;
    }
    op_give(op);
    if (!UCS_PTR_IS_ERR(result))
        return HCE_OK;
    if (is_full(UCS_PTR_STATUS(result)))
        return HCE_ERR_NO_RESOURCE;
    on_ep_error(peer, op->ep->ep, UCS_PTR_STATUS(result));
    return peer->status;
}

static hce_status_t ep_open(ucx_t *ucx, ucx_peer_t *peer, int context,
                            const ucx_address_view_t *view)
{
    ucx_ep_t *ep = &peer->eps[context];
    ucp_ep_params_t params = {
        .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                      UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER,
        .address = view->workers[context],
        .err_mode = UCP_ERR_HANDLING_MODE_PEER,
        .err_handler = {.cb = on_ep_error, .arg = peer},
    };
    ucs_status_t status;

    ep->peer = peer;
    ep->context = context;
    for (int i = 0; i < UCX_OPS; i++) {
        ep->ops[i].ep = ep;
        ep->ops[i].next = ep->free;
        ep->free = &ep->ops[i];
        hce_ucx_header_fill(ucx, &ep->ops[i].header);
    }
    ep->num_free = UCX_OPS;
    status = ucp_ep_create(ucx->workers[context].worker, &params, &ep->ep);
    if (status == UCS_OK && view->key != NULL)
        status = ucp_ep_rkey_unpack(ep->ep, view->key, &ep->inbox);
    if (status == UCS_OK)
        return HCE_OK;
    hce_log(ERROR, PROXY, "ucx: endpoint to rank %d, context %d: %s",
            peer->rank, context, ucs_status_string(status));
    return hce_ucx_status(status);
}

hce_status_t hce_ucx_connect(hce_transport_t *transport, int rank,
                             const void *addr, size_t len)
{
    ucx_t *ucx = ucx_of(transport);
    int contexts = ucx->params.contexts;
    hce_status_t status = HCE_OK;
    ucx_address_view_t view;
    ucx_peer_t *peer;

    if (ucx->peers[rank] != NULL)
        return ucx->peers[rank]->status;
    if (hce_ucx_address_parse(addr, len, &view) != HCE_OK ||
        view.contexts < contexts) {
        hce_log(ERROR, PROXY, "ucx: rank %d sent no address for %d contexts",
                rank, contexts);
        return HCE_ERR_TRANSPORT;
    }
    if ((view.key == NULL) != ucx->am_puts) {
        hce_log(ERROR, PROXY,
                "ucx: puts are %s on rank %d, %s on rank %d: set HCE_UCX_PUT",
                view.key == NULL ? "am" : "rma", rank,
                ucx->am_puts ? "am" : "rma", ucx->params.rank);
        return HCE_ERR_CONFIG;
    }
    peer = calloc(1, sizeof(*peer) + (size_t)contexts * sizeof(ucx_ep_t));
    if (peer == NULL) {
        hce_log(ERROR, PROXY, "ucx: no memory to connect rank %d", rank);
        return HCE_ERR_NO_MEMORY;
    }
    peer->ucx = ucx;
    peer->rank = rank;
    peer->inbox = view.inbox;
    for (int i = 0; i < contexts && status == HCE_OK; i++)
        status = ep_open(ucx, peer, i, &view);
    if (status != HCE_OK) {
        hce_ucx_peer_close(peer);
        free(peer);
        return status;
    }
    ucx->peers[rank] = peer;
    return HCE_OK;
}

/* What is on its way ends with an error, soon. */
void hce_ucx_peer_close(ucx_peer_t *peer)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS |
                                                 UCP_OP_ATTR_FIELD_CALLBACK,
                                 .flags = UCP_EP_CLOSE_FLAG_FORCE,
                                 .cb.send = hce_ucx_request_done};

    if (peer->status == HCE_OK)
        peer->status = HCE_ERR_TRANSPORT;
    for (int i = 0; i < peer->ucx->params.contexts; i++) {
        ucx_ep_t *ep = &peer->eps[i];
        ucs_status_ptr_t result;

        if (ep->inbox != NULL)
            ucp_rkey_destroy(ep->inbox);
        ep->inbox = NULL;
        if (ep->ep == NULL)
            continue;
        result = ucp_ep_close_nbx(ep->ep, &param);
        if (UCS_PTR_IS_ERR(result))
            hce_log(WARN, PROXY, "ucx: closing rank %d: %s", peer->rank,
                    ucs_status_string(UCS_PTR_STATUS(result)));
        ep->ep = NULL;
    }
}

/* The endpoint if it can take an op. */
static hce_status_t ep_get(ucx_t *ucx, int rank, int context, ucx_ep_t **ep_p)
{
    ucx_peer_t *peer = ucx->peers[rank];

    if (peer == NULL) {
        hce_log(ERROR, PROXY, "ucx: rank %d is not connected", rank);
        return HCE_ERR_INTERNAL;
    }
    *ep_p = &peer->eps[context];
    return peer->status;
}

static ucp_request_param_t rma_param(ucx_op_t *op)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                                                 UCP_OP_ATTR_FIELD_USER_DATA,
                                 .cb.send = hce_ucx_op_sent,
                                 .user_data = op};

    return param;
}

/* UCX before 1.13 looks the registration up by itself. */
static void param_set_mem(ucp_request_param_t *param, hce_transport_mem_t *mem)
{
#if UCP_API_VERSION >= UCP_VERSION(1, 13)
    param->op_attr_mask |= UCP_OP_ATTR_FIELD_MEMH;
    param->memh = hce_ucx_mem_handle(mem);
#endif
}

hce_status_t hce_ucx_put(hce_transport_t *transport, int rank, int context,
                         const void *src, hce_transport_mem_t *mem, size_t len,
                         uint64_t remote_addr, hce_transport_key_t *key,
                         hce_transport_req_t *req)
{
    ucx_t *ucx = ucx_of(transport);
    ucx_header_t target = {.offset = remote_addr,
                           .value = hce_ucx_key_region(key)};
    ucp_request_param_t param;
    ucx_ep_t *ep;
    ucx_op_t *op;
    hce_status_t status = ep_get(ucx, rank, context, &ep);

    if (status != HCE_OK)
        return status;
    if (ucx->am_puts)
        return hce_ucx_am_put(ep, &target, src, len, req);
    op = hce_ucx_op_take(ep, req);
    if (op == NULL)
        return HCE_ERR_NO_RESOURCE;
    param = rma_param(op);
    param_set_mem(&param, mem);
    return hce_ucx_op_posted(op, ucp_put_nbx(ep->ep, src, len, remote_addr,
                                             hce_ucx_key_handle(key, context),
                                             &param));
}

static void on_signal_landed(void *request, ucs_status_t status,
                             void *user_data)
{
    ucx_op_t *op = user_data;
    ucx_ep_t *ep = op->ep;

    hce_ucx_op_sent(request, status, op);
    if (status == UCS_OK)
        (void)hce_ucx_am_ring(ep);
}

/* A put that lands without the target's CPU wakes nobody: once it has
 * landed, an active message does. */
static void wake_after(ucx_ep_t *ep, ucx_op_t *op)
{
    ucp_request_param_t param = rma_param(op);
    ucs_status_ptr_t result;

    param.cb.send = on_signal_landed;
    result = ucp_ep_flush_nbx(ep->ep, &param);
    (void)hce_ucx_op_posted(op, result);
    if (result == NULL)
        (void)hce_ucx_am_ring(ep);
}

static hce_status_t rma_signal(ucx_ep_t *ep, uint32_t word, uint64_t value)
{
    ucp_worker_h worker = ep->peer->ucx->workers[ep->context].worker;
    ucp_request_param_t param;
    hce_status_t status;
    ucx_op_t *op;

    if (ep->num_free < 2)
        return HCE_ERR_NO_RESOURCE;
    /* Earlier puts of this worker land before what follows. */
    status = hce_ucx_status(ucp_worker_fence(worker));
    if (status != HCE_OK)
        return status;
    op = hce_ucx_op_take(ep, NULL);
    op->header.value = value;
    param = rma_param(op);
    status = hce_ucx_op_posted(
        op, ucp_put_nbx(ep->ep, &op->header.value, sizeof(value),
                        ep->peer->inbox + word * sizeof(value), ep->inbox,
                        &param));
    if (status == HCE_OK)
        wake_after(ep, hce_ucx_op_take(ep, NULL));
    return status;
}

hce_status_t hce_ucx_signal(hce_transport_t *transport, int rank, int context,
                            uint32_t word, uint64_t value)
{
    ucx_t *ucx = ucx_of(transport);
    ucx_ep_t *ep;
    hce_status_t status = ep_get(ucx, rank, context, &ep);

    if (status != HCE_OK)
        return status;
    if (ucx->am_puts)
        return hce_ucx_am_tell(ep, UCX_AM_SIGNAL, word, value);
    return rma_signal(ep, word, value);
}
