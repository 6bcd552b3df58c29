/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Multicast: an address whose writes go to memory of all devices. Not for
 * two devices: a team of two is known to hang, and one copy is as good.
 */
#include "config.h"

#include "ce/cuda/cuda.h"

#include "util/log.h"

#include <stdlib.h>

struct hce_ce_dev_multicast {
    hce_ce_dev_t *dev;
    hce_cu_mem_t handle;
    size_t size;
    bool is_bound;
    hce_cu_ptr_t ptr;
};

static hce_status_t multicast_make(hce_ce_dev_t *dev, size_t size,
                                   hce_ce_dev_multicast_t **multicast_p)
{
    hce_ce_dev_multicast_t *multicast = calloc(1, sizeof(*multicast));

    if (multicast == NULL) {
        hce_log(ERROR, CE, "no memory for a multicast");
        return HCE_ERR_NO_MEMORY;
    }
    multicast->dev = dev;
    multicast->size = size;
    *multicast_p = multicast;
    return HCE_OK;
}

/* The object and its descriptor, in the device's context. */
static hce_status_t handle_create(hce_ce_dev_multicast_t *multicast,
                                  int num_devices, int *fd_p)
{
    const hce_drv_t *drv = multicast->dev->drv;
    hce_cu_multicast_prop_t prop = {.num_devices = (unsigned)num_devices,
                                    .size = multicast->size,
                                    .handle_types = HCE_CU_HANDLE_FD};
    hce_status_t status;

    status = hce_drv_check(drv->multicast_create(&multicast->handle, &prop),
                           "cuMulticastCreate", "%zu bytes of %d devices",
                           multicast->size, num_devices);
    if (status != HCE_OK)
        return status;
    status = hce_drv_check(
        drv->mem_export(fd_p, multicast->handle, HCE_CU_HANDLE_FD, 0),
        "cuMemExportToShareableHandle", "a multicast");
    if (status != HCE_OK)
        (void)hce_drv_check(drv->mem_release(multicast->handle),
                            "cuMemRelease", "a multicast");
    return status;
}

hce_status_t hce_ce_cuda_multicast_create(hce_ce_dev_t *dev, int num_devices,
                                          size_t size, int *fd_p,
                                          hce_ce_dev_multicast_t **multicast_p)
{
    hce_ce_dev_multicast_t *multicast = NULL;
    hce_drv_scope_t scope;
    hce_status_t status;

    if (!dev->attr.has_multicast || num_devices < 3) {
        hce_log(INFO, CE, "device %d: no multicast to %d devices",
                dev->attr.ordinal, num_devices);
        return HCE_ERR_UNSUPPORTED;
    }
    status = multicast_make(dev, size, &multicast);
    if (status != HCE_OK)
        return status;
    status = hce_ce_cuda_enter(dev, &scope);
    if (status == HCE_OK) {
        status = handle_create(multicast, num_devices, fd_p);
        hce_drv_leave(&scope);
    }
    if (status != HCE_OK) {
        free(multicast);
        return status;
    }
    *multicast_p = multicast;
    return HCE_OK;
}

hce_status_t hce_ce_cuda_multicast_open(hce_ce_dev_t *dev, int fd, size_t size,
                                        hce_ce_dev_multicast_t **multicast_p)
{
    hce_ce_dev_multicast_t *multicast = NULL;
    hce_drv_scope_t scope;
    hce_status_t status;

    status = multicast_make(dev, size, &multicast);
    if (status != HCE_OK)
        return status;
    status = hce_ce_cuda_enter(dev, &scope);
    if (status == HCE_OK) {
        status = hce_drv_check(
            dev->drv->mem_import(&multicast->handle, (void *)(intptr_t)fd,
                                 HCE_CU_HANDLE_FD),
            "cuMemImportFromShareableHandle", "a multicast");
        hce_drv_leave(&scope);
    }
    if (status != HCE_OK) {
        free(multicast);
        return status;
    }
    *multicast_p = multicast;
    return HCE_OK;
}

