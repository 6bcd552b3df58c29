/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Devices: opened once a process, with the primary context that the
 * application uses, too, and a few streams that no other stream waits for
 * unasked.
 */
#include "config.h"

#include "ce/cuda/cuda.h"

#include "ce/cuda/settings.h"
#include "util/config.h"
#include "util/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* registry_lock protects devices and their refs. */
static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
static hce_ce_dev_t *devices;

hce_status_t hce_ce_cuda_enter(const hce_ce_dev_t *dev,
                               hce_drv_scope_t *scope_p)
{
    return hce_drv_enter(dev->drv, dev->ctx, scope_p);
}

int hce_ce_cuda_count(char *text, size_t size)
{
    const hce_drv_t *drv;
    hce_status_t status = hce_drv_get(&drv);

    if (status == HCE_OK)
        return drv->num_devices;
    snprintf(text, size, "%s",
             status == HCE_ERR_FORKED ? hce_status_string(status)
                                      : hce_drv_reason());
    return 0;
}

/* 0 for what the driver does not know. */
static int attribute(const hce_drv_t *drv, hce_cu_enum_t attr,
                     hce_cu_device_t device)
{
    int value = 0;

    return drv->device_get_attribute(&value, attr, device) == HCE_CU_OK ? value
                                                                        : 0;
}

static hce_ce_dev_order_t order_get(const hce_drv_t *drv,
                                    hce_cu_device_t device)
{
    if (attribute(drv, HCE_CU_DEV_RDMA_WRITES_ORDERING, device) >=
        HCE_CU_FLUSH_TO_OWNER)
        return HCE_CE_ORDER_NONE;
    if (attribute(drv, HCE_CU_DEV_CAN_FLUSH_REMOTE_WRITES, device) != 0)
        return HCE_CE_ORDER_STREAM;
    return HCE_CE_ORDER_READBACK;
}

/* Several channels are needed where others wait in theirs. */
static void connections_check(void)
{
    const char *text = hce_config_foreign("CUDA_DEVICE_MAX_CONNECTIONS");
    int64_t value;

    if (text != NULL && hce_config_parse_int(text, 1, 32, &value) == HCE_OK &&
        value < 8)
        hce_log(WARN, CE,
                "CUDA_DEVICE_MAX_CONNECTIONS=%s: streams share channels, so "
                "that waits of one may hold up others",
                text);
}

static hce_status_t attr_fill(const hce_drv_t *drv, hce_cu_device_t device,
                              hce_ce_dev_attr_t *attr)
{
    hce_status_t status;

    status = hce_drv_check(
        drv->device_get_name(attr->name, sizeof(attr->name), device),
        "cuDeviceGetName", "device %d", device);
    if (status == HCE_OK)
        status = hce_drv_check(drv->device_get_pci_bus_id(
                                   attr->bus_id, sizeof(attr->bus_id), device),
                               "cuDeviceGetPCIBusId", "device %d", device);
    if (status != HCE_OK)
        return status;
    attr->num_queues = (int)hce_ce_cuda_settings.num_queues;
    attr->copy_limit = hce_ce_cuda_settings.copy_limit > 0
                           ? hce_ce_cuda_settings.copy_limit
                           : SIZE_MAX;
    attr->has_batch = drv->memcpy_batch_async != NULL ||
                      drv->memcpy_batch_async_12080 != NULL;
    attr->has_vmm = attribute(drv, HCE_CU_DEV_VMM, device) != 0 &&
                    attribute(drv, HCE_CU_DEV_POSIX_FD, device) != 0;
    attr->has_multicast = attr->has_vmm && drv->multicast_create != NULL &&
                          hce_ce_cuda_settings.multicast != HCE_CE_CUDA_OFF &&
                          attribute(drv, HCE_CU_DEV_MULTICAST, device) != 0;
    attr->has_dmabuf = drv->mem_get_handle_for_address_range != NULL &&
                       attribute(drv, HCE_CU_DEV_DMA_BUF, device) != 0;
    attr->order = order_get(drv, device);
    return HCE_OK;
}

/* Counters are 64 bits wide, in host memory. */
static hce_status_t fitness_check(const hce_drv_t *drv, hce_cu_device_t device)
{
    if (attribute(drv, HCE_CU_DEV_MEMOPS_64, device) == 0) {
        hce_log(ERROR, CE, "device %d has no 64-bit stream operations",
                device);
        return HCE_ERR_UNSUPPORTED;
    }
    if (attribute(drv, HCE_CU_DEV_HOST_REGISTER, device) == 0 ||
        attribute(drv, HCE_CU_DEV_UNIFIED_ADDRESSING, device) == 0) {
        hce_log(ERROR, CE, "device %d cannot map registered host memory",
                device);
        return HCE_ERR_UNSUPPORTED;
    }
    return HCE_OK;
}

