/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Events: a stream and the number of one of its ops; in a capture the nodes
 * that come before.
 */
#include "soft.h"

#include <stdlib.h>
#include <string.h>

static struct CUevent_st *events;

/* Caller holds soft_lock. */
static struct CUevent_st *event_find(hce_cu_event_t handle)
{
    struct CUevent_st *event = events;

    while (event != NULL && event != handle)
        event = event->next;
    return event;
}

static void event_forget(struct CUevent_st *event)
{
    free(event->heads);
    event->heads = NULL;
    event->num_heads = 0;
    event->capture = NULL;
    event->stream = NULL;
}

static bool is_captured(const struct CUevent_st *event)
{
    return event->capture != NULL &&
           soft_capture_alive(event->capture, event->capture_id);
}

soft_result_t soft_event_create(hce_cu_event_t *event_p, unsigned int flags)
{
    static soft_site_t site = {.name = "cuEventCreate", .need = SOFT_CTX};
    soft_result_t result = soft_enter(&site);
    struct CUevent_st *event;

    if (result != HCE_CU_OK)
        return result;
    if (flags > 7 || ((flags & HCE_CU_EVENT_INTERPROCESS) != 0 &&
                      (flags & HCE_CU_EVENT_DISABLE_TIMING) == 0))
        return HCE_CU_INVALID_VALUE;
    event = calloc(1, sizeof(*event));
    if (event == NULL)
        return HCE_CU_OUT_OF_MEMORY;
    event->flags = flags;
    event->dev = soft_current();
    pthread_mutex_lock(&soft_lock);
    event->next = events;
    events = event;
    pthread_mutex_unlock(&soft_lock);
    soft_count_live(&soft_counters.events, 1);
    *event_p = event;
    return HCE_CU_OK;
}

soft_result_t soft_event_destroy(hce_cu_event_t handle)
{
    static soft_site_t site = {.name = "cuEventDestroy", .need = SOFT_INIT};
    soft_result_t result = soft_enter(&site);
    struct CUevent_st *event, **at = &events;

    if (result != HCE_CU_OK)
        return result;
    pthread_mutex_lock(&soft_lock);
    event = event_find(handle);
    if (event == NULL) {
        result = HCE_CU_INVALID_HANDLE;
    } else {
        while (*at != event)
            at = &(*at)->next;
        *at = event->next;
        event_forget(event);
        free(event);
    }
    pthread_mutex_unlock(&soft_lock);
    if (result == HCE_CU_OK)
        soft_count_live(&soft_counters.events, -1);
    return result;
}

static soft_result_t record(struct CUevent_st *event,
                            struct CUstream_st *stream)
{
    soft_result_t result;

    if (event == NULL || stream == NULL || event->dev != stream->ctx->dev)
        return HCE_CU_INVALID_HANDLE;
    result = soft_legacy_check(stream);
    if (result != HCE_CU_OK)
        return result;
    if (stream->capture != NULL && stream->capture->is_invalid)
        return HCE_CU_CAPTURE_INVALIDATED;
    event_forget(event);
    if (stream->capture != NULL) {
        event->capture = stream->capture;
        event->capture_id = stream->capture->id;
        event->heads = soft_heads_copy(stream->heads, stream->num_heads);
        event->num_heads = stream->num_heads;
        return HCE_CU_OK;
    }
    soft_enqueue(stream, soft_op_make(SOFT_OP_MARK, 0));
    event->stream = stream;
    event->seq = stream->issued;
    return HCE_CU_OK;
}

soft_result_t soft_event_record(hce_cu_event_t event, hce_cu_stream_t handle)
{
    static soft_site_t site = {.name = "cuEventRecord", .need = SOFT_INIT};
    soft_result_t result = soft_enter(&site);

    if (result != HCE_CU_OK)
        return result;
    pthread_mutex_lock(&soft_lock);
    result = record(event_find(event), soft_stream(handle));
    pthread_mutex_unlock(&soft_lock);
    return result;
}

static soft_result_t wait(struct CUstream_st *stream,
                          const struct CUevent_st *event)
{
    soft_result_t result;
    soft_op_t *op;

    if (event == NULL || stream == NULL)
        return HCE_CU_INVALID_HANDLE;
    result = soft_legacy_check(stream);
    if (result != HCE_CU_OK)
        return result;
    if (is_captured(event))
        return soft_capture_wait(stream, event);
    if (event->stream == NULL)
        return HCE_CU_OK; /* never recorded */
    if (stream->capture != NULL) {
        stream->capture->is_invalid = true;
        return HCE_CU_CAPTURE_ISOLATION;
    }
    op = soft_op_make(SOFT_OP_MARK, 0);
    soft_op_depend(op, event->stream, event->seq);
    soft_enqueue(stream, op);
    return HCE_CU_OK;
}

soft_result_t soft_stream_wait_event(hce_cu_stream_t handle,
                                     hce_cu_event_t event, unsigned int flags)
{
    static soft_site_t site = {.name = "cuStreamWaitEvent", .need = SOFT_INIT};
    soft_result_t result = soft_enter(&site);

    if (result != HCE_CU_OK)
        return result;
    if (flags > 1)
        return HCE_CU_INVALID_VALUE;
    pthread_mutex_lock(&soft_lock);
    result = wait(soft_stream(handle), event_find(event));
    pthread_mutex_unlock(&soft_lock);
    return result;
}

/* Caller holds soft_lock. */
static soft_result_t look(hce_cu_event_t handle, struct CUevent_st **event_p)
{
    struct CUevent_st *event = event_find(handle);

    if (event == NULL)
        return HCE_CU_INVALID_HANDLE;
    if (is_captured(event)) {
        event->capture->is_invalid = true;
        return HCE_CU_CAPTURED_EVENT;
    }
    *event_p = event;
    return HCE_CU_OK;
}

static bool is_done(const struct CUevent_st *event)
{
    return event->stream == NULL || event->stream->done >= event->seq;
}

soft_result_t soft_event_query(hce_cu_event_t handle)
{
    static soft_site_t site = {.name = "cuEventQuery", .need = SOFT_INIT};
    soft_result_t result = soft_enter(&site);
    struct CUevent_st *event;

    if (result != HCE_CU_OK)
        return result;
    pthread_mutex_lock(&soft_lock);
    result = look(handle, &event);
    if (result == HCE_CU_OK && !is_done(event))
        result = HCE_CU_NOT_READY;
    pthread_mutex_unlock(&soft_lock);
    return result;
}

soft_result_t soft_event_synchronize(hce_cu_event_t handle)
{
    static soft_site_t site = {.name = "cuEventSynchronize",
                               .need = SOFT_INIT};
    soft_result_t result = soft_enter(&site);
    struct CUevent_st *event;
    struct CUstream_st *stream;
    uint64_t seq;

    if (result != HCE_CU_OK)
        return result;
    pthread_mutex_lock(&soft_lock);
    result = look(handle, &event);
    if (result == HCE_CU_OK && event->stream != NULL) {
        stream = event->stream;
        seq = event->seq;
        while (stream->done < seq)
            pthread_cond_wait(&soft_news, &soft_lock);
    }
    pthread_mutex_unlock(&soft_lock);
    return result;
}

soft_result_t soft_ipc_get_event_handle(hce_cu_ipc_event_t *handle_p,
                                        hce_cu_event_t event)
{
    static soft_site_t site = {.name = "cuIpcGetEventHandle",
                               .need = SOFT_CTX};
    soft_result_t result = soft_enter(&site);

    return result != HCE_CU_OK ? result : HCE_CU_NOT_SUPPORTED;
}
