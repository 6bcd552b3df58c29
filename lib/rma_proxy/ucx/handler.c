/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * UCX transport: active messages that arrive. All are checked as what a
 * stranger may send. UCX's flush says nothing of active messages: a peer is
 * asked, and answers after having handled what came before.
 */
#include "config.h"

#include "rma_proxy/ucx/ucx.h"

#include "util/log.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One that has been checked. */
typedef struct ucx_arrival {
    ucx_worker_t *worker;
    ucx_t *ucx;
    ucx_header_t header;
    ucx_peer_t *peer; /* NULL where I have not connected */
    const void *data;
    size_t len;
} ucx_arrival_t;

typedef void (*ucx_handler_t)(ucx_arrival_t *arrival);

/* No correct peer sends this. Told to both owners, the sender's and mine,
 * once. */
static void refuse(ucx_arrival_t *arrival, const char *what)
{
    const hce_transport_params_t *params = &arrival->ucx->params;
    uint32_t rank = arrival->header.rank;
    ucx_peer_t *peer = arrival->peer;
    char text[160];

    if (arrival->ucx->refused[rank] ||
        (peer != NULL && peer->status != HCE_OK))
        return;
    arrival->ucx->refused[rank] = true;
    snprintf(text, sizeof(text),
             "%s: %zu bytes to 0x%" PRIx64 ", word %" PRIu32, what,
             arrival->len, arrival->header.offset, arrival->header.word);
    hce_log(ERROR, PROXY, "ucx: refused from rank %" PRIu32 ": %s", rank,
            text);
    arrival->worker->answers[rank].refuse = true;
    arrival->worker->answering = true;
    params->error_cb(params->error_arg, (int)rank, HCE_ERR_TRANSPORT, text);
}

/* To addr, which region must cover. */
static bool place(ucx_arrival_t *arrival, uint64_t region, uint64_t addr,
                  const void *data, size_t len)
{
    hce_regions_t *regions = &arrival->ucx->regions;
    bool covered;

    hce_regions_lock(regions);
    covered = hce_regions_covers(regions, region, addr, len);
    if (covered)
        memcpy((void *)(uintptr_t)addr, data, len);
    hce_regions_unlock(regions);
    if (!covered)
        refuse(arrival, "target is not registered");
    return covered;
}

static void handle_put(ucx_arrival_t *arrival)
{
    const ucx_header_t *header = &arrival->header;

    (void)place(arrival, header->value, header->offset, arrival->data,
                arrival->len);
}

/* Release: what was put or mailed before is there before whoever reads the
 * word (with acquire, hce_proxy_progress) sees the value. */
static void word_store(ucx_arrival_t *arrival)
{
    hce_counter_post(&arrival->ucx->params.inbox[arrival->header.word],
                     arrival->header.value);
}

static void handle_signal(ucx_arrival_t *arrival)
{
    if (arrival->header.word < arrival->ucx->params.inbox_words)
        word_store(arrival);
    else
        refuse(arrival, "signal to no word");
}

static bool is_mail_right(const ucx_arrival_t *arrival, size_t len)
{
    const hce_transport_params_t *params = &arrival->ucx->params;
    const ucx_header_t *header = &arrival->header;

    return len <= HCE_TRANSPORT_MAX_MESSAGE && len <= params->mail_size &&
           header->offset <= params->mail_size - len &&
           header->word < params->inbox_words;
}

static void handle_message(ucx_arrival_t *arrival)
{
    if (!is_mail_right(arrival, arrival->len)) {
        refuse(arrival, "malformed message");
        return;
    }
    if (arrival->len > 0)
        memcpy(arrival->ucx->params.mail + arrival->header.offset,
               arrival->data, arrival->len);
    word_store(arrival);
}

static void handle_parcel(ucx_arrival_t *arrival)
{
    const char *at = arrival->data;
    ucx_parcel_t head = {0};
    size_t rest;

    if (arrival->len >= sizeof(head))
        memcpy(&head, at, sizeof(head));
    if (arrival->len < sizeof(head) ||
        head.mail_len > arrival->len - sizeof(head) ||
        !is_mail_right(arrival, head.mail_len)) {
        refuse(arrival, "malformed parcel");
        return;
    }
    at += sizeof(head);
    rest = arrival->len - sizeof(head) - head.mail_len;
    if (rest > 0 && !place(arrival, head.region, head.addr,
                           at + head.mail_len, rest))
        return;
    memcpy(arrival->ucx->params.mail + arrival->header.offset, at,
           head.mail_len);
    word_store(arrival);
}

/* A peer has one flush under way: the answer's place is free. */
static void handle_flush(ucx_arrival_t *arrival)
{
    ucx_answer_t *answer = &arrival->worker->answers[arrival->header.rank];

    if (arrival->peer == NULL && answer->addr == NULL) {
        answer->addr = malloc(arrival->len);
        if (answer->addr == NULL)
            return; /* the peer's flush ends by its deadline */
        memcpy(answer->addr, arrival->data, arrival->len);
        answer->addr_len = arrival->len;
    }
    answer->value = arrival->header.value;
    answer->ack = true;
    arrival->worker->answering = true;
}

