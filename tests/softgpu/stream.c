/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Streams: numbered ops that go to one of a few hardware channels. The legacy
 * stream waits for all blocking streams of its device, and they for it.
 * Records of streams are never freed, but used again: ops and events refer to
 * a stream and a number that only grows.
 */
#include "soft.h"

#include <stdlib.h>
#include <string.h>

static struct CUstream_st *streams;
static struct CUstream_st *legacy[SOFT_MAX_DEVICES];
static _Thread_local struct CUstream_st *per_thread[SOFT_MAX_DEVICES];
static unsigned next_queue[SOFT_MAX_DEVICES];
static uint64_t last_id;

struct CUstream_st *soft_stream_first(void)
{
    return streams;
}

bool soft_stream_idle(const struct CUstream_st *stream)
{
    return stream->done == stream->issued;
}

struct CUstream_st *soft_stream_make(int dev, unsigned flags)
{
    struct CUstream_st *stream = streams;

    while (stream != NULL && !(stream->is_dead && soft_stream_idle(stream) &&
                               stream->ctx->dev == dev))
        stream = stream->next;
    if (stream == NULL) {
        stream = calloc(1, sizeof(*stream));
        if (stream == NULL)
            soft_die("no memory");
        stream->next = streams;
        streams = stream;
    }
    stream->ctx = soft_ctx(dev);
    stream->flags = flags;
    stream->id = ++last_id;
    stream->is_dead = false;
    stream->queue = soft_queue_pick(dev, next_queue[dev]++);
    return stream;
}

void soft_stream_unmake(struct CUstream_st *stream)
{
    free(stream->heads);
    stream->heads = NULL;
    stream->num_heads = 0;
    stream->capture = NULL;
    stream->is_dead = true;
}

static struct CUstream_st *own_stream(struct CUstream_st **at, bool is_legacy)
{
    int dev = soft_current();

    if (dev < 0)
        return NULL;
    if (at[dev] == NULL) {
        at[dev] = soft_stream_make(dev, 0);
        at[dev]->is_legacy = is_legacy;
    }
    return at[dev];
}

struct CUstream_st *soft_stream(hce_cu_stream_t handle)
{
    struct CUstream_st *stream = streams;

    if (handle == NULL || handle == HCE_CU_STREAM_LEGACY)
        return own_stream(legacy, true);
    if (handle == HCE_CU_STREAM_PER_THREAD)
        return own_stream(per_thread, false);
    while (stream != NULL && stream != handle)
        stream = stream->next;
    return stream == NULL || stream->is_dead ? NULL : stream;
}

static bool is_blocking(const struct CUstream_st *stream)
{
    return (stream->flags & HCE_CU_STREAM_NON_BLOCKING) == 0;
}

soft_result_t soft_legacy_check(const struct CUstream_st *stream)
{
    const struct CUstream_st *other;

    if (!stream->is_legacy)
        return HCE_CU_OK;
    for (other = streams; other != NULL; other = other->next) {
        if (other->capture != NULL && is_blocking(other) &&
            other->ctx == stream->ctx &&
            other->capture->mode != HCE_CU_CAPTURE_RELAXED) {
            other->capture->is_invalid = true;
            return HCE_CU_CAPTURE_IMPLICIT;
        }
    }
    return HCE_CU_OK;
}

void soft_op_depend(soft_op_t *op, struct CUstream_st *stream, uint64_t seq)
{
    soft_dep_t *deps;

    if (stream->done >= seq)
        return;
    deps = realloc(op->deps, (op->num_deps + 1) * sizeof(*deps));
    if (deps == NULL)
        soft_die("no memory");
    deps[op->num_deps++] = (soft_dep_t){.stream = stream, .seq = seq};
    op->deps = deps;
}

void soft_enqueue(struct CUstream_st *stream, soft_op_t *op)
{
    struct CUstream_st *other = legacy[stream->ctx->dev];

    if (stream->is_legacy) {
        for (other = streams; other != NULL; other = other->next) {
            if (other != stream && other->ctx == stream->ctx &&
                is_blocking(other))
                soft_op_depend(op, other, other->issued);
        }
    } else if (is_blocking(stream) && other != NULL) {
        soft_op_depend(op, other, other->issued);
    }
    op->stream = stream;
    op->seq = ++stream->issued;
    op->next = NULL;
    *stream->queue->tail = op;
    stream->queue->tail = &op->next;
    pthread_cond_broadcast(&soft_news);
}

soft_result_t soft_submit(struct CUstream_st *stream, soft_op_t *op)
{
    soft_result_t result = soft_legacy_check(stream);

    if (result != HCE_CU_OK) {
        soft_op_free(op);
        return result;
    }
    if (stream->capture != NULL)
        return soft_capture_add(stream, op);
    soft_enqueue(stream, op);
    return HCE_CU_OK;
}

