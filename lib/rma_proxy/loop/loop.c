/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Loop transport: open, close, posting, progress. Everything hangs on one
 * level-triggered epoll descriptor, so that a wake-up cannot be lost.
 */
#include "config.h"

#include "rma_proxy/loop/loop.h"

#include "util/log.h"
#include "util/math.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define LOOP_EVENTS   32
#define LOOP_BACKLOG  4096
#define LOOP_CONTEXTS 1 /* that are useful: the CPU copies all data */
#define LOOP_SEGMENT  (128 * HCE_KIB)
#define LOOP_DEPTH    8

static loop_out_t **out_at(loop_t *loop, int peer, int context)
{
    return &loop->outs[(size_t)peer * loop->params.contexts + context];
}

static size_t num_outs(const loop_t *loop)
{
    return (size_t)loop->params.size * loop->params.contexts;
}

void hce_loop_report(loop_t *loop, int peer, hce_status_t status,
                     const char *text)
{
    if (loop->reported[peer] || loop->left[peer])
        return;
    loop->reported[peer] = true;
    hce_log(DEBUG, PROXY, "loop: rank %d: %s", peer, text);
    loop->params.error_cb(loop->params.error_arg, peer, status, text);
}

hce_status_t hce_loop_watch(loop_t *loop, loop_socket_t *socket,
                            uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = socket};

    if (epoll_ctl(loop->epoll, EPOLL_CTL_ADD, socket->fd, &event) == 0)
        return HCE_OK;
    hce_log(ERROR, PROXY, "loop: cannot watch a socket: %m");
    return HCE_ERR_SYSTEM;
}

/* Abstract name: a zero byte, then readable text; no file is made. */
void hce_loop_name(const loop_address_t *addr, void *sockaddr_p,
                   uint32_t *len_p)
{
    struct sockaddr_un *name = sockaddr_p;
    char *text = name->sun_path + 1;
    size_t len = 4;

    memset(name, 0, sizeof(*name));
    name->sun_family = AF_UNIX;
    memcpy(text, "hce-", len);
    for (size_t i = 0; i < sizeof(addr->name); i++, len += 2)
        snprintf(text + len, 3, "%02x", addr->name[i]);
    *len_p = (uint32_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len);
}

/* Names can be seen by all users of the machine; the secret, and data, are
 * for processes of this user only. */
bool hce_loop_same_user(int fd)
{
    struct ucred peer;
    socklen_t len = sizeof(peer);

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 &&
           (peer.uid == geteuid() || peer.uid == 0);
}

static hce_status_t listener_open(loop_t *loop)
{
    struct sockaddr_un name;
    uint32_t len;
    int fd;

    memcpy(loop->addr.magic, LOOP_MAGIC, sizeof(loop->addr.magic));
    if (getrandom(loop->addr.name, sizeof(loop->addr.name), 0) !=
        sizeof(loop->addr.name)) {
        hce_log(ERROR, PROXY, "loop: getrandom: %m");
        return HCE_ERR_SYSTEM;
    }
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        hce_log(ERROR, PROXY, "loop: socket: %m");
        return HCE_ERR_SYSTEM;
    }
    hce_loop_name(&loop->addr, &name, &len);
    if (bind(fd, (struct sockaddr *)&name, len) != 0 ||
        listen(fd, LOOP_BACKLOG) != 0) {
        hce_log(ERROR, PROXY, "loop: bind or listen on @%s: %m",
                name.sun_path + 1);
        close(fd);
        return HCE_ERR_SYSTEM;
    }
    loop->listener.fd = fd;
    loop->listener.role = LOOP_LISTENER;
    return hce_loop_watch(loop, &loop->listener, EPOLLIN);
}

static void loop_free(loop_t *loop)
{
    hce_regions_cleanup(&loop->regions);
    free(loop->ins);
    free(loop->outs);
    free(loop->reported);
    free(loop->left);
    free(loop);
}