void hce_ce_cuda_describe(int ordinal, char *text, size_t size)
{
    const hce_drv_t *drv;
    hce_ce_dev_attr_t attr = {0};
    hce_cu_device_t device, peer;
    int can, i, peers = 0;

    if (hce_drv_get(&drv) != HCE_OK ||
        drv->device_get(&device, ordinal) != HCE_CU_OK ||
        attr_fill(drv, device, &attr) != HCE_OK) {
        snprintf(text, size, "device %d cannot be asked", ordinal);
        return;
    }
    for (i = 0; i < drv->num_devices; i++) {
        if (i != ordinal && drv->device_get(&peer, i) == HCE_CU_OK &&
            drv->device_can_access_peer(&can, device, peer) == HCE_CU_OK)
            peers += can != 0;
    }
    snprintf(text, size,
             "%s at %s; reaches %d of %d others; multicast: %s; writes of "
             "NICs: %s",
             attr.name, attr.bus_id, peers, drv->num_devices - 1,
             attr.has_multicast ? "yes" : "no",
             hce_ce_dev_order_string(attr.order));
}

hce_status_t hce_ce_cuda_queue_init(hce_ce_dev_t *dev,
                                    hce_ce_cuda_queue_t *queue)
{
    hce_status_t status;

    /* Non-blocking: a caller's kernel on the legacy stream must not wait for
     * what waits for the network. */
    status = hce_drv_check(
        dev->drv->stream_create(&queue->stream, HCE_CU_STREAM_NON_BLOCKING, 0),
        "cuStreamCreateWithPriority", "device %d", dev->attr.ordinal);
    if (status != HCE_OK)
        return status;
    status = hce_drv_check(
        dev->drv->event_create(&queue->event, HCE_CU_EVENT_DISABLE_TIMING),
        "cuEventCreate", "device %d", dev->attr.ordinal);
    if (status != HCE_OK)
        (void)hce_drv_check(dev->drv->stream_destroy(queue->stream),
                            "cuStreamDestroy", "device %d", dev->attr.ordinal);
    return status;
}

void hce_ce_cuda_queue_cleanup(hce_ce_dev_t *dev, hce_ce_cuda_queue_t *queue)
{
    (void)hce_drv_check(dev->drv->event_destroy(queue->event),
                        "cuEventDestroy", "device %d", dev->attr.ordinal);
    (void)hce_drv_check(dev->drv->stream_destroy(queue->stream),
                        "cuStreamDestroy", "device %d", dev->attr.ordinal);
}

static hce_status_t event_init(hce_ce_dev_t *dev, hce_cu_event_t *event_p)
{
    return hce_drv_check(
        dev->drv->event_create(event_p, HCE_CU_EVENT_DISABLE_TIMING),
        "cuEventCreate", "device %d", dev->attr.ordinal);
}

static void event_cleanup(hce_ce_dev_t *dev, hce_cu_event_t event)
{
    (void)hce_drv_check(dev->drv->event_destroy(event), "cuEventDestroy",
                        "device %d", dev->attr.ordinal);
}

/* Streams and events, in the device's context. */
static hce_status_t queues_init(hce_ce_dev_t *dev)
{
    hce_status_t status;
    int num = 0;

    status = event_init(dev, &dev->fork);
    if (status != HCE_OK)
        return status;
    status = event_init(dev, &dev->capture_fork);
    if (status != HCE_OK)
        goto err_fork;
    for (; num < dev->attr.num_queues; num++) {
        status = hce_ce_cuda_queue_init(dev, &dev->queues[num]);
        if (status != HCE_OK)
            goto err_queues;
    }
    return HCE_OK;

err_queues:
    while (num-- > 0)
        hce_ce_cuda_queue_cleanup(dev, &dev->queues[num]);
    event_cleanup(dev, dev->capture_fork);
err_fork:
    event_cleanup(dev, dev->fork);
    return status;
}

static void queues_cleanup(hce_ce_dev_t *dev)
{
    hce_ce_cuda_queue_t *queue;
    int i;

    while ((queue = dev->capture_queues) != NULL) {
        dev->capture_queues = queue->next;
        hce_ce_cuda_queue_cleanup(dev, queue);
        free(queue);
    }
    for (i = 0; i < dev->attr.num_queues; i++)
        hce_ce_cuda_queue_cleanup(dev, &dev->queues[i]);
    event_cleanup(dev, dev->capture_fork);
    event_cleanup(dev, dev->fork);
}

