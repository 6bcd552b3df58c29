/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Verbs transport: completions. Each op makes one, in the order of its
 * endpoint's ops; each signal of a peer takes one of the empty receives.
 */
#include "config.h"

#include "rma_proxy/verbs/verbs.h"

#include "util/log.h"

#include <stdio.h>

#define POLL_BATCH 32

void hce_verbs_op_end(verbs_ep_t *ep, hce_status_t status)
{
    verbs_op_t *op = &ep->ops[ep->head % ep->peer->verbs->queue];

    assert(ep->head < ep->tail);
    if (op->req != NULL) {
        if (status != HCE_OK && op->req->status == HCE_OK)
            op->req->status = status;
        op->req->pending--;
    }
    if (op->mail >= 0)
        ep->peer->mails_used &= ~(1u << op->mail);
    ep->head++;
}

void hce_verbs_ops_drop(verbs_ep_t *ep, hce_status_t status)
{
    while (ep->head < ep->tail)
        hce_verbs_op_end(ep, status);
}

/* A completion of an earlier queue pair is not looked at. The credits of one
 * that has failed are given back when it is dropped. */
static void on_sent(verbs_device_t *device, const struct ibv_wc *wc)
{
    verbs_ep_t *ep = (verbs_ep_t *)(uintptr_t)wc->wr_id;
    uint32_t wrs;

    if (ep->qp == NULL || wc->qp_num != ep->qp->qp_num)
        return;
    if (wc->status != IBV_WC_SUCCESS) {
        hce_verbs_ep_break(ep, wc->status, ibv_wc_status_str(wc->status));
        return;
    }
    wrs = hce_verbs_op_wrs(&ep->ops[ep->head % ep->peer->verbs->queue]);
    ep->room += wrs;
    ep->due -= wrs;
    device->credits += wrs;
    ep->since_ns = 0;
    hce_verbs_op_end(ep, HCE_OK);
}

/* Nothing is known any more of what is under way. */
static void device_fail(verbs_t *verbs, const verbs_device_t *device,
                        const char *call)
{
    char text[VERBS_TEXT];

    snprintf(text, sizeof(text), "%s port %u: %s failed", device->name,
             device->port, call);
    for (int i = 0; i < verbs->params.size; i++) {
        if (verbs->peers[i] != NULL)
            hce_verbs_peer_fail(verbs->peers[i], HCE_ERR_TRANSPORT, text);
    }
}

bool hce_verbs_device_poll(verbs_t *verbs, verbs_device_t *device)
{
    struct ibv_wc wcs[POLL_BATCH];
    int sent = ibv_poll_cq(device->send_cq, POLL_BATCH, wcs);
    int came;

    for (int i = 0; i < sent; i++)
        on_sent(device, &wcs[i]);
    came = ibv_poll_cq(device->recv_cq, POLL_BATCH, wcs);
    if (sent < 0 || came < 0)
        device_fail(verbs, device, "ibv_poll_cq");
    if (came > 0 && hce_verbs_recv_refill(device, came) != HCE_OK)
        device_fail(verbs, device, "ibv_post_srq_recv");
    return sent > 0 || came > 0;
}