hce_status_t hce_ce_cuda_multicast_add(hce_ce_dev_multicast_t *multicast)
{
    hce_ce_dev_t *dev = multicast->dev;
    hce_drv_scope_t scope;
    hce_status_t status = hce_ce_cuda_enter(dev, &scope);

    if (status != HCE_OK)
        return status;
    status = hce_drv_check(
        dev->drv->multicast_add_device(multicast->handle, dev->device),
        "cuMulticastAddDevice", "device %d", dev->attr.ordinal);
    hce_drv_leave(&scope);
    return status;
}

static hce_status_t multicast_map(hce_ce_dev_multicast_t *multicast)
{
    const hce_drv_t *drv = multicast->dev->drv;
    size_t size = multicast->size;
    hce_status_t status;

    status =
        hce_drv_check(drv->mem_address_reserve(&multicast->ptr, size, 0, 0, 0),
                      "cuMemAddressReserve", "a multicast of %zu bytes", size);
    if (status != HCE_OK)
        return status;
    status = hce_drv_check(
        drv->mem_map(multicast->ptr, size, 0, multicast->handle, 0),
        "cuMemMap", "a multicast of %zu bytes", size);
    if (status != HCE_OK)
        goto err_address;
    status = hce_ce_cuda_access(multicast->dev, multicast->ptr, size);
    if (status != HCE_OK)
        goto err_map;
    return HCE_OK;

err_map:
    (void)hce_drv_check(drv->mem_unmap(multicast->ptr, size), "cuMemUnmap",
                        "a multicast");
err_address:
    (void)hce_drv_check(drv->mem_address_free(multicast->ptr, size),
                        "cuMemAddressFree", "a multicast");
    return status;
}

static void unbind(hce_ce_dev_multicast_t *multicast)
{
    hce_ce_dev_t *dev = multicast->dev;

    (void)hce_drv_check(dev->drv->multicast_unbind(multicast->handle,
                                                   dev->device, 0,
                                                   multicast->size),
                        "cuMulticastUnbind", "device %d", dev->attr.ordinal);
}

hce_status_t hce_ce_cuda_multicast_bind(hce_ce_dev_multicast_t *multicast,
                                        hce_ce_dev_ptr_t ptr,
                                        hce_ce_dev_ptr_t *ptr_p)
{
    hce_ce_dev_t *dev = multicast->dev;
    hce_ce_cuda_mem_t *mem = hce_ce_cuda_mem_find(dev, ptr);
    hce_drv_scope_t scope;
    hce_status_t status;

    if (mem == NULL || !mem->is_vmm || mem->size < multicast->size) {
        hce_log(ERROR, CE,
                "device %d: %#llx cannot be bound to a multicast of %zu bytes",
                dev->attr.ordinal, (unsigned long long)ptr, multicast->size);
        return HCE_ERR_INVALID_ARG;
    }
    status = hce_ce_cuda_enter(dev, &scope);
    if (status != HCE_OK)
        return status;
    status = hce_drv_check(dev->drv->multicast_bind_mem(multicast->handle, 0,
                                                        mem->handle, 0,
                                                        multicast->size, 0),
                           "cuMulticastBindMem", "%zu bytes of device %d",
                           multicast->size, dev->attr.ordinal);
    if (status == HCE_OK) {
        status = multicast_map(multicast);
        if (status != HCE_OK)
            unbind(multicast);
    }
    hce_drv_leave(&scope);
    if (status != HCE_OK)
        return status;
    multicast->is_bound = true;
    *ptr_p = multicast->ptr;
    return HCE_OK;
}

void hce_ce_cuda_multicast_close(hce_ce_dev_multicast_t *multicast)
{
    hce_ce_dev_t *dev = multicast->dev;
    hce_drv_scope_t scope;

    if (hce_ce_cuda_enter(dev, &scope) == HCE_OK) {
        if (multicast->is_bound) {
            (void)hce_drv_check(
                dev->drv->mem_unmap(multicast->ptr, multicast->size),
                "cuMemUnmap", "a multicast");
            (void)hce_drv_check(
                dev->drv->mem_address_free(multicast->ptr, multicast->size),
                "cuMemAddressFree", "a multicast");
            unbind(multicast);
        }
        (void)hce_drv_check(dev->drv->mem_release(multicast->handle),
                            "cuMemRelease", "a multicast");
        hce_drv_leave(&scope);
    }
    free(multicast);
}