static hce_status_t loop_open(const hce_transport_params_t *params,
                              hce_transport_t **transport_p)
{
    loop_t *loop = calloc(1, sizeof(*loop));
    hce_status_t status = HCE_ERR_NO_MEMORY;

    if (loop == NULL)
        goto err;
    loop->params = *params;
    if (params->contexts == 0)
        loop->params.contexts = LOOP_CONTEXTS;
    loop->listener.fd = -1;
    hce_regions_init(&loop->regions);
    loop->outs = calloc(num_outs(loop), sizeof(*loop->outs));
    loop->reported = calloc((size_t)params->size, sizeof(bool));
    loop->left = calloc((size_t)params->size, sizeof(bool));
    if (loop->outs == NULL || loop->reported == NULL || loop->left == NULL)
        goto err_free;
    status = hce_loop_faults_init(&loop->faults, params->rank);
    if (status != HCE_OK)
        goto err_free;
    loop->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (loop->epoll < 0) {
        hce_log(ERROR, PROXY, "loop: epoll_create1: %m");
        status = HCE_ERR_SYSTEM;
        goto err_free;
    }
    status = listener_open(loop);
    if (status != HCE_OK)
        goto err_epoll;
    *transport_p = (hce_transport_t *)loop;
    return HCE_OK;

err_epoll:
    if (loop->listener.fd >= 0)
        close(loop->listener.fd);
    close(loop->epoll);
err_free:
    loop_free(loop);
err:
    if (status == HCE_ERR_NO_MEMORY)
        hce_log(ERROR, PROXY, "loop: no memory for %d ranks", params->size);
    return status;
}

static void loop_close(hce_transport_t *transport)
{
    loop_t *loop = loop_of(transport);

    /* Those in the backlog think that they are connected. */
    for (int i = 0; i < LOOP_BACKLOG && hce_loop_in_accept(loop); i++)
        ;
    /* First where there is always room for it: a peer that finds the other
     * direction cut off looks here for the reason. */
    for (uint32_t i = 0; i < loop->num_ins; i++) {
        if (loop->ins[i]->socket.fd >= 0)
            hce_loop_send_now(loop->ins[i]->socket.fd, LOOP_BYE, 0);
    }
    for (size_t i = 0; i < num_outs(loop); i++) {
        if (loop->outs[i] != NULL)
            hce_loop_out_destroy(loop, loop->outs[i]);
    }
    for (uint32_t i = 0; i < loop->num_ins; i++)
        hce_loop_in_close(loop, loop->ins[i]);
    hce_loop_in_sweep(loop);
    close(loop->listener.fd);
    close(loop->epoll);
    loop_free(loop);
}

static void loop_query(hce_transport_t *transport,
                       hce_transport_attr_t *attr_p)
{
    attr_p->contexts = loop_of(transport)->params.contexts;
    attr_p->segment = LOOP_SEGMENT;
    attr_p->depth = LOOP_DEPTH;
    attr_p->parcel = LOOP_SEGMENT;
    attr_p->kind = "loop";
}

static const char *loop_unusable(void)
{
    return NULL;
}

static void loop_describe(char *buf, size_t size)
{
    snprintf(buf, size, "ranks of this machine over AF_UNIX sockets");
}

static hce_status_t loop_address(hce_transport_t *transport, void **addr_p,
                                 size_t *len_p)
{
    loop_address_t *addr = malloc(sizeof(*addr));

    if (addr == NULL)
        return HCE_ERR_NO_MEMORY;
    *addr = loop_of(transport)->addr;
    *addr_p = addr;
    *len_p = sizeof(*addr);
    return HCE_OK;
}

static hce_status_t loop_connect(hce_transport_t *transport, int peer,
                                 const void *addr, size_t len)
{
    loop_t *loop = loop_of(transport);
    hce_status_t status = HCE_OK;

    if (len != sizeof(loop_address_t) ||
        memcmp(addr, LOOP_MAGIC, strlen(LOOP_MAGIC)) != 0) {
        hce_log(ERROR, PROXY, "loop: rank %d sent no loop address", peer);
        return HCE_ERR_TRANSPORT;
    }
    for (int i = 0; i < loop->params.contexts && status == HCE_OK; i++) {
        if (*out_at(loop, peer, i) == NULL)
            status = hce_loop_out_open(loop, peer, i, addr);
    }
    return status;
}

