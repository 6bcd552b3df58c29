/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Loop transport, writing side: a queue of ops for each (peer, context),
 * written in order as the socket takes them.
 */
#include "config.h"

#include "rma_proxy/loop/loop.h"

#include "util/log.h"
#include "util/math.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define LOOP_BATCH     16 /* entries in one system call */
#define LOOP_RESERVED  2  /* queue places for a flush and a repeated signal */
#define LOOP_MAX_HOLD  50 /* progress calls a delayed put waits */
#define LOOP_MAX_PIECE 4096

static loop_entry_t *entry_at(loop_out_t *out, uint32_t i)
{
    return &out->queue[(out->head + i) % LOOP_QUEUE];
}

/* The op has ended locally: the source may change. */
static void entry_end(loop_out_t *out, loop_entry_t *entry,
                      hce_status_t status)
{
    if (entry->mail >= 0)
        out->mail_used &= ~(1u << entry->mail);
    if (entry->req == NULL)
        return;
    if (status != HCE_OK && entry->req->status == HCE_OK)
        entry->req->status = status;
    entry->req->pending--;
}

static void queue_end(loop_out_t *out, hce_status_t status)
{
    for (; out->count > 0; out->count--) {
        entry_end(out, entry_at(out, 0), status);
        out->head = (out->head + 1) % LOOP_QUEUE;
    }
    out->sent = 0;
}

static void out_close(loop_out_t *out)
{
    if (out->socket.fd >= 0)
        close(out->socket.fd);
    out->socket.fd = -1;
}

void hce_loop_out_fail(loop_t *loop, loop_out_t *out, hce_status_t status,
                       const char *text)
{
    if (out->status != HCE_OK)
        return;
    if (!out->connected)
        loop->num_connecting--;
    out->status = status;
    out_close(out);
    queue_end(out, status);
    hce_loop_report(loop, out->peer, status, text);
}

static void out_watch(loop_t *loop, loop_out_t *out, bool want_out)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = out};

    if (out->want_out == want_out)
        return;
    if (want_out)
        event.events |= EPOLLOUT;
    if (epoll_ctl(loop->epoll, EPOLL_CTL_MOD, out->socket.fd, &event) != 0)
        hce_log(ERROR, PROXY, "loop: epoll_ctl: %m");
    out->want_out = want_out;
}

bool hce_loop_send_now(int fd, loop_kind_t kind, uint64_t value)
{
    loop_frame_t frame = {.kind = kind, .value = value};

    return send(fd, &frame, sizeof(frame), MSG_NOSIGNAL | MSG_DONTWAIT) ==
           sizeof(frame);
}

/* Tries once. A full backlog is not an error: progress tries again. */
bool hce_loop_out_connect(loop_t *loop, loop_out_t *out)
{
    loop_hello_t hello = {.rank = (uint32_t)loop->params.rank,
                          .context = (uint32_t)out->context};
    struct sockaddr_un name;
    uint32_t len;

    hce_loop_name(&out->addr, &name, &len);
    if (connect(out->socket.fd, (struct sockaddr *)&name, len) != 0) {
        if (errno != EAGAIN && errno != EINTR)
            hce_loop_out_fail(loop, out,
                              errno == ECONNREFUSED ? HCE_ERR_GONE
                                                    : HCE_ERR_TRANSPORT,
                              strerror(errno));
        return false;
    }
    memcpy(hello.magic, LOOP_MAGIC, sizeof(hello.magic));
    memcpy(hello.secret, loop->params.secret, sizeof(hello.secret));
    if (!hce_loop_same_user(out->socket.fd)) {
        hce_loop_out_fail(loop, out, HCE_ERR_TRANSPORT,
                          "another user listens on the rank's socket");
        return false;
    }
    /* A fresh socket has room for 32 bytes: all or an error. */
    if (send(out->socket.fd, &hello, sizeof(hello), MSG_NOSIGNAL) !=
            sizeof(hello) ||
        hce_loop_watch(loop, &out->socket, EPOLLIN) != HCE_OK) {
        hce_loop_out_fail(loop, out, HCE_ERR_TRANSPORT, strerror(errno));
        return false;
    }
    out->connected = true;
    loop->num_connecting--;
    return true;
}

