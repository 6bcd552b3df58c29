/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Verbs transport: how an endpoint gets its queue pair, the first and, when
 * that has failed, the next. The writer drops its own and asks by CONNECT.
 * The target first moves its old one to RESET, so that nothing of it can land
 * any more, then reads how far it has come, makes a new one, and answers both
 * by ACCEPT. The writer posts again from there: an op that has landed is not
 * repeated, as its data may have been used and overwritten since. Only the
 * value of the last one is: it may be what was lost.
 *
 * Each attempt takes another pair of ports, if there are several: neither
 * side need know which of the two failed.
 */
#include "config.h"

#include "rma_proxy/verbs/verbs.h"

#include "util/clock.h"
#include "util/log.h"

#include <stdio.h>
#include <string.h>
#include <sys/timerfd.h>

#define RETRY_NS (20 * HCE_NS_PER_MS) /* between attempts */

/* Of the network, and so may go away; the others are of the request. */
static bool is_passing(enum ibv_wc_status status)
{
    switch (status) {
    case IBV_WC_RETRY_EXC_ERR:
    case IBV_WC_RNR_RETRY_EXC_ERR:
    case IBV_WC_RESP_TIMEOUT_ERR:
    case IBV_WC_WR_FLUSH_ERR:
    case IBV_WC_LOC_QP_OP_ERR: /* soft-RoCE's, where the link is down */
    case IBV_WC_REM_ABORT_ERR:
    case IBV_WC_FATAL_ERR:
    case IBV_WC_GENERAL_ERR:
        return true;
    default:
        return false;
    }
}

static const char *op_text(const verbs_ep_t *ep, char *buf, size_t size)
{
    static const char *const kinds[] = {"put", "signal", "message", "parcel"};
    const verbs_op_t *op = &ep->ops[ep->head % ep->peer->verbs->queue];

    if (ep->head == ep->tail)
        snprintf(buf, size, "connection");
    else if (op->data_len > 0)
        snprintf(buf, size, "%s of %u bytes", kinds[op->kind], op->data_len);
    else
        snprintf(buf, size, "%s", kinds[op->kind]);
    return buf;
}

/* The first failure of a queue pair is its cause; the others follow. */
void hce_verbs_ep_break(verbs_ep_t *ep, enum ibv_wc_status status,
                        const char *text)
{
    char op[48];

    if (ep->state != VERBS_EP_LIVE)
        return;
    ep->state = VERBS_EP_BROKEN;
    ep->wc_status = status;
    snprintf(ep->text, sizeof(ep->text), "%s over %s port %u, context %d: %s",
             op_text(ep, op, sizeof(op)), ep->device->name, ep->device->port,
             ep->context, text);
    ep->peer->verbs->is_failing = true;
}

static void drain(verbs_t *verbs, verbs_device_t *device)
{
    while (hce_verbs_device_poll(verbs, device))
        ;
}

/* What ended before the end is taken into account. Then the completion queue
 * is rid of what the queue pair left there, before that room is given back. */
void hce_verbs_ep_reset(verbs_ep_t *ep)
{
    verbs_t *verbs = ep->peer->verbs;
    struct ibv_qp *qp = ep->qp;

    if (qp == NULL)
        return;
    drain(verbs, ep->device);
    if (ep->qp == NULL)
        return; /* a failure on the way has done it */
    ep->qp = NULL;
    hce_verbs_qp_destroy(qp);
    drain(verbs, ep->device);
    ep->device->credits += ep->due;
    ep->due = 0;
    ep->state = VERBS_EP_WAITING;
}

static void tick(verbs_t *verbs, bool on)
{
    struct itimerspec spec = {.it_interval.tv_nsec = RETRY_NS,
                              .it_value.tv_nsec = RETRY_NS};

    if (on == verbs->is_ticking)
        return;
    if (!on)
        memset(&spec, 0, sizeof(spec));
    verbs->is_ticking = on;
    (void)timerfd_settime(verbs->timer.fd, 0, &spec, NULL);
}

/* Back to the queue of those who wait for another attempt. */
static void put_off(verbs_ep_t *ep, const char *text)
{
    hce_verbs_ep_reset(ep);
    ep->state = VERBS_EP_WAITING;
    ep->attempt++;
    ep->retry_ns = hce_clock_ns() + RETRY_NS;
    if (ep->since_ns == 0 && ep->head < ep->tail)
        ep->since_ns = hce_clock_ns();
    if (ep->text[0] == '\0')
        snprintf(ep->text, sizeof(ep->text), "context %d: %s", ep->context,
                 text);
    tick(ep->peer->verbs, true);
}

