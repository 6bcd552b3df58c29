/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Host streams: two numbers. A launch takes a ticket when it is enqueued and
 * may start when all earlier tickets of its stream have been completed.
 */
#ifndef HCE_CORE_STREAM_H
#define HCE_CORE_STREAM_H

#include <hce/hce.h>
#include <stdatomic.h>
#include <stdbool.h>

struct hce_stream {
    atomic_uint_fast64_t enqueued;  /* callers */
    atomic_uint_fast64_t completed; /* the engine's owner */
};

uint64_t hce_stream_take_ticket(hce_stream_h stream);
bool hce_stream_reached(hce_stream_h stream, uint64_t ticket);
void hce_stream_complete(hce_stream_h stream, uint64_t ticket);

/* Until everything on stream has been completed; the caller progresses. */
void hce_stream_drain(hce_stream_h stream);

#endif
