/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Multicast objects: a table in their label, seen by all processes, of what
 * is bound where. A write goes to all of it; binding waits until every device
 * has been added.
 */
#define _GNU_SOURCE
#include "soft.h"
#include "vmm.h"

#include <string.h>
#include <unistd.h>

enum { ADD_LIMIT_MS = 10000 };

static bool is_there(void)
{
    return soft_settings_attr(HCE_CU_DEV_MULTICAST, 1) != 0;
}

static bool prop_ok(const hce_cu_multicast_prop_t *prop)
{
    return prop->num_devices >= 2 &&
           prop->num_devices <= (unsigned)soft_settings.devices &&
           prop->size > 0 && prop->size % SOFT_GRAN == 0 && prop->flags == 0 &&
           (prop->handle_types &
            ~(unsigned long long)(HCE_CU_HANDLE_FD | HCE_CU_HANDLE_FABRIC)) ==
               0;
}

soft_result_t soft_multicast_create(hce_cu_mem_t *handle_p,
                                    const hce_cu_multicast_prop_t *prop)
{
    static soft_site_t site = {.name = "cuMulticastCreate",
                               .need = SOFT_UNSAFE};
    soft_result_t result = soft_enter(&site);
    soft_label_t label = {.is_vmm = 1, .is_multicast = 1, .dev = -1};
    soft_obj_t *obj;

    if (result != HCE_CU_OK)
        return result;
    if (!is_there())
        return HCE_CU_NOT_SUPPORTED;
    if (!prop_ok(prop))
        return HCE_CU_INVALID_VALUE;
    label.asked = prop->size;
    label.num_devices = prop->num_devices;
    label.handle_types = (uint32_t)prop->handle_types;
    pthread_mutex_lock(&soft_lock);
    result = soft_obj_create(&label, &obj);
    if (result == HCE_CU_OK)
        *handle_p = soft_handle_add(obj);
    pthread_mutex_unlock(&soft_lock);
    return result;
}

/* Caller holds soft_lock. */
static soft_obj_t *multicast_find(hce_cu_mem_t id)
{
    soft_handle_t *handle = soft_handle_find(id);

    return handle == NULL || !handle->obj->label->is_multicast ? NULL
                                                               : handle->obj;
}

soft_result_t soft_multicast_add_device(hce_cu_mem_t id, hce_cu_device_t dev)
{
    static soft_site_t site = {.name = "cuMulticastAddDevice",
                               .need = SOFT_UNSAFE};
    soft_result_t result = soft_enter(&site);
    soft_obj_t *obj;

    if (result != HCE_CU_OK)
        return result;
    if (!soft_device_ok(dev))
        return HCE_CU_INVALID_DEVICE;
    pthread_mutex_lock(&soft_lock);
    obj = multicast_find(id);
    if (obj == NULL ||
        (unsigned)__builtin_popcount(obj->label->added) ==
            obj->label->num_devices ||
        (atomic_fetch_or(&obj->label->added, 1u << dev) >> dev & 1) != 0)
        result = HCE_CU_INVALID_VALUE;
    pthread_mutex_unlock(&soft_lock);
    return result;
}

static void added_wait(const soft_obj_t *obj)
{
    int ms;

    for (ms = 0; (unsigned)__builtin_popcount(obj->label->added) <
                 obj->label->num_devices;
         ms++) {
        if (ms == ADD_LIMIT_MS)
            soft_die("bound before all %u devices were added: the driver "
                     "would block for ever",
                     obj->label->num_devices);
        usleep(1000);
    }
}

static soft_bind_t *bind_take(soft_obj_t *mc)
{
    int i, state;

    for (i = 0; i < SOFT_MAX_BINDS; i++) {
        state = 0;
        if (atomic_compare_exchange_strong(&mc->label->binds[i].state, &state,
                                           1))
            return &mc->label->binds[i];
    }
    return NULL;
}

/* Caller holds soft_lock. */
static soft_result_t bind(soft_obj_t *mc, size_t mc_offset,
                          const soft_obj_t *mem, size_t offset, size_t len)
{
    soft_bind_t *bind;

    if (mc_offset % SOFT_GRAN != 0 || offset % SOFT_GRAN != 0 || len == 0 ||
        len % SOFT_GRAN != 0 || mem->label->is_multicast ||
        mc_offset + len > mc->label->asked || offset + len > mem->len ||
        (mc->label->added >> mem->label->dev & 1) == 0)
        return HCE_CU_INVALID_VALUE;
    bind = bind_take(mc);
    if (bind == NULL)
        return HCE_CU_OUT_OF_MEMORY;
    bind->dev = mem->label->dev;
    bind->pid = getpid();
    bind->start = soft_start_time(getpid());
    bind->fd = mem->fd;
    bind->id = mem->label->id;
    bind->mc_offset = mc_offset;
    bind->offset = offset;
    bind->len = len;
    /* Release: the entry is complete. Pairs with bind_is_valid(). */
    atomic_store_explicit(&bind->state, 2, memory_order_release);
    return HCE_CU_OK;
}

