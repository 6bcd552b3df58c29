/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * A staging ring: bytes, references to bytes in the writer's outbox, and
 * posts from one writer to the one rank in whose segment the ring lies, in
 * order. The writer's contents are treated as hostile by the reader.
 */
#ifndef HCE_CE_HOST_RING_H
#define HCE_CE_HOST_RING_H

#include <hce/hce.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "ce/ce.h"
#include "util/counter.h"

#define HCE_CE_RING_SIZE (256u * 1024) /* >= a quantum with its headers */

/* Shared. head and tail count bytes since the start and never wrap. */
typedef struct hce_ce_ring {
    alignas(64) _Atomic(uint64_t) head; /* written by the writer only */
    alignas(64) _Atomic(uint64_t) tail; /* written by the reader only */
    _Atomic(uint32_t) starved;          /* 1: the writer waits for room */
    _Atomic(uint32_t) used; /* 1: set by a writer that will use it */
} hce_ce_ring_t;

/* One end; private to its rank. */
typedef struct hce_ce_ring_end {
    hce_ce_ring_t *ring;
    char *data;    /* HCE_CE_RING_SIZE bytes */
    uint64_t here; /* writer: head; reader: tail */
} hce_ce_ring_end_t;

/* What a reader lets the writer do. */
typedef struct hce_ce_range {
    uintptr_t addr;
    size_t len;
} hce_ce_range_t;

typedef struct hce_ce_ring_sink {
    const hce_ce_range_t *ranges; /* data may go there */
    size_t num_ranges;
    hce_counter_t *counters;
    uint32_t num_counters;
    const char *outbox; /* the writer's */
    size_t outbox_size;
} hce_ce_ring_sink_t;

/* Data that lie in the writer's outbox. */
typedef struct hce_ce_ring_refer {
    uint64_t offset;
    uint32_t len;
    bool streaming; /* better copied out past the caches */
} hce_ce_ring_refer_t;

/* Bytes of ring that a post takes, or data in the outbox. */
#define HCE_CE_RING_POST_SIZE 32u

/* Writer, while opening; reader, once all have opened. */
void hce_ce_ring_use(hce_ce_ring_end_t *end);
bool hce_ce_ring_is_used(const hce_ce_ring_end_t *end);

/* Bytes of ring that data of len bytes takes. */
size_t hce_ce_ring_need(size_t len);

/* Writer: is there room for need bytes? If not, the writer is marked as
 * starved and is woken by the reader's next move. */
bool hce_ce_ring_has_room(hce_ce_ring_end_t *end, size_t need);

/* Writer, after hce_ce_ring_has_room for them. */
void hce_ce_ring_put(hce_ce_ring_end_t *end, uint64_t addr, const char *src,
                     size_t len);
void hce_ce_ring_post(hce_ce_ring_end_t *end, uint32_t index, uint64_t value);
void hce_ce_ring_refer(hce_ce_ring_end_t *end, uint64_t addr,
                       const hce_ce_ring_refer_t *to);

/* Writer: has the reader dealt with all up to position? Acquire. If it has
 * not, await also lets the reader's next move wake the writer. */
bool hce_ce_ring_has_passed(const hce_ce_ring_end_t *end, uint64_t position);
bool hce_ce_ring_await(hce_ce_ring_end_t *end, uint64_t position);

/* Writer: has the reader dealt with everything? Acquire. */
bool hce_ce_ring_is_drained(const hce_ce_ring_end_t *end);

/* Reader. */
bool hce_ce_ring_is_empty(const hce_ce_ring_end_t *end);

/* Reader: deals with what lies in the ring now. HCE_INPROGRESS if that was
 * something, HCE_OK if nothing. On error *why_p is a static text. *starved_p
 * says that the writer waited for room and is to be woken. */
hce_status_t hce_ce_ring_drain(hce_ce_ring_end_t *end,
                               const hce_ce_ring_sink_t *sink, bool *starved_p,
                               const char **why_p);

#endif
