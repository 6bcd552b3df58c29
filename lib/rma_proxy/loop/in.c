/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Loop transport, reading side: accepts those who know the secret, places
 * puts straight into registered memory, stores words. All that is read is
 * checked: a wrong address ends the connection, it never becomes a write.
 */
#include "config.h"

#include "rma_proxy/loop/loop.h"

#include "util/counter.h"
#include "util/log.h"
#include "util/math.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define LOOP_ACCEPTS 16              /* in one progress call */
#define LOOP_BUDGET  (512 * HCE_KIB) /* bytes read from one peer in it */
#define LOOP_READ    (128 * HCE_KIB) /* with the registrations locked */

typedef enum loop_step {
    STEP_AGAIN, /* something was done */
    STEP_EMPTY, /* the socket has nothing more */
    STEP_END    /* closed */
} loop_step_t;

void hce_loop_in_close(loop_t *loop, loop_in_t *in)
{
    if (in->socket.fd < 0)
        return;
    if (in->peer < 0)
        loop->num_strangers--;
    close(in->socket.fd);
    in->socket.fd = -1;
}

/* Closed ones are kept until no event of the batch can name them. */
void hce_loop_in_sweep(loop_t *loop)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < loop->num_ins; i++) {
        if (loop->ins[i]->socket.fd >= 0)
            loop->ins[kept++] = loop->ins[i];
        else
            free(loop->ins[i]);
    }
    loop->num_ins = kept;
}

/* Too many that say nothing: the one that has been silent for longest. */
static void evict_stranger(loop_t *loop)
{
    for (uint32_t i = 0; i < loop->num_ins; i++) {
        if (loop->ins[i]->peer < 0 && loop->ins[i]->socket.fd >= 0) {
            hce_loop_in_close(loop, loop->ins[i]);
            return;
        }
    }
}

static hce_status_t in_open(loop_t *loop, int fd)
{
    loop_in_t *in;

    if (loop->num_ins == loop->max_ins) {
        uint32_t max = hce_max(16u, loop->max_ins * 2);
        loop_in_t **ins = realloc(loop->ins, max * sizeof(*ins));

        if (ins == NULL)
            return HCE_ERR_NO_MEMORY;
        loop->ins = ins;
        loop->max_ins = max;
    }
    in = malloc(sizeof(*in));
    if (in == NULL)
        return HCE_ERR_NO_MEMORY;
    memset(in, 0, offsetof(loop_in_t, buf));
    in->socket.fd = fd;
    in->socket.role = LOOP_IN;
    in->peer = -1;
    if (hce_loop_watch(loop, &in->socket, EPOLLIN) != HCE_OK) {
        free(in);
        return HCE_ERR_SYSTEM;
    }
    loop->ins[loop->num_ins++] = in;
    loop->num_strangers++;
    return HCE_OK;
}

