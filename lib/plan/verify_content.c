/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * What every byte of every buffer holds: whose contributions, from which
 * offset of their inputs, of which launch; who wrote it last and who has read
 * it since. A buffer is a list of sorted segments; outputs are kept slice by
 * slice, so that lists stay short. Each access is checked against the
 * conflicting ones before it: all of them must be ordered by counters, so
 * that no other timing gives another result than the one replayed.
 */
#include "config.h"

#include "plan/verify_content.h"

#include "plan/show.h"
#include "util/math.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Part of an access that lies in one area. */
typedef struct span {
    hce_verify_area_t *area;
    uint64_t start;
    uint64_t end;
    int rank;
    hce_plan_buf_t buf;
} span_t;

/* An output is one area, but for AllGather, where it is one for each slice. */
static uint64_t area_len(const hce_verify_t *v, int rank, int index)
{
    switch (index - v->nranks) {
    case HCE_VERIFY_AREA_SEND:
        return hce_plan_send_len(&v->plans[0]->params);
    case HCE_VERIFY_AREA_SCRATCH:
        return v->plans[rank]->scratch_len;
    case HCE_VERIFY_AREA_STAGE:
        return v->plans[rank]->stage_len;
    default:
        return index == 0 || hce_verify_coll(v) == HCE_COLL_ALLGATHER ? v->len
                                                                   : 0;
    }
}

/* The area of a rank's input; the output's, or a part of it, in place. */
static int input_index(const hce_verify_t *v, int rank)
{
    if (v->in_place && hce_verify_coll(v) == HCE_COLL_ALLGATHER) {
        return rank;
    }
    return v->in_place && hce_verify_coll(v) == HCE_COLL_ALLREDUCE
               ? 0
               : v->nranks + HCE_VERIFY_AREA_SEND;
}

int hce_verify_output_index(const hce_verify_t *v, int rank, uint64_t *at_p)
{
    int index = 0;

    if (hce_verify_coll(v) == HCE_COLL_ALLGATHER) {
        index = *at_p / v->len;
        *at_p %= v->len;
    } else if (hce_verify_coll(v) == HCE_COLL_REDUCE_SCATTER && v->in_place) {
        index = v->nranks + HCE_VERIFY_AREA_SEND;
        *at_p += rank * v->len;
    }
    return index;
}

/* Numbers orders of addition: not the same for (a + b) + c as for others. */
static uint64_t order_join(uint64_t a, uint64_t b)
{
    uint64_t state = a * UINT64_C(0x9e3779b97f4a7c15) + b;

    return hce_rand_next(&state);
}

/* The set of all ranks has a number of its own. */
static bool content_find_full(hce_verify_content_t *c)
{
    int rank, twice;

    for (rank = 1; rank < c->v->nranks; rank++) {
        if (hce_verify_sets_join(c->sets, c->full, (uint32_t)rank, &c->full,
                                 &twice) != HCE_OK) {
            return false;
        }
    }
    return true;
}

bool hce_verify_content_create(hce_verify_t *v, hce_verify_content_t **c_p)
{
    hce_verify_content_t *c = calloc(1, sizeof(*c));
    int rank, i, n = v->nranks;
    bool ok;

    if (c == NULL) {
        return hce_verify_no_memory(v);
    }
    c->v = v;
    c->num_reads = 1;
    c->sets = hce_verify_sets_create(n);
    c->areas = calloc((size_t)n * (n + HCE_VERIFY_AREA_OTHERS),
                      sizeof(*c->areas));
    ok = c->sets != NULL && c->areas != NULL;
    for (rank = 0; ok && rank < n; rank++) {
        for (i = 0; ok && i < n + HCE_VERIFY_AREA_OTHERS; i++) {
            ok = hce_verify_area_init(hce_verify_content_area(c, rank, i),
                                      area_len(v, rank, i));
        }
    }
    if (ok && hce_verify_coll(v) != HCE_COLL_ALLGATHER) {
        ok = content_find_full(c);
    }
    if (!ok) {
        hce_verify_content_destroy(c);
        return hce_verify_no_memory(v);
    }
    *c_p = c;
    return true;
}

void hce_verify_content_destroy(hce_verify_content_t *c)
{
    size_t i, n;

    if (c == NULL) {
        return;
    }
    n = c->v->nranks;
    for (i = 0;
         c->areas != NULL && i < n * (n + HCE_VERIFY_AREA_OTHERS); i++) {
        hce_verify_area_cleanup(&c->areas[i]);
    }
    free(c->areas);
    free(c->reads);
    free(c->pieces);
    free(c->orders);
    hce_verify_sets_destroy(c->sets);
    free(c);
}

