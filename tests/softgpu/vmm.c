/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Memory by handle: create, reserve, map, set access, export. A handle is a
 * pointer to its record; mappings keep the memory after its release.
 */
#define _GNU_SOURCE
#include "soft.h"
#include "vmm.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static soft_handle_t *handles;

soft_handle_t *soft_handle_find(hce_cu_mem_t id)
{
    soft_handle_t *handle = handles;

    while (handle != NULL && (hce_cu_mem_t)(uintptr_t)handle != id)
        handle = handle->next;
    return handle;
}

hce_cu_mem_t soft_handle_add(soft_obj_t *obj)
{
    soft_handle_t *handle = calloc(1, sizeof(*handle));

    if (handle == NULL)
        soft_die("no memory");
    handle->obj = obj;
    handle->refs = 1;
    handle->next = handles;
    handles = handle;
    soft_count_live(&soft_counters.handles, 1);
    return (hce_cu_mem_t)(uintptr_t)handle;
}

static void handle_put(soft_handle_t *handle)
{
    soft_handle_t **at = &handles;

    if (--handle->refs > 0)
        return;
    while (*at != handle)
        at = &(*at)->next;
    *at = handle->next;
    soft_obj_put(handle->obj);
    free(handle);
    soft_count_live(&soft_counters.handles, -1);
}

static bool prop_ok(const hce_cu_mem_prop_t *prop)
{
    return prop->type == HCE_CU_MEM_PINNED &&
           prop->location.type == HCE_CU_LOCATION_DEVICE &&
           soft_device_ok(prop->location.id) &&
           (prop->handle_types &
            ~(hce_cu_enum_t)(HCE_CU_HANDLE_FD | HCE_CU_HANDLE_FABRIC)) == 0;
}

soft_result_t soft_mem_create(hce_cu_mem_t *handle_p, size_t size,
                              const hce_cu_mem_prop_t *prop,
                              unsigned long long flags)
{
    static soft_site_t site = {.name = "cuMemCreate", .need = SOFT_UNSAFE};
    soft_result_t result = soft_enter(&site);
    soft_label_t label = {.len = size, .asked = size, .is_vmm = 1};
    soft_obj_t *obj;

    if (result != HCE_CU_OK)
        return result;
    if (size == 0 || size % SOFT_GRAN != 0 || flags != 0 || !prop_ok(prop))
        return HCE_CU_INVALID_VALUE;
    if (size > soft_settings.window ||
        (soft_settings.memory > 0 && size > soft_settings.memory))
        return HCE_CU_OUT_OF_MEMORY;
    label.dev = prop->location.id;
    label.handle_types = prop->handle_types;
    pthread_mutex_lock(&soft_lock);
    result = soft_obj_create(&label, &obj);
    if (result == HCE_CU_OK)
        *handle_p = soft_handle_add(obj);
    pthread_mutex_unlock(&soft_lock);
    return result;
}

soft_result_t soft_mem_release(hce_cu_mem_t id)
{
    static soft_site_t site = {.name = "cuMemRelease", .need = SOFT_UNSAFE};
    soft_result_t result = soft_enter(&site);
    soft_handle_t *handle;

    if (result != HCE_CU_OK)
        return result;
    pthread_mutex_lock(&soft_lock);
    handle = soft_handle_find(id);
    if (handle != NULL)
        handle_put(handle);
    else
        result = HCE_CU_INVALID_VALUE;
    pthread_mutex_unlock(&soft_lock);
    return result;
}

soft_result_t soft_mem_address_reserve(hce_cu_ptr_t *va_p, size_t size,
                                       size_t align, hce_cu_ptr_t hint,
                                       unsigned long long flags)
{
    static soft_site_t site = {.name = "cuMemAddressReserve",
                               .need = SOFT_UNSAFE};
    soft_result_t result = soft_enter(&site);
    hce_cu_ptr_t va;

    if (result != HCE_CU_OK)
        return result;
    if (size == 0 || size % SOFT_GRAN != 0 || (align & (align - 1)) != 0 ||
        align > SOFT_GRAN || flags != 0)
        return HCE_CU_INVALID_VALUE;
    pthread_mutex_lock(&soft_lock);
    va = soft_space_take(size);
    pthread_mutex_unlock(&soft_lock);
    if (va == 0)
        return HCE_CU_OUT_OF_MEMORY;
    *va_p = va;
    return HCE_CU_OK;
}

