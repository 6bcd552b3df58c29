/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Have the queues come to their end, and how they are made to.
 */
#include "config.h"

#include "ce/cuda/cuda.h"

#include "util/clock.h"
#include "util/log.h"

#include <time.h>

static hce_status_t queues_query(hce_ce_dev_t *dev)
{
    hce_cu_result_t result;
    int i;

    for (i = 0; i < dev->attr.num_queues; i++) {
        result = dev->drv->stream_query(dev->queues[i].stream);
        if (result == HCE_CU_NOT_READY)
            return HCE_INPROGRESS;
        if (result != HCE_CU_OK)
            return hce_drv_check(result, "cuStreamQuery",
                                 "queue %d of device %d", i,
                                 dev->attr.ordinal);
    }
    return HCE_OK;
}

hce_status_t hce_ce_cuda_query(hce_ce_dev_t *dev)
{
    hce_drv_scope_t scope;
    hce_status_t status = hce_ce_cuda_enter(dev, &scope);

    if (status != HCE_OK)
        return status;
    status = queues_query(dev);
    hce_drv_leave(&scope);
    return status;
}

hce_status_t hce_ce_cuda_drain(hce_ce_dev_t *dev, uint64_t deadline,
                               void (*release)(void *arg), void *arg)
{
    const struct timespec nap = {.tv_nsec = 200000};
    hce_status_t status;

    /* Again and again: a stream that has been freed lowers counters that the
     * next one waits for. */
    for (;;) {
        release(arg);
        status = hce_ce_cuda_query(dev);
        if (status != HCE_INPROGRESS)
            return status;
        if (hce_clock_ns() >= deadline) {
            hce_log(ERROR, CE,
                    "queues of device %d have not drained: what they use is "
                    "kept",
                    dev->attr.ordinal);
            return HCE_ERR_TIMEOUT;
        }
        nanosleep(&nap, NULL);
    }
}
