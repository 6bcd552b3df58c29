/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The staging ring. Entries are a header of one unit and, for data in the
 * ring, the bytes, rounded up to whole units: a header never wraps, data may.
 */
#include <config.h>

#include "ce/host/ring.h"

#include "ce/host/copy.h"
#include "util/math.h"

#include <assert.h>
#include <string.h>

#define UNIT      32u
#define PIECE_LEN (32u * 1024) /* published at once: the reader overlaps */

enum { ENTRY_DATA = 1, ENTRY_POST = 2, ENTRY_REFER = 3 };

typedef struct entry {
    uint32_t kind;
    uint32_t len;   /* of data, which follow or lie in the outbox */
    uint64_t where; /* address at the reader, or index of a counter */
    uint64_t value; /* ENTRY_POST; ENTRY_REFER: offset in the outbox */
    uint64_t flags; /* ENTRY_REFER: 1 is to be copied past the caches */
} entry_t;

_Static_assert(sizeof(entry_t) == UNIT, "a header is one unit");
_Static_assert(HCE_CE_RING_POST_SIZE == UNIT, "a post is a header");
_Static_assert(HCE_CE_RING_SIZE % UNIT == 0, "a header never wraps");
_Static_assert(HCE_CE_QUANTUM + (HCE_CE_QUANTUM / PIECE_LEN + 1) * UNIT <=
                   HCE_CE_RING_SIZE,
               "an empty ring takes a quantum");

/* All ranks agree between the two, which orders them. */
void hce_ce_ring_use(hce_ce_ring_end_t *end)
{
    atomic_store_explicit(&end->ring->used, 1, memory_order_relaxed);
}

bool hce_ce_ring_is_used(const hce_ce_ring_end_t *end)
{
    return atomic_load_explicit(&end->ring->used, memory_order_relaxed) != 0;
}

static size_t entry_need(size_t len)
{
    return UNIT + hce_round_up(len, UNIT);
}

size_t hce_ce_ring_need(size_t len)
{
    size_t whole = len / PIECE_LEN, rest = len % PIECE_LEN;

    return whole * entry_need(PIECE_LEN) + (rest > 0 ? entry_need(rest) : 0);
}

static size_t room(const hce_ce_ring_end_t *end, memory_order order)
{
    uint64_t used = end->here - atomic_load_explicit(&end->ring->tail, order);

    return used > HCE_CE_RING_SIZE ? 0 : HCE_CE_RING_SIZE - (size_t)used;
}

bool hce_ce_ring_has_room(hce_ce_ring_end_t *end, size_t need)
{
    /* Acquire: the reader's loads of what lay there came before its store of
     * tail in hce_ce_ring_drain(), so it may be overwritten. */
    if (room(end, memory_order_acquire) >= need)
        return true;
    /* Either this sees the reader's newer tail, or the reader sees starved:
     * both are sequentially consistent here and in hce_ce_ring_drain(). Why
     * both exchange: see hce_ce_seg_arm(). */
    atomic_exchange(&end->ring->starved, 1);
    return room(end, memory_order_seq_cst) >= need;
}

/* Data may wrap; at is a position since the start. */
static void bytes_in(hce_ce_ring_end_t *end, uint64_t at, const void *src,
                     size_t len)
{
    size_t start = at % HCE_CE_RING_SIZE;
    size_t first = hce_min(len, HCE_CE_RING_SIZE - start);

    memcpy(end->data + start, src, first);
    memcpy(end->data, (const char *)src + first, len - first);
}

static void bytes_out(const hce_ce_ring_end_t *end, uint64_t at, void *dst,
                      size_t len)
{
    size_t start = at % HCE_CE_RING_SIZE;
    size_t first = hce_min(len, HCE_CE_RING_SIZE - start);

    memcpy(dst, end->data + start, first);
    memcpy((char *)dst + first, end->data, len - first);
}

/* Bytes of ring that it takes. */
static size_t entry_size(const entry_t *entry)
{
    return entry->kind == ENTRY_DATA ? entry_need(entry->len) : UNIT;
}

/* src is NULL but for data. */
static void entry_put(hce_ce_ring_end_t *end, const entry_t *entry,
                      const void *src)
{
    bytes_in(end, end->here, entry, sizeof(*entry));
    if (src != NULL)
        bytes_in(end, end->here + UNIT, src, entry->len);
    end->here += entry_size(entry);
    /* Release: the entry, and what it refers to, is written before the
     * reader sees the new head in hce_ce_ring_drain(). */
    atomic_store_explicit(&end->ring->head, end->here, memory_order_release);
}

void hce_ce_ring_put(hce_ce_ring_end_t *end, uint64_t addr, const char *src,
                     size_t len)
{
    entry_t entry = {.kind = ENTRY_DATA};
    size_t done;

    assert(room(end, memory_order_relaxed) >= hce_ce_ring_need(len));
    for (done = 0; done < len; done += entry.len) {
        entry.len = (uint32_t)hce_min(len - done, PIECE_LEN);
        entry.where = addr + done;
        entry_put(end, &entry, src + done);
    }
}

void hce_ce_ring_post(hce_ce_ring_end_t *end, uint32_t index, uint64_t value)
{
    entry_t entry = {.kind = ENTRY_POST, .where = index, .value = value};

    assert(room(end, memory_order_relaxed) >= UNIT);
    entry_put(end, &entry, NULL);
}