hce_status_t hce_loop_out_open(loop_t *loop, int peer, int context,
                               const loop_address_t *addr)
{
    loop_out_t *out = calloc(1, sizeof(*out));

    if (out == NULL)
        goto err_memory;
    if (context == 0) {
        out->mails = calloc(LOOP_MAILS, sizeof(*out->mails));
        if (out->mails == NULL)
            goto err_memory;
    }
    out->socket.role = LOOP_OUT;
    out->socket.fd =
        socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (out->socket.fd < 0) {
        hce_log(ERROR, PROXY, "loop: socket to rank %d: %m", peer);
        free(out->mails);
        free(out);
        return HCE_ERR_SYSTEM;
    }
    out->peer = peer;
    out->context = context;
    out->addr = *addr;
    loop->outs[(size_t)peer * loop->params.contexts + context] = out;
    loop->num_connecting++;
    (void)hce_loop_out_connect(loop, out);
    return out->status;

err_memory:
    hce_log(ERROR, PROXY, "loop: no memory to connect rank %d", peer);
    free(out);
    return HCE_ERR_NO_MEMORY;
}

void hce_loop_out_destroy(loop_t *loop, loop_out_t *out)
{
    /* Inside an op there is no place for a frame; the peer sees the end. */
    if (out->socket.fd >= 0 && out->connected && out->sent == 0 && !out->lost)
        hce_loop_send_now(out->socket.fd, LOOP_BYE, 0);
    out_close(out);
    queue_end(out, HCE_ERR_ABORTED);
    free(out->mails);
    free(out);
}

/* Fault injection at the n-th op. True if the op goes no further. */
static bool faults_strike(loop_t *loop, loop_out_t *out)
{
    loop_faults_t *faults = &loop->faults;

    faults->ops++;
    if (faults->ops == (uint64_t)faults->break_at) {
        if (out->connected && out->sent == 0)
            hce_loop_send_now(out->socket.fd, LOOP_BREAK, 0);
        hce_loop_out_fail(loop, out, HCE_ERR_TRANSPORT,
                          "endpoint broken by HCE_LOOP_FAULTS");
        return true;
    }
    if (faults->ops == (uint64_t)faults->lose_at) {
        out->lost = true;
        queue_end(out, HCE_OK);
        if (out->connected)
            out_watch(loop, out, false);
    }
    return out->lost;
}

static bool mail_take(loop_out_t *out, loop_entry_t *entry)
{
    int i = __builtin_ctz(~out->mail_used);

    if (i >= LOOP_MAILS)
        return false;
    out->mail_used |= 1u << i;
    entry->mail = i;
    if (entry->frame.len > 0)
        memcpy(out->mails[i], entry->src, entry->frame.len);
    entry->src = out->mails[i];
    return true;
}

hce_status_t hce_loop_out_post(loop_t *loop, loop_out_t *out,
                               const loop_entry_t *entry)
{
    loop_faults_t *faults = &loop->faults;
    bool flush = entry->frame.kind == LOOP_FLUSH;
    loop_entry_t *tail;

    if (out->status != HCE_OK)
        return out->status;
    if (!flush && (out->count >= LOOP_QUEUE - LOOP_RESERVED ||
                   hce_loop_faults_hit(faults, faults->refuse)))
        return HCE_ERR_NO_RESOURCE;
    if (faults->on && !flush && faults_strike(loop, out))
        return out->status;
    if (out->lost)
        return HCE_OK;
    tail = entry_at(out, out->count);
    *tail = *entry;
    if ((entry->frame.kind == LOOP_MESSAGE ||
         entry->frame.kind == LOOP_LETTER) &&
        !mail_take(out, tail))
        return HCE_ERR_NO_RESOURCE;
    if (entry->req != NULL)
        entry->req->pending++;
    if (entry->frame.kind == LOOP_PUT &&
        hce_loop_faults_hit(faults, faults->delay))
        tail->hold = 1 + hce_loop_faults_below(faults, LOOP_MAX_HOLD);
    out->count++;
    if (entry->frame.kind == LOOP_SIGNAL &&
        hce_loop_faults_hit(faults, faults->twice))
        *entry_at(out, out->count++) = *entry;
    if (out->connected && !out->want_out && !faults->on)
        (void)hce_loop_out_write(loop, out);
    return out->status;
}

/* Fills iov with what may be written now; returns the number of parts. */
static int gather(loop_t *loop, loop_out_t *out, struct iovec *iov)
{
    uint32_t batch = loop->faults.on ? 1 : hce_min(out->count, LOOP_BATCH);
    uint64_t skip = out->sent;
    int n = 0;

    for (uint32_t i = 0; i < batch; i++) {
        loop_entry_t *entry = entry_at(out, i);
        uint64_t payload = entry->frame.len;

        if (skip < sizeof(entry->frame)) {
            iov[n].iov_base = (char *)&entry->frame + skip;
            iov[n++].iov_len = sizeof(entry->frame) - skip;
            skip = 0;
        } else {
            skip -= sizeof(entry->frame);
        }
        if (payload > skip) {
            iov[n].iov_base = (char *)entry->src + skip;
            iov[n++].iov_len = payload - skip;
        }
        skip = 0;
    }
    return n;
}