void soft_drain(void)
{
    const struct CUstream_st *stream = streams;

    while (stream != NULL) {
        if (soft_stream_idle(stream)) {
            stream = stream->next;
        } else {
            pthread_cond_wait(&soft_news, &soft_lock);
            stream = streams;
        }
    }
}

soft_result_t soft_stream_create(hce_cu_stream_t *stream_p, unsigned int flags,
                                 int priority)
{
    static soft_site_t site = {.name = "cuStreamCreateWithPriority",
                               .need = SOFT_CTX};
    soft_result_t result = soft_enter(&site);

    if (result != HCE_CU_OK)
        return result;
    if (flags > 1)
        return HCE_CU_INVALID_VALUE;
    pthread_mutex_lock(&soft_lock);
    *stream_p = soft_stream_make(soft_current(), flags);
    (*stream_p)->priority = priority;
    pthread_mutex_unlock(&soft_lock);
    soft_count_live(&soft_counters.streams, 1);
    return HCE_CU_OK;
}

soft_result_t soft_stream_destroy(hce_cu_stream_t handle)
{
    static soft_site_t site = {.name = "cuStreamDestroy", .need = SOFT_INIT};
    soft_result_t result = soft_enter(&site);
    struct CUstream_st *stream;

    if (result != HCE_CU_OK)
        return result;
    pthread_mutex_lock(&soft_lock);
    stream = (uintptr_t)handle <= 2 ? NULL : soft_stream(handle);
    if (stream == NULL)
        result = HCE_CU_INVALID_HANDLE;
    else if (stream->capture != NULL)
        result = HCE_CU_ILLEGAL_STATE;
    else
        soft_stream_unmake(stream);
    pthread_mutex_unlock(&soft_lock);
    if (result == HCE_CU_OK)
        soft_count_live(&soft_counters.streams, -1);
    return result;
}

/* Nothing may look at a stream that is captured. Caller holds soft_lock. */
static soft_result_t look(hce_cu_stream_t handle,
                          struct CUstream_st **stream_p)
{
    struct CUstream_st *stream = soft_stream(handle);

    if (stream == NULL)
        return HCE_CU_INVALID_HANDLE;
    if (stream->capture != NULL) {
        stream->capture->is_invalid = true;
        return HCE_CU_CAPTURE_UNSUPPORTED;
    }
    *stream_p = stream;
    return soft_legacy_check(stream);
}

soft_result_t soft_stream_query(hce_cu_stream_t handle)
{
    static soft_site_t site = {.name = "cuStreamQuery", .need = SOFT_INIT};
    soft_result_t result = soft_enter(&site);
    struct CUstream_st *stream;

    if (result != HCE_CU_OK)
        return result;
    pthread_mutex_lock(&soft_lock);
    result = look(handle, &stream);
    if (result == HCE_CU_OK && !soft_stream_idle(stream))
        result = HCE_CU_NOT_READY;
    pthread_mutex_unlock(&soft_lock);
    return result;
}

soft_result_t soft_stream_synchronize(hce_cu_stream_t handle)
{
    static soft_site_t site = {.name = "cuStreamSynchronize",
                               .need = SOFT_INIT};
    soft_result_t result = soft_enter(&site);
    struct CUstream_st *stream;
    uint64_t seq;

    if (result != HCE_CU_OK)
        return result;
    pthread_mutex_lock(&soft_lock);
    result = look(handle, &stream);
    if (result == HCE_CU_OK) {
        seq = stream->issued;
        while (stream->done < seq)
            pthread_cond_wait(&soft_news, &soft_lock);
        result = soft_sticky;
    }
    pthread_mutex_unlock(&soft_lock);
    return result;
}

soft_result_t soft_stream_get_ctx(hce_cu_stream_t handle, hce_cu_ctx_t *ctx_p)
{
    static soft_site_t site = {.name = "cuStreamGetCtx", .need = SOFT_INIT};
    soft_result_t result = soft_enter(&site);
    struct CUstream_st *stream;

    if (result != HCE_CU_OK)
        return result;
    pthread_mutex_lock(&soft_lock);
    stream = soft_stream(handle);
    if (stream == NULL)
        result = HCE_CU_INVALID_HANDLE;
    else
        *ctx_p = stream->ctx;
    pthread_mutex_unlock(&soft_lock);
    return result;
}

soft_result_t soft_stream_get_flags(hce_cu_stream_t handle,
                                    unsigned int *flags_p)
{
    static soft_site_t site = {.name = "cuStreamGetFlags", .need = SOFT_INIT};
    soft_result_t result = soft_enter(&site);
    struct CUstream_st *stream;

    if (result != HCE_CU_OK)
        return result;
    pthread_mutex_lock(&soft_lock);
    stream = soft_stream(handle);
    if (stream == NULL)
        result = HCE_CU_INVALID_HANDLE;
    else
        *flags_p = stream->flags;
    pthread_mutex_unlock(&soft_lock);
    return result;
}
