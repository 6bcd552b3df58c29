/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Device memory that others can open: by handle where the device has that,
 * else as cudaMalloc gives it. Freeing waits for the device.
 */
#include "config.h"

#include "ce/cuda/cuda.h"

#include "util/log.h"

#include <stdlib.h>

static hce_cu_mem_prop_t prop_make(const hce_ce_dev_t *dev)
{
    int rdma = 0;

    (void)dev->drv->device_get_attribute(&rdma, HCE_CU_DEV_RDMA_WITH_VMM,
                                         dev->device);
    return (hce_cu_mem_prop_t){
        .type = HCE_CU_MEM_PINNED,
        .handle_types = HCE_CU_HANDLE_FD,
        .location = {.type = HCE_CU_LOCATION_DEVICE, .id = dev->device},
        .rdma_capable = rdma != 0};
}

hce_status_t hce_ce_cuda_access(const hce_ce_dev_t *dev, hce_cu_ptr_t ptr,
                                size_t size)
{
    hce_cu_access_t access = {
        .location = {.type = HCE_CU_LOCATION_DEVICE, .id = dev->device},
        .flags = HCE_CU_ACCESS_READWRITE};

    return hce_drv_check(dev->drv->mem_set_access(ptr, size, &access, 1),
                         "cuMemSetAccess", "%zu bytes for device %d", size,
                         dev->attr.ordinal);
}

static hce_status_t vmm_map(hce_ce_dev_t *dev, hce_ce_cuda_mem_t *mem)
{
    const hce_drv_t *drv = dev->drv;
    hce_status_t status;

    status =
        hce_drv_check(drv->mem_address_reserve(&mem->ptr, mem->size, 0, 0, 0),
                      "cuMemAddressReserve", "%zu bytes", mem->size);
    if (status != HCE_OK)
        return status;
    status =
        hce_drv_check(drv->mem_map(mem->ptr, mem->size, 0, mem->handle, 0),
                      "cuMemMap", "%zu bytes", mem->size);
    if (status != HCE_OK)
        goto err_address;
    status = hce_ce_cuda_access(dev, mem->ptr, mem->size);
    if (status != HCE_OK)
        goto err_map;
    return HCE_OK;

err_map:
    (void)hce_drv_check(drv->mem_unmap(mem->ptr, mem->size), "cuMemUnmap",
                        "%zu bytes", mem->size);
err_address:
    (void)hce_drv_check(drv->mem_address_free(mem->ptr, mem->size),
                        "cuMemAddressFree", "%zu bytes", mem->size);
    return status;
}

static hce_status_t vmm_alloc(hce_ce_dev_t *dev, hce_ce_cuda_mem_t *mem)
{
    hce_cu_mem_prop_t prop = prop_make(dev);
    const hce_drv_t *drv = dev->drv;
    hce_status_t status;
    size_t unit;

    status = hce_drv_check(
        drv->mem_get_granularity(&unit, &prop, HCE_CU_GRANULARITY_RECOMMENDED),
        "cuMemGetAllocationGranularity", "device %d", dev->attr.ordinal);
    if (status != HCE_OK)
        return status;
    mem->size = (mem->size + unit - 1) / unit * unit;
    status = hce_drv_check(drv->mem_create(&mem->handle, mem->size, &prop, 0),
                           "cuMemCreate", "%zu bytes on device %d", mem->size,
                           dev->attr.ordinal);
    if (status != HCE_OK)
        return status;
    status = vmm_map(dev, mem);
    if (status != HCE_OK)
        (void)hce_drv_check(drv->mem_release(mem->handle), "cuMemRelease",
                            "%zu bytes", mem->size);
    return status;
}

static void vmm_free(hce_ce_dev_t *dev, hce_ce_cuda_mem_t *mem)
{
    const hce_drv_t *drv = dev->drv;

    (void)hce_drv_check(drv->mem_unmap(mem->ptr, mem->size), "cuMemUnmap",
                        "%zu bytes", mem->size);
    (void)hce_drv_check(drv->mem_address_free(mem->ptr, mem->size),
                        "cuMemAddressFree", "%zu bytes", mem->size);
    (void)hce_drv_check(drv->mem_release(mem->handle), "cuMemRelease",
                        "%zu bytes", mem->size);
}

