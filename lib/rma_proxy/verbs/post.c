/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Verbs transport: ops and their work requests. An op is refused where the
 * send queue has no room for all of its requests, or the completion queue
 * none: only the last makes a completion, but each does when they fail.
 */
#include "config.h"

#include "rma_proxy/verbs/verbs.h"

#include "util/clock.h"
#include "util/log.h"

#include <string.h>

/* Work requests in a row, each with one piece of memory. */
typedef struct post_list {
    verbs_ep_t *ep;
    int num;
    struct ibv_send_wr wrs[VERBS_WRS];
    struct ibv_sge sges[VERBS_WRS];
} post_list_t;

/* From here, to there. */
typedef struct post_write {
    const void *src;
    uint32_t len;
    uint32_t lkey;
    uint64_t remote_addr;
    uint32_t rkey;
} post_write_t;

uint32_t hce_verbs_op_wrs(const verbs_op_t *op)
{
    if (op->has_landed || op->kind == VERBS_PUT)
        return 1;
    return 2 + (op->data_len > 0) + (op->mail_len > 0);
}

static verbs_op_t *op_at(const verbs_ep_t *ep, uint64_t number)
{
    return &ep->ops[number % ep->peer->verbs->queue];
}

static verbs_slot_t *slot_at(const verbs_ep_t *ep, uint64_t number)
{
    return &ep->slots[number % ep->peer->verbs->queue];
}

static char *mail_at(const verbs_peer_t *peer, int index)
{
    const verbs_t *verbs = peer->verbs;

    return peer->block +
           (size_t)verbs->params.contexts * verbs->queue *
               sizeof(verbs_slot_t) +
           (size_t)index * HCE_TRANSPORT_MAX_MESSAGE;
}

static void add(post_list_t *list, const post_write_t *write)
{
    struct ibv_sge *sge = &list->sges[list->num];
    struct ibv_send_wr *wr = &list->wrs[list->num];

    *sge = (struct ibv_sge){.addr = (uintptr_t)write->src,
                            .length = write->len,
                            .lkey = write->lkey};
    memset(wr, 0, sizeof(*wr));
    wr->wr_id = (uintptr_t)list->ep;
    wr->sg_list = sge;
    wr->num_sge = 1;
    wr->opcode = IBV_WR_RDMA_WRITE;
    wr->wr.rdma.remote_addr = write->remote_addr;
    wr->wr.rdma.rkey = write->rkey;
    if (write->len <= list->ep->inline_len)
        wr->send_flags = IBV_SEND_INLINE;
    if (list->num > 0)
        list->wrs[list->num - 1].next = wr;
    list->num++;
}

static void add_data(post_list_t *list, const verbs_op_t *op)
{
    const verbs_ep_t *ep = list->ep;

    add(list, &(post_write_t){.src = op->data,
                              .len = op->data_len,
                              .lkey = op->lkey[ep->device->index],
                              .remote_addr = op->remote_addr,
                              .rkey = op->rkey[ep->remote]});
}

/* Something of the block registered for the peer, to what it showed me. */
static void add_own(post_list_t *list, const void *src, uint32_t len,
                    const verbs_keys_t *keys, uint64_t offset)
{
    const verbs_ep_t *ep = list->ep;

    add(list,
        &(post_write_t){.src = src,
                        .len = len,
                        .lkey = ep->peer->block_mr[ep->device->index]->lkey,
                        .remote_addr = keys->addr + offset,
                        .rkey = keys->rkey[ep->remote]});
}

static void build(post_list_t *list, const verbs_op_t *op,
                  const verbs_slot_t *slot)
{
    verbs_ep_t *ep = list->ep;
    const verbs_peer_t *peer = ep->peer;
    const hce_transport_params_t *params = &peer->verbs->params;
    uint64_t row = (uint64_t)params->rank * (uint64_t)params->contexts;
    uint64_t index = row + (uint64_t)ep->context;

    if (op->kind == VERBS_PUT || (op->data_len > 0 && !op->has_landed))
        add_data(list, op);
    if (op->mail_len > 0 && !op->has_landed)
        add_own(list, mail_at(peer, op->mail), op->mail_len,
                &peer->address.mail, op->mail_offset);
    if (op->kind != VERBS_PUT) {
        if (!op->has_landed)
            add_own(list, &slot->number, sizeof(slot->number),
                    &peer->address.arrived, index * sizeof(slot->number));
        add_own(list, &slot->value, sizeof(slot->value), &peer->address.inbox,
                op->word * sizeof(slot->value));
        list->wrs[list->num - 1].opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
    }
    list->wrs[list->num - 1].send_flags |= IBV_SEND_SIGNALED;
}

hce_status_t hce_verbs_post(verbs_ep_t *ep, uint64_t number)
{
    post_list_t list = {.ep = ep};
    struct ibv_send_wr *bad;
    int rc;

    build(&list, op_at(ep, number), slot_at(ep, number));
    assert((uint32_t)list.num == hce_verbs_op_wrs(op_at(ep, number)));
    assert((uint32_t)list.num <= ep->room &&
           (uint32_t)list.num <= ep->device->credits);
    ep->room -= (uint32_t)list.num;
    rc = ibv_post_send(ep->qp, list.wrs, &bad);
    if (rc != 0) {
        hce_verbs_ep_break(ep, IBV_WC_GENERAL_ERR, strerror(rc));
        return HCE_ERR_TRANSPORT;
    }
    ep->due += (uint32_t)list.num;
    ep->device->credits -= (uint32_t)list.num;
    return HCE_OK;
}

