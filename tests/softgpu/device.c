/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Devices, their attributes, primary contexts, the stack of current contexts
 * of each thread, peer access. All processes see the same devices.
 */
#include "soft.h"

#include <stdio.h>
#include <string.h>

enum { STACK_MAX = 16 };

static struct CUctx_st contexts[SOFT_MAX_DEVICES];
static _Thread_local struct CUctx_st *stack[STACK_MAX];
static _Thread_local int depth; /* entries of stack; the last is current */

bool soft_device_ok(hce_cu_device_t dev)
{
    return dev >= 0 && dev < soft_settings.devices;
}

struct CUctx_st *soft_ctx(int dev)
{
    return &contexts[dev];
}

int soft_current(void)
{
    struct CUctx_st *ctx = depth > 0 ? stack[depth - 1] : NULL;

    return ctx == NULL || ctx->retained == 0 ? -1 : ctx->dev;
}

static bool ctx_ok(hce_cu_ctx_t ctx)
{
    return ctx >= contexts && ctx < contexts + soft_settings.devices &&
           ctx->retained > 0;
}

soft_result_t soft_device_get_count(int *count_p)
{
    static soft_site_t site = {.name = "cuDeviceGetCount", .need = SOFT_INIT};
    soft_result_t result = soft_enter(&site);

    if (result == HCE_CU_OK)
        *count_p = soft_settings.devices;
    return result;
}

soft_result_t soft_device_get(hce_cu_device_t *dev_p, int ordinal)
{
    static soft_site_t site = {.name = "cuDeviceGet", .need = SOFT_INIT};
    soft_result_t result = soft_enter(&site);

    if (result != HCE_CU_OK)
        return result;
    if (!soft_device_ok(ordinal))
        return HCE_CU_INVALID_DEVICE;
    *dev_p = ordinal;
    return HCE_CU_OK;
}

soft_result_t soft_device_get_name(char *name, int len, hce_cu_device_t dev)
{
    static soft_site_t site = {.name = "cuDeviceGetName", .need = SOFT_INIT};
    soft_result_t result = soft_enter(&site);

    if (result != HCE_CU_OK)
        return result;
    if (!soft_device_ok(dev))
        return HCE_CU_INVALID_DEVICE;
    snprintf(name, (size_t)len, "soft GPU (no hardware)");
    return HCE_CU_OK;
}

soft_result_t soft_device_get_uuid(hce_cu_uuid_t *uuid_p, hce_cu_device_t dev)
{
    static soft_site_t site = {.name = "cuDeviceGetUuid", .need = SOFT_INIT};
    soft_result_t result = soft_enter(&site);

    if (result != HCE_CU_OK)
        return result;
    if (!soft_device_ok(dev))
        return HCE_CU_INVALID_DEVICE;
    memcpy(uuid_p->bytes, "soft-gpu-uuid-0", 16);
    uuid_p->bytes[14] = (char)('0' + dev);
    return HCE_CU_OK;
}

soft_result_t soft_device_get_pci_bus_id(char *id, int len,
                                         hce_cu_device_t dev)
{
    static soft_site_t site = {.name = "cuDeviceGetPCIBusId",
                               .need = SOFT_INIT};
    soft_result_t result = soft_enter(&site);

    if (result != HCE_CU_OK)
        return result;
    if (!soft_device_ok(dev))
        return HCE_CU_INVALID_DEVICE;
    snprintf(id, (size_t)len, "ffff:%02x:00.0", dev);
    return HCE_CU_OK;
}

soft_result_t soft_device_total_mem(size_t *size_p, hce_cu_device_t dev)
{
    static soft_site_t site = {.name = "cuDeviceTotalMem", .need = SOFT_INIT};
    soft_result_t result = soft_enter(&site);

    if (result != HCE_CU_OK)
        return result;
    if (!soft_device_ok(dev))
        return HCE_CU_INVALID_DEVICE;
    *size_p = soft_settings.memory > 0 ? soft_settings.memory
                                       : soft_settings.window / 8;
    return HCE_CU_OK;
}

