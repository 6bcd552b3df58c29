/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Copies: what is refused at the call, and how an engine does them. In pieces
 * in random order, with random delays between, those of a batch mixed; so a
 * signal that is among the data comes too early sooner or later.
 */
#include "soft.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MIN_PIECE = 4096, MAX_PIECES = 16 };

/* One end of a piece of a copy. */
typedef struct end {
    soft_obj_t *obj; /* NULL: host memory */
    size_t offset;
    char *addr;
    int dev; /* -1: host */
} end_t;

static bool can_reach(const soft_range_t *range, int dev, bool is_write)
{
    if (range->kind == SOFT_ALLOC)
        return dev == range->dev || (soft_ctx(dev)->peers >> range->dev & 1);
    return (is_write ? range->writers : range->readers) >> dev & 1;
}

/* One end of a copy on dev at the call. */
static soft_result_t end_check(hce_cu_ptr_t va, size_t len, int dev,
                               bool is_write, bool is_peer)
{
    const soft_range_t *range;
    size_t part;

    if (!soft_is_device(va)) {
        if (!soft_is_pinned(va, len))
            soft_die("a copy of %zu bytes from or to host memory %#llx that "
                     "is not registered: it would not be asynchronous",
                     len, va);
        return HCE_CU_OK;
    }
    while (len > 0) {
        range = soft_range_find(va);
        if (range == NULL || va - range->va >= range->asked)
            return HCE_CU_INVALID_VALUE;
        if (range->obj->label->is_multicast && !is_write)
            return HCE_CU_INVALID_VALUE;
        /* Missing access to mapped handles is found by the engine. */
        if (range->kind != SOFT_VMM && !is_peer &&
            !can_reach(range, dev, is_write))
            return HCE_CU_INVALID_VALUE;
        part = range->asked - (va - range->va);
        part = part < len ? part : len;
        va += part;
        len -= part;
    }
    return HCE_CU_OK;
}

static bool overlap(hce_cu_ptr_t a, size_t a_len, hce_cu_ptr_t b, size_t b_len)
{
    return a < b + b_len && b < a + a_len;
}

/* No order inside a batch: nothing in it may depend on it. */
static void batch_check(const soft_copy_t *copies, size_t num)
{
    const soft_copy_t *a, *b;
    size_t i, j;

    for (i = 0; i < num; i++) {
        for (j = 0; j < num; j++) {
            a = &copies[i];
            b = &copies[j];
            if ((j > i && overlap(a->dst, a->len, b->dst, b->len)) ||
                overlap(a->dst, a->len, b->src, b->len))
                soft_die("copies %zu and %zu of a batch overlap", i, j);
        }
    }
}

static soft_result_t copies_check(const struct CUstream_st *stream,
                                  const soft_op_t *op)
{
    int dev = stream->ctx->dev;
    soft_result_t result = HCE_CU_OK;
    size_t i;

    for (i = 0; i < op->num && result == HCE_CU_OK; i++) {
        result = end_check(op->copies[i].dst, op->copies[i].len, dev, true,
                           op->is_peer);
        if (result == HCE_CU_OK)
            result = end_check(op->copies[i].src, op->copies[i].len, dev,
                               false, op->is_peer);
    }
    if (result == HCE_CU_OK)
        batch_check(op->copies, op->num);
    return result;
}

static soft_result_t copies_submit(struct CUstream_st *stream, soft_op_t *op)
{
    soft_result_t result = copies_check(stream, op);

    if (result == HCE_CU_OK)
        return soft_submit(stream, op);
    soft_op_free(op);
    return result;
}

static soft_result_t copy_one(hce_cu_stream_t handle, soft_copy_t copy,
                              bool is_peer)
{
    soft_result_t result = HCE_CU_INVALID_HANDLE;
    struct CUstream_st *stream;
    soft_op_t *op;

    if (copy.len == 0)
        return HCE_CU_OK;
    pthread_mutex_lock(&soft_lock);
    stream = soft_stream(handle);
    if (stream != NULL) {
        op = soft_op_make(SOFT_OP_COPY, 1);
        op->copies[0] = copy;
        op->is_peer = is_peer;
        result = copies_submit(stream, op);
    }
    pthread_mutex_unlock(&soft_lock);
    return result;
}

soft_result_t soft_memcpy_async(hce_cu_ptr_t dst, hce_cu_ptr_t src, size_t len,
                                hce_cu_stream_t handle)
{
    static soft_site_t site = {.name = "cuMemcpyAsync", .need = SOFT_CTX};
    soft_result_t result = soft_enter(&site);

    return result != HCE_CU_OK
               ? result
               : copy_one(handle, (soft_copy_t){dst, src, len}, false);
}