soft_result_t soft_mem_address_free(hce_cu_ptr_t va, size_t size)
{
    static soft_site_t site = {.name = "cuMemAddressFree",
                               .need = SOFT_UNSAFE};
    soft_result_t result = soft_enter(&site);
    const soft_range_t *range;

    if (result != HCE_CU_OK)
        return result;
    pthread_mutex_lock(&soft_lock);
    for (range = soft_range_first(); range != NULL; range = range->next) {
        if (range->va < va + size && va < range->va + range->len)
            result = HCE_CU_INVALID_VALUE;
    }
    if (result == HCE_CU_OK && !soft_space_give(va, size))
        result = HCE_CU_INVALID_VALUE;
    pthread_mutex_unlock(&soft_lock);
    return result;
}

static bool is_free(hce_cu_ptr_t va, size_t size)
{
    const soft_range_t *range;

    for (range = soft_range_first(); range != NULL; range = range->next) {
        if (range->va < va + size && va < range->va + range->len)
            return false;
    }
    return soft_space_has(va, size);
}

soft_result_t soft_mem_map(hce_cu_ptr_t va, size_t size, size_t offset,
                           hce_cu_mem_t id, unsigned long long flags)
{
    static soft_site_t site = {.name = "cuMemMap", .need = SOFT_UNSAFE};
    soft_result_t result = soft_enter(&site);
    soft_handle_t *handle;

    if (result != HCE_CU_OK)
        return result;
    pthread_mutex_lock(&soft_lock);
    handle = soft_handle_find(id);
    if (handle == NULL || offset != 0 || flags != 0 || size == 0 ||
        size % SOFT_GRAN != 0 || va % SOFT_GRAN != 0 ||
        size > handle->obj->label->asked || !is_free(va, size)) {
        result = HCE_CU_INVALID_VALUE;
    } else {
        handle->obj->refs++;
        soft_range_add(&(soft_range_t){.va = va,
                                       .len = size,
                                       .asked = size,
                                       .obj = handle->obj,
                                       .kind = SOFT_VMM,
                                       .dev = handle->obj->label->dev,
                                       .opener = -1});
    }
    pthread_mutex_unlock(&soft_lock);
    return result;
}

/* Whole mappings only. */
soft_result_t soft_mem_unmap(hce_cu_ptr_t va, size_t size)
{
    static soft_site_t site = {.name = "cuMemUnmap", .need = SOFT_UNSAFE};
    soft_result_t result = soft_enter(&site);
    hce_cu_ptr_t at = va;
    soft_range_t *range;

    if (result != HCE_CU_OK)
        return result;
    pthread_mutex_lock(&soft_lock);
    while (at < va + size) {
        range = soft_range_find(at);
        if (range == NULL || range->kind != SOFT_VMM || range->va != at ||
            range->va + range->len > va + size)
            break;
        at += range->len;
    }
    if (at != va + size || size == 0) {
        result = HCE_CU_INVALID_VALUE;
    } else {
        soft_drain();
        for (at = va; at < va + size;) {
            range = soft_range_find(at);
            at += range->len;
            soft_range_remove(range);
        }
    }
    pthread_mutex_unlock(&soft_lock);
    return result;
}

static bool access_ok(const hce_cu_access_t *access)
{
    return access->location.type == HCE_CU_LOCATION_DEVICE &&
           soft_device_ok(access->location.id) &&
           (access->flags == 0 || access->flags == HCE_CU_ACCESS_READ ||
            access->flags == HCE_CU_ACCESS_READWRITE);
}