static int attribute(unsigned attr)
{
    switch (attr) {
    case HCE_CU_DEV_ASYNC_ENGINE_COUNT:
        return 3;
    case HCE_CU_DEV_CC_MAJOR:
        return 9;
    case HCE_CU_DEV_RDMA_FLUSH_OPTIONS:
        return 3;
    case HCE_CU_DEV_RDMA_WRITES_ORDERING:
        return soft_settings.ordering;
    case HCE_CU_DEV_UNIFIED_ADDRESSING:
    case HCE_CU_DEV_HOST_POINTER_REGISTERED:
    case HCE_CU_DEV_CAN_FLUSH_REMOTE_WRITES:
    case HCE_CU_DEV_HOST_REGISTER:
    case HCE_CU_DEV_VMM:
    case HCE_CU_DEV_POSIX_FD:
    case HCE_CU_DEV_RDMA_WITH_VMM:
    case HCE_CU_DEV_RDMA:
    case HCE_CU_DEV_MEMOPS_64:
    case HCE_CU_DEV_DMA_BUF:
    case HCE_CU_DEV_FABRIC:
    case HCE_CU_DEV_MULTICAST:
        return 1;
    default:
        return 0;
    }
}

soft_result_t soft_device_get_attribute(int *value_p, hce_cu_enum_t attr,
                                        hce_cu_device_t dev)
{
    static soft_site_t site = {.name = "cuDeviceGetAttribute",
                               .need = SOFT_INIT};
    soft_result_t result = soft_enter(&site);

    if (result != HCE_CU_OK)
        return result;
    if (!soft_device_ok(dev))
        return HCE_CU_INVALID_DEVICE;
    if (attr == 0 || attr > 150)
        return HCE_CU_INVALID_VALUE;
    *value_p = soft_settings_attr(attr, attribute(attr));
    return HCE_CU_OK;
}

soft_result_t soft_primary_ctx_retain(hce_cu_ctx_t *ctx_p, hce_cu_device_t dev)
{
    static soft_site_t site = {.name = "cuDevicePrimaryCtxRetain",
                               .need = SOFT_INIT};
    soft_result_t result = soft_enter(&site);

    if (result != HCE_CU_OK)
        return result;
    if (!soft_device_ok(dev))
        return HCE_CU_INVALID_DEVICE;
    pthread_mutex_lock(&soft_lock);
    if (contexts[dev].retained++ == 0) /* else engines read it */
        contexts[dev].dev = dev;
    soft_engines_start(dev);
    pthread_mutex_unlock(&soft_lock);
    soft_count_live(&soft_counters.contexts, 1);
    *ctx_p = &contexts[dev];
    return HCE_CU_OK;
}

soft_result_t soft_primary_ctx_release(hce_cu_device_t dev)
{
    static soft_site_t site = {.name = "cuDevicePrimaryCtxRelease",
                               .need = SOFT_INIT};
    soft_result_t result = soft_enter(&site);

    if (result != HCE_CU_OK)
        return result;
    if (!soft_device_ok(dev))
        return HCE_CU_INVALID_DEVICE;
    pthread_mutex_lock(&soft_lock);
    if (contexts[dev].retained == 0) {
        result = HCE_CU_INVALID_CONTEXT;
    } else if (--contexts[dev].retained == 0) {
        soft_drain();
        contexts[dev].peers = 0;
    }
    pthread_mutex_unlock(&soft_lock);
    if (result == HCE_CU_OK)
        soft_count_live(&soft_counters.contexts, -1);
    return result;
}

soft_result_t soft_ctx_get_current(hce_cu_ctx_t *ctx_p)
{
    static soft_site_t site = {.name = "cuCtxGetCurrent", .need = SOFT_INIT};
    soft_result_t result = soft_enter(&site);

    if (result == HCE_CU_OK)
        *ctx_p = depth > 0 ? stack[depth - 1] : NULL;
    return result;
}

