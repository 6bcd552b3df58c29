/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Verbs transport: control connections. A frame of fixed size at a time; what
 * makes no sense, or does not know the secret, closes its connection. Frames
 * are few and answer each other, so a socket's buffer always has room: one
 * that has none belongs to a peer that does not read, and is closed.
 */
#include "config.h"

#include "rma_proxy/verbs/verbs.h"

#include "boot/net.h"
#include "util/log.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONTROL_DRAIN 64 /* reads at close, at most */

hce_status_t hce_verbs_watch(verbs_t *verbs, verbs_source_t *source,
                             uint32_t events, bool is_new)
{
    struct epoll_event event = {.events = events, .data.ptr = source};

    if (epoll_ctl(verbs->epoll, is_new ? EPOLL_CTL_ADD : EPOLL_CTL_MOD,
                  source->fd, &event) == 0)
        return HCE_OK;
    hce_log(ERROR, PROXY, "verbs: epoll_ctl: %m");
    return HCE_ERR_SYSTEM;
}

hce_status_t hce_verbs_listen(verbs_t *verbs)
{
    char text[HCE_BOOT_ADDR_TEXT];
    hce_boot_addr_t addr;
    hce_status_t status = hce_boot_net_primary(&addr);
    int rc;

    if (status != HCE_OK)
        return status;
    rc = hce_boot_net_listen(&addr, &verbs->listener.fd);
    if (rc != 0) {
        hce_log(ERROR, PROXY, "verbs: listen on %s: %s",
                hce_boot_addr_text(&addr, text, sizeof(text)), strerror(-rc));
        return HCE_ERR_SYSTEM;
    }
    memcpy(verbs->address.listener, &addr, sizeof(addr));
    return hce_verbs_watch(verbs, &verbs->listener, EPOLLIN, true);
}

void hce_verbs_send(verbs_t *verbs, verbs_conn_t *conn, verbs_frame_t *frame)
{
    if (conn->source.fd < 0)
        return;
    frame->magic = VERBS_MAGIC;
    frame->rank = (uint32_t)verbs->params.rank;
    memcpy(frame->secret, verbs->params.secret, sizeof(frame->secret));
    /* Else reading finds the end of the connection. */
    if (send(conn->source.fd, frame, sizeof(*frame),
             MSG_NOSIGNAL | MSG_DONTWAIT) != sizeof(*frame))
        (void)shutdown(conn->source.fd, SHUT_RDWR);
}

/* What came and was not read would turn the end into a reset, and that may
 * overtake what was sent. */
void hce_verbs_conn_close(verbs_conn_t *conn)
{
    char buf[512];

    if (conn->source.fd < 0)
        return;
    (void)shutdown(conn->source.fd, SHUT_WR);
    for (int i = 0; i < CONTROL_DRAIN; i++) {
        if (recv(conn->source.fd, buf, sizeof(buf), MSG_DONTWAIT) <= 0)
            break;
    }
    close(conn->source.fd);
    conn->source.fd = -1;
    conn->is_connected = false;
    conn->have = 0;
}

void hce_verbs_say_bye(verbs_peer_t *peer)
{
    verbs_frame_t frame = {.type = VERBS_BYE};

    if (peer->out.is_connected)
        hce_verbs_send(peer->verbs, &peer->out, &frame);
    hce_verbs_send(peer->verbs, &peer->in, &frame);
}

static bool frame_is_valid(const verbs_t *verbs, const verbs_frame_t *frame)
{
    return frame->magic == VERBS_MAGIC &&
           memcmp(frame->secret, verbs->params.secret,
                  sizeof(frame->secret)) == 0 &&
           frame->rank < (uint32_t)verbs->params.size &&
           frame->rank != (uint32_t)verbs->params.rank &&
           frame->context < verbs->params.contexts &&
           memchr(frame->text, '\0', sizeof(frame->text)) != NULL;
}

/* 1: a frame is there. 0: not yet. -1: the connection has ended. */
static int frame_read(verbs_t *verbs, verbs_conn_t *conn)
{
    ssize_t n = recv(conn->source.fd, (char *)&conn->frame + conn->have,
                     sizeof(conn->frame) - conn->have, MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n <= 0)
        return -1;
    conn->have += (uint32_t)n;
    if (conn->have < sizeof(conn->frame))
        return 0;
    conn->have = 0;
    return frame_is_valid(verbs, &conn->frame) ? 1 : -1;
}