static void handle_ack(ucx_arrival_t *arrival)
{
    if (arrival->peer != NULL)
        arrival->peer->eps[arrival->worker->context].acked =
            arrival->header.value;
}

static void handle_refuse(ucx_arrival_t *arrival)
{
    if (arrival->peer != NULL)
        hce_ucx_peer_fail(arrival->peer, HCE_ERR_TRANSPORT,
                          "refused what was sent: its target is not "
                          "registered there");
}

static void handle_bye(ucx_arrival_t *arrival)
{
    if (arrival->peer != NULL)
        arrival->peer->left = true;
}

static bool arrival_read(ucx_arrival_t *arrival, const void *from, size_t len)
{
    const hce_transport_params_t *params = &arrival->ucx->params;
    ucx_header_t *header = &arrival->header;
    unsigned char diff = 0;

    if (len != sizeof(*header))
        return false;
    memcpy(header, from, sizeof(*header));
    for (size_t i = 0; i < sizeof(header->secret); i++)
        diff |= header->secret[i] ^ params->secret[i];
    return diff == 0 && header->rank < (uint32_t)params->size;
}

static const ucx_handler_t handlers[UCX_AM_LAST] = {
    [UCX_AM_PUT] = handle_put,         [UCX_AM_SIGNAL] = handle_signal,
    [UCX_AM_MESSAGE] = handle_message, [UCX_AM_FLUSH] = handle_flush,
    [UCX_AM_ACK] = handle_ack,         [UCX_AM_REFUSE] = handle_refuse,
    [UCX_AM_BYE] = handle_bye,         [UCX_AM_BELL] = NULL,
    [UCX_AM_PARCEL] = handle_parcel,
};

/* Called by UCX, from within progress. */
static ucs_status_t on_arrival(void *arg, const void *from, size_t header_len,
                               void *data, size_t len,
                               const ucp_am_recv_param_t *param)
{
    const ucx_route_t *route = arg;
    ucx_worker_t *worker = route->worker;
    ucx_arrival_t arrival = {
        .worker = worker, .ucx = worker->ucx, .data = data, .len = len};

    if (handlers[route->id] == NULL)
        return UCS_OK;
    /* Rendezvous is for large data that the sender did not ask for. */
    if (!arrival_read(&arrival, from, header_len) ||
        param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) {
        hce_log(DEBUG, PROXY, "ucx: ignored a stranger");
        return UCS_OK;
    }
    arrival.peer = worker->ucx->peers[arrival.header.rank];
    handlers[route->id](&arrival);
    return UCS_OK;
}

hce_status_t hce_ucx_handlers_init(ucx_worker_t *worker)
{
    for (unsigned id = 0; id < UCX_AM_LAST; id++) {
        ucx_route_t *route = &worker->routes[id];
        ucp_am_handler_param_t param = {
            .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID |
                          UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                          UCP_AM_HANDLER_PARAM_FIELD_CB |
                          UCP_AM_HANDLER_PARAM_FIELD_ARG,
            .id = id,
            .flags = UCP_AM_FLAG_WHOLE_MSG,
            .cb = on_arrival,
            .arg = route,
        };
        ucs_status_t status;

        route->worker = worker;
        route->id = (ucx_am_t)id;
        status = ucp_worker_set_am_recv_handler(worker->worker, &param);
        if (status != UCS_OK) {
            hce_log(ERROR, PROXY, "ucx: active message handler: %s",
                    ucs_status_string(status));
            return HCE_ERR_TRANSPORT;
        }
    }
    return HCE_OK;
}

/* True if nothing is left to be said to rank. */
static bool answer_one(ucx_worker_t *worker, int rank)
{
    ucx_answer_t *answer = &worker->answers[rank];
    ucx_t *ucx = worker->ucx;
    ucx_ep_t *ep;

    if (ucx->peers[rank] == NULL &&
        (answer->addr == NULL ||
         hce_ucx_connect((hce_transport_t *)ucx, rank, answer->addr,
                         answer->addr_len) != HCE_OK))
        return true; /* no way to say it */
    if (ucx->peers[rank]->status != HCE_OK)
        return true;
    ep = &ucx->peers[rank]->eps[worker->context];
    if (answer->refuse)
        answer->refuse =
            hce_ucx_am_tell(ep, UCX_AM_REFUSE, 0, 0) == HCE_ERR_NO_RESOURCE;
    if (answer->ack)
        answer->ack = hce_ucx_am_tell(ep, UCX_AM_ACK, 0, answer->value) ==
                      HCE_ERR_NO_RESOURCE;
    return !answer->refuse && !answer->ack;
}

void hce_ucx_answer(ucx_worker_t *worker)
{
    worker->answering = false;
    for (int rank = 0; rank < worker->ucx->params.size; rank++) {
        ucx_answer_t *answer = &worker->answers[rank];

        if (!answer->ack && !answer->refuse)
            continue;
        if (!answer_one(worker, rank)) {
            worker->answering = true;
            continue;
        }
        answer->ack = answer->refuse = false;
        free(answer->addr);
        answer->addr = NULL;
    }
}