bool hce_loop_in_accept(loop_t *loop)
{
    int n;

    for (n = 0; n < LOOP_ACCEPTS; n++) {
        int fd = accept4(loop->listener.fd, NULL, NULL,
                         SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (fd < 0 && errno != EAGAIN && errno != EINTR &&
            errno != ECONNABORTED && !loop->full_warned) {
            loop->full_warned = true;
            hce_log(ERROR, PROXY, "loop: cannot accept a peer: %m");
        }
        if (fd < 0)
            break;
        if (loop->num_strangers >= LOOP_STRANGERS)
            evict_stranger(loop);
        if (!hce_loop_same_user(fd) || in_open(loop, fd) != HCE_OK)
            close(fd);
    }
    return n > 0;
}

static void in_fail(loop_t *loop, loop_in_t *in, hce_status_t status,
                    const char *text)
{
    int peer = in->peer;

    hce_loop_in_close(loop, in);
    hce_loop_report(loop, peer, status, text);
}

/* The peer sent what no correct peer sends: tell it, and close. */
static void in_refuse(loop_t *loop, loop_in_t *in, const char *what)
{
    const loop_frame_t *frame = &in->frame;
    char text[160];

    snprintf(text, sizeof(text),
             "%s: kind %u, %" PRIu64 " bytes to 0x%" PRIx64 ", word %u", what,
             frame->kind, frame->len, frame->addr, frame->word);
    hce_log(ERROR, PROXY, "loop: refused from rank %d: %s", in->peer, text);
    hce_loop_send_now(in->socket.fd, LOOP_REFUSE, 0);
    in_fail(loop, in, HCE_ERR_TRANSPORT, text);
}

static bool is_taken(const loop_t *loop, const loop_hello_t *hello)
{
    for (uint32_t i = 0; i < loop->num_ins; i++) {
        const loop_in_t *in = loop->ins[i];

        if (in->socket.fd >= 0 && in->peer == (int)hello->rank &&
            in->context == (int)hello->context)
            return true;
    }
    return false;
}

static bool is_right(const loop_t *loop, const loop_hello_t *hello)
{
    unsigned char diff = 0;

    for (size_t i = 0; i < sizeof(hello->secret); i++)
        diff |= hello->secret[i] ^ loop->params.secret[i];
    return diff == 0 &&
           memcmp(hello->magic, LOOP_MAGIC, sizeof(hello->magic)) == 0 &&
           hello->rank < (uint32_t)loop->params.size &&
           hello->context < (uint32_t)loop->params.contexts &&
           !is_taken(loop, hello);
}

static loop_step_t hello_read(loop_t *loop, loop_in_t *in)
{
    loop_hello_t hello;

    memcpy(&hello, in->buf + in->pos, sizeof(hello));
    in->pos += sizeof(hello);
    if (!is_right(loop, &hello)) {
        hce_log(DEBUG, PROXY, "loop: ignored a stranger");
        hce_loop_in_close(loop, in);
        return STEP_END;
    }
    in->peer = (int)hello.rank;
    in->context = (int)hello.context;
    loop->num_strangers--;
    return STEP_AGAIN;
}

/* Release: what the connection delivered before is in memory before whoever
 * reads the word (hce_proxy_progress, with acquire) sees the value. */
static void word_store(loop_t *loop, const loop_frame_t *frame)
{
    hce_counter_post(&loop->params.inbox[frame->word], frame->value);
}

static bool frame_is_right(loop_t *loop, const loop_frame_t *frame)
{
    bool word = frame->word < loop->params.inbox_words;
    bool covered;

    switch (frame->kind) {
    case LOOP_PUT:
        hce_regions_lock(&loop->regions);
        covered = hce_regions_covers(&loop->regions, frame->mem, frame->addr,
                                     frame->len);
        hce_regions_unlock(&loop->regions);
        return covered;
    case LOOP_SIGNAL:
        return word && frame->len == 0;
    case LOOP_MESSAGE:
    case LOOP_LETTER:
        return word && frame->len <= HCE_TRANSPORT_MAX_MESSAGE &&
               frame->len <= loop->params.mail_size &&
               frame->addr <= loop->params.mail_size - frame->len;
    default:
        return frame->len == 0;
    }
}

/* The frame and its payload are here. */
static loop_step_t frame_end(loop_t *loop, loop_in_t *in)
{
    const loop_frame_t *frame = &in->frame;

    in->in_payload = false;
    switch (frame->kind) {
    case LOOP_PUT:
        return STEP_AGAIN;
    case LOOP_MESSAGE:
    case LOOP_LETTER:
        memcpy(loop->params.mail + frame->addr, in->mail, frame->len);
        word_store(loop, frame);
        return STEP_AGAIN;
    case LOOP_SIGNAL:
        word_store(loop, frame);
        return STEP_AGAIN;
    case LOOP_FLUSH:
        /* One flush is under way at most: there is room for the answer. */
        if (hce_loop_send_now(in->socket.fd, LOOP_ACK, frame->value))
            return STEP_AGAIN;
        in_fail(loop, in, HCE_ERR_TRANSPORT, "does not read its answers");
        return STEP_END;
    case LOOP_BREAK:
        in_fail(loop, in, HCE_ERR_TRANSPORT, "the connection broke");
        return STEP_END;
    case LOOP_BYE:
        loop->left[in->peer] = true;
        return STEP_AGAIN;
    default:
        in_refuse(loop, in, "unknown frame");
        return STEP_END;
    }
}

static loop_step_t frame_start(loop_t *loop, loop_in_t *in)
{
    memcpy(&in->frame, in->buf + in->pos, sizeof(in->frame));
    in->pos += sizeof(in->frame);
    in->done = 0;
    if (!frame_is_right(loop, &in->frame)) {
        in_refuse(loop, in,
                  in->frame.kind == LOOP_PUT ? "target is not registered"
                                             : "malformed frame");
        return STEP_END;
    }
    if (in->frame.len == 0)
        return frame_end(loop, in);
    in->in_payload = true;
    return STEP_AGAIN;
}

static void fill_iov(loop_in_t *in, struct iovec *iov, size_t *n_p)
{
    uint64_t left = in->in_payload ? in->frame.len - in->done : 0;

    *n_p = 0;
    if (left > 0) {
        iov[0].iov_base = in->frame.kind == LOOP_PUT
                              ? (char *)(uintptr_t)in->frame.addr + in->done
                              : in->mail + in->done;
        iov[0].iov_len = hce_min(left, LOOP_READ);
        *n_p = 1;
        if (left > LOOP_READ)
            return;
    }
    iov[*n_p].iov_base = in->buf + in->len;
    iov[*n_p].iov_len = sizeof(in->buf) - in->len;
    ++*n_p;
}

/* Reads payload to where it belongs and what follows into buf; EAGAIN also
 * when others should have their turn. Caller holds the regions while the
 * payload is a put's. */
static ssize_t fill(loop_in_t *in)
{
    struct iovec iov[2];
    struct msghdr msg = {.msg_iov = iov};
    ssize_t len;

    if (in->budget <= 0) {
        errno = EAGAIN;
        return -1;
    }
    fill_iov(in, iov, &msg.msg_iovlen);
    len = recvmsg(in->socket.fd, &msg, MSG_DONTWAIT);
    in->budget -= len;
    if (len > 0 && in->in_payload) {
        size_t direct = hce_min((size_t)len, iov[0].iov_len);

        in->done += direct;
        in->len += (uint32_t)((size_t)len - direct);
    } else if (len > 0) {
        in->len += (uint32_t)len;
    }
    return len;
}

static loop_step_t in_end(loop_t *loop, loop_in_t *in, ssize_t len)
{
    if (len < 0 && (errno == EAGAIN || errno == EINTR))
        return STEP_EMPTY;
    if (in->peer >= 0)
        hce_loop_out_ask(loop, in->peer);
    if (in->peer < 0)
        hce_loop_in_close(loop, in);
    else
        in_fail(loop, in, HCE_ERR_GONE,
                in->in_payload || in->len > in->pos
                    ? "its process ended inside a transfer"
                    : "its process ended");
    return STEP_END;
}

/* Payload that was read ahead together with its frame. */
static void take_ahead(loop_in_t *in)
{
    size_t len =
        hce_min((uint64_t)(in->len - in->pos), in->frame.len - in->done);
    char *dst = in->frame.kind == LOOP_PUT ? (char *)(uintptr_t)in->frame.addr
                                           : in->mail;

    memcpy(dst + in->done, in->buf + in->pos, len);
    in->pos += (uint32_t)len;
    in->done += len;
}

/* One piece of payload. A put's memory may be deregistered meanwhile by
 * another thread: it is looked up again under the lock for each piece. */
static loop_step_t payload_read(loop_t *loop, loop_in_t *in)
{
    const loop_frame_t *frame = &in->frame;
    bool put = frame->kind == LOOP_PUT;
    ssize_t len = 1;

    if (put) {
        hce_regions_lock(&loop->regions);
        if (!hce_regions_covers(&loop->regions, frame->mem, frame->addr,
                                frame->len)) {
            hce_regions_unlock(&loop->regions);
            in_refuse(loop, in, "target was deregistered");
            return STEP_END;
        }
    }
    if (in->len > in->pos) {
        take_ahead(in);
    } else {
        in->pos = in->len = 0;
        len = fill(in);
    }
    if (put)
        hce_regions_unlock(&loop->regions);
    if (len <= 0)
        return in_end(loop, in, len);
    return in->done == frame->len ? frame_end(loop, in) : STEP_AGAIN;
}

static loop_step_t in_step(loop_t *loop, loop_in_t *in)
{
    size_t want = in->peer < 0 ? sizeof(loop_hello_t) : sizeof(loop_frame_t);
    ssize_t len;

    if (in->in_payload)
        return payload_read(loop, in);
    if (in->len - in->pos >= want)
        return in->peer < 0 ? hello_read(loop, in) : frame_start(loop, in);
    memmove(in->buf, in->buf + in->pos, in->len - in->pos);
    in->len -= in->pos;
    in->pos = 0;
    len = fill(in);
    return len > 0 ? STEP_AGAIN : in_end(loop, in, len);
}

/* What has been read ahead is used up: no event would tell of it. */
bool hce_loop_in_read(loop_t *loop, loop_in_t *in)
{
    loop_step_t step = STEP_AGAIN;
    bool moved = false;

    in->budget = LOOP_BUDGET;
    while (step == STEP_AGAIN) {
        step = in_step(loop, in);
        moved |= step == STEP_AGAIN;
    }
    return moved;
}
