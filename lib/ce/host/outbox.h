/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The outbox of a rank: bytes for many node peers at once, copied in once by
 * the rank and copied out by each peer that an entry of its staging ring
 * points to them. Blocks are taken in order and are free again once all of
 * their readers have dealt with their entries.
 */
#ifndef HCE_CE_HOST_OUTBOX_H
#define HCE_CE_HOST_OUTBOX_H

#include <hce/hce.h>
#include <stdbool.h>

#include "ce/host/ring.h"

#define HCE_CE_OUTBOX_SIZE   (512u * 1024) /* >= two quanta: they overlap */
#define HCE_CE_OUTBOX_BLOCKS 64u

/* A block that is in use: bytes up to end, read until each reader's ring has
 * been drained up to its mark (0: it does not read it). */
typedef struct hce_ce_outbox_block {
    uint64_t end;
    uint64_t *marks; /* [num_readers] */
} hce_ce_outbox_block_t;

/* The writer's side; private to the rank. */
typedef struct hce_ce_outbox {
    char *data; /* HCE_CE_OUTBOX_SIZE bytes, shared */
    int num_readers;
    uint64_t head, tail;   /* bytes since the start: taken, free again */
    uint64_t first, count; /* blocks since the start; in use */
    hce_ce_outbox_block_t blocks[HCE_CE_OUTBOX_BLOCKS];
    uint64_t *marks;
} hce_ce_outbox_t;

hce_status_t hce_ce_outbox_init(hce_ce_outbox_t *outbox, char *data,
                                int num_readers);
void hce_ce_outbox_cleanup(hce_ce_outbox_t *outbox);

/* Is there room for len bytes? ends[i] is reader i's ring. If not, a reader
 * that stands in the way wakes the writer when it has moved on. */
bool hce_ce_outbox_has_room(hce_ce_outbox_t *outbox,
                            hce_ce_ring_end_t *const *ends, size_t len);

/* After hce_ce_outbox_has_room: a block of len bytes, at an offset. */
uint64_t hce_ce_outbox_take(hce_ce_outbox_t *outbox, size_t len);

/* Reader i reads the last block; its entries are in its ring. */
void hce_ce_outbox_mark(hce_ce_outbox_t *outbox, int i,
                        const hce_ce_ring_end_t *end);

#endif
