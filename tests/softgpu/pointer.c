/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * What a pointer is.
 */
#include "soft.h"

#include <string.h>

/* How long the values are, as the driver writes them. */
typedef struct value {
    uint64_t number;
    size_t size;
} value_t;

static soft_result_t device_value(const soft_range_t *range, hce_cu_ptr_t va,
                                  hce_cu_enum_t attr, value_t *value_p)
{
    bool is_alloc = range->kind == SOFT_ALLOC;
    int dev = soft_current();

    switch (attr) {
    case HCE_CU_PTR_CONTEXT:
        *value_p =
            (value_t){(uintptr_t)(is_alloc ? soft_ctx(range->dev) : NULL),
                      sizeof(void *)};
        break;
    case HCE_CU_PTR_MEMORY_TYPE:
        *value_p = (value_t){2, 4};
        break;
    case HCE_CU_PTR_DEVICE_POINTER:
        *value_p = (value_t){va, 8};
        break;
    case HCE_CU_PTR_SYNC_MEMOPS:
        *value_p = (value_t){(uint64_t)range->sync_memops, 4};
        break;
    case HCE_CU_PTR_BUFFER_ID:
        *value_p = (value_t){range->buffer_id, 8};
        break;
    case HCE_CU_PTR_IS_MANAGED:
        *value_p = (value_t){0, 4};
        break;
    case HCE_CU_PTR_DEVICE_ORDINAL:
        *value_p = (value_t){(uint64_t)range->dev, 4};
        break;
    case HCE_CU_PTR_IS_IPC_CAPABLE:
        *value_p = (value_t){is_alloc, 4};
        break;
    case HCE_CU_PTR_RANGE_START:
    case HCE_CU_PTR_MAPPING_BASE:
        *value_p = (value_t){range->va, 8};
        break;
    case HCE_CU_PTR_RANGE_SIZE:
        *value_p = (value_t){range->asked, 8};
        break;
    case HCE_CU_PTR_MAPPING_SIZE:
        *value_p = (value_t){range->len, 8};
        break;
    case HCE_CU_PTR_MAPPED:
        *value_p = (value_t){1, 4};
        break;
    case HCE_CU_PTR_HANDLE_TYPES:
        *value_p = (value_t){range->obj->label->handle_types, 8};
        break;
    case HCE_CU_PTR_RDMA_CAPABLE:
        *value_p = (value_t){1, 4};
        break;
    case HCE_CU_PTR_ACCESS_FLAGS:
        *value_p = (value_t){range->kind == SOFT_ALLOC ||
                                     (dev >= 0 && range->writers >> dev & 1)
                                 ? HCE_CU_ACCESS_READWRITE
                                 : 0,
                             4};
        break;
    default:
        return HCE_CU_INVALID_VALUE;
    }
    return HCE_CU_OK;
}

static soft_result_t host_value(hce_cu_ptr_t va, hce_cu_enum_t attr,
                                value_t *value_p)
{
    switch (attr) {
    case HCE_CU_PTR_MEMORY_TYPE:
        *value_p = (value_t){1, 4};
        break;
    case HCE_CU_PTR_DEVICE_POINTER:
    case HCE_CU_PTR_HOST_POINTER:
        *value_p = (value_t){va, 8};
        break;
    case HCE_CU_PTR_IS_MANAGED:
    case HCE_CU_PTR_IS_IPC_CAPABLE:
        *value_p = (value_t){0, 4};
        break;
    default:
        return HCE_CU_INVALID_VALUE;
    }
    return HCE_CU_OK;
}

/* Caller holds soft_lock. */
static soft_result_t value_get(hce_cu_ptr_t va, hce_cu_enum_t attr,
                               value_t *value_p)
{
    const soft_range_t *range = soft_range_find(va);

    if (range != NULL)
        return device_value(range, va, attr, value_p);
    if (soft_is_pinned(va, 1))
        return host_value(va, attr, value_p);
    return HCE_CU_INVALID_VALUE;
}

soft_result_t soft_pointer_get_attribute(void *out, hce_cu_enum_t attr,
                                         hce_cu_ptr_t va)
{
    static soft_site_t site = {.name = "cuPointerGetAttribute",
                               .need = SOFT_INIT};
    soft_result_t result = soft_enter(&site);
    value_t value;

    if (result != HCE_CU_OK)
        return result;
    pthread_mutex_lock(&soft_lock);
    result = value_get(va, attr, &value);
    pthread_mutex_unlock(&soft_lock);
    if (result == HCE_CU_OK)
        memcpy(out, &value.number, value.size);
    return result;
}

/* Unlike the single form it succeeds for any pointer. */
soft_result_t soft_pointer_get_attributes(unsigned int num,
                                          hce_cu_enum_t *attrs, void **outs,
                                          hce_cu_ptr_t va)
{
    static soft_site_t site = {.name = "cuPointerGetAttributes",
                               .need = SOFT_INIT};
    soft_result_t result = soft_enter(&site);
    value_t value;
    unsigned i;

    if (result != HCE_CU_OK)
        return result;
    pthread_mutex_lock(&soft_lock);
    for (i = 0; i < num; i++) {
        if (value_get(va, attrs[i], &value) != HCE_CU_OK)
            value = (value_t){0, 4};
        memcpy(outs[i], &value.number, value.size);
    }
    pthread_mutex_unlock(&soft_lock);
    return HCE_CU_OK;
}

soft_result_t soft_pointer_set_attribute(const void *in, hce_cu_enum_t attr,
                                         hce_cu_ptr_t va)
{
    static soft_site_t site = {.name = "cuPointerSetAttribute",
                               .need = SOFT_INIT};
    soft_result_t result = soft_enter(&site);
    soft_range_t *range;
    unsigned value;

    if (result != HCE_CU_OK)
        return result;
    memcpy(&value, in, sizeof(value));
    pthread_mutex_lock(&soft_lock);
    range = soft_range_find(va);
    if (range == NULL || range->kind == SOFT_VMM ||
        attr != HCE_CU_PTR_SYNC_MEMOPS || value > 1)
        result = HCE_CU_INVALID_VALUE;
    else
        range->sync_memops = (int)value;
    pthread_mutex_unlock(&soft_lock);
    return result;
}
