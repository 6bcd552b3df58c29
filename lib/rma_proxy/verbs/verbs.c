/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Verbs transport: open, close, progress, sleep, flush.
 */
#include "config.h"

#include "rma_proxy/verbs/verbs.h"

#include "rma_proxy/settings.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/math.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define VERBS_USEFUL  4 /* contexts */
#define VERBS_SEGMENT (256 * HCE_KIB)
#define VERBS_DEPTH   16
#define VERBS_PARCEL  (64 * HCE_KIB)
#define VERBS_EVENTS  32
/* Progress calls between looks at descriptors, while nobody sleeps. */
#define VERBS_TURNS 16

static void address_fill(verbs_t *verbs)
{
    verbs_address_t *address = &verbs->address;

    address->magic = VERBS_MAGIC;
    address->contexts = (uint16_t)verbs->params.contexts;
    address->devices = (uint16_t)verbs->num_devices;
    address->inbox.addr = (uintptr_t)verbs->params.inbox;
    address->mail.addr = (uintptr_t)verbs->params.mail;
    address->arrived.addr = (uintptr_t)verbs->arrived;
    for (int i = 0; i < verbs->num_devices; i++) {
        address->inbox.rkey[i] = verbs->devices[i].inbox->rkey;
        address->mail.rkey[i] = verbs->devices[i].mail->rkey;
        address->arrived.rkey[i] = verbs->devices[i].arrived->rkey;
    }
}

static void close_fd(verbs_source_t *source)
{
    if (source->fd >= 0)
        close(source->fd);
    source->fd = -1;
}

static void verbs_free(verbs_t *verbs)
{
    for (int i = 0; verbs->peers != NULL && i < verbs->params.size; i++)
        hce_verbs_peer_free(verbs->peers[i]);
    for (int i = 0; i < VERBS_CALLERS; i++)
        hce_verbs_conn_close(&verbs->callers[i]);
    for (int i = 0; i < VERBS_DEVICES; i++)
        hce_verbs_device_close(&verbs->devices[i]);
    close_fd(&verbs->listener);
    close_fd(&verbs->timer);
    if (verbs->epoll >= 0)
        close(verbs->epoll);
    free(verbs->arrived);
    free(verbs->peers);
    free(verbs);
}

static verbs_t *verbs_alloc(const hce_transport_params_t *params)
{
    verbs_t *verbs = calloc(1, sizeof(*verbs));
    size_t words;

    if (verbs == NULL)
        return NULL;
    verbs->params = *params;
    if (params->contexts == 0)
        verbs->params.contexts = VERBS_USEFUL;
    verbs->params.contexts = hce_min(verbs->params.contexts, VERBS_CONTEXTS);
    verbs->queue = (uint32_t)hce_proxy_settings.verbs_queue;
    verbs->seed = hce_clock_ns() ^ (uint64_t)params->rank << 48;
    verbs->epoll = -1;
    verbs->listener = (verbs_source_t){.role = VERBS_LISTENER, .fd = -1};
    verbs->timer = (verbs_source_t){.role = VERBS_TIMER, .fd = -1};
    for (int i = 0; i < VERBS_CALLERS; i++)
        verbs->callers[i].source.fd = -1;
    words = (size_t)params->size * verbs->params.contexts;
    verbs->arrived = calloc(words, sizeof(*verbs->arrived));
    verbs->peers = calloc((size_t)params->size, sizeof(verbs_peer_t *));
    if (verbs->arrived == NULL || verbs->peers == NULL) {
        verbs_free(verbs);
        return NULL;
    }
    for (size_t i = 0; i < words; i++)
        atomic_init(&verbs->arrived[i].value, 0);
    return verbs;
}

static hce_status_t descriptors_open(verbs_t *verbs)
{
    verbs->epoll = epoll_create1(EPOLL_CLOEXEC);
    verbs->timer.fd =
        timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (verbs->epoll < 0 || verbs->timer.fd < 0) {
        hce_log(ERROR, PROXY, "verbs: epoll_create1 or timerfd_create: %m");
        return HCE_ERR_SYSTEM;
    }
    return hce_verbs_watch(verbs, &verbs->timer, EPOLLIN, true);
}

static hce_status_t verbs_open(const hce_transport_params_t *params,
                               hce_transport_t **transport_p)
{
    verbs_choice_t choices[VERBS_DEVICES];
    verbs_t *verbs = verbs_alloc(params);
    hce_status_t status;
    int num = 0;

    if (verbs == NULL) {
        hce_log(ERROR, PROXY, "verbs: no memory for %d ranks", params->size);
        return HCE_ERR_NO_MEMORY;
    }
    status = descriptors_open(verbs);
    if (status == HCE_OK)
        status = hce_verbs_choose(choices, &num);
    for (int i = 0; status == HCE_OK && i < num; i++) {
        status = hce_verbs_device_open(verbs, &verbs->devices[i], &choices[i]);
        verbs->num_devices = i + 1;
    }
    if (status == HCE_OK)
        status = hce_verbs_listen(verbs);
    if (status != HCE_OK) {
        verbs_free(verbs);
        return status;
    }
    address_fill(verbs);
    *transport_p = (hce_transport_t *)verbs;
    return HCE_OK;
}

static void verbs_close(hce_transport_t *transport)
{
    verbs_t *verbs = verbs_of(transport);

    for (int i = 0; i < verbs->params.size; i++) {
        if (verbs->peers[i] != NULL)
            hce_verbs_say_bye(verbs->peers[i]);
    }
    verbs_free(verbs);
}

static void verbs_query(hce_transport_t *transport,
                        hce_transport_attr_t *attr_p)
{
    attr_p->contexts = verbs_of(transport)->params.contexts;
    attr_p->segment = VERBS_SEGMENT;
    attr_p->depth = VERBS_DEPTH;
    attr_p->parcel = VERBS_PARCEL;
    attr_p->kind = "rdma";
}

