/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The writer's side of an outbox. Readers need none: see ring.c.
 */
#include <config.h>

#include "ce/host/outbox.h"

#include "ce/ce.h"
#include "util/log.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(HCE_CE_OUTBOX_SIZE >= 2 * HCE_CE_QUANTUM,
               "a quantum fits however far the head is from the end");

hce_status_t hce_ce_outbox_init(hce_ce_outbox_t *outbox, char *data,
                                int num_readers)
{
    size_t i;

    memset(outbox, 0, sizeof(*outbox));
    outbox->data = data;
    outbox->num_readers = num_readers;
    outbox->marks = calloc(HCE_CE_OUTBOX_BLOCKS * (size_t)num_readers,
                           sizeof(*outbox->marks));
    if (outbox->marks == NULL) {
        hce_log(ERROR, CE, "no memory for an outbox of %d readers",
                num_readers);
        return HCE_ERR_NO_MEMORY;
    }
    for (i = 0; i < HCE_CE_OUTBOX_BLOCKS; i++)
        outbox->blocks[i].marks = outbox->marks + i * (size_t)num_readers;
    return HCE_OK;
}

void hce_ce_outbox_cleanup(hce_ce_outbox_t *outbox)
{
    free(outbox->marks);
    outbox->marks = NULL;
}

static hce_ce_outbox_block_t *block_at(hce_ce_outbox_t *outbox, uint64_t i)
{
    return &outbox->blocks[i % HCE_CE_OUTBOX_BLOCKS];
}

/* Blocks are given back in order, each when its last reader is through. */
static void reclaim(hce_ce_outbox_t *outbox, hce_ce_ring_end_t *const *ends)
{
    hce_ce_outbox_block_t *block;
    int i;

    while (outbox->count > 0) {
        block = block_at(outbox, outbox->first);
        for (i = 0; i < outbox->num_readers; i++) {
            if (block->marks[i] == 0)
                continue;
            if (!hce_ce_ring_has_passed(ends[i], block->marks[i]))
                return;
            block->marks[i] = 0;
        }
        outbox->tail = block->end;
        outbox->first++;
        outbox->count--;
    }
}

/* Where a block of len bytes would start: one does not wrap. */
static uint64_t start_of(const hce_ce_outbox_t *outbox, size_t len)
{
    uint64_t at = outbox->head % HCE_CE_OUTBOX_SIZE;

    return at + len <= HCE_CE_OUTBOX_SIZE
               ? outbox->head
               : outbox->head + HCE_CE_OUTBOX_SIZE - at;
}

static bool fits(const hce_ce_outbox_t *outbox, size_t len)
{
    return outbox->count < HCE_CE_OUTBOX_BLOCKS &&
           start_of(outbox, len) + len - outbox->tail <= HCE_CE_OUTBOX_SIZE;
}

bool hce_ce_outbox_has_room(hce_ce_outbox_t *outbox,
                            hce_ce_ring_end_t *const *ends, size_t len)
{
    hce_ce_outbox_block_t *block;
    int i;

    if (fits(outbox, len))
        return true;
    reclaim(outbox, ends);
    if (fits(outbox, len))
        return true;
    /* One reader is enough to be woken by: what it leaves to wait for is
     * looked at again. */
    block = block_at(outbox, outbox->first);
    for (i = 0; i < outbox->num_readers; i++)
        if (block->marks[i] != 0 &&
            !hce_ce_ring_await(ends[i], block->marks[i]))
            return false;
    reclaim(outbox, ends);
    return fits(outbox, len);
}

uint64_t hce_ce_outbox_take(hce_ce_outbox_t *outbox, size_t len)
{
    uint64_t start = start_of(outbox, len);

    assert(fits(outbox, len));
    outbox->head = start + len;
    block_at(outbox, outbox->first + outbox->count)->end = outbox->head;
    outbox->count++;
    return start % HCE_CE_OUTBOX_SIZE;
}

void hce_ce_outbox_mark(hce_ce_outbox_t *outbox, int i,
                        const hce_ce_ring_end_t *end)
{
    block_at(outbox, outbox->first + outbox->count - 1)->marks[i] = end->here;
}