static void on_out(verbs_peer_t *peer, const verbs_frame_t *frame)
{
    verbs_ep_t *ep = &peer->eps[frame->context];

    if (frame->type == VERBS_ACCEPT)
        hce_verbs_ep_accepted(ep, frame);
    else if (frame->type == VERBS_BUSY)
        hce_verbs_ep_refused(ep, frame);
    else if (frame->type == VERBS_BYE)
        peer->has_left = true;
}

static void on_in(verbs_peer_t *peer, const verbs_frame_t *frame)
{
    if (frame->type == VERBS_CONNECT && peer->status == HCE_OK)
        hce_verbs_in_connect(peer, frame);
    else if (frame->type == VERBS_FAIL)
        hce_verbs_peer_fail(peer, HCE_ERR_TRANSPORT, frame->text);
    else if (frame->type == VERBS_BYE)
        peer->has_left = true;
}

static void conn_ended(verbs_peer_t *peer, verbs_conn_t *conn)
{
    hce_verbs_conn_close(conn);
    hce_verbs_peer_fail(peer, HCE_ERR_GONE,
                        "the control connection was closed");
}

static void conn_read(verbs_t *verbs, verbs_peer_t *peer, verbs_conn_t *conn)
{
    int rc;

    while (conn->source.fd >= 0 && (rc = frame_read(verbs, conn)) != 0) {
        if (rc < 0 || conn->frame.rank != (uint32_t)peer->rank) {
            conn_ended(peer, conn);
            return;
        }
        if (conn->source.role == VERBS_OUT)
            on_out(peer, &conn->frame);
        else
            on_in(peer, &conn->frame);
    }
}

static void out_event(verbs_t *verbs, verbs_peer_t *peer)
{
    verbs_conn_t *conn = &peer->out;
    int rc;

    if (conn->is_connected) {
        conn_read(verbs, peer, conn);
        return;
    }
    rc = hce_boot_net_connect_result(conn->source.fd);
    if (rc == 0 &&
        hce_verbs_watch(verbs, &conn->source, EPOLLIN, false) == HCE_OK) {
        conn->is_connected = true;
        verbs->is_failing = true; /* its endpoints have waited for this */
        return;
    }
    hce_verbs_conn_close(conn);
    hce_verbs_peer_fail(peer, HCE_ERR_GONE, strerror(-rc));
}

static void on_listener(verbs_t *verbs)
{
    int fd;

    while (hce_boot_net_accept(verbs->listener.fd, &fd) == 0) {
        verbs_conn_t *conn =
            &verbs->callers[verbs->next_caller++ % VERBS_CALLERS];

        hce_verbs_conn_close(conn);
        conn->source = (verbs_source_t){.role = VERBS_CALLER, .fd = fd};
        if (hce_verbs_watch(verbs, &conn->source, EPOLLIN, true) != HCE_OK)
            hce_verbs_conn_close(conn);
    }
}

/* A caller that shows the secret becomes its rank's connection, one each. */
static void on_caller(verbs_t *verbs, verbs_conn_t *caller)
{
    int rc = frame_read(verbs, caller);
    verbs_peer_t *peer = NULL;

    if (rc == 0)
        return;
    if (rc > 0)
        peer = hce_verbs_peer_get(verbs, (int)caller->frame.rank);
    if (peer == NULL || peer->in.source.fd >= 0) {
        hce_verbs_conn_close(caller);
        return;
    }
    peer->in.source.fd = caller->source.fd;
    peer->in.is_connected = true;
    caller->source.fd = -1;
    if (hce_verbs_watch(verbs, &peer->in.source, EPOLLIN, false) != HCE_OK) {
        conn_ended(peer, &peer->in);
        return;
    }
    on_in(peer, &caller->frame);
}

#define PEER_OF(_source, _member)                                             \
    ((verbs_peer_t *)((char *)(_source)-offsetof(verbs_peer_t, _member)))

void hce_verbs_control_event(verbs_t *verbs, verbs_source_t *source)
{
    if (source->fd < 0)
        return; /* closed by an earlier event of this batch */
    switch (source->role) {
    case VERBS_LISTENER:
        on_listener(verbs);
        break;
    case VERBS_CALLER:
        on_caller(verbs, (verbs_conn_t *)source);
        break;
    case VERBS_OUT:
        out_event(verbs, PEER_OF(source, out));
        break;
    default:
        conn_read(verbs, PEER_OF(source, in), (verbs_conn_t *)source);
        break;
    }
}