static hce_status_t verbs_address(hce_transport_t *transport, void **addr_p,
                                  size_t *len_p)
{
    verbs_address_t *address = malloc(sizeof(*address));

    if (address == NULL)
        return HCE_ERR_NO_MEMORY;
    *address = verbs_of(transport)->address;
    *addr_p = address;
    *len_p = sizeof(*address);
    return HCE_OK;
}

static void channel_drain(verbs_device_t *device)
{
    struct ibv_cq *cq;
    void *context;

    while (ibv_get_cq_event(device->channel, &cq, &context) == 0)
        ibv_ack_cq_events(cq, 1);
}

#define DEVICE_OF(_source, _member)                                           \
    ((verbs_device_t *)((char *)(_source)-offsetof(verbs_device_t, _member)))

static void on_event(verbs_t *verbs, verbs_source_t *source)
{
    uint64_t expired;

    switch (source->role) {
    case VERBS_CHANNEL:
        channel_drain(DEVICE_OF(source, channel_source));
        break;
    case VERBS_ASYNC:
        hce_verbs_device_event(verbs, DEVICE_OF(source, async_source));
        break;
    case VERBS_TIMER:
        if (read(source->fd, &expired, sizeof(expired)) < 0)
            expired = 0; /* somebody else has read it: as well */
        break;
    default:
        hce_verbs_control_event(verbs, source);
        break;
    }
}

static bool events(verbs_t *verbs)
{
    struct epoll_event list[VERBS_EVENTS];
    int n = epoll_wait(verbs->epoll, list, VERBS_EVENTS, 0);

    verbs->is_armed = false;
    for (int i = 0; i < n; i++)
        on_event(verbs, list[i].data.ptr);
    return n > 0;
}

static bool verbs_progress(hce_transport_t *transport)
{
    verbs_t *verbs = verbs_of(transport);
    bool moved = false;

    if (verbs->is_armed || verbs->turns++ % VERBS_TURNS == 0)
        moved = events(verbs);
    for (int i = 0; i < verbs->num_devices; i++)
        moved |= hce_verbs_device_poll(verbs, &verbs->devices[i]);
    if (verbs->is_failing || verbs->is_ticking)
        hce_verbs_recover(verbs);
    return moved;
}

static int verbs_fds(hce_transport_t *transport, int *fds)
{
    fds[0] = verbs_of(transport)->epoll;
    return 1;
}

/* Asks for events first, then looks once more: a completion between the two
 * is found here, a later one makes an event. */
static bool verbs_arm(hce_transport_t *transport)
{
    verbs_t *verbs = verbs_of(transport);
    bool is_idle = !verbs->is_failing;

    verbs->is_armed = true;
    for (int i = 0; i < verbs->num_devices; i++) {
        verbs_device_t *device = &verbs->devices[i];

        if (ibv_req_notify_cq(device->send_cq, 0) != 0 ||
            ibv_req_notify_cq(device->recv_cq, 0) != 0)
            is_idle = false;
        is_idle &= !hce_verbs_device_poll(verbs, device);
    }
    return is_idle && !verbs->is_failing;
}

/* A completion says that the data is at its target. */
static hce_status_t verbs_flush(hce_transport_t *transport)
{
    verbs_t *verbs = verbs_of(transport);
    hce_status_t status = HCE_OK;
    bool is_done = true;

    for (int i = 0; i < verbs->params.size; i++) {
        const verbs_peer_t *peer = verbs->peers[i];

        if (peer == NULL || peer->eps == NULL)
            continue;
        if (peer->status != HCE_OK && !peer->has_left)
            status = peer->status;
        for (int k = 0; k < verbs->params.contexts; k++)
            is_done &= peer->eps[k].head == peer->eps[k].tail;
    }
    return is_done ? status : HCE_INPROGRESS;
}

/* The parent goes on with all of it. */
static void verbs_forked(hce_transport_t *transport)
{
    verbs_t *verbs = verbs_of(transport);

    close(verbs->epoll);
    close(verbs->timer.fd);
    close(verbs->listener.fd);
    for (int i = 0; i < VERBS_CALLERS; i++)
        close_fd(&verbs->callers[i].source);
    for (int i = 0; i < verbs->params.size; i++) {
        if (verbs->peers[i] == NULL)
            continue;
        close_fd(&verbs->peers[i]->out.source);
        close_fd(&verbs->peers[i]->in.source);
    }
    for (int i = 0; i < verbs->num_devices; i++) {
        close(verbs->devices[i].channel->fd);
        close(verbs->devices[i].context->async_fd);
        close(verbs->devices[i].context->cmd_fd);
    }
}

const hce_transport_ops_t hce_transport_verbs = {
    .name = "verbs",
    .automatic = true,
    .unusable = hce_verbs_unusable,
    .describe = hce_verbs_describe,
    .describe_device = hce_verbs_device_describe,
    .open = verbs_open,
    .close = verbs_close,
    .query = verbs_query,
    .address = verbs_address,
    .connect = hce_verbs_connect,
    .mem_register = hce_verbs_mem_register,
    .mem_deregister = hce_verbs_mem_deregister,
    .mem_pack = hce_verbs_mem_pack,
    .key_unpack = hce_verbs_key_unpack,
    .key_destroy = hce_verbs_key_destroy,
    .put = hce_verbs_put,
    .signal = hce_verbs_signal,
    .message = hce_verbs_message,
    .parcel = hce_verbs_parcel,
    .progress = verbs_progress,
    .fds = verbs_fds,
    .arm = verbs_arm,
    .flush = verbs_flush,
    .forked = verbs_forked,
};
