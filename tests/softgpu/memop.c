/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Waits and writes of streams, in the order of their batch. All on mapped
 * host memory or on memory of the stream's own device.
 */
#include "soft.h"

#include <string.h>

static bool is_wait(hce_cu_enum_t kind)
{
    return kind == HCE_CU_MEMOP_WAIT_32 || kind == HCE_CU_MEMOP_WAIT_64;
}

static bool is_wide(hce_cu_enum_t kind)
{
    return kind == HCE_CU_MEMOP_WAIT_64 || kind == HCE_CU_MEMOP_WRITE_64;
}

static soft_result_t flush_check(void)
{
    return soft_settings_attr(HCE_CU_DEV_CAN_FLUSH_REMOTE_WRITES, 1) != 0
               ? HCE_CU_OK
               : HCE_CU_NOT_SUPPORTED;
}

static soft_result_t flags_check(const hce_cu_memop_t *memop)
{
    unsigned flags = memop->op.flags;

    if (!is_wait(memop->kind))
        return flags == 0 ? HCE_CU_OK : HCE_CU_INVALID_VALUE;
    if ((flags & ~(unsigned)(3 | HCE_CU_WAIT_FLUSH)) != 0)
        return HCE_CU_INVALID_VALUE;
    return flags & HCE_CU_WAIT_FLUSH ? flush_check() : HCE_CU_OK;
}

static soft_result_t memop_check(const struct CUstream_st *stream,
                                 const hce_cu_memop_t *memop)
{
    size_t size = is_wide(memop->kind) ? 8 : 4;
    hce_cu_ptr_t va = memop->op.address;
    const soft_range_t *range;
    soft_result_t result;

    if (memop->kind == HCE_CU_MEMOP_FLUSH)
        return flush_check();
    if (memop->kind == HCE_CU_MEMOP_BARRIER)
        return HCE_CU_OK;
    if (memop->kind < HCE_CU_MEMOP_WAIT_32 ||
        memop->kind > HCE_CU_MEMOP_WRITE_64 || va % size != 0)
        return HCE_CU_INVALID_VALUE;
    if (size == 8 && soft_settings_attr(HCE_CU_DEV_MEMOPS_64, 1) == 0)
        return HCE_CU_NOT_SUPPORTED;
    result = flags_check(memop);
    if (result != HCE_CU_OK)
        return result;
    range = soft_range_find(va);
    if (range == NULL)
        return !soft_is_device(va) && soft_is_pinned(va, size)
                   ? HCE_CU_OK
                   : HCE_CU_INVALID_VALUE;
    if (range->dev != stream->ctx->dev || range->kind == SOFT_IPC ||
        range->obj->label->is_multicast)
        return HCE_CU_NOT_SUPPORTED;
    return va - range->va + size <= range->asked ? HCE_CU_OK
                                                 : HCE_CU_INVALID_VALUE;
}

static void *memop_place(const hce_cu_memop_t *memop, soft_range_t **range_p)
{
    soft_range_t *range = soft_range_find(memop->op.address);

    *range_p = range;
    if (range == NULL)
        return (void *)(uintptr_t)memop->op.address;
    return range->obj->data + (memop->op.address - range->va);
}

static bool is_met(const hce_cu_memop_t *memop, const void *place)
{
    uint64_t want = memop->op.value, have;

    /* Acquire: what was written before the value is read by later ops. */
    if (is_wide(memop->kind)) {
        have = atomic_load_explicit((_Atomic uint64_t *)place,
                                    memory_order_acquire);
    } else {
        have = atomic_load_explicit((_Atomic uint32_t *)place,
                                    memory_order_acquire);
        want = (uint32_t)want;
    }
    switch (memop->op.flags & 3) {
    case HCE_CU_WAIT_GEQ:
        return is_wide(memop->kind)
                   ? (int64_t)(have - want) >= 0
                   : (int32_t)((uint32_t)have - (uint32_t)want) >= 0;
    case HCE_CU_WAIT_EQ:
        return have == want;
    case HCE_CU_WAIT_AND:
        return (have & want) != 0;
    default:
        return (is_wide(memop->kind) ? ~(have | want)
                                     : (uint32_t) ~(have | want)) != 0;
    }
}

static void memop_write(const hce_cu_memop_t *memop, void *place,
                        soft_range_t *range)
{
    /* Release: all that the stream has written comes before. */
    if (is_wide(memop->kind))
        atomic_store_explicit((_Atomic uint64_t *)place, memop->op.value,
                              memory_order_release);
    else
        atomic_store_explicit((_Atomic uint32_t *)place,
                              (uint32_t)memop->op.value, memory_order_release);
    if (range != NULL)
        soft_nic_written(range->obj, memop->op.address - range->va,
                         is_wide(memop->kind) ? 8 : 4);
    soft_count(&soft_counters.writes, 1);
}