hce_status_t hce_ce_cuda_mem_alloc(hce_ce_dev_t *dev, size_t size,
                                   hce_ce_dev_ptr_t *ptr_p)
{
    hce_ce_cuda_mem_t *mem = calloc(1, sizeof(*mem));
    hce_drv_scope_t scope;
    hce_status_t status;

    if (mem == NULL) {
        hce_log(ERROR, CE, "no memory for an allocation");
        return HCE_ERR_NO_MEMORY;
    }
    mem->size = size > 0 ? size : 1;
    mem->is_vmm = dev->attr.has_vmm;
    status = hce_ce_cuda_enter(dev, &scope);
    if (status != HCE_OK) {
        free(mem);
        return status;
    }
    if (mem->is_vmm)
        status = vmm_alloc(dev, mem);
    else
        status = hce_drv_check(dev->drv->mem_alloc(&mem->ptr, mem->size),
                               "cuMemAlloc", "%zu bytes on device %d",
                               mem->size, dev->attr.ordinal);
    hce_drv_leave(&scope);
    if (status != HCE_OK) {
        free(mem);
        return status;
    }
    pthread_mutex_lock(&dev->mem_lock);
    mem->next = dev->mems;
    dev->mems = mem;
    pthread_mutex_unlock(&dev->mem_lock);
    *ptr_p = mem->ptr;
    return HCE_OK;
}

hce_ce_cuda_mem_t *hce_ce_cuda_mem_find(hce_ce_dev_t *dev, hce_cu_ptr_t ptr)
{
    hce_ce_cuda_mem_t *mem;

    pthread_mutex_lock(&dev->mem_lock);
    mem = dev->mems;
    while (mem != NULL && mem->ptr != ptr)
        mem = mem->next;
    pthread_mutex_unlock(&dev->mem_lock);
    return mem;
}

static hce_ce_cuda_mem_t *mem_take(hce_ce_dev_t *dev, hce_cu_ptr_t ptr)
{
    hce_ce_cuda_mem_t **at = &dev->mems, *mem;

    pthread_mutex_lock(&dev->mem_lock);
    while (*at != NULL && (*at)->ptr != ptr)
        at = &(*at)->next;
    mem = *at;
    if (mem != NULL)
        *at = mem->next;
    pthread_mutex_unlock(&dev->mem_lock);
    return mem;
}

hce_status_t hce_ce_cuda_mem_free(hce_ce_dev_t *dev, hce_ce_dev_ptr_t ptr)
{
    hce_ce_cuda_mem_t *mem = mem_take(dev, ptr);
    hce_drv_scope_t scope;
    hce_status_t status;

    if (mem == NULL) {
        hce_log(ERROR, CE, "device %d: %#llx was not allocated here",
                dev->attr.ordinal, (unsigned long long)ptr);
        return HCE_ERR_INVALID_ARG;
    }
    status = hce_ce_cuda_enter(dev, &scope);
    if (status == HCE_OK) {
        if (mem->is_vmm)
            vmm_free(dev, mem);
        else
            status = hce_drv_check(dev->drv->mem_free(mem->ptr), "cuMemFree",
                                   "%zu bytes", mem->size);
        hce_drv_leave(&scope);
    }
    free(mem);
    return status;
}

hce_status_t hce_ce_cuda_mem_where(hce_ce_dev_t *dev, hce_ce_dev_ptr_t ptr,
                                   int *ordinal_p)
{
    hce_cu_result_t result;
    unsigned type = 0;
    int ordinal = -1;

    /* Memory that the driver does not know is an error to it. */
    result =
        dev->drv->pointer_get_attribute(&type, HCE_CU_PTR_MEMORY_TYPE, ptr);
    if (result == HCE_CU_INVALID_VALUE || (result == HCE_CU_OK && type != 2)) {
        *ordinal_p = -1;
        return HCE_OK;
    }
    if (result == HCE_CU_OK)
        result = dev->drv->pointer_get_attribute(
            &ordinal, HCE_CU_PTR_DEVICE_ORDINAL, ptr);
    if (result != HCE_CU_OK)
        return hce_drv_check(result, "cuPointerGetAttribute", "%#llx",
                             (unsigned long long)ptr);
    *ordinal_p = ordinal;
    return HCE_OK;
}