static hce_status_t post(hce_transport_t *transport, int peer, int context,
                         const loop_entry_t *entry)
{
    loop_t *loop = loop_of(transport);
    loop_out_t *out = *out_at(loop, peer, context);

    if (out == NULL) {
        hce_log(ERROR, PROXY, "loop: rank %d is not connected", peer);
        return HCE_ERR_INTERNAL;
    }
    return hce_loop_out_post(loop, out, entry);
}

static hce_status_t loop_put(hce_transport_t *transport, int peer, int context,
                             const void *src, hce_transport_mem_t *mem,
                             size_t len, uint64_t remote_addr,
                             hce_transport_key_t *key,
                             hce_transport_req_t *req)
{
    loop_entry_t entry = {.frame = {.kind = LOOP_PUT,
                                    .len = len,
                                    .addr = remote_addr,
                                    .mem = hce_loop_key_id(key)},
                          .src = src,
                          .req = req,
                          .mail = -1};

    return post(transport, peer, context, &entry);
}

static hce_status_t loop_signal(hce_transport_t *transport, int peer,
                                int context, uint32_t word, uint64_t value)
{
    loop_entry_t entry = {
        .frame = {.kind = LOOP_SIGNAL, .word = word, .value = value},
        .mail = -1};

    return post(transport, peer, context, &entry);
}

static hce_status_t post_mail(hce_transport_t *transport, int peer,
                              const loop_entry_t *entry)
{
    if (entry->frame.len > HCE_TRANSPORT_MAX_MESSAGE) {
        hce_log(ERROR, PROXY, "loop: a message of %zu bytes",
                (size_t)entry->frame.len);
        return HCE_ERR_INVALID_ARG;
    }
    return post(transport, peer, 0, entry);
}

static hce_status_t loop_message(hce_transport_t *transport, int peer,
                                 uint64_t offset, const void *payload,
                                 size_t len, uint32_t word, uint64_t value)
{
    loop_entry_t entry = {.frame = {.kind = LOOP_MESSAGE,
                                    .word = word,
                                    .len = len,
                                    .addr = offset,
                                    .value = value},
                          .src = payload,
                          .mail = -1};

    return post_mail(transport, peer, &entry);
}

/* Two entries of one queue. Where the second is refused the data go again
 * with the next try, to the same place and before anybody looks there. */
static hce_status_t loop_parcel(hce_transport_t *transport, int peer,
                                const hce_transport_parcel_t *parcel,
                                hce_transport_req_t *req)
{
    loop_entry_t letter = {.frame = {.kind = LOOP_LETTER,
                                     .word = parcel->word,
                                     .len = parcel->mail_len,
                                     .addr = parcel->mail_offset,
                                     .value = parcel->value},
                           .src = parcel->mail,
                           .mail = -1};
    hce_status_t status = HCE_OK;

    if (parcel->data_len > 0)
        status = loop_put(transport, peer, 0, parcel->data, parcel->mem,
                          parcel->data_len, parcel->remote_addr, parcel->key,
                          req);
    return status == HCE_OK ? post_mail(transport, peer, &letter) : status;
}

/* Entries that no event will come for: held back, or not connected yet. */
static bool has_own_work(const loop_t *loop)
{
    if (loop->num_connecting > 0)
        return true;
    if (!loop->faults.on)
        return false;
    for (size_t i = 0; i < num_outs(loop); i++) {
        const loop_out_t *out = loop->outs[i];

        if (out != NULL && out->count > 0 && !out->want_out)
            return true;
    }
    return false;
}

static bool do_own_work(loop_t *loop)
{
    bool moved = false;

    for (size_t i = 0; i < num_outs(loop); i++) {
        loop_out_t *out = loop->outs[i];

        if (out == NULL || out->status != HCE_OK)
            continue;
        if (!out->connected && !hce_loop_out_connect(loop, out))
            continue;
        if (out->count > 0 && !out->want_out)
            moved |= hce_loop_out_write(loop, out);
    }
    return moved;
}