/* The context, and what is made in it. */
static hce_status_t dev_start(hce_ce_dev_t *dev)
{
    hce_drv_scope_t scope;
    hce_status_t status;

    status = hce_drv_check(
        dev->drv->primary_ctx_retain(&dev->ctx, dev->device),
        "cuDevicePrimaryCtxRetain", "device %d", dev->attr.ordinal);
    if (status != HCE_OK)
        return status;
    status = hce_ce_cuda_enter(dev, &scope);
    if (status == HCE_OK) {
        status = queues_init(dev);
        hce_drv_leave(&scope);
    }
    if (status != HCE_OK)
        (void)hce_drv_check(dev->drv->primary_ctx_release(dev->device),
                            "cuDevicePrimaryCtxRelease", "device %d",
                            dev->attr.ordinal);
    return status;
}

static hce_status_t dev_create(int ordinal, hce_ce_dev_t **dev_p)
{
    hce_ce_dev_t *dev = calloc(1, sizeof(*dev));
    hce_status_t status;

    if (dev == NULL) {
        hce_log(ERROR, CE, "no memory for device %d", ordinal);
        return HCE_ERR_NO_MEMORY;
    }
    dev->attr.ordinal = ordinal;
    dev->refs = 1;
    status = hce_drv_get(&dev->drv);
    if (status != HCE_OK) {
        hce_log(ERROR, CE, "device %d: %s", ordinal,
                status == HCE_ERR_FORKED ? hce_status_string(status)
                                         : hce_drv_reason());
        goto err_dev;
    }
    status = hce_drv_check(dev->drv->device_get(&dev->device, ordinal),
                           "cuDeviceGet", "device %d", ordinal);
    if (status == HCE_OK)
        status = fitness_check(dev->drv, dev->device);
    if (status == HCE_OK)
        status = attr_fill(dev->drv, dev->device, &dev->attr);
    if (status == HCE_OK)
        status = dev_start(dev);
    if (status != HCE_OK)
        goto err_dev;
    pthread_mutex_init(&dev->launch_lock, NULL);
    pthread_mutex_init(&dev->mem_lock, NULL);
    connections_check();
    hce_log(INFO, CE, "device %d: %s at %s, %d queues, writes of NICs: %s",
            ordinal, dev->attr.name, dev->attr.bus_id, dev->attr.num_queues,
            hce_ce_dev_order_string(dev->attr.order));
    *dev_p = dev;
    return HCE_OK;

err_dev:
    free(dev);
    return status;
}

hce_status_t hce_ce_cuda_open(int ordinal, hce_ce_dev_t **dev_p)
{
    hce_status_t status = HCE_OK;
    hce_ce_dev_t *dev;

    pthread_mutex_lock(&registry_lock);
    dev = devices;
    while (dev != NULL && dev->attr.ordinal != ordinal)
        dev = dev->next;
    if (dev != NULL) {
        dev->refs++;
    } else {
        status = dev_create(ordinal, &dev);
        if (status == HCE_OK) {
            dev->next = devices;
            devices = dev;
        }
    }
    pthread_mutex_unlock(&registry_lock);
    if (status == HCE_OK)
        *dev_p = dev;
    return status;
}

static void dev_destroy(hce_ce_dev_t *dev)
{
    hce_drv_scope_t scope;

    if (hce_ce_cuda_enter(dev, &scope) == HCE_OK) {
        queues_cleanup(dev);
        hce_drv_leave(&scope);
    }
    if (!hce_ce_cuda_words_cleanup(dev)) {
        /* A graph of the application has them still. */
        hce_log(INFO, CE, "device %d: words of a graph are kept",
                dev->attr.ordinal);
        return;
    }
    (void)hce_drv_check(dev->drv->primary_ctx_release(dev->device),
                        "cuDevicePrimaryCtxRelease", "device %d",
                        dev->attr.ordinal);
    pthread_mutex_destroy(&dev->launch_lock);
    pthread_mutex_destroy(&dev->mem_lock);
    free(dev);
}

void hce_ce_cuda_close(hce_ce_dev_t *dev)
{
    hce_ce_dev_t **at = &devices;

    pthread_mutex_lock(&registry_lock);
    if (--dev->refs == 0) {
        while (*at != dev)
            at = &(*at)->next;
        *at = dev->next;
        dev_destroy(dev);
    }
    pthread_mutex_unlock(&registry_lock);
}
