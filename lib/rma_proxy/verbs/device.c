/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Verbs transport: a port of a device with all that endpoints share on it:
 * completion queues, a queue of empty receives, the registrations of what
 * peers signal to, and the events that the port has.
 */
#include "config.h"

#include "rma_proxy/verbs/verbs.h"

#include "rma_proxy/settings.h"
#include "util/log.h"
#include "util/math.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>

/* Work requests under way on a device, whatever its endpoints would take; at
 * least the longest queue of one. */
#define DEVICE_CREDITS 8192
/* Signals that may come before this rank looks: with none left a sender
 * waits for min_rnr_timer and tries again. */
#define DEVICE_RECVS 1024
#define RECV_BATCH   32

/* Counters must not be overtaken by data, so these are strictly ordered. */
#define COUNTER_ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)

hce_status_t hce_verbs_recv_refill(verbs_device_t *device, int num)
{
    struct ibv_recv_wr wrs[RECV_BATCH], *bad;

    memset(wrs, 0, sizeof(wrs));
    while (num > 0) {
        int part = hce_min(num, RECV_BATCH);

        for (int i = 0; i < part; i++)
            wrs[i].next = i + 1 < part ? &wrs[i + 1] : NULL;
        if (ibv_post_srq_recv(device->srq, wrs, &bad) != 0)
            return HCE_ERR_TRANSPORT;
        num -= part;
    }
    return HCE_OK;
}

static struct ibv_context *context_open(const verbs_choice_t *choice)
{
    struct ibv_device **devices = ibv_get_device_list(NULL);
    struct ibv_context *context = NULL;

    for (int i = 0; devices != NULL && devices[i] != NULL; i++) {
        if (strcmp(ibv_get_device_name(devices[i]), choice->name) == 0)
            context = ibv_open_device(devices[i]);
    }
    if (devices != NULL)
        ibv_free_device_list(devices);
    return context;
}

void hce_verbs_device_look(verbs_device_t *device)
{
    struct ibv_port_attr attr;

    device->is_active =
        ibv_query_port(device->context, device->port, &attr) == 0 &&
        attr.state == IBV_PORT_ACTIVE;
}

static int address_fill(verbs_device_t *device)
{
    verbs_port_t *address = &device->address;
    struct ibv_port_attr attr;
    union ibv_gid gid;

    if (ibv_query_port(device->context, device->port, &attr) != 0)
        return -1;
    device->is_active = attr.state == IBV_PORT_ACTIVE;
    address->is_roce = attr.link_layer == IBV_LINK_LAYER_ETHERNET;
    address->lid = attr.lid;
    address->mtu = (uint8_t)attr.active_mtu;
    address->device = (uint8_t)device->index;
    device->gid_index = hce_verbs_gid_choose(device->context, device->port,
                                             address->is_roce != 0);
    if (ibv_query_gid(device->context, device->port, device->gid_index,
                      &gid) != 0)
        return -1;
    memcpy(address->gid, gid.raw, sizeof(address->gid));
    return 0;
}

static int nonblock(int fd)
{
    int flags = fcntl(fd, F_GETFL);

    if (flags < 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) != 0)
        return -1;
    return fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

/* What failed, or NULL. */
static const char *queues_open(verbs_device_t *device)
{
    struct ibv_srq_init_attr srq = {
        .attr = {.max_wr = DEVICE_RECVS, .max_sge = 1}};

    device->pd = ibv_alloc_pd(device->context);
    if (device->pd == NULL)
        return "ibv_alloc_pd";
    device->channel = ibv_create_comp_channel(device->context);
    if (device->channel == NULL)
        return "ibv_create_comp_channel";
    device->send_cq = ibv_create_cq(device->context, DEVICE_CREDITS, NULL,
                                    device->channel, 0);
    if (device->send_cq != NULL)
        device->recv_cq = ibv_create_cq(device->context, DEVICE_RECVS, NULL,
                                        device->channel, 0);
    if (device->recv_cq == NULL)
        return "ibv_create_cq";
    device->srq = ibv_create_srq(device->pd, &srq);
    if (device->srq == NULL)
        return "ibv_create_srq";
    return hce_verbs_recv_refill(device, DEVICE_RECVS) != HCE_OK
               ? "ibv_post_srq_recv"
               : NULL;
}