static void access_set(soft_range_t *range, const hce_cu_access_t *access)
{
    unsigned bit = 1u << access->location.id;

    range->readers &= ~bit;
    range->writers &= ~bit;
    if (access->flags & HCE_CU_ACCESS_READ)
        range->readers |= bit;
    if (access->flags == HCE_CU_ACCESS_READWRITE)
        range->writers |= bit;
}

soft_result_t soft_mem_set_access(hce_cu_ptr_t va, size_t size,
                                  const hce_cu_access_t *accesses,
                                  size_t count)
{
    static soft_site_t site = {.name = "cuMemSetAccess", .need = SOFT_UNSAFE};
    soft_result_t result = soft_enter(&site);
    hce_cu_ptr_t at = va;
    soft_range_t *range;
    size_t i;

    if (result != HCE_CU_OK)
        return result;
    for (i = 0; i < count; i++) {
        if (!access_ok(&accesses[i]))
            return HCE_CU_INVALID_VALUE;
    }
    pthread_mutex_lock(&soft_lock);
    soft_drain();
    while (at < va + size && result == HCE_CU_OK) {
        range = soft_range_find(at);
        if (range == NULL || range->kind != SOFT_VMM || range->va != at ||
            count == 0) {
            result = HCE_CU_INVALID_VALUE;
            break;
        }
        for (i = 0; i < count; i++)
            access_set(range, &accesses[i]);
        at += range->len;
    }
    pthread_mutex_unlock(&soft_lock);
    return result;
}

soft_result_t soft_mem_get_granularity(size_t *size_p,
                                       const hce_cu_mem_prop_t *prop,
                                       hce_cu_enum_t which)
{
    static soft_site_t site = {.name = "cuMemGetAllocationGranularity",
                               .need = SOFT_INIT};
    soft_result_t result = soft_enter(&site);

    if (result != HCE_CU_OK)
        return result;
    if (!prop_ok(prop) || which > 1)
        return HCE_CU_INVALID_VALUE;
    *size_p = SOFT_GRAN;
    return HCE_CU_OK;
}

soft_result_t soft_mem_get_properties(hce_cu_mem_prop_t *prop_p,
                                      hce_cu_mem_t id)
{
    static soft_site_t site = {
        .name = "cuMemGetAllocationPropertiesFromHandle", .need = SOFT_INIT};
    soft_result_t result = soft_enter(&site);
    soft_handle_t *handle;

    if (result != HCE_CU_OK)
        return result;
    pthread_mutex_lock(&soft_lock);
    handle = soft_handle_find(id);
    if (handle == NULL)
        result = HCE_CU_INVALID_VALUE;
    else
        *prop_p = (hce_cu_mem_prop_t){
            .type = HCE_CU_MEM_PINNED,
            .handle_types = handle->obj->label->handle_types,
            .location = {.type = HCE_CU_LOCATION_DEVICE,
                         .id = handle->obj->label->dev},
            .rdma_capable = 1};
    pthread_mutex_unlock(&soft_lock);
    return result;
}

soft_result_t soft_mem_retain_handle(hce_cu_mem_t *handle_p, void *addr)
{
    static soft_site_t site = {.name = "cuMemRetainAllocationHandle",
                               .need = SOFT_UNSAFE};
    soft_result_t result = soft_enter(&site);
    soft_handle_t *handle;
    soft_range_t *range;

    if (result != HCE_CU_OK)
        return result;
    pthread_mutex_lock(&soft_lock);
    range = soft_range_find((hce_cu_ptr_t)(uintptr_t)addr);
    if (range == NULL || range->kind != SOFT_VMM) {
        result = HCE_CU_INVALID_VALUE;
    } else {
        handle = handles;
        while (handle != NULL && handle->obj != range->obj)
            handle = handle->next;
        if (handle != NULL) {
            handle->refs++;
            *handle_p = (hce_cu_mem_t)(uintptr_t)handle;
        } else {
            range->obj->refs++;
            *handle_p = soft_handle_add(range->obj);
        }
    }
    pthread_mutex_unlock(&soft_lock);
    return result;
}