void hce_ce_ring_refer(hce_ce_ring_end_t *end, uint64_t addr,
                       const hce_ce_ring_refer_t *to)
{
    entry_t entry = {.kind = ENTRY_REFER,
                     .len = to->len,
                     .where = addr,
                     .value = to->offset,
                     .flags = to->streaming ? 1 : 0};

    assert(room(end, memory_order_relaxed) >= UNIT);
    entry_put(end, &entry, NULL);
}

/* The tail never passes the head, so that a difference says which is first
 * even for a reader that lies. */
static bool is_past(uint64_t tail, uint64_t position)
{
    return (int64_t)(tail - position) >= 0;
}

bool hce_ce_ring_has_passed(const hce_ce_ring_end_t *end, uint64_t position)
{
    /* Acquire: the reader's loads of what an entry refers to came before its
     * store of tail in hce_ce_ring_drain(), so it may be overwritten. */
    return is_past(
        atomic_load_explicit(&end->ring->tail, memory_order_acquire),
        position);
}

bool hce_ce_ring_await(hce_ce_ring_end_t *end, uint64_t position)
{
    /* Sequentially consistent both: see hce_ce_ring_has_room(). */
    atomic_exchange(&end->ring->starved, 1);
    return is_past(atomic_load(&end->ring->tail), position);
}

bool hce_ce_ring_is_drained(const hce_ce_ring_end_t *end)
{
    return room(end, memory_order_acquire) == HCE_CE_RING_SIZE;
}

bool hce_ce_ring_is_empty(const hce_ce_ring_end_t *end)
{
    return atomic_load_explicit(&end->ring->head, memory_order_relaxed) ==
           end->here;
}

static bool is_allowed(const hce_ce_ring_sink_t *sink, uint64_t addr,
                       size_t len)
{
    const hce_ce_range_t *range;
    size_t i;

    for (i = 0; i < sink->num_ranges; i++) {
        range = &sink->ranges[i];
        if (addr >= range->addr && addr - range->addr <= range->len &&
            len <= range->len - (addr - range->addr))
            return true;
    }
    return false;
}

static bool is_in_outbox(const hce_ce_ring_sink_t *sink, const entry_t *entry)
{
    return entry->value <= sink->outbox_size &&
           entry->len <= sink->outbox_size - entry->value;
}

static void refer_take(const entry_t *entry, const hce_ce_ring_sink_t *sink)
{
    char *dst = (char *)(uintptr_t)entry->where;

    hce_ce_loop_copy(&dst, 1, sink->outbox + entry->value, entry->len,
                     entry->flags & 1);
}

/* NULL, or what is wrong with the entry, which lies in have bytes. */
static const char *entry_take(const hce_ce_ring_end_t *end,
                              const entry_t *entry, uint64_t have,
                              const hce_ce_ring_sink_t *sink)
{
    if (entry->kind == ENTRY_POST && entry->len == 0) {
        if (entry->where >= sink->num_counters)
            return "a post to a counter that does not exist";
        /* Release: the data before it in the ring is visible to who reads
         * the counter; pairs with hce_counter_read(). */
        hce_counter_post(&sink->counters[entry->where], entry->value);
        return NULL;
    }
    if ((entry->kind != ENTRY_DATA && entry->kind != ENTRY_REFER) ||
        entry_size(entry) > have)
        return "a damaged entry";
    if (entry->kind == ENTRY_REFER && !is_in_outbox(sink, entry))
        return "data outside of its outbox";
    if (!is_allowed(sink, entry->where, entry->len))
        return "data outside of the buffers that it may write";
    if (entry->kind == ENTRY_REFER)
        refer_take(entry, sink);
    else
        bytes_out(end, end->here + UNIT, (void *)(uintptr_t)entry->where,
                  entry->len);
    return NULL;
}

hce_status_t hce_ce_ring_drain(hce_ce_ring_end_t *end,
                               const hce_ce_ring_sink_t *sink, bool *starved_p,
                               const char **why_p)
{
    hce_ce_ring_t *ring = end->ring;
    const char *why = NULL;
    uint64_t head;
    entry_t entry; /* a copy: the writer could change it after the checks */

    /* Acquire: pairs with the store of head in entry_put(). */
    head = atomic_load_explicit(&ring->head, memory_order_acquire);
    *starved_p = false;
    if (head == end->here)
        return HCE_OK;
    if (head - end->here > HCE_CE_RING_SIZE || head % UNIT != 0) {
        *why_p = "a damaged ring";
        return HCE_ERR_INTERNAL;
    }
    while (end->here != head) {
        bytes_out(end, end->here, &entry, sizeof(entry));
        why = entry_take(end, &entry, head - end->here, sink);
        if (why != NULL) {
            *why_p = why;
            return HCE_ERR_INTERNAL;
        }
        end->here += entry_size(&entry);
    }
    /* Sequentially consistent, with starved: see hce_ce_ring_has_room(). It
     * is also the release that hce_ce_ring_is_drained() pairs with. */
    atomic_exchange(&ring->tail, end->here);
    *starved_p = atomic_load(&ring->starved) != 0 &&
                 atomic_exchange(&ring->starved, 0) != 0;
    return HCE_INPROGRESS;
}