/* Where a ref begins in this launch; done bytes of it are dealt with. */
static span_t content_span(hce_verify_content_t *c, const hce_plan_ref_t *ref,
                           uint64_t done, uint64_t len)
{
    uint64_t slot =
        ref->depth > 1 ? (c->launch % ref->depth) * ref->stride : 0;
    uint64_t at = ref->offset + slot + done;
    span_t span = {.rank = ref->rank, .buf = ref->buf};
    int index, n = c->v->nranks;

    switch (ref->buf) {
    case HCE_BUF_SEND:
        index = input_index(c->v, ref->rank);
        break;
    case HCE_BUF_RECV:
        index = hce_verify_output_index(c->v, ref->rank, &at);
        break;
    case HCE_BUF_SCRATCH:
        index = n + HCE_VERIFY_AREA_SCRATCH;
        break;
    default:
        index = n + HCE_VERIFY_AREA_STAGE;
    }
    span.area = hce_verify_content_area(c, ref->rank, index);
    span.start = at;
    span.end = hce_min(span.area->len, at + (len - done));
    return span;
}

/* Is an earlier access of no concern? Launches are told apart by entry and
 * completion where buffers of the call are touched, not in the library's. */
static bool content_is_past(const hce_verify_content_t *c, const span_t *span,
                            uint32_t instance)
{
    return instance == HCE_VERIFY_NONE || instance == c->instance ||
           ((span->buf == HCE_BUF_SEND || span->buf == HCE_BUF_RECV) &&
            instance / hce_verify_num_ops(c->v) != (uint32_t)c->launch);
}

static bool content_fault(hce_verify_content_t *c, const span_t *span,
                          uint32_t other, const char *what)
{
    char name[HCE_VERIFY_NAME_SIZE], before[HCE_VERIFY_NAME_SIZE];
    uint32_t num = hce_verify_num_ops(c->v);
    uint64_t at = span->start;
    ptrdiff_t slice = span->area - hce_verify_content_area(c, span->rank, 0);

    if (slice < c->v->nranks) {
        at += slice * c->v->len;
    }
    return hce_verify_fault(
        c->v, "launch %d: %s %s at byte %" PRIu64 " of %s of rank %d: %s",
        c->launch, hce_verify_name_op(c->v, c->instance % num, name), what, at,
        hce_plan_buf_string(span->buf), span->rank,
        hce_verify_name_op(c->v, other % num, before));
}

static bool content_add_read(hce_verify_content_t *c,
                             hce_verify_segment_t *segment)
{
    hce_verify_read_t *reads;

    if (c->num_reads >= c->cap_reads) {
        uint32_t cap = hce_max(2 * c->cap_reads, 1024u);

        reads = realloc(c->reads, cap * sizeof(*reads));
        if (reads == NULL) {
            return hce_verify_no_memory(c->v);
        }
        c->reads = reads;
        c->cap_reads = cap;
    }
    c->reads[c->num_reads] =
        (hce_verify_read_t){c->instance, segment->readers};
    segment->readers = c->num_reads++;
    return true;
}

static bool content_add_piece(hce_verify_content_t *c, uint64_t len,
                              hce_verify_value_t value)
{
    hce_verify_piece_t *pieces;

    if (c->num_pieces == c->cap_pieces) {
        uint32_t cap = hce_max(2 * c->cap_pieces, 64u);

        pieces = realloc(c->pieces, cap * sizeof(*pieces));
        if (pieces == NULL) {
            return hce_verify_no_memory(c->v);
        }
        c->pieces = pieces;
        c->cap_pieces = cap;
    }
    c->pieces[c->num_pieces++] = (hce_verify_piece_t){len, value};
    return true;
}

static bool content_read_span(hce_verify_content_t *c, const span_t *span)
{
    hce_verify_area_t *area = span->area;
    uint32_t i = hce_verify_area_cut(area, span->start);
    uint32_t end = hce_verify_area_cut(area, span->end);

    if (i == HCE_VERIFY_NONE || end == HCE_VERIFY_NONE) {
        return hce_verify_no_memory(c->v);
    }
    for (; i < end; i++) {
        hce_verify_segment_t *s = &area->segments[i];

        if (!content_is_past(c, span, s->writer) &&
            !hce_verify_is_ordered(c->v, s->writer, c->instance)) {
            return content_fault(c, span, s->writer,
                                 "does not wait for the write of what it "
                                 "reads");
        }
        if (!content_add_read(c, s) ||
            !content_add_piece(c, hce_verify_area_end(area, i) - s->start,
                               s->value)) {
            return false;
        }
    }
    return true;
}

