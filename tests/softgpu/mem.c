/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * cuMemAlloc and its like. Beyond what was asked for, up to the unit, there
 * is a pattern, which nobody may have changed when it is freed; what has been
 * freed is overwritten, for those who still have it open.
 */
#include "soft.h"

#include <string.h>

#define SOFT_PAD    0x5a
#define SOFT_POISON 0xdb

static size_t allocated[SOFT_MAX_DEVICES]; /* by this process */

static bool memory_take(int dev, size_t len)
{
    if (soft_settings.memory > 0 &&
        len > soft_settings.memory - allocated[dev])
        return false;
    allocated[dev] += len;
    return true;
}

/* The caller holds soft_lock. */
static soft_result_t alloc(int dev, size_t asked, hce_cu_ptr_t *va_p)
{
    soft_range_t range = {
        .len = (asked + SOFT_GRAN - 1) / SOFT_GRAN * SOFT_GRAN,
        .asked = asked,
        .kind = SOFT_ALLOC,
        .dev = dev,
        .opener = dev,
    };
    soft_label_t label = {.len = range.len, .asked = asked, .dev = dev};
    soft_result_t result;

    if (!memory_take(dev, range.len))
        return HCE_CU_OUT_OF_MEMORY;
    result = soft_obj_create(&label, &range.obj);
    if (result != HCE_CU_OK)
        goto err_memory;
    range.va = soft_space_take(range.len);
    if (range.va == 0) {
        result = HCE_CU_OUT_OF_MEMORY;
        goto err_obj;
    }
    memset(range.obj->data + asked, SOFT_PAD, range.len - asked);
    soft_range_add(&range);
    *va_p = range.va;
    return HCE_CU_OK;

err_obj:
    soft_obj_put(range.obj);
err_memory:
    allocated[dev] -= range.len;
    return result;
}

soft_result_t soft_mem_alloc(hce_cu_ptr_t *va_p, size_t size)
{
    static soft_site_t site = {.name = "cuMemAlloc", .need = SOFT_UNSAFE};
    soft_result_t result = soft_enter(&site);

    if (result != HCE_CU_OK)
        return result;
    if (size == 0)
        return HCE_CU_INVALID_VALUE;
    if (size > soft_settings.window)
        return HCE_CU_OUT_OF_MEMORY;
    pthread_mutex_lock(&soft_lock);
    result = alloc(soft_current(), size, va_p);
    pthread_mutex_unlock(&soft_lock);
    if (result == HCE_CU_OK)
        soft_count_live(&soft_counters.allocs, 1);
    return result;
}

static void pad_check(const soft_range_t *range)
{
    size_t i;

    for (i = range->asked; i < range->len; i++) {
        if ((unsigned char)range->obj->data[i] != SOFT_PAD)
            soft_die("an allocation of %zu bytes was written at %zu",
                     range->asked, i);
    }
}

soft_result_t soft_mem_free(hce_cu_ptr_t va)
{
    static soft_site_t site = {.name = "cuMemFree", .need = SOFT_UNSAFE};
    soft_result_t result = soft_enter(&site);
    soft_range_t *range;
    hce_cu_ptr_t base;
    size_t len;

    if (result != HCE_CU_OK || va == 0)
        return result;
    pthread_mutex_lock(&soft_lock);
    range = soft_range_find(va);
    if (range == NULL || range->kind != SOFT_ALLOC || range->va != va) {
        pthread_mutex_unlock(&soft_lock);
        return HCE_CU_INVALID_VALUE;
    }
    soft_drain();
    pad_check(range);
    memset(range->obj->data, SOFT_POISON, range->len);
    range->obj->label->freed = SOFT_FREED;
    allocated[range->dev] -= range->len;
    base = range->va;
    len = range->len;
    soft_range_remove(range);
    soft_space_give(base, len);
    pthread_mutex_unlock(&soft_lock);
    soft_count_live(&soft_counters.allocs, -1);
    return HCE_CU_OK;
}

soft_result_t soft_mem_get_address_range(hce_cu_ptr_t *base_p, size_t *size_p,
                                         hce_cu_ptr_t va)
{
    static soft_site_t site = {.name = "cuMemGetAddressRange",
                               .need = SOFT_CTX};
    soft_result_t result = soft_enter(&site);
    soft_range_t *range;

    if (result != HCE_CU_OK)
        return result;
    pthread_mutex_lock(&soft_lock);
    range = soft_range_find(va);
    if (range == NULL) {
        result = HCE_CU_NOT_FOUND;
    } else {
        if (base_p != NULL)
            *base_p = range->va;
        if (size_p != NULL)
            *size_p = range->asked;
    }
    pthread_mutex_unlock(&soft_lock);
    return result;
}