soft_result_t soft_memcpy_peer_async(hce_cu_ptr_t dst, hce_cu_ctx_t dst_ctx,
                                     hce_cu_ptr_t src, hce_cu_ctx_t src_ctx,
                                     size_t len, hce_cu_stream_t handle)
{
    static soft_site_t site = {.name = "cuMemcpyPeerAsync", .need = SOFT_CTX};
    soft_result_t result = soft_enter(&site);

    if (result != HCE_CU_OK)
        return result;
    if (dst_ctx == NULL || src_ctx == NULL)
        return HCE_CU_INVALID_CONTEXT;
    return copy_one(handle, (soft_copy_t){dst, src, len}, true);
}

static bool attrs_ok(const hce_cu_copy_attr_t *attrs, const size_t *indices,
                     size_t num_attrs, size_t num)
{
    size_t i;

    if (attrs == NULL || indices == NULL || num_attrs == 0 ||
        num_attrs > num || indices[0] != 0)
        return false;
    for (i = 0; i < num_attrs; i++) {
        if (attrs[i].src_order < HCE_CU_SRC_STREAM_ORDER ||
            attrs[i].src_order > HCE_CU_SRC_ANY || attrs[i].flags > 1 ||
            indices[i] >= num || (i > 0 && indices[i] <= indices[i - 1]))
            return false;
        if (attrs[i].src_order != HCE_CU_SRC_STREAM_ORDER)
            soft_die("a source that may be read before earlier work");
    }
    return true;
}

static soft_op_t *batch_make(const hce_cu_ptr_t *dsts,
                             const hce_cu_ptr_t *srcs, const size_t *lens,
                             size_t num)
{
    soft_op_t *op = soft_op_make(SOFT_OP_COPY, num);
    size_t i;

    op->is_batch = true;
    for (i = 0; i < num; i++) {
        op->copies[i] = (soft_copy_t){dsts[i], srcs[i], lens[i]};
        if (dsts[i] == 0 || srcs[i] == 0 || lens[i] == 0) {
            soft_op_free(op);
            return NULL;
        }
    }
    return op;
}

static soft_result_t batch_submit(hce_cu_stream_t handle, soft_op_t *op)
{
    struct CUstream_st *stream;
    soft_result_t result;

    pthread_mutex_lock(&soft_lock);
    stream = soft_stream(handle);
    if (stream != NULL && stream->capture == NULL) {
        result = copies_submit(stream, op);
    } else {
        /* The capture goes on, without these copies. */
        soft_op_free(op);
        result = stream == NULL ? HCE_CU_INVALID_HANDLE
                                : HCE_CU_CAPTURE_UNSUPPORTED;
    }
    pthread_mutex_unlock(&soft_lock);
    return result;
}

soft_result_t soft_memcpy_batch_async(hce_cu_ptr_t *dsts, hce_cu_ptr_t *srcs,
                                      size_t *lens, size_t num,
                                      hce_cu_copy_attr_t *attrs,
                                      size_t *indices, size_t num_attrs,
                                      hce_cu_stream_t handle)
{
    static soft_site_t site = {.name = "cuMemcpyBatchAsync", .need = SOFT_CTX};
    soft_result_t result = soft_enter(&site);
    soft_op_t *op;

    if (result != HCE_CU_OK)
        return result;
    if (handle == NULL || handle == HCE_CU_STREAM_LEGACY || num == 0 ||
        !attrs_ok(attrs, indices, num_attrs, num))
        return HCE_CU_INVALID_VALUE;
    op = batch_make(dsts, srcs, lens, num);
    return op == NULL ? HCE_CU_INVALID_VALUE : batch_submit(handle, op);
}

soft_result_t soft_memcpy_batch_async_12080(
    hce_cu_ptr_t *dsts, hce_cu_ptr_t *srcs, size_t *lens, size_t num,
    hce_cu_copy_attr_t *attrs, size_t *indices, size_t num_attrs,
    size_t *fail_p, hce_cu_stream_t handle)
{
    soft_result_t result = soft_memcpy_batch_async(
        dsts, srcs, lens, num, attrs, indices, num_attrs, handle);

    if (result != HCE_CU_OK && fail_p != NULL)
        *fail_p = SIZE_MAX;
    return result;
}

/* Where va is for an engine of dev; len_p is cut to what lies together.
 * Caller holds soft_lock. */
static soft_result_t end_find(hce_cu_ptr_t va, const soft_op_t *op,
                              bool is_write, size_t *len_p, end_t *end_p)
{
    const soft_range_t *range = soft_range_find(va);
    size_t left;

    if (range == NULL) {
        *end_p = (end_t){.addr = (char *)(uintptr_t)va, .dev = -1};
        return soft_is_device(va) ? HCE_CU_ILLEGAL_ADDRESS : HCE_CU_OK;
    }
    if (!op->is_peer && !can_reach(range, op->stream->ctx->dev, is_write))
        return HCE_CU_ILLEGAL_ADDRESS;
    left = range->len - (va - range->va);
    *len_p = *len_p < left ? *len_p : left;
    *end_p = (end_t){.obj = range->obj,
                     .offset = va - range->va,
                     .addr = range->obj->data + (va - range->va),
                     .dev = range->dev};
    return HCE_CU_OK;
}