static const char *counters_register(verbs_device_t *device,
                                     const verbs_t *verbs)
{
    const hce_transport_params_t *params = &verbs->params;
    size_t arrived =
        (size_t)params->size * params->contexts * sizeof(*verbs->arrived);

    device->inbox = ibv_reg_mr(device->pd, params->inbox,
                               params->inbox_words * sizeof(hce_counter_t),
                               COUNTER_ACCESS);
    if (device->inbox != NULL)
        device->mail = ibv_reg_mr(device->pd, params->mail, params->mail_size,
                                  COUNTER_ACCESS);
    if (device->mail != NULL)
        device->arrived =
            ibv_reg_mr(device->pd, verbs->arrived, arrived, COUNTER_ACCESS);
    return device->arrived == NULL ? "ibv_reg_mr" : NULL;
}

static hce_status_t watch(verbs_t *verbs, verbs_device_t *device)
{
    hce_status_t status;

    device->channel_source =
        (verbs_source_t){.role = VERBS_CHANNEL, .fd = device->channel->fd};
    device->async_source =
        (verbs_source_t){.role = VERBS_ASYNC, .fd = device->context->async_fd};
    status = hce_verbs_watch(verbs, &device->channel_source, EPOLLIN, true);
    if (status != HCE_OK)
        return status;
    return hce_verbs_watch(verbs, &device->async_source, EPOLLIN, true);
}

/* On failure the caller closes: device is zero but for what is open. */
hce_status_t hce_verbs_device_open(verbs_t *verbs, verbs_device_t *device,
                                   const verbs_choice_t *choice)
{
    const char *what = NULL;

    device->index = (int)(device - verbs->devices);
    device->port = choice->port;
    device->credits = DEVICE_CREDITS;
    device->context = context_open(choice);
    if (device->context == NULL) {
        what = "ibv_open_device";
        goto err;
    }
    device->name = ibv_get_device_name(device->context->device);
    if (address_fill(device) != 0)
        what = "ibv_query_port or ibv_query_gid";
    if (what == NULL)
        what = queues_open(device);
    if (what == NULL && (nonblock(device->channel->fd) != 0 ||
                         nonblock(device->context->async_fd) != 0))
        what = "fcntl";
    if (what == NULL)
        what = counters_register(device, verbs);
    if (what == NULL)
        return watch(verbs, device);

err:
    hce_log(ERROR, PROXY, "verbs: %s port %u: %s: %m", choice->name,
            choice->port, what);
    return HCE_ERR_TRANSPORT;
}

static void deregister(struct ibv_mr *mr)
{
    if (mr != NULL)
        (void)ibv_dereg_mr(mr);
}

void hce_verbs_device_close(verbs_device_t *device)
{
    int rc = 0;

    if (device->context == NULL)
        return;
    deregister(device->inbox);
    deregister(device->mail);
    deregister(device->arrived);
    if (device->srq != NULL)
        rc |= ibv_destroy_srq(device->srq);
    if (device->recv_cq != NULL)
        rc |= ibv_destroy_cq(device->recv_cq);
    if (device->send_cq != NULL)
        rc |= ibv_destroy_cq(device->send_cq);
    if (device->channel != NULL)
        rc |= ibv_destroy_comp_channel(device->channel);
    if (device->pd != NULL)
        rc |= ibv_dealloc_pd(device->pd);
    if (rc != 0)
        hce_log(WARN, PROXY, "verbs: %s port %u is not closed in full",
                device->name, device->port);
    (void)ibv_close_device(device->context);
    device->context = NULL;
}

verbs_device_t *hce_verbs_device_active(verbs_t *verbs, uint32_t index)
{
    for (int i = 0; i < verbs->num_devices; i++) {
        verbs_device_t *device = &verbs->devices[(index + (uint32_t)i) %
                                                 (uint32_t)verbs->num_devices];

        if (device->is_active)
            return device;
    }
    return NULL;
}

/* What a port or a queue has to say; completions say the rest. */
void hce_verbs_device_event(verbs_t *verbs, verbs_device_t *device)
{
    struct ibv_async_event event;

    while (ibv_get_async_event(device->context, &event) == 0) {
        bool was_active = device->is_active;

        hce_log(DEBUG, PROXY, "verbs: %s port %u: %s", device->name,
                device->port, ibv_event_type_str(event.event_type));
        ibv_ack_async_event(&event);
        hce_verbs_device_look(device);
        if (was_active == device->is_active)
            continue;
        hce_log(WARN, PROXY, "verbs: %s port %u is %s", device->name,
                device->port, device->is_active ? "active again" : "down");
        if (!device->is_active)
            hce_verbs_device_down(verbs, device);
    }
}