static void ask(verbs_ep_t *ep)
{
    verbs_peer_t *peer = ep->peer;
    verbs_t *verbs = peer->verbs;
    verbs_device_t *device =
        hce_verbs_device_active(verbs, (uint32_t)ep->context + ep->attempt);
    verbs_frame_t frame = {.type = VERBS_CONNECT,
                           .devices = (uint8_t)verbs->num_devices,
                           .context = (uint16_t)ep->context};
    verbs_qp_made_t made;

    if (device == NULL) {
        put_off(ep, "no port is active");
        return;
    }
    if (hce_verbs_qp_create(verbs, device, &made) != HCE_OK) {
        put_off(ep, "no queue pair could be made");
        return;
    }
    ep->device = device;
    ep->qp = made.qp;
    ep->psn = made.psn;
    ep->inline_len = made.inline_len;
    ep->state = VERBS_EP_ASKING;
    frame.attempt = ep->attempt;
    frame.port = device->address;
    frame.port.qpn = made.qp->qp_num;
    frame.port.psn = made.psn;
    hce_verbs_send(verbs, &peer->out, &frame);
}

/* Ops up to arrived are at their target. */
static void skip_landed(verbs_ep_t *ep, uint64_t arrived)
{
    while (ep->head < ep->tail && ep->head + 1 < arrived)
        hce_verbs_op_end(ep, HCE_OK);
    if (ep->head < ep->tail && ep->head + 1 == arrived)
        ep->ops[ep->head % ep->peer->verbs->queue].has_landed = true;
}

static void resume(verbs_ep_t *ep)
{
    if (ep->attempt > 0)
        hce_log(INFO, PROXY,
                "verbs: rank %d, context %d goes on over %s port %u with %llu "
                "ops again",
                ep->peer->rank, ep->context, ep->device->name,
                ep->device->port, (unsigned long long)(ep->tail - ep->head));
    ep->state = VERBS_EP_LIVE;
    ep->room = ep->peer->verbs->queue;
    ep->text[0] = ep->refusal[0] = '\0';
    if (ep->head == ep->tail)
        ep->since_ns = 0;
    for (uint64_t number = ep->head; number < ep->tail; number++) {
        if (hce_verbs_post(ep, number) != HCE_OK)
            break;
    }
}

void hce_verbs_ep_accepted(verbs_ep_t *ep, const verbs_frame_t *frame)
{
    verbs_qp_made_t made = {.qp = ep->qp, .psn = ep->psn};

    if (ep->state != VERBS_EP_ASKING || frame->attempt != ep->attempt)
        return;
    if (frame->arrived > ep->tail ||
        frame->port.device >= ep->peer->address.devices) {
        hce_verbs_peer_fail(ep->peer, HCE_ERR_TRANSPORT,
                            "the peer has accepted what was not sent");
        return;
    }
    if (ep->device->credits < ep->peer->verbs->queue ||
        hce_verbs_qp_connect(ep->device, &made, &frame->port, true) !=
            HCE_OK) {
        put_off(ep, "the queue pair could not be connected");
        return;
    }
    ep->remote = frame->port.device;
    skip_landed(ep, frame->arrived);
    resume(ep);
}

void hce_verbs_ep_refused(verbs_ep_t *ep, const verbs_frame_t *frame)
{
    if (ep->state != VERBS_EP_ASKING || frame->attempt != ep->attempt)
        return;
    snprintf(ep->refusal, sizeof(ep->refusal), "%s", frame->text);
    put_off(ep, frame->text);
}

