/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Host memory that the device reaches: counters, words, staging. Counters
 * are in memory that processes share; each registers its own mapping. What
 * the application has registered is used as it is, and stays registered.
 */
#include "config.h"

#include "ce/cuda/cuda.h"

#include "util/log.h"

#include <stdlib.h>

static hce_status_t ptr_get(const hce_ce_dev_t *dev, void *addr,
                            hce_cu_ptr_t *ptr_p)
{
    return hce_drv_check(dev->drv->mem_host_get_device_pointer(ptr_p, addr, 0),
                         "cuMemHostGetDevicePointer",
                         "host memory at %p on device %d", addr,
                         dev->attr.ordinal);
}

static hce_status_t host_register(const hce_ce_dev_t *dev,
                                  hce_ce_cuda_host_t *host)
{
    hce_cu_ptr_t last;
    hce_cu_result_t result;
    hce_status_t status = HCE_OK;

    result = dev->drv->mem_host_register(
        host->addr, host->len, HCE_CU_HOST_PORTABLE | HCE_CU_HOST_DEVICEMAP);
    host->is_ours = result == HCE_CU_OK;
    if (result != HCE_CU_HOST_MEMORY_ALREADY_REGISTERED)
        status = hce_drv_check(result, "cuMemHostRegister",
                               "%zu bytes of host memory at %p", host->len,
                               host->addr);
    if (status != HCE_OK)
        return status;
    status = ptr_get(dev, host->addr, &host->ptr);
    /* Of the application's: all of it, and in one piece. */
    if (status == HCE_OK && !host->is_ours) {
        status = ptr_get(dev, (char *)host->addr + host->len - 1, &last);
        if (status == HCE_OK && last - host->ptr != host->len - 1) {
            hce_log(ERROR, CE, "%zu bytes at %p are registered in pieces",
                    host->len, host->addr);
            status = HCE_ERR_INVALID_ARG;
        }
    }
    if (status != HCE_OK && host->is_ours)
        (void)hce_drv_check(dev->drv->mem_host_unregister(host->addr),
                            "cuMemHostUnregister", "%p", host->addr);
    return status;
}

/* Caller holds mem_lock. */
static hce_status_t host_create(hce_ce_dev_t *dev, void *addr, size_t len,
                                hce_ce_cuda_host_t **host_p)
{
    hce_ce_cuda_host_t *host = calloc(1, sizeof(*host));
    hce_drv_scope_t scope;
    hce_status_t status;

    if (host == NULL) {
        hce_log(ERROR, CE, "no memory to map host memory");
        return HCE_ERR_NO_MEMORY;
    }
    *host = (hce_ce_cuda_host_t){
        .addr = addr, .len = len, .refs = 1, .next = dev->hosts};
    status = hce_ce_cuda_enter(dev, &scope);
    if (status == HCE_OK) {
        status = host_register(dev, host);
        hce_drv_leave(&scope);
    }
    if (status != HCE_OK) {
        free(host);
        return status;
    }
    dev->hosts = host;
    *host_p = host;
    return HCE_OK;
}

hce_status_t hce_ce_cuda_host_map(hce_ce_dev_t *dev, void *addr, size_t len,
                                  hce_ce_dev_ptr_t *ptr_p)
{
    hce_ce_cuda_host_t *host;
    hce_status_t status = HCE_OK;

    if (len == 0) {
        hce_log(ERROR, CE, "no host memory to map at %p", addr);
        return HCE_ERR_INVALID_ARG;
    }
    pthread_mutex_lock(&dev->mem_lock);
    host = dev->hosts;
    while (host != NULL && (host->addr != addr || host->len < len))
        host = host->next;
    if (host != NULL)
        host->refs++;
    else
        status = host_create(dev, addr, len, &host);
    if (status == HCE_OK)
        *ptr_p = host->ptr;
    pthread_mutex_unlock(&dev->mem_lock);
    return status;
}

static void host_unregister(hce_ce_dev_t *dev, const hce_ce_cuda_host_t *host)
{
    hce_drv_scope_t scope;

    if (!host->is_ours || hce_ce_cuda_enter(dev, &scope) != HCE_OK)
        return;
    (void)hce_drv_check(dev->drv->mem_host_unregister(host->addr),
                        "cuMemHostUnregister", "%p", host->addr);
    hce_drv_leave(&scope);
}

void hce_ce_cuda_host_unmap(hce_ce_dev_t *dev, void *addr)
{
    hce_ce_cuda_host_t **at = &dev->hosts, *host;

    pthread_mutex_lock(&dev->mem_lock);
    while (*at != NULL && (*at)->addr != addr)
        at = &(*at)->next;
    host = *at;
    if (host != NULL && --host->refs == 0) {
        *at = host->next;
        host_unregister(dev, host);
        free(host);
    }
    pthread_mutex_unlock(&dev->mem_lock);
}
