/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Host streams and waiting for them.
 */
#include "config.h"

#include "core/stream.h"

#include <stdlib.h>

#include "core/comm.h"
#include "core/engine.h"
#include "util/log.h"

uint64_t hce_stream_take_ticket(hce_stream_h stream)
{
    return atomic_fetch_add_explicit(&stream->enqueued, 1,
                                     memory_order_relaxed) +
           1;
}

bool hce_stream_reached(hce_stream_h stream, uint64_t ticket)
{
    /* Acquire: what earlier operations wrote is visible to this one; pairs
     * with hce_stream_complete. */
    return atomic_load_explicit(&stream->completed, memory_order_acquire) ==
           ticket - 1;
}

void hce_stream_complete(hce_stream_h stream, uint64_t ticket)
{
    atomic_store_explicit(&stream->completed, ticket, memory_order_release);
}

typedef struct drain {
    hce_stream_h stream;
    uint64_t ticket;
} drain_t;

static bool is_drained(void *arg)
{
    drain_t *drain = arg;

    return atomic_load_explicit(&drain->stream->completed,
                                memory_order_acquire) >= drain->ticket;
}

void hce_stream_drain(hce_stream_h stream)
{
    drain_t drain = {
        .stream = stream,
        .ticket = atomic_load_explicit(&stream->enqueued,
                                       memory_order_relaxed),
    };

    if (!is_drained(&drain))
        hce_engine_wait(is_drained, &drain);
}

hce_status_t hce_stream_create(hce_stream_h *stream_p)
{
    hce_stream_h stream;

    if (stream_p == NULL) {
        hce_log(ERROR, CORE, "hce_stream_create: stream_p is NULL");
        return HCE_ERR_INVALID_ARG;
    }
    stream = calloc(1, sizeof(*stream));
    if (stream == NULL) {
        hce_log(ERROR, CORE, "no memory for a stream");
        return HCE_ERR_NO_MEMORY;
    }
    *stream_p = stream;
    return HCE_OK;
}

static hce_status_t stream_result(hce_comm_h comm, bool done)
{
    hce_status_t status = hce_fault_status(&comm->fault);

    if (status != HCE_OK)
        return status;
    return done ? HCE_OK : HCE_INPROGRESS;
}

hce_status_t hce_stream_query(hce_comm_h comm, hce_stream_h stream)
{
    hce_status_t status = hce_comm_check(comm, "hce_stream_query");
    bool passed;

    if (status != HCE_OK)
        return status;
    if (stream == NULL)
        stream = &comm->stream;
    passed =
        atomic_load_explicit(&stream->completed, memory_order_acquire) ==
        atomic_load_explicit(&stream->enqueued, memory_order_relaxed);
    if (!passed)
        hce_engine_rouse();
    return stream_result(comm, passed);
}

hce_status_t hce_stream_synchronize(hce_comm_h comm, hce_stream_h stream)
{
    hce_status_t status = hce_comm_check(comm, "hce_stream_synchronize");

    if (status != HCE_OK)
        return status;
    hce_stream_drain(stream == NULL ? &comm->stream : stream);
    hce_queue_reap(comm);
    return stream_result(comm, true);
}

hce_status_t hce_stream_destroy(hce_stream_h stream)
{
    if (stream == NULL)
        return HCE_OK;
    if (atomic_load_explicit(&stream->completed, memory_order_acquire) !=
        atomic_load_explicit(&stream->enqueued, memory_order_relaxed)) {
        hce_log(ERROR, CORE,
                "hce_stream_destroy: operations on it have not finished");
        return HCE_ERR_INVALID_ARG;
    }
    free(stream);
    return HCE_OK;
}