soft_result_t soft_ctx_set_current(hce_cu_ctx_t ctx)
{
    static soft_site_t site = {.name = "cuCtxSetCurrent", .need = SOFT_INIT};
    soft_result_t result = soft_enter(&site);

    if (result != HCE_CU_OK)
        return result;
    if (ctx != NULL && !ctx_ok(ctx))
        return HCE_CU_INVALID_CONTEXT;
    if (ctx == NULL) {
        depth -= depth > 0;
        return HCE_CU_OK;
    }
    if (depth == 0)
        depth = 1;
    stack[depth - 1] = ctx;
    return HCE_CU_OK;
}

soft_result_t soft_ctx_push_current(hce_cu_ctx_t ctx)
{
    static soft_site_t site = {.name = "cuCtxPushCurrent", .need = SOFT_INIT};
    soft_result_t result = soft_enter(&site);

    if (result != HCE_CU_OK)
        return result;
    if (!ctx_ok(ctx) || depth == STACK_MAX)
        return HCE_CU_INVALID_CONTEXT;
    stack[depth++] = ctx;
    return HCE_CU_OK;
}

soft_result_t soft_ctx_pop_current(hce_cu_ctx_t *ctx_p)
{
    static soft_site_t site = {.name = "cuCtxPopCurrent", .need = SOFT_INIT};
    soft_result_t result = soft_enter(&site);

    if (result != HCE_CU_OK)
        return result;
    if (depth == 0)
        return HCE_CU_INVALID_CONTEXT;
    *ctx_p = stack[--depth];
    return HCE_CU_OK;
}

soft_result_t soft_ctx_get_device(hce_cu_device_t *dev_p)
{
    static soft_site_t site = {.name = "cuCtxGetDevice", .need = SOFT_CTX};
    soft_result_t result = soft_enter(&site);

    if (result == HCE_CU_OK)
        *dev_p = soft_current();
    return result;
}

soft_result_t soft_ctx_get_stream_priority_range(int *least_p, int *greatest_p)
{
    static soft_site_t site = {.name = "cuCtxGetStreamPriorityRange",
                               .need = SOFT_CTX};
    soft_result_t result = soft_enter(&site);

    if (result != HCE_CU_OK)
        return result;
    *least_p = 0;
    *greatest_p = -5;
    return HCE_CU_OK;
}

soft_result_t soft_device_can_access_peer(int *can_p, hce_cu_device_t dev,
                                          hce_cu_device_t peer)
{
    static soft_site_t site = {.name = "cuDeviceCanAccessPeer",
                               .need = SOFT_INIT};
    soft_result_t result = soft_enter(&site);

    if (result != HCE_CU_OK)
        return result;
    if (!soft_device_ok(dev) || !soft_device_ok(peer))
        return HCE_CU_INVALID_DEVICE;
    *can_p = dev != peer;
    return HCE_CU_OK;
}

soft_result_t soft_ctx_enable_peer_access(hce_cu_ctx_t peer,
                                          unsigned int flags)
{
    static soft_site_t site = {.name = "cuCtxEnablePeerAccess",
                               .need = SOFT_UNSAFE};
    soft_result_t result = soft_enter(&site);
    struct CUctx_st *ctx;

    if (result != HCE_CU_OK)
        return result;
    ctx = &contexts[soft_current()];
    if (flags != 0)
        return HCE_CU_INVALID_VALUE;
    if (!ctx_ok(peer))
        return HCE_CU_INVALID_CONTEXT;
    if (peer == ctx)
        return HCE_CU_INVALID_DEVICE;
    pthread_mutex_lock(&soft_lock);
    if (ctx->peers & (1u << peer->dev))
        result = HCE_CU_PEER_ACCESS_ALREADY_ENABLED;
    ctx->peers |= 1u << peer->dev;
    pthread_mutex_unlock(&soft_lock);
    return result;
}
