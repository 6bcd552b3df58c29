/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Captures: what a stream is given becomes nodes of a graph; other streams
 * join through events. Each stream of a capture has its heads, the nodes that
 * its next one comes after.
 */
#include "soft.h"

#include <stdlib.h>
#include <string.h>

static soft_capture_t *captures;
static uint64_t last_id;
static _Thread_local unsigned thread_mode = HCE_CU_CAPTURE_GLOBAL;

soft_capture_t *soft_capture_first(void)
{
    return captures;
}

bool soft_capture_alive(const soft_capture_t *capture, uint64_t id)
{
    const soft_capture_t *at = captures;

    while (at != NULL && at != capture)
        at = at->next;
    return at != NULL && at->id == id;
}

size_t *soft_heads_copy(const size_t *heads, size_t num)
{
    size_t *copy = malloc((num + 1) * sizeof(*copy));

    if (copy == NULL)
        soft_die("no memory");
    if (num > 0)
        memcpy(copy, heads, num * sizeof(*copy));
    return copy;
}

soft_result_t soft_capture_unsafe(void)
{
    soft_capture_t *capture;
    bool is_own, is_hit = false;

    for (capture = captures; capture != NULL; capture = capture->next) {
        is_own = pthread_equal(capture->thread, pthread_self());
        if (thread_mode == HCE_CU_CAPTURE_RELAXED ||
            capture->mode == HCE_CU_CAPTURE_RELAXED ||
            (!is_own && (capture->mode != HCE_CU_CAPTURE_GLOBAL ||
                         thread_mode != HCE_CU_CAPTURE_GLOBAL)))
            continue;
        capture->is_invalid = true;
        is_hit = true;
    }
    return is_hit ? HCE_CU_CAPTURE_UNSUPPORTED : HCE_CU_OK;
}

soft_result_t soft_thread_exchange_capture_mode(hce_cu_enum_t *mode)
{
    static soft_site_t site = {.name = "cuThreadExchangeStreamCaptureMode",
                               .need = SOFT_INIT};
    soft_result_t result = soft_enter(&site);
    unsigned old = thread_mode;

    if (result != HCE_CU_OK)
        return result;
    if (*mode > HCE_CU_CAPTURE_RELAXED)
        return HCE_CU_INVALID_VALUE;
    thread_mode = *mode;
    *mode = old;
    return HCE_CU_OK;
}

static void heads_set(struct CUstream_st *stream, size_t node)
{
    free(stream->heads);
    stream->heads = soft_heads_copy(&node, 1);
    stream->num_heads = 1;
}

soft_result_t soft_capture_add(struct CUstream_st *stream, soft_op_t *op)
{
    soft_capture_t *capture = stream->capture;

    if (capture->is_invalid) {
        soft_op_free(op);
        return HCE_CU_CAPTURE_INVALIDATED;
    }
    heads_set(stream, soft_graph_add(capture->graph, op, stream->ctx->dev,
                                     stream->heads, stream->num_heads));
    return HCE_CU_OK;
}

static void heads_add(struct CUstream_st *stream, size_t node)
{
    size_t i;

    for (i = 0; i < stream->num_heads; i++) {
        if (stream->heads[i] == node)
            return;
    }
    stream->heads =
        realloc(stream->heads, (stream->num_heads + 1) * sizeof(node));
    if (stream->heads == NULL)
        soft_die("no memory");
    stream->heads[stream->num_heads++] = node;
}

soft_result_t soft_capture_wait(struct CUstream_st *stream,
                                const struct CUevent_st *event)
{
    size_t i;

    if (event->capture->is_invalid)
        return HCE_CU_CAPTURE_INVALIDATED;
    if (stream->is_legacy) {
        event->capture->is_invalid = true;
        return HCE_CU_CAPTURE_IMPLICIT;
    }
    if (stream->capture != NULL && stream->capture != event->capture) {
        stream->capture->is_invalid = true;
        event->capture->is_invalid = true;
        return HCE_CU_CAPTURE_MERGE;
    }
    stream->capture = event->capture;
    for (i = 0; i < event->num_heads; i++)
        heads_add(stream, event->heads[i]);
    return HCE_CU_OK;
}

soft_result_t soft_stream_begin_capture(hce_cu_stream_t handle,
                                        hce_cu_enum_t mode)
{
    static soft_site_t site = {.name = "cuStreamBeginCapture",
                               .need = SOFT_INIT};
    soft_result_t result = soft_enter(&site);
    struct CUstream_st *stream;
    soft_capture_t *capture;

    if (result != HCE_CU_OK)
        return result;
    pthread_mutex_lock(&soft_lock);
    stream = soft_stream(handle);
    if (stream == NULL) {
        result = HCE_CU_INVALID_HANDLE;
    } else if (stream->is_legacy) {
        result = HCE_CU_CAPTURE_UNSUPPORTED;
    } else if (stream->capture != NULL) {
        result = HCE_CU_ILLEGAL_STATE;
    } else if (mode > HCE_CU_CAPTURE_RELAXED) {
        result = HCE_CU_INVALID_VALUE;
    } else {
        capture = calloc(1, sizeof(*capture));
        if (capture == NULL)
            soft_die("no memory");
        *capture = (soft_capture_t){.id = ++last_id,
                                    .mode = mode,
                                    .thread = pthread_self(),
                                    .origin = stream,
                                    .graph = soft_graph_make(),
                                    .next = captures};
        captures = capture;
        stream->capture = capture;
    }
    pthread_mutex_unlock(&soft_lock);
    return result;
}

