/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * One launch: from the caller's stream to own streams and back, by events,
 * so that the driver knows of that order, too. A captured launch takes
 * streams that it has for itself until the capture ends: an own stream that
 * others use would draw their work into the capture.
 */
#include "config.h"

#include "ce/cuda/cuda.h"

#include "util/log.h"

#include <assert.h>
#include <stdlib.h>

/* A stream of another device's context cannot be ordered with ours by the
 * events that we have. */
static hce_status_t user_check(const hce_ce_dev_t *dev, hce_cu_stream_t user)
{
    hce_status_t status;
    hce_cu_ctx_t ctx;

    status =
        hce_drv_check(dev->drv->stream_get_ctx(user, &ctx), "cuStreamGetCtx",
                      "the caller's stream %p", (void *)user);
    if (status == HCE_OK && ctx != dev->ctx) {
        hce_log(ERROR, CE,
                "the caller's stream %p does not belong to the primary "
                "context of device %d",
                (void *)user, dev->attr.ordinal);
        status = HCE_ERR_INVALID_ARG;
    }
    return status;
}

static hce_status_t capture_check(hce_ce_dev_launch_t *launch)
{
    const hce_ce_dev_t *dev = launch->dev;
    hce_cu_enum_t state = HCE_CU_CAPTURE_NONE;
    hce_cu_graph_t graph = NULL;
    hce_status_t status;
    uint64_t id = 0;

    status = hce_drv_check(dev->drv->stream_get_capture_info(
                               launch->user, &state, &id, &graph, NULL, NULL),
                           "cuStreamGetCaptureInfo", "the caller's stream %p",
                           (void *)launch->user);
    if (status != HCE_OK)
        return status;
    if (state == HCE_CU_CAPTURE_INVALID) {
        hce_log(ERROR, CE, "the capture of the caller's stream %p is invalid",
                (void *)launch->user);
        return HCE_ERR_INVALID_ARG;
    }
    launch->is_captured = state == HCE_CU_CAPTURE_ACTIVE;
    launch->capture_id = id;
    launch->graph = graph;
    return HCE_OK;
}

hce_status_t hce_ce_cuda_begin(hce_ce_dev_t *dev, void *user,
                               hce_ce_dev_launch_t **launch_p)
{
    hce_ce_dev_launch_t *launch = &dev->launch;
    hce_status_t status;

    pthread_mutex_lock(&dev->launch_lock);
    *launch = (hce_ce_dev_launch_t){.dev = dev, .user = user};
    status = hce_ce_cuda_enter(dev, &launch->scope);
    if (status != HCE_OK)
        goto err_lock;
    status = user_check(dev, launch->user);
    if (status == HCE_OK)
        status = capture_check(launch);
    if (status != HCE_OK)
        goto err_scope;
    *launch_p = launch;
    return HCE_OK;

err_scope:
    hce_drv_leave(&launch->scope);
err_lock:
    pthread_mutex_unlock(&dev->launch_lock);
    return status;
}

bool hce_ce_cuda_is_captured(const hce_ce_dev_launch_t *launch)
{
    return launch->is_captured;
}

static bool is_taken(const hce_ce_dev_launch_t *launch,
                     const hce_ce_cuda_queue_t *queue)
{
    int i;

    for (i = 0; i < launch->dev->attr.num_queues; i++) {
        if (launch->queues[i] == queue)
            return true;
    }
    return false;
}

/* A stream that is in no capture, or in this one. */
static bool is_usable(const hce_ce_dev_launch_t *launch,
                      const hce_ce_cuda_queue_t *queue)
{
    hce_cu_enum_t state = HCE_CU_CAPTURE_NONE;
    uint64_t id = 0;

    return launch->dev->drv->stream_get_capture_info(
               queue->stream, &state, &id, NULL, NULL, NULL) == HCE_CU_OK &&
           (state == HCE_CU_CAPTURE_NONE ||
            (state == HCE_CU_CAPTURE_ACTIVE && id == launch->capture_id));
}

