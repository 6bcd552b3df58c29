/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Waits and writes of queues, on counters in host memory only: a stream may
 * not write to another device's. A write comes after all that its queue was
 * given before, and shows it to whoever reads the value.
 */
#include "config.h"

#include "ce/cuda/cuda.h"

static hce_status_t memops_issue(hce_ce_dev_launch_t *launch,
                                 hce_cu_stream_t stream, unsigned num)
{
    hce_ce_dev_t *dev = launch->dev;

    if (num == 0)
        return HCE_OK;
    return hce_drv_check(
        dev->drv->stream_batch_memop(stream, num, dev->memops, 0),
        "cuStreamBatchMemOp", "%u operations on device %d", num,
        dev->attr.ordinal);
}

static hce_status_t memops_enqueue(hce_ce_dev_launch_t *launch, int queue,
                                   const hce_ce_dev_memop_t *memops,
                                   size_t num, hce_cu_enum_t kind)
{
    hce_ce_dev_t *dev = launch->dev;
    hce_cu_stream_t stream;
    hce_status_t status;
    unsigned gathered = 0;
    size_t i;

    status = hce_ce_cuda_queue_get(launch, queue, &stream);
    for (i = 0; i < num && status == HCE_OK; i++) {
        bool is_flush = memops[i].flush && kind == HCE_CU_MEMOP_WAIT_64 &&
                        dev->attr.order == HCE_CE_ORDER_STREAM;

        dev->memops[gathered] = (hce_cu_memop_t){
            .op = {.kind = kind,
                   .address = memops[i].addr,
                   .value = memops[i].value,
                   .flags = is_flush ? HCE_CU_WAIT_FLUSH : HCE_CU_WAIT_GEQ}};
        if (++gathered == HCE_CU_LIMIT_MEMOPS) {
            status = memops_issue(launch, stream, gathered);
            gathered = 0;
        }
    }
    return status == HCE_OK ? memops_issue(launch, stream, gathered) : status;
}

hce_status_t hce_ce_cuda_wait(hce_ce_dev_launch_t *launch, int queue,
                              const hce_ce_dev_memop_t *memops, size_t num)
{
    launch->dev->stats.waits += num;
    return memops_enqueue(launch, queue, memops, num, HCE_CU_MEMOP_WAIT_64);
}

hce_status_t hce_ce_cuda_write(hce_ce_dev_launch_t *launch, int queue,
                               const hce_ce_dev_memop_t *memops, size_t num)
{
    launch->dev->stats.writes += num;
    return memops_enqueue(launch, queue, memops, num, HCE_CU_MEMOP_WRITE_64);
}