/* The target's side. */
void hce_verbs_in_connect(verbs_peer_t *peer, const verbs_frame_t *frame)
{
    verbs_t *verbs = peer->verbs;
    int context = frame->context;
    verbs_in_t *in = &peer->ins[context];
    uint32_t devices = frame->devices > 0 ? frame->devices : 1;
    verbs_device_t *device = hce_verbs_device_active(
        verbs, (uint32_t)context + frame->attempt / devices);
    verbs_frame_t answer = {.type = VERBS_BUSY,
                            .context = frame->context,
                            .attempt = frame->attempt};
    verbs_qp_made_t made;

    if (in->qp != NULL)
        hce_verbs_qp_destroy(in->qp);
    in->qp = NULL;
    if (device == NULL) {
        snprintf(
            answer.text, sizeof(answer.text), "%s port %u of rank %d%s",
            verbs->devices[0].name, verbs->devices[0].port, verbs->params.rank,
            verbs->num_devices > 1 ? " and its others are down" : " is down");
    } else if (hce_verbs_qp_create(verbs, device, &made) == HCE_OK) {
        in->qp = made.qp;
        if (hce_verbs_qp_connect(device, &made, &frame->port, false) ==
            HCE_OK) {
            answer.type = VERBS_ACCEPT;
            answer.port = device->address;
            answer.port.qpn = made.qp->qp_num;
            answer.port.psn = made.psn;
            /* After the RESET: a later value cannot come. */
            answer.arrived = hce_counter_read(
                &verbs
                     ->arrived[peer->rank * verbs->params.contexts + context]);
        }
    }
    if (answer.type == VERBS_BUSY && answer.text[0] == '\0')
        snprintf(answer.text, sizeof(answer.text),
                 "rank %d could not make a queue pair on %s port %u",
                 verbs->params.rank, device->name, device->port);
    hce_verbs_send(verbs, &peer->in, &answer);
}

static void repair(verbs_ep_t *ep)
{
    verbs_frame_t frame = {.type = VERBS_FAIL,
                           .context = (uint16_t)ep->context};
    verbs_t *verbs = ep->peer->verbs;

    if (is_passing(ep->wc_status)) {
        hce_log(INFO, PROXY, "verbs: rank %d: %s", ep->peer->rank, ep->text);
        put_off(ep, ep->text);
        ep->retry_ns = 0; /* the first attempt is at once */
        return;
    }
    memcpy(frame.text, ep->text, sizeof(frame.text));
    hce_verbs_send(verbs, &ep->peer->out, &frame);
    hce_verbs_peer_fail(ep->peer, HCE_ERR_TRANSPORT, ep->text);
}

static void give_up(verbs_ep_t *ep)
{
    verbs_t *verbs = ep->peer->verbs;
    char text[3 * VERBS_TEXT];

    snprintf(text, sizeof(text), "%s; not resumed within %g s%s%s", ep->text,
             (double)verbs->params.silence_ns / (double)HCE_NS_PER_SEC,
             ep->refusal[0] != '\0' ? "; " : "", ep->refusal);
    for (int i = 0; i < verbs->num_devices; i++) {
        size_t len = strlen(text);

        snprintf(text + len, sizeof(text) - len, "; %s port %u is %s",
                 verbs->devices[i].name, verbs->devices[i].port,
                 verbs->devices[i].is_active ? "active" : "down");
    }
    hce_verbs_peer_fail(ep->peer, HCE_ERR_TRANSPORT, text);
}

/* True if it must be looked at again without an event. */
static bool ep_recover(verbs_ep_t *ep, uint64_t now)
{
    uint64_t limit = ep->peer->verbs->params.silence_ns;

    if (ep->state == VERBS_EP_BROKEN)
        repair(ep);
    if (ep->peer->status != HCE_OK)
        return false;
    if (ep->since_ns != 0 && limit != 0 && now > ep->since_ns + limit) {
        give_up(ep);
        return false;
    }
    if (ep->state == VERBS_EP_WAITING && ep->peer->out.is_connected &&
        now >= ep->retry_ns)
        ask(ep);
    return ep->state != VERBS_EP_LIVE && ep->attempt > 0;
}

void hce_verbs_recover(verbs_t *verbs)
{
    uint64_t now = hce_clock_ns();
    bool again = false;

    verbs->is_failing = false;
    for (int i = 0; i < verbs->params.size; i++) {
        verbs_peer_t *peer = verbs->peers[i];

        for (int k = 0; peer != NULL && peer->eps != NULL &&
                        peer->status == HCE_OK && k < verbs->params.contexts;
             k++)
            again |= ep_recover(&peer->eps[k], now);
    }
    tick(verbs, again);
}

/* Where there is no other port a short interruption may pass by itself. */
void hce_verbs_device_down(verbs_t *verbs, verbs_device_t *device)
{
    if (hce_verbs_device_active(verbs, 0) == NULL)
        return;
    for (int i = 0; i < verbs->params.size; i++) {
        verbs_peer_t *peer = verbs->peers[i];

        for (int k = 0;
             peer != NULL && peer->eps != NULL && k < verbs->params.contexts;
             k++) {
            if (peer->eps[k].device == device)
                hce_verbs_ep_break(&peer->eps[k], IBV_WC_WR_FLUSH_ERR,
                                   "the port is down");
        }
    }
}