/* Appends what the ref's bytes hold to pieces[]. */
static bool content_read(hce_verify_content_t *c, const hce_plan_ref_t *ref,
                         uint64_t len)
{
    uint64_t done = 0;
    span_t span;

    while (done < len) {
        span = content_span(c, ref, done, len);
        if (!content_read_span(c, &span)) {
            return false;
        }
        done += span.end - span.start;
    }
    return true;
}

/* All that has been done to a segment comes before its being overwritten. */
static bool content_check_write(hce_verify_content_t *c, const span_t *span,
                                const hce_verify_segment_t *s)
{
    bool once = span->buf == HCE_BUF_RECV &&
                hce_verify_coll(c->v) == HCE_COLL_ALLGATHER;
    uint32_t op = c->instance % hce_verify_num_ops(c->v), i, reader;

    if (s->writer == c->instance || !content_is_past(c, span, s->writer)) {
        if (once || s->writer == c->instance) {
            return content_fault(c, span, s->writer,
                                 "writes for the second time");
        }
        if (!hce_verify_is_ordered(c->v, s->writer, c->instance)) {
            return content_fault(c, span, s->writer,
                                 "does not wait for the write that it "
                                 "overwrites");
        }
    }
    for (i = s->readers; i != 0; i = c->reads[i].next) {
        reader = c->reads[i].reader;
        if (reader == c->instance &&
            hce_verify_op(c->v, op)->kind != HCE_OP_REDUCE) {
            return content_fault(c, span, reader, "overwrites its source");
        }
        if (!content_is_past(c, span, reader) &&
            !hce_verify_is_ordered(c->v, reader, c->instance)) {
            return content_fault(c, span, reader,
                                 "does not wait for the read of what it "
                                 "overwrites");
        }
    }
    return true;
}

/* Where in pieces[] a write is. */
typedef struct cursor {
    uint32_t piece;
    uint64_t used; /* of that piece */
} cursor_t;

static uint32_t cursor_count(const hce_verify_content_t *c, cursor_t cursor,
                             uint64_t len)
{
    uint64_t have = c->pieces[cursor.piece].len - cursor.used;
    uint32_t num = 1;

    while (have < len) {
        have += c->pieces[cursor.piece + num++].len;
    }
    return num;
}

static void content_fill(hce_verify_content_t *c, const span_t *span,
                         uint32_t index, cursor_t *cursor)
{
    hce_verify_segment_t *s = &span->area->segments[index];
    uint64_t at = span->start, len;

    for (; at < span->end; at += len) {
        const hce_verify_piece_t *piece = &c->pieces[cursor->piece];

        *s = (hce_verify_segment_t){
            .start = at, .value = piece->value, .writer = c->instance};
        s->value.offset += cursor->used;
        s++;
        len = hce_min(piece->len - cursor->used, span->end - at);
        cursor->used += len;
        if (cursor->used == piece->len) {
            cursor->piece++;
            cursor->used = 0;
        }
    }
}

static bool content_write(hce_verify_content_t *c, const hce_plan_ref_t *ref,
                          uint64_t len, uint32_t first_piece)
{
    cursor_t cursor = {first_piece, 0};
    uint32_t begin, end, i;
    uint64_t done = 0;
    span_t span;

    for (; done < len; done += span.end - span.start) {
        span = content_span(c, ref, done, len);
        begin = hce_verify_area_cut(span.area, span.start);
        end = hce_verify_area_cut(span.area, span.end);
        if (begin == HCE_VERIFY_NONE || end == HCE_VERIFY_NONE) {
            return hce_verify_no_memory(c->v);
        }
        for (i = begin; i < end; i++) {
            if (!content_check_write(c, &span, &span.area->segments[i])) {
                return false;
            }
        }
        if (!hce_verify_area_resize(
                span.area, begin, end - begin,
                cursor_count(c, cursor, span.end - span.start))) {
            return hce_verify_no_memory(c->v);
        }
        content_fill(c, &span, begin, &cursor);
    }
    return true;
}

/* Adds a value to a sum of others; both of the same bytes. */
static bool content_join(hce_verify_content_t *c, hce_verify_value_t *sum,
                         const hce_verify_value_t *value)
{
    char name[HCE_VERIFY_NAME_SIZE];
    uint32_t op = c->instance % hce_verify_num_ops(c->v);
    hce_status_t status;
    int twice;

    if (sum->set == HCE_VERIFY_NONE || value->set == HCE_VERIFY_NONE ||
        sum->offset != value->offset || sum->launch != value->launch) {
        return hce_verify_fault(c->v,
                                "launch %d: %s adds bytes that do not belong "
                                "together",
                                c->launch, hce_verify_name_op(c->v, op, name));
    }
    status =
        hce_verify_sets_join(c->sets, sum->set, value->set, &sum->set, &twice);
    if (status == HCE_ERR_INVALID_ARG) {
        return hce_verify_fault(
            c->v, "launch %d: %s adds the contribution of rank %d twice",
            c->launch, hce_verify_name_op(c->v, op, name), twice);
    }
    sum->order = order_join(sum->order, value->order);
    return status == HCE_OK ? true : hce_verify_no_memory(c->v);
}

