/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Copies: cut to the limit of one, several in a call where the driver has
 * that. In a capture one by one: a batch would be missing in the graph.
 */
#include "config.h"

#include "ce/cuda/cuda.h"

static hce_status_t batch_check(const hce_ce_dev_launch_t *launch,
                                hce_cu_result_t result, size_t num)
{
    return hce_drv_check(result, "cuMemcpyBatchAsync",
                         "%zu copies on device %d", num,
                         launch->dev->attr.ordinal);
}

static hce_status_t batch_issue(hce_ce_dev_launch_t *launch,
                                hce_cu_stream_t stream, size_t num)
{
    hce_cu_copy_attr_t attr = {.src_order = HCE_CU_SRC_STREAM_ORDER,
                               .flags = HCE_CU_COPY_PREFER_OVERLAP};
    hce_ce_dev_t *dev = launch->dev;
    size_t first = 0, failed;

    dev->stats.batches++;
    if (dev->drv->memcpy_batch_async != NULL)
        return batch_check(launch,
                           dev->drv->memcpy_batch_async(dev->dsts, dev->srcs,
                                                        dev->lens, num, &attr,
                                                        &first, 1, stream),
                           num);
    return batch_check(launch,
                       dev->drv->memcpy_batch_async_12080(
                           dev->dsts, dev->srcs, dev->lens, num, &attr, &first,
                           1, &failed, stream),
                       num);
}

static hce_status_t singles_issue(hce_ce_dev_launch_t *launch,
                                  hce_cu_stream_t stream, size_t num)
{
    hce_ce_dev_t *dev = launch->dev;
    hce_status_t status = HCE_OK;
    size_t i;

    for (i = 0; i < num && status == HCE_OK; i++)
        status =
            hce_drv_check(dev->drv->memcpy_async(dev->dsts[i], dev->srcs[i],
                                                 dev->lens[i], stream),
                          "cuMemcpyAsync", "%zu bytes on device %d",
                          dev->lens[i], dev->attr.ordinal);
    return status;
}

/* What has been gathered. */
static hce_status_t issue(hce_ce_dev_launch_t *launch, hce_cu_stream_t stream,
                          size_t num)
{
    if (num > 1 && launch->dev->attr.has_batch && !launch->is_captured)
        return batch_issue(launch, stream, num);
    return singles_issue(launch, stream, num);
}

hce_status_t hce_ce_cuda_copy(hce_ce_dev_launch_t *launch, int queue,
                              const hce_ce_dev_copy_t *copies, size_t num)
{
    hce_ce_dev_t *dev = launch->dev;
    size_t i, at, len, gathered = 0;
    hce_cu_stream_t stream;
    hce_status_t status;

    status = hce_ce_cuda_queue_get(launch, queue, &stream);
    for (i = 0; i < num && status == HCE_OK; i++) {
        if (copies[i].len == 0)
            continue; /* an error to the driver */
        dev->stats.copies[copies[i].kind]++;
        dev->stats.bytes[copies[i].kind] += copies[i].len;
        for (at = 0; at < copies[i].len && status == HCE_OK; at += len) {
            len = copies[i].len - at;
            if (len > dev->attr.copy_limit)
                len = dev->attr.copy_limit;
            dev->dsts[gathered] = copies[i].dst + at;
            dev->srcs[gathered] = copies[i].src + at;
            dev->lens[gathered] = len;
            if (++gathered == HCE_CE_CUDA_BATCH) {
                status = issue(launch, stream, gathered);
                gathered = 0;
            }
        }
    }
    return status == HCE_OK ? issue(launch, stream, gathered) : status;
}