static bool handle(loop_t *loop, const struct epoll_event *event)
{
    loop_socket_t *socket = event->data.ptr;
    bool moved = false;

    if (socket->fd < 0)
        return false; /* closed by an earlier event of this batch */
    if (socket->role == LOOP_LISTENER)
        return hce_loop_in_accept(loop);
    if (socket->role == LOOP_IN)
        return hce_loop_in_read(loop, (loop_in_t *)socket);
    if (event->events & EPOLLOUT)
        moved = hce_loop_out_write(loop, (loop_out_t *)socket);
    if (socket->fd >= 0 && (event->events & ~(uint32_t)EPOLLOUT))
        moved |= hce_loop_out_read(loop, (loop_out_t *)socket);
    return moved;
}

static bool loop_progress(hce_transport_t *transport)
{
    loop_t *loop = loop_of(transport);
    struct epoll_event events[LOOP_EVENTS];
    bool moved = false;
    int n = epoll_wait(loop->epoll, events, LOOP_EVENTS, 0);

    for (int i = 0; i < n; i++)
        moved |= handle(loop, &events[i]);
    hce_loop_in_sweep(loop);
    if (has_own_work(loop))
        moved |= do_own_work(loop);
    return moved;
}

static int loop_fds(hce_transport_t *transport, int *fds)
{
    fds[0] = loop_of(transport)->epoll;
    return 1;
}

/* Level-triggered: what has come keeps the descriptor readable. */
static bool loop_arm(hce_transport_t *transport)
{
    return !has_own_work(loop_of(transport));
}

static hce_status_t flush_start(loop_t *loop)
{
    loop_entry_t entry = {.frame = {.kind = LOOP_FLUSH}, .mail = -1};

    for (size_t i = 0; i < num_outs(loop); i++) {
        loop_out_t *out = loop->outs[i];

        if (out == NULL || out->status != HCE_OK)
            continue;
        entry.frame.value = ++out->flush;
        (void)hce_loop_out_post(loop, out, &entry);
    }
    loop->flushing = true;
    return HCE_INPROGRESS;
}

/* A failed endpoint has lost what was on it: the flush ends with an error,
 * once the others are through. A peer that has left wants nothing more. */
static hce_status_t loop_flush(hce_transport_t *transport)
{
    loop_t *loop = loop_of(transport);
    hce_status_t status = HCE_OK;

    if (!loop->flushing)
        flush_start(loop);
    for (size_t i = 0; i < num_outs(loop); i++) {
        const loop_out_t *out = loop->outs[i];

        if (out == NULL || (out->status != HCE_OK && loop->left[out->peer]))
            continue;
        if (out->status != HCE_OK)
            status = out->status;
        else if (out->acked != out->flush)
            return HCE_INPROGRESS;
    }
    loop->flushing = false;
    return status;
}

/* The epoll set itself is shared with the parent: only close. */
static void loop_forked(hce_transport_t *transport)
{
    loop_t *loop = loop_of(transport);

    close(loop->epoll);
    close(loop->listener.fd);
    for (size_t i = 0; i < num_outs(loop); i++) {
        if (loop->outs[i] != NULL && loop->outs[i]->socket.fd >= 0)
            close(loop->outs[i]->socket.fd);
    }
    for (uint32_t i = 0; i < loop->num_ins; i++) {
        if (loop->ins[i]->socket.fd >= 0)
            close(loop->ins[i]->socket.fd);
    }
}

const hce_transport_ops_t hce_transport_loop = {
    .name = "loop",
    .automatic = false,
    .unusable = loop_unusable,
    .describe = loop_describe,
    .open = loop_open,
    .close = loop_close,
    .query = loop_query,
    .address = loop_address,
    .connect = loop_connect,
    .mem_register = hce_loop_mem_register,
    .mem_deregister = hce_loop_mem_deregister,
    .mem_pack = hce_loop_mem_pack,
    .key_unpack = hce_loop_key_unpack,
    .key_destroy = hce_loop_key_destroy,
    .put = loop_put,
    .signal = loop_signal,
    .message = loop_message,
    .parcel = loop_parcel,
    .progress = loop_progress,
    .fds = loop_fds,
    .arm = loop_arm,
    .flush = loop_flush,
    .forked = loop_forked,
};