static bool bind_is_valid(const soft_bind_t *bind)
{
    return atomic_load_explicit(&bind->state, memory_order_acquire) == 2;
}

soft_result_t soft_multicast_bind_mem(hce_cu_mem_t id, size_t mc_offset,
                                      hce_cu_mem_t mem_id, size_t offset,
                                      size_t len, unsigned long long flags)
{
    static soft_site_t site = {.name = "cuMulticastBindMem",
                               .need = SOFT_UNSAFE};
    soft_result_t result = soft_enter(&site);
    soft_handle_t *mem;
    soft_obj_t *mc;

    if (result != HCE_CU_OK)
        return result;
    pthread_mutex_lock(&soft_lock);
    mc = multicast_find(id);
    mem = soft_handle_find(mem_id);
    pthread_mutex_unlock(&soft_lock);
    if (mc == NULL || mem == NULL || flags != 0)
        return HCE_CU_INVALID_VALUE;
    added_wait(mc);
    pthread_mutex_lock(&soft_lock);
    result = bind(mc, mc_offset, mem->obj, offset, len);
    pthread_mutex_unlock(&soft_lock);
    return result;
}

soft_result_t soft_multicast_unbind(hce_cu_mem_t id, hce_cu_device_t dev,
                                    size_t mc_offset, size_t len)
{
    static soft_site_t site = {.name = "cuMulticastUnbind",
                               .need = SOFT_UNSAFE};
    soft_result_t result = soft_enter(&site);
    soft_bind_t *at;
    soft_obj_t *mc;
    int i;

    if (result != HCE_CU_OK)
        return result;
    pthread_mutex_lock(&soft_lock);
    soft_drain();
    mc = multicast_find(id);
    result = HCE_CU_INVALID_VALUE;
    for (i = 0; mc != NULL && i < SOFT_MAX_BINDS; i++) {
        at = &mc->label->binds[i];
        if (bind_is_valid(at) && at->dev == dev &&
            at->mc_offset >= mc_offset &&
            at->mc_offset + at->len <= mc_offset + len) {
            atomic_store(&at->state, 0);
            result = HCE_CU_OK;
        }
    }
    pthread_mutex_unlock(&soft_lock);
    return result;
}

soft_result_t soft_multicast_get_granularity(
    size_t *size_p, const hce_cu_multicast_prop_t *prop, hce_cu_enum_t which)
{
    static soft_site_t site = {.name = "cuMulticastGetGranularity",
                               .need = SOFT_INIT};
    soft_result_t result = soft_enter(&site);

    if (result != HCE_CU_OK)
        return result;
    if (!is_there())
        return HCE_CU_NOT_SUPPORTED;
    if (!prop_ok(prop) || which > 1)
        return HCE_CU_INVALID_VALUE;
    *size_p = SOFT_GRAN;
    return HCE_CU_OK;
}

/* The object bound there, opened once. Caller holds mc->nic_lock. */
static soft_obj_t *target_open(soft_obj_t *mc, int index)
{
    const soft_bind_t *at = &mc->label->binds[index];
    int fd;

    if (mc->targets[index] != NULL && mc->targets[index]->label->id == at->id)
        return mc->targets[index];
    fd = soft_obj_reach(at->pid, at->start, at->fd);
    if (mc->targets[index] != NULL)
        soft_obj_put(mc->targets[index]);
    mc->targets[index] = NULL;
    if (fd < 0 || soft_obj_open(fd, &mc->targets[index]) != HCE_CU_OK ||
        mc->targets[index]->label->id != at->id)
        soft_die("memory bound to a multicast is gone");
    return mc->targets[index];
}

int soft_multicast_targets(soft_obj_t *mc, size_t offset, size_t *len_p,
                           soft_target_t targets[SOFT_MAX_BINDS])
{
    const soft_bind_t *at;
    size_t left;
    int i, num = 0;

    pthread_mutex_lock(&mc->nic_lock);
    for (i = 0; i < SOFT_MAX_BINDS; i++) {
        at = &mc->label->binds[i];
        if (!bind_is_valid(at) || offset < at->mc_offset ||
            offset - at->mc_offset >= at->len)
            continue;
        targets[num++] =
            (soft_target_t){.obj = target_open(mc, i),
                            .offset = at->offset + offset - at->mc_offset};
        left = at->len - (offset - at->mc_offset);
        *len_p = *len_p < left ? *len_p : left;
    }
    pthread_mutex_unlock(&mc->nic_lock);
    return num;
}