static void multicast_write(const end_t *dst, const end_t *src, size_t len,
                            uint64_t *random)
{
    soft_target_t targets[SOFT_MAX_BINDS];
    size_t offset = dst->offset, done = 0, part;
    int num, i, first;

    while (done < len) {
        part = len - done;
        num = soft_multicast_targets(dst->obj, offset + done, &part, targets);
        if (num == 0)
            soft_die("a write to a multicast where nothing is bound");
        first = (int)(soft_random(random) % (unsigned)num);
        for (i = 0; i < num; i++) {
            const soft_target_t *target = &targets[(first + i) % num];

            memcpy(target->obj->data + target->offset, src->addr + done, part);
            soft_nic_written(target->obj, target->offset, part);
        }
        done += part;
    }
}

/* Bytes between a and b, which may be several ranges on either side. */
static soft_result_t piece_run(const soft_op_t *op, soft_copy_t piece,
                               uint64_t *random)
{
    soft_result_t result;
    end_t dst, src;
    size_t len;

    while (piece.len > 0) {
        len = piece.len;
        pthread_mutex_lock(&soft_lock);
        result = end_find(piece.dst, op, true, &len, &dst);
        if (result == HCE_CU_OK)
            result = end_find(piece.src, op, false, &len, &src);
        pthread_mutex_unlock(&soft_lock);
        if (result != HCE_CU_OK)
            return result;
        if (src.obj != NULL)
            soft_nic_settle(src.obj, op->stream->ctx->dev, random);
        if (dst.obj != NULL && dst.obj->label->is_multicast) {
            multicast_write(&dst, &src, len, random);
        } else {
            memcpy(dst.addr, src.addr, len);
            if (dst.obj != NULL)
                soft_nic_written(dst.obj, dst.offset, len);
        }
        piece.dst += len;
        piece.src += len;
        piece.len -= len;
    }
    return HCE_CU_OK;
}

static size_t pieces_cut(const soft_copy_t *copy, soft_copy_t *pieces)
{
    size_t size = copy->len / MAX_PIECES + 1, at, num = 0;

    size = size < MIN_PIECE ? MIN_PIECE : size;
    for (at = 0; at < copy->len; at += size) {
        pieces[num].dst = copy->dst + at;
        pieces[num].src = copy->src + at;
        pieces[num].len = copy->len - at < size ? copy->len - at : size;
        num++;
    }
    return num;
}

static void copy_count(const soft_op_t *op, const soft_copy_t *copy)
{
    softgpu_counters_t *c = &soft_counters;
    end_t dst, src;
    size_t len = copy->len;
    soft_result_t result;

    pthread_mutex_lock(&soft_lock);
    result = end_find(copy->dst, op, true, &len, &dst);
    if (result == HCE_CU_OK)
        result = end_find(copy->src, op, false, &len, &src);
    pthread_mutex_unlock(&soft_lock);
    if (result != HCE_CU_OK)
        return;
    if (dst.obj != NULL && dst.obj->label->is_multicast) {
        soft_count(&c->copies_multicast, 1);
    } else if (dst.dev < 0) {
        soft_count(src.dev < 0 ? &c->copies_h2h : &c->copies_d2h, 1);
        soft_count(src.dev < 0 ? &c->bytes_h2h : &c->bytes_d2h, copy->len);
    } else if (src.dev < 0) {
        soft_count(&c->copies_h2d, 1);
        soft_count(&c->bytes_h2d, copy->len);
    } else {
        bool is_same = src.dev == dst.dev;

        soft_count(is_same ? &c->copies_same : &c->copies_peer, 1);
        soft_count(is_same ? &c->bytes_same : &c->bytes_peer, copy->len);
    }
}

soft_result_t soft_copy_run(soft_op_t *op, uint64_t *random)
{
    soft_copy_t *pieces, piece;
    soft_result_t result = HCE_CU_OK;
    size_t num = 0, i, j;

    pieces = malloc(op->num * MAX_PIECES * sizeof(*pieces));
    if (pieces == NULL)
        soft_die("no memory");
    for (i = 0; i < op->num; i++) {
        num += pieces_cut(&op->copies[i], pieces + num);
        copy_count(op, &op->copies[i]);
    }
    if (op->is_batch)
        soft_count(&soft_counters.batches, 1);
    for (i = 0; i < num && result == HCE_CU_OK; i++) {
        j = i + soft_random(random) % (num - i);
        piece = pieces[j];
        pieces[j] = pieces[i];
        if (i > 0 && soft_settings.jitter_us > 0 &&
            soft_random(random) % 8 == 0)
            usleep(soft_random(random) % (unsigned)soft_settings.jitter_us);
        result = piece_run(op, piece, random);
    }
    free(pieces);
    return result;
}