/* Adds pieces[from..] to pieces[first..from); both cover the same length. The
 * sum comes behind them, and *first_p is where. */
static bool content_reduce(hce_verify_content_t *c, uint32_t *first_p,
                           uint32_t from, uint64_t len)
{
    cursor_t a = {*first_p, 0}, b = {from, 0};
    uint64_t part;
    hce_verify_value_t sum, other;

    *first_p = c->num_pieces;
    for (; len > 0; len -= part) {
        part = hce_min(c->pieces[a.piece].len - a.used,
                       c->pieces[b.piece].len - b.used);
        sum = c->pieces[a.piece].value;
        sum.offset += a.used;
        other = c->pieces[b.piece].value;
        other.offset += b.used;
        if (!content_join(c, &sum, &other) ||
            !content_add_piece(c, part, sum)) {
            return false;
        }
        a.used += part;
        b.used += part;
        if (a.used == c->pieces[a.piece].len) {
            a = (cursor_t){a.piece + 1, 0};
        }
        if (b.used == c->pieces[b.piece].len) {
            b = (cursor_t){b.piece + 1, 0};
        }
    }
    return true;
}

/* Whoever completes a sum knows it, and nobody else does. */
static bool content_check_last(hce_verify_content_t *c,
                               const hce_plan_op_t *op, uint32_t first)
{
    char name[HCE_VERIFY_NAME_SIZE];
    uint32_t i, index = c->instance % hce_verify_num_ops(c->v);

    for (i = first; hce_verify_coll(c->v) != HCE_COLL_ALLGATHER &&
                    i < c->num_pieces;
         i++) {
        if ((c->pieces[i].value.set == c->full) != op->is_last) {
            return hce_verify_fault(
                c->v, "launch %d: %s %s", c->launch,
                hce_verify_name_op(c->v, index, name),
                op->is_last ? "is the last, but contributions are missing"
                            : "completes its sums, but is not the last");
        }
    }
    return true;
}

/* A destination may lie on a source, but not beside its beginning: bytes
 * would be overwritten before they are read. */
static bool content_check_shift(hce_verify_content_t *c,
                                const hce_plan_op_t *op,
                                const hce_plan_ref_t *refs)
{
    int i, j;

    if (op->kind != HCE_OP_REDUCE) {
        return true;
    }
    for (i = 0; i < op->num_src; i++) {
        span_t src = content_span(c, &refs[i], 0, op->len);

        for (j = 0; j < op->num_dst; j++) {
            span_t dst = content_span(c, &refs[op->num_src + j], 0, op->len);

            if (src.area == dst.area && src.start != dst.start &&
                src.start < dst.end && dst.start < src.end) {
                return content_fault(c, &dst, c->instance,
                                     "overwrites what it has yet to add");
            }
        }
    }
    return true;
}

bool hce_verify_content_apply(hce_verify_content_t *c, uint32_t op_index,
                              int launch)
{
    const hce_plan_op_t *op = hce_verify_op(c->v, op_index);
    int rank = hce_verify_op_rank(c->v, op_index), i;
    const hce_plan_ref_t *refs = &c->v->plans[rank]->refs[op->ref];
    uint32_t first = 0, from;

    if (op->len == 0) {
        return true;
    }
    c->launch = launch;
    c->instance = launch * hce_verify_num_ops(c->v) + op_index;
    c->num_pieces = 0;
    if (!content_check_shift(c, op, refs)) {
        return false;
    }
    for (i = 0; i < op->num_src; i++) {
        from = c->num_pieces;
        if (!content_read(c, &refs[i], op->len) ||
            (i > 0 && !content_reduce(c, &first, from, op->len))) {
            return false;
        }
    }
    if (op->kind == HCE_OP_REDUCE && !content_check_last(c, op, first)) {
        return false;
    }
    for (i = 0; i < op->num_dst; i++) {
        if (!content_write(c, &refs[op->num_src + i], op->len, first)) {
            return false;
        }
    }
    return true;
}

bool hce_verify_content_enter(hce_verify_content_t *c, int rank, int launch)
{
    hce_verify_area_t *area =
        hce_verify_content_area(c, rank, input_index(c->v, rank));

    if (c->v->len > 0) {
        area->num = 1;
        area->segments[0] = (hce_verify_segment_t){
            .value = {.set = rank,
                      .launch = launch,
                      .order = order_join(0, (uint64_t)rank)},
            .writer = HCE_VERIFY_NONE,
        };
    }
    return true;
}