/* Does every branch end in the heads of the origin? */
static bool is_joined(const soft_capture_t *capture)
{
    const struct CUgraph_st *graph = capture->graph;
    const struct CUstream_st *stream;
    bool *is_leaf = malloc(graph->num_nodes + 1);
    bool joined = true;
    size_t i, j;

    if (is_leaf == NULL)
        soft_die("no memory");
    memset(is_leaf, true, graph->num_nodes + 1);
    for (i = 0; i < graph->num_nodes; i++) {
        for (j = 0; j < graph->nodes[i].num_deps; j++)
            is_leaf[graph->nodes[i].deps[j]] = false;
    }
    for (j = 0; j < capture->origin->num_heads; j++)
        is_leaf[capture->origin->heads[j]] = false;
    for (i = 0; i < graph->num_nodes; i++)
        joined = joined && !is_leaf[i];
    /* A stream that joined and did nothing has nothing to be joined. */
    for (stream = soft_stream_first(); stream != NULL; stream = stream->next) {
        if (stream->capture == capture && stream->is_dead)
            joined = false;
    }
    free(is_leaf);
    return joined;
}

static soft_result_t capture_end(struct CUstream_st *stream,
                                 hce_cu_graph_t *graph_p)
{
    soft_capture_t *capture = stream->capture, **at = &captures;
    soft_result_t result = HCE_CU_OK;
    struct CUstream_st *other;

    if (capture->is_invalid)
        result = HCE_CU_CAPTURE_INVALIDATED;
    else if (!is_joined(capture))
        result = HCE_CU_CAPTURE_UNJOINED;
    for (other = soft_stream_first(); other != NULL; other = other->next) {
        if (other->capture != capture)
            continue;
        other->capture = NULL;
        free(other->heads);
        other->heads = NULL;
        other->num_heads = 0;
    }
    while (*at != capture)
        at = &(*at)->next;
    *at = capture->next;
    *graph_p = NULL;
    if (result == HCE_CU_OK)
        *graph_p = capture->graph;
    else
        soft_graph_unmake(capture->graph);
    free(capture);
    return result;
}

soft_result_t soft_stream_end_capture(hce_cu_stream_t handle,
                                      hce_cu_graph_t *graph_p)
{
    static soft_site_t site = {.name = "cuStreamEndCapture",
                               .need = SOFT_INIT};
    soft_result_t result = soft_enter(&site);
    struct CUstream_st *stream;

    if (result != HCE_CU_OK)
        return result;
    pthread_mutex_lock(&soft_lock);
    stream = soft_stream(handle);
    if (stream == NULL)
        result = HCE_CU_INVALID_HANDLE;
    else if (stream->capture == NULL)
        result = HCE_CU_ILLEGAL_STATE;
    else if (stream->capture->origin != stream)
        result = HCE_CU_CAPTURE_UNMATCHED;
    else if (stream->capture->mode != HCE_CU_CAPTURE_RELAXED &&
             !pthread_equal(stream->capture->thread, pthread_self()))
        result = HCE_CU_CAPTURE_WRONG_THREAD;
    else
        result = capture_end(stream, graph_p);
    pthread_mutex_unlock(&soft_lock);
    return result;
}

static hce_cu_enum_t state_of(const struct CUstream_st *stream)
{
    if (stream->capture == NULL)
        return HCE_CU_CAPTURE_NONE;
    return stream->capture->is_invalid ? HCE_CU_CAPTURE_INVALID
                                       : HCE_CU_CAPTURE_ACTIVE;
}

soft_result_t soft_stream_is_capturing(hce_cu_stream_t handle,
                                       hce_cu_enum_t *state_p)
{
    static soft_site_t site = {.name = "cuStreamIsCapturing",
                               .need = SOFT_INIT};
    soft_result_t result = soft_enter(&site);
    struct CUstream_st *stream;

    if (result != HCE_CU_OK)
        return result;
    pthread_mutex_lock(&soft_lock);
    stream = soft_stream(handle);
    result =
        stream == NULL ? HCE_CU_INVALID_HANDLE : soft_legacy_check(stream);
    if (result == HCE_CU_OK)
        *state_p = state_of(stream);
    pthread_mutex_unlock(&soft_lock);
    return result;
}

/* Valid until this thread's next call. */
static const hce_cu_graph_node_t *heads_show(const struct CUstream_st *stream)
{
    static _Thread_local hce_cu_graph_node_t shown[256];
    size_t i;

    for (i = 0; i < stream->num_heads && i < 256; i++)
        shown[i] = stream->capture->graph->nodes[stream->heads[i]].handle;
    return shown;
}

soft_result_t soft_stream_get_capture_info(hce_cu_stream_t handle,
                                           hce_cu_enum_t *state_p,
                                           uint64_t *id_p,
                                           hce_cu_graph_t *graph_p,
                                           const hce_cu_graph_node_t **nodes_p,
                                           size_t *num_nodes_p)
{
    static soft_site_t site = {.name = "cuStreamGetCaptureInfo",
                               .need = SOFT_INIT};
    soft_result_t result = soft_enter(&site);
    struct CUstream_st *stream;

    if (result != HCE_CU_OK)
        return result;
    pthread_mutex_lock(&soft_lock);
    stream = soft_stream(handle);
    result =
        stream == NULL ? HCE_CU_INVALID_HANDLE : soft_legacy_check(stream);
    if (result == HCE_CU_OK) {
        *state_p = state_of(stream);
        if (*state_p == HCE_CU_CAPTURE_ACTIVE) {
            if (id_p != NULL)
                *id_p = stream->capture->id;
            if (graph_p != NULL)
                *graph_p = stream->capture->graph;
            if (nodes_p != NULL)
                *nodes_p = heads_show(stream);
            if (num_nodes_p != NULL)
                *num_nodes_p = stream->num_heads;
        }
    }
    pthread_mutex_unlock(&soft_lock);
    return result;
}