/* The endpoint, if it takes so many requests now. */
static hce_status_t ep_get(verbs_t *verbs, int rank, int context, uint32_t wrs,
                           verbs_ep_t **ep_p)
{
    verbs_peer_t *peer = verbs->peers[rank];
    verbs_ep_t *ep;

    if (peer == NULL || peer->eps == NULL) {
        hce_log(ERROR, PROXY, "verbs: rank %d is not connected", rank);
        return HCE_ERR_INTERNAL;
    }
    if (peer->status != HCE_OK)
        return peer->status;
    ep = &peer->eps[context];
    if (ep->state != VERBS_EP_LIVE) {
        /* A broken link that nobody misses may stay so. */
        if (ep->attempt > 0 && ep->since_ns == 0)
            ep->since_ns = hce_clock_ns();
        return HCE_ERR_NO_RESOURCE;
    }
    if (ep->room < wrs || ep->device->credits < wrs)
        return HCE_ERR_NO_RESOURCE;
    *ep_p = ep;
    return HCE_OK;
}

/* Takes the op over, whether it can be posted now or only later. */
static void append(verbs_ep_t *ep, const verbs_op_t *op, uint64_t value)
{
    uint64_t number = ep->tail++;

    *op_at(ep, number) = *op;
    *slot_at(ep, number) =
        (verbs_slot_t){.number = number + 1, .value = value};
    if (op->req != NULL)
        op->req->pending++;
    (void)hce_verbs_post(ep, number);
}

hce_status_t hce_verbs_put(hce_transport_t *transport, int rank, int context,
                           const void *src, hce_transport_mem_t *mem,
                           size_t len, uint64_t remote_addr,
                           hce_transport_key_t *key, hce_transport_req_t *req)
{
    verbs_op_t op = {.kind = VERBS_PUT,
                     .mail = -1,
                     .data = src,
                     .data_len = (uint32_t)len,
                     .remote_addr = remote_addr,
                     .req = req};
    verbs_ep_t *ep;
    hce_status_t status =
        ep_get(verbs_of(transport), rank, context, hce_verbs_op_wrs(&op), &ep);

    if (status != HCE_OK)
        return status;
    hce_verbs_mem_lkeys(mem, op.lkey);
    hce_verbs_key_rkeys(key, op.rkey);
    append(ep, &op, 0);
    return HCE_OK;
}

hce_status_t hce_verbs_signal(hce_transport_t *transport, int rank,
                              int context, uint32_t word, uint64_t value)
{
    verbs_op_t op = {.kind = VERBS_SIGNAL, .mail = -1, .word = word};
    verbs_ep_t *ep;
    hce_status_t status =
        ep_get(verbs_of(transport), rank, context, hce_verbs_op_wrs(&op), &ep);

    if (status == HCE_OK)
        append(ep, &op, value);
    return status;
}

static hce_status_t mail_take(verbs_peer_t *peer, verbs_op_t *op,
                              const void *mail)
{
    int index = __builtin_ffs((int)~peer->mails_used) - 1;

    if (index < 0 || index >= VERBS_MAILS)
        return HCE_ERR_NO_RESOURCE;
    peer->mails_used |= 1u << index;
    op->mail = index;
    memcpy(mail_at(peer, index), mail, op->mail_len);
    return HCE_OK;
}

/* Messages and parcels: context 0, so that they are seen in their order. */
static hce_status_t post_mail(verbs_t *verbs, int rank, verbs_op_t *op,
                              const void *mail, uint64_t value)
{
    verbs_ep_t *ep;
    hce_status_t status;

    if (op->mail_len > HCE_TRANSPORT_MAX_MESSAGE) {
        hce_log(ERROR, PROXY, "verbs: a message of %u bytes", op->mail_len);
        return HCE_ERR_INVALID_ARG;
    }
    status = ep_get(verbs, rank, 0, hce_verbs_op_wrs(op), &ep);
    if (status == HCE_OK && op->mail_len > 0)
        status = mail_take(ep->peer, op, mail);
    if (status == HCE_OK)
        append(ep, op, value);
    return status;
}

hce_status_t hce_verbs_message(hce_transport_t *transport, int rank,
                               uint64_t offset, const void *payload,
                               size_t len, uint32_t word, uint64_t value)
{
    verbs_op_t op = {.kind = VERBS_MESSAGE,
                     .mail = -1,
                     .mail_len = (uint32_t)len,
                     .mail_offset = offset,
                     .word = word};

    return post_mail(verbs_of(transport), rank, &op, payload, value);
}

hce_status_t hce_verbs_parcel(hce_transport_t *transport, int rank,
                              const hce_transport_parcel_t *parcel,
                              hce_transport_req_t *req)
{
    verbs_op_t op = {.kind = VERBS_PARCEL,
                     .mail = -1,
                     .mail_len = (uint32_t)parcel->mail_len,
                     .mail_offset = parcel->mail_offset,
                     .data = parcel->data,
                     .data_len = (uint32_t)parcel->data_len,
                     .remote_addr = parcel->remote_addr,
                     .word = parcel->word,
                     .req = req};

    if (op.data_len > 0) {
        hce_verbs_mem_lkeys(parcel->mem, op.lkey);
        hce_verbs_key_rkeys(parcel->key, op.rkey);
    }
    return post_mail(verbs_of(transport), rank, &op, parcel->mail,
                     parcel->value);
}