/* Written bytes; ends the entries that are complete. */
static void advance(loop_out_t *out, uint64_t bytes)
{
    while (bytes > 0) {
        loop_entry_t *entry = entry_at(out, 0);
        uint64_t left = sizeof(entry->frame) + entry->frame.len - out->sent;

        if (bytes < left) {
            out->sent += bytes;
            return;
        }
        bytes -= left;
        out->sent = 0;
        entry_end(out, entry, HCE_OK);
        out->head = (out->head + 1) % LOOP_QUEUE;
        out->count--;
    }
}

/* Chooses, holds back and cuts what goes next. Bytes that may be written in
 * one call, 0 if none. */
static uint64_t faults_limit(loop_t *loop, loop_out_t *out)
{
    loop_faults_t *faults = &loop->faults;
    loop_entry_t *entry;

    if (!faults->on)
        return UINT64_MAX;
    if (out->sent == 0 && hce_loop_faults_hit(faults, faults->reorder))
        hce_loop_faults_reorder(faults, out);
    entry = entry_at(out, 0);
    if (entry->hold > 0) {
        entry->hold--;
        return 0;
    }
    if (hce_loop_faults_hit(faults, faults->pieces))
        return 1 + hce_loop_faults_below(faults, LOOP_MAX_PIECE);
    return UINT64_MAX;
}

static void iov_cut(struct iovec *iov, int *n_p, uint64_t limit)
{
    for (int i = 0; i < *n_p; i++) {
        if (iov[i].iov_len >= limit) {
            iov[i].iov_len = limit;
            *n_p = i + 1;
            return;
        }
        limit -= iov[i].iov_len;
    }
}

bool hce_loop_out_write(loop_t *loop, loop_out_t *out)
{
    struct iovec iov[2 * LOOP_BATCH];
    struct msghdr msg = {.msg_iov = iov};
    bool moved = false;

    while (out->count > 0) {
        uint64_t limit = faults_limit(loop, out);
        ssize_t bytes;
        int n;

        if (limit == 0)
            return moved;
        n = gather(loop, out, iov);
        iov_cut(iov, &n, limit);
        msg.msg_iovlen = (size_t)n;
        bytes = sendmsg(out->socket.fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (bytes < 0 && errno == EAGAIN) {
            out_watch(loop, out, true);
            return moved;
        }
        if (bytes < 0 && errno == EINTR)
            continue;
        if (bytes < 0) {
            /* What the peer said last tells more than the broken pipe. */
            int error = errno;

            while (out->status == HCE_OK && hce_loop_out_read(loop, out))
                ;
            hce_loop_out_fail(loop, out, HCE_ERR_TRANSPORT, strerror(error));
            return true;
        }
        moved = true;
        advance(out, (uint64_t)bytes);
        if (limit != UINT64_MAX)
            break;
    }
    out_watch(loop, out, false);
    return moved;
}

static void answer_handle(loop_t *loop, loop_out_t *out)
{
    switch (out->answer.kind) {
    case LOOP_ACK:
        if (!out->lost)
            out->acked = out->answer.value;
        return;
    case LOOP_REFUSE:
        hce_loop_out_fail(loop, out, HCE_ERR_TRANSPORT,
                          "refused what was sent: its target is not "
                          "registered there");
        return;
    case LOOP_BYE:
        loop->left[out->peer] = true;
        hce_loop_out_fail(loop, out, HCE_ERR_TRANSPORT, "left");
        return;
    default:
        hce_loop_out_fail(loop, out, HCE_ERR_TRANSPORT,
                          "broke the protocol of the loop transport");
    }
}

/* True if something was read and the endpoint still works. */
bool hce_loop_out_read(loop_t *loop, loop_out_t *out)
{
    ssize_t len = recv(out->socket.fd, (char *)&out->answer + out->answer_len,
                       sizeof(out->answer) - out->answer_len, MSG_DONTWAIT);

    if (len < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (len <= 0) {
        hce_loop_out_fail(loop, out, HCE_ERR_GONE,
                          len == 0 ? "its process ended" : strerror(errno));
        return false;
    }
    out->answer_len += (uint32_t)len;
    if (out->answer_len == sizeof(out->answer)) {
        out->answer_len = 0;
        answer_handle(loop, out);
    }
    return out->status == HCE_OK;
}

void hce_loop_out_ask(loop_t *loop, int peer)
{
    for (int i = 0; i < loop->params.contexts; i++) {
        loop_out_t *out = loop->outs[(size_t)peer * loop->params.contexts + i];

        while (out != NULL && out->connected && out->status == HCE_OK &&
               hce_loop_out_read(loop, out))
            ;
    }
}
