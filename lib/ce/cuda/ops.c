/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The table of CUDA devices.
 */
#include "config.h"

#include "ce/cuda/cuda.h"

static const hce_ce_dev_attr_t *dev_attr(const hce_ce_dev_t *dev)
{
    return &dev->attr;
}

static void dev_get_stats(hce_ce_dev_t *dev, hce_ce_dev_stats_t *stats_p)
{
    pthread_mutex_lock(&dev->launch_lock);
    *stats_p = dev->stats;
    pthread_mutex_unlock(&dev->launch_lock);
}

const char *hce_ce_dev_order_string(hce_ce_dev_order_t order)
{
    switch (order) {
    case HCE_CE_ORDER_NONE:
        return "ordered by the device";
    case HCE_CE_ORDER_STREAM:
        return "flushed by the waiting stream";
    default:
        return "read back by the NIC";
    }
}

const hce_ce_dev_ops_t hce_ce_cuda_ops = {
    .name = "cuda",
    .count = hce_ce_cuda_count,
    .describe = hce_ce_cuda_describe,
    .open = hce_ce_cuda_open,
    .close = hce_ce_cuda_close,
    .attr = dev_attr,
    .get_stats = dev_get_stats,
    .mem_alloc = hce_ce_cuda_mem_alloc,
    .mem_free = hce_ce_cuda_mem_free,
    .mem_where = hce_ce_cuda_mem_where,
    .mem_export = hce_ce_cuda_export,
    .export_free = hce_ce_cuda_export_free,
    .mem_import = hce_ce_cuda_import,
    .import_put = hce_ce_cuda_import_put,
    .host_map = hce_ce_cuda_host_map,
    .host_unmap = hce_ce_cuda_host_unmap,
    .begin = hce_ce_cuda_begin,
    .is_captured = hce_ce_cuda_is_captured,
    .end = hce_ce_cuda_end,
    .copy = hce_ce_cuda_copy,
    .wait = hce_ce_cuda_wait,
    .write = hce_ce_cuda_write,
    .words_get = hce_ce_cuda_words_get,
    .words_at = hce_ce_cuda_words_at,
    .words_are_gone = hce_ce_cuda_words_are_gone,
    .words_put = hce_ce_cuda_words_put,
    .word_wait = hce_ce_cuda_word_wait,
    .word_set = hce_ce_cuda_word_set,
    .query = hce_ce_cuda_query,
    .drain = hce_ce_cuda_drain,
    .multicast_create = hce_ce_cuda_multicast_create,
    .multicast_open = hce_ce_cuda_multicast_open,
    .multicast_add = hce_ce_cuda_multicast_add,
    .multicast_bind = hce_ce_cuda_multicast_bind,
    .multicast_close = hce_ce_cuda_multicast_close,
};
