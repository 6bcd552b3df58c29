/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * A NIC's view of device memory: the first part of the object's file, which
 * the exported descriptor begins with. What a NIC writes there comes to the
 * device's part at a flush, or some of it by chance, line by line; what
 * devices write shows there at once. NIC bytes are found by comparison with
 * what both had last, so that no help of the NIC is needed. It is no dma-buf:
 * RDMA drivers refuse it.
 */
#define _GNU_SOURCE
#include "soft.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LINE 64u
#define PAGE 4096u

/* Lines of one page; random NULL: all of them. */
static void page_take(soft_obj_t *obj, size_t at, uint64_t *random)
{
    size_t i;

    for (i = at; i < at + PAGE; i += LINE) {
        if (memcmp(obj->nic + i, obj->seen + i, LINE) == 0 ||
            (random != NULL && soft_random(random) % 2 == 0))
            continue;
        memcpy(obj->seen + i, obj->nic + i, LINE);
        memcpy(obj->data + i, obj->seen + i, LINE);
    }
}

static void take(soft_obj_t *obj, uint64_t *random)
{
    size_t i;

    pthread_mutex_lock(&obj->nic_lock);
    for (i = 0; i < obj->len; i += PAGE) {
        if (memcmp(obj->nic + i, obj->seen + i, PAGE) != 0)
            page_take(obj, i, random);
    }
    pthread_mutex_unlock(&obj->nic_lock);
}

void soft_nic_settle(soft_obj_t *obj, int dev, uint64_t *random)
{
    if (!obj->label->has_nic)
        return;
    if (soft_settings.ordering >= 200 ||
        (soft_settings.ordering >= 100 && dev == obj->label->dev))
        take(obj, NULL);
    else if (soft_random(random) % 64 == 0)
        take(obj, random);
}

void soft_nic_written(soft_obj_t *obj, size_t offset, size_t len)
{
    if (!obj->label->has_nic)
        return;
    pthread_mutex_lock(&obj->nic_lock);
    memcpy(obj->nic + offset, obj->data + offset, len);
    memcpy(obj->seen + offset, obj->data + offset, len);
    pthread_mutex_unlock(&obj->nic_lock);
}

void soft_nic_flush_all(void)
{
    soft_range_t *range;

    soft_count(&soft_counters.flushes, 1);
    for (range = soft_range_first(); range != NULL; range = range->next) {
        if (range->obj->label->has_nic)
            take(range->obj, NULL);
    }
}

static void nic_start(soft_obj_t *obj)
{
    pthread_mutex_lock(&obj->nic_lock);
    if (!obj->label->has_nic) {
        memcpy(obj->nic, obj->data, obj->len);
        memcpy(obj->seen, obj->data, obj->len);
        obj->label->has_nic = 1;
    }
    pthread_mutex_unlock(&obj->nic_lock);
}

soft_result_t soft_mem_get_handle_for_address_range(void *out, hce_cu_ptr_t va,
                                                    size_t size,
                                                    hce_cu_enum_t type,
                                                    unsigned long long flags)
{
    static soft_site_t site = {.name = "cuMemGetHandleForAddressRange",
                               .need = SOFT_CTX};
    soft_result_t result = soft_enter(&site);
    soft_range_t *range;
    int fd;

    if (result != HCE_CU_OK)
        return result;
    if (soft_settings_attr(HCE_CU_DEV_DMA_BUF, 1) == 0)
        return HCE_CU_NOT_SUPPORTED;
    if (va % PAGE != 0 || size % PAGE != 0 || size == 0 || flags != 0 ||
        type != HCE_CU_RANGE_DMA_BUF)
        return HCE_CU_INVALID_VALUE;
    pthread_mutex_lock(&soft_lock);
    range = soft_range_find(va);
    if (range == NULL || size > range->len - (va - range->va)) {
        result = HCE_CU_INVALID_VALUE;
    } else if (va != range->va) {
        fprintf(stderr, "softgpu: descriptors begin with an allocation\n");
        result = HCE_CU_NOT_SUPPORTED;
    } else {
        soft_drain();
        nic_start(range->obj);
        fd = fcntl(range->obj->fd, F_DUPFD_CLOEXEC, 0);
        if (fd < 0)
            result = HCE_CU_OUT_OF_MEMORY;
        else
            memcpy(out, &fd, sizeof(fd));
    }
    pthread_mutex_unlock(&soft_lock);
    return result;
}

soft_result_t soft_flush_rdma_writes(hce_cu_enum_t target, hce_cu_enum_t scope)
{
    static soft_site_t site = {.name = "cuFlushGPUDirectRDMAWrites",
                               .need = SOFT_CTX};
    soft_result_t result = soft_enter(&site);

    if (result != HCE_CU_OK)
        return result;
    if ((soft_settings_attr(HCE_CU_DEV_RDMA_FLUSH_OPTIONS, 3) & 1) == 0)
        return HCE_CU_NOT_SUPPORTED;
    if (target != HCE_CU_FLUSH_CURRENT_CTX ||
        (scope != HCE_CU_FLUSH_TO_OWNER && scope != HCE_CU_FLUSH_TO_ALL))
        return HCE_CU_INVALID_VALUE;
    pthread_mutex_lock(&soft_lock);
    soft_nic_flush_all();
    pthread_mutex_unlock(&soft_lock);
    return HCE_CU_OK;
}