bool soft_memop_step(soft_op_t *op)
{
    const hce_cu_memop_t *memop;
    soft_range_t *range;
    void *place;

    for (; op->pos < op->num; op->pos++) {
        memop = &op->memops[op->pos];
        if (memop->kind == HCE_CU_MEMOP_BARRIER)
            continue;
        if (memop->kind == HCE_CU_MEMOP_FLUSH) {
            soft_nic_flush_all();
            continue;
        }
        place = memop_place(memop, &range);
        if (!is_wait(memop->kind)) {
            memop_write(memop, place, range);
            continue;
        }
        if (!is_met(memop, place))
            return false;
        if (memop->op.flags & HCE_CU_WAIT_FLUSH)
            soft_nic_flush_all();
        soft_count(&soft_counters.waits, 1);
        if ((memop->op.flags & 3) == HCE_CU_WAIT_EQ)
            soft_count(&soft_counters.waits_eq, 1);
    }
    return true;
}

static soft_result_t memops_submit(hce_cu_stream_t handle,
                                   const hce_cu_memop_t *memops, unsigned num)
{
    soft_result_t result = HCE_CU_OK;
    struct CUstream_st *stream;
    soft_op_t *op;
    unsigned i;

    pthread_mutex_lock(&soft_lock);
    stream = soft_stream(handle);
    if (stream == NULL)
        result = HCE_CU_INVALID_HANDLE;
    for (i = 0; i < num && result == HCE_CU_OK; i++)
        result = memop_check(stream, &memops[i]);
    if (result == HCE_CU_OK) {
        op = soft_op_make(SOFT_OP_MEMOP, num);
        memcpy(op->memops, memops, num * sizeof(*memops));
        result = soft_submit(stream, op);
    }
    pthread_mutex_unlock(&soft_lock);
    return result;
}

soft_result_t soft_stream_batch_memop(hce_cu_stream_t handle, unsigned int num,
                                      hce_cu_memop_t *memops,
                                      unsigned int flags)
{
    static soft_site_t site = {.name = "cuStreamBatchMemOp", .need = SOFT_CTX};
    soft_result_t result = soft_enter(&site);

    if (result != HCE_CU_OK)
        return result;
    if (num == 0 || num > HCE_CU_LIMIT_MEMOPS || flags != 0)
        return HCE_CU_INVALID_VALUE;
    return memops_submit(handle, memops, num);
}

static soft_result_t memop_one(soft_site_t *site, hce_cu_stream_t handle,
                               hce_cu_memop_t memop)
{
    soft_result_t result = soft_enter(site);

    return result != HCE_CU_OK ? result : memops_submit(handle, &memop, 1);
}

soft_result_t soft_stream_wait_value64(hce_cu_stream_t handle, hce_cu_ptr_t va,
                                       uint64_t value, unsigned int flags)
{
    static soft_site_t site = {.name = "cuStreamWaitValue64",
                               .need = SOFT_CTX};

    return memop_one(&site, handle,
                     (hce_cu_memop_t){.op = {.kind = HCE_CU_MEMOP_WAIT_64,
                                             .address = va,
                                             .value = value,
                                             .flags = flags}});
}

soft_result_t soft_stream_write_value64(hce_cu_stream_t handle,
                                        hce_cu_ptr_t va, uint64_t value,
                                        unsigned int flags)
{
    static soft_site_t site = {.name = "cuStreamWriteValue64",
                               .need = SOFT_CTX};

    return memop_one(&site, handle,
                     (hce_cu_memop_t){.op = {.kind = HCE_CU_MEMOP_WRITE_64,
                                             .address = va,
                                             .value = value,
                                             .flags = flags}});
}

soft_result_t soft_stream_wait_value32(hce_cu_stream_t handle, hce_cu_ptr_t va,
                                       uint32_t value, unsigned int flags)
{
    static soft_site_t site = {.name = "cuStreamWaitValue32",
                               .need = SOFT_CTX};

    return memop_one(&site, handle,
                     (hce_cu_memop_t){.op = {.kind = HCE_CU_MEMOP_WAIT_32,
                                             .address = va,
                                             .value = value,
                                             .flags = flags}});
}

soft_result_t soft_stream_write_value32(hce_cu_stream_t handle,
                                        hce_cu_ptr_t va, uint32_t value,
                                        unsigned int flags)
{
    static soft_site_t site = {.name = "cuStreamWriteValue32",
                               .need = SOFT_CTX};

    return memop_one(&site, handle,
                     (hce_cu_memop_t){.op = {.kind = HCE_CU_MEMOP_WRITE_32,
                                             .address = va,
                                             .value = value,
                                             .flags = flags}});
}