static hce_status_t capture_queue_get(hce_ce_dev_launch_t *launch,
                                      hce_ce_cuda_queue_t **queue_p)
{
    hce_ce_dev_t *dev = launch->dev;
    hce_ce_cuda_queue_t *queue = dev->capture_queues;
    hce_status_t status;

    while (queue != NULL &&
           (is_taken(launch, queue) || !is_usable(launch, queue)))
        queue = queue->next;
    if (queue == NULL) {
        queue = calloc(1, sizeof(*queue));
        if (queue == NULL) {
            hce_log(ERROR, CE, "no memory for a stream");
            return HCE_ERR_NO_MEMORY;
        }
        status = hce_ce_cuda_queue_init(dev, queue);
        if (status != HCE_OK) {
            free(queue);
            return status;
        }
        queue->next = dev->capture_queues;
        dev->capture_queues = queue;
    }
    *queue_p = queue;
    return HCE_OK;
}

/* All queues of a launch begin at one point of the caller's stream. */
static hce_status_t user_mark(hce_ce_dev_launch_t *launch)
{
    hce_ce_dev_t *dev = launch->dev;
    hce_status_t status;

    if (launch->is_forked)
        return HCE_OK;
    status = hce_drv_check(
        dev->drv->event_record(
            launch->is_captured ? dev->capture_fork : dev->fork, launch->user),
        "cuEventRecord", "the caller's stream %p", (void *)launch->user);
    launch->is_forked = status == HCE_OK;
    return status;
}

hce_status_t hce_ce_cuda_queue_get(hce_ce_dev_launch_t *launch, int index,
                                   hce_cu_stream_t *stream_p)
{
    hce_ce_dev_t *dev = launch->dev;
    hce_ce_cuda_queue_t *queue = launch->queues[index];
    hce_status_t status;

    assert(index >= 0 && index < dev->attr.num_queues);
    if (queue != NULL) {
        *stream_p = queue->stream;
        return HCE_OK;
    }
    status = user_mark(launch);
    if (status != HCE_OK)
        return status;
    queue = &dev->queues[index];
    if (launch->is_captured)
        status = capture_queue_get(launch, &queue);
    if (status == HCE_OK)
        status = hce_drv_check(
            dev->drv->stream_wait_event(
                queue->stream,
                launch->is_captured ? dev->capture_fork : dev->fork, 0),
            "cuStreamWaitEvent", "queue %d of device %d", index,
            dev->attr.ordinal);
    if (status != HCE_OK)
        return status;
    launch->queues[index] = queue;
    *stream_p = queue->stream;
    return HCE_OK;
}

static hce_status_t queue_join(hce_ce_dev_launch_t *launch, int index)
{
    const hce_ce_cuda_queue_t *queue = launch->queues[index];
    const hce_drv_t *drv = launch->dev->drv;
    hce_status_t status;

    status = hce_drv_check(drv->event_record(queue->event, queue->stream),
                           "cuEventRecord", "queue %d of device %d", index,
                           launch->dev->attr.ordinal);
    if (status != HCE_OK)
        return status;
    return hce_drv_check(drv->stream_wait_event(launch->user, queue->event, 0),
                         "cuStreamWaitEvent", "the caller's stream %p",
                         (void *)launch->user);
}

hce_status_t hce_ce_cuda_end(hce_ce_dev_launch_t *launch)
{
    hce_ce_dev_t *dev = launch->dev;
    hce_status_t status = HCE_OK, this_status;
    int i;

    /* All are joined, whatever happens to one: a capture must not end with
     * a branch that is not. */
    for (i = 0; i < dev->attr.num_queues; i++) {
        if (launch->queues[i] == NULL)
            continue;
        this_status = queue_join(launch, i);
        if (status == HCE_OK)
            status = this_status;
    }
    hce_drv_leave(&launch->scope);
    pthread_mutex_unlock(&dev->launch_lock);
    return status;
}
