/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Frames over a stream socket. The owner serialises all calls.
 */
#include <config.h>

#include "boot/conn.h"
#include "util/math.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BODY_FIRST 4096u /* bytes allocated before any of a body has come */
#define BODY_KEEP  (64u << 10)

struct hce_boot_out {
    hce_boot_out_t *next;
    hce_boot_buf_t *buf;
};

void hce_boot_conn_init(hce_boot_conn_t *conn, int fd, uint32_t max_len)
{
    memset(conn, 0, sizeof(*conn));
    conn->fd = fd;
    conn->max_len = max_len;
}

static void out_pop(hce_boot_conn_t *conn)
{
    hce_boot_out_t *out = conn->first;

    conn->first = out->next;
    conn->first_done = 0;
    if (conn->first == NULL)
        conn->last = NULL;
    hce_boot_buf_put(out->buf);
    free(out);
}

static void out_drop(hce_boot_conn_t *conn)
{
    while (conn->first != NULL)
        out_pop(conn);
}

void hce_boot_conn_close(hce_boot_conn_t *conn)
{
    if (conn->fd >= 0)
        close(conn->fd);
    conn->fd = -1;
    out_drop(conn);
    free(conn->body);
    conn->body = NULL;
    conn->body_size = 0;
}

void hce_boot_conn_move(hce_boot_conn_t *to, hce_boot_conn_t *from)
{
    *to = *from;
    hce_boot_conn_init(from, -1, 0);
}

/* A large body is not kept for the small ones that follow. */
static void body_trim(hce_boot_conn_t *conn)
{
    if (conn->got == 0 && conn->body_size > BODY_KEEP) {
        free(conn->body);
        conn->body = NULL;
        conn->body_size = 0;
    }
}

/* Room for at least one more byte of the body. */
static hce_status_t body_grow(hce_boot_conn_t *conn)
{
    size_t size = hce_max((size_t)BODY_FIRST, 2 * conn->body_size);
    uint8_t *body;

    size = hce_min(size, (size_t)conn->frame.len);
    body = realloc(conn->body, size);
    if (body == NULL)
        return HCE_ERR_NO_MEMORY;
    conn->body = body;
    conn->body_size = size;
    return HCE_OK;
}

static hce_status_t some_read(hce_boot_conn_t *conn, void *to, size_t len)
{
    ssize_t got;

    do {
        got = recv(conn->fd, to, len, MSG_DONTWAIT);
    } while (got < 0 && errno == EINTR);
    if (got > 0) {
        conn->got += (size_t)got;
        conn->bytes_in += (uint64_t)got;
        return HCE_OK;
    }
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return HCE_INPROGRESS;
    return HCE_ERR_GONE;
}

/* Garbage is told from its first four bytes; the rest of a header that never
 * comes is not waited for. */
static hce_status_t frame_check(const hce_boot_conn_t *conn)
{
    if (conn->got >= sizeof(conn->frame.magic) &&
        conn->frame.magic != HCE_BOOT_MAGIC)
        return HCE_ERR_TRANSPORT;
    if (conn->got >= sizeof(conn->frame) && conn->frame.len > conn->max_len)
        return HCE_ERR_TRANSPORT;
    return HCE_OK;
}

static hce_status_t frame_read(hce_boot_conn_t *conn)
{
    hce_status_t status = HCE_OK;

    while (status == HCE_OK && conn->got < sizeof(conn->frame)) {
        status = some_read(conn, (uint8_t *)&conn->frame + conn->got,
                           sizeof(conn->frame) - conn->got);
        if (status == HCE_OK)
            status = frame_check(conn);
    }
    return status;
}

static hce_status_t body_read(hce_boot_conn_t *conn)
{
    hce_status_t status = HCE_OK;

    while (status == HCE_OK) {
        size_t have = conn->got - sizeof(conn->frame);

        if (have == conn->frame.len)
            return HCE_OK;
        if (have >= conn->body_size)
            status = body_grow(conn);
        if (status == HCE_OK) {
            status = some_read(
                conn, conn->body + have,
                hce_min(conn->body_size, (size_t)conn->frame.len) - have);
        }
    }
    return status;
}

hce_status_t hce_boot_conn_next(hce_boot_conn_t *conn,
                                const hce_boot_frame_t **frame_p,
                                const void **body_p)
{
    hce_status_t status;

    if (conn->fd < 0)
        return HCE_ERR_GONE;
    body_trim(conn);
    status = frame_read(conn);
    if (status == HCE_OK)
        status = body_read(conn);
    if (status != HCE_OK)
        return status;
    conn->got = 0;
    *frame_p = &conn->frame;
    *body_p = conn->body;
    return HCE_OK;
}

hce_boot_buf_t *hce_boot_buf_create(hce_boot_type_t type, const void *head,
                                    size_t head_len, const void *tail,
                                    size_t tail_len)
{
    hce_boot_frame_t frame = {.magic = HCE_BOOT_MAGIC,
                              .version = HCE_BOOT_WIRE_VERSION,
                              .type = (uint16_t)type,
                              .len = (uint32_t)(head_len + tail_len)};
    hce_boot_buf_t *buf =
        malloc(sizeof(*buf) + sizeof(frame) + head_len + tail_len);
    uint8_t *to;

    if (buf == NULL)
        return NULL;
    buf->refs = 1;
    buf->len = sizeof(frame) + head_len + tail_len;
    to = buf->data;
    memcpy(to, &frame, sizeof(frame));
    to += sizeof(frame);
    if (head_len > 0)
        memcpy(to, head, head_len);
    if (tail_len > 0)
        memcpy(to + head_len, tail, tail_len);
    return buf;
}

void hce_boot_buf_put(hce_boot_buf_t *buf)
{
    if (buf != NULL && --buf->refs == 0)
        free(buf);
}

hce_status_t hce_boot_conn_post(hce_boot_conn_t *conn, hce_boot_buf_t *buf)
{
    hce_boot_out_t *out;
    hce_status_t status;

    if (conn->fd < 0)
        return HCE_ERR_GONE;
    out = malloc(sizeof(*out));
    if (out == NULL)
        return HCE_ERR_NO_MEMORY;
    out->next = NULL;
    out->buf = buf;
    buf->refs++;
    if (conn->last != NULL)
        conn->last->next = out;
    else
        conn->first = out;
    conn->last = out;
    status = hce_boot_conn_flush(conn);
    return status == HCE_INPROGRESS ? HCE_OK : status;
}

hce_status_t hce_boot_conn_send(hce_boot_conn_t *conn, hce_boot_type_t type,
                                const void *body, size_t len)
{
    hce_boot_buf_t *buf = hce_boot_buf_create(type, body, len, NULL, 0);
    hce_status_t status;

    if (buf == NULL)
        return HCE_ERR_NO_MEMORY;
    status = hce_boot_conn_post(conn, buf);
    hce_boot_buf_put(buf);
    return status;
}

hce_status_t hce_boot_conn_flush(hce_boot_conn_t *conn)
{
    while (conn->first != NULL) {
        hce_boot_buf_t *buf = conn->first->buf;
        ssize_t sent;

        sent = send(conn->fd, buf->data + conn->first_done,
                    buf->len - conn->first_done, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0) {
            if (errno == EAGAIN || errno == EWOULDBLOCK)
                return HCE_INPROGRESS;
            out_drop(conn);
            return HCE_ERR_GONE;
        }
        conn->first_done += (size_t)sent;
        if (conn->first_done == buf->len)
            out_pop(conn);
    }
    return HCE_OK;
}
