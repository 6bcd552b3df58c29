/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * One TCP connection that carries frames. Never blocks. What comes is checked
 * for magic and length here, for version and meaning by the caller. Memory
 * grows with what has come, not with what a header promises.
 */
#ifndef HCE_BOOT_CONN_H
#define HCE_BOOT_CONN_H

#include "boot/wire.h"

#include <hce/hce.h>
#include <stdbool.h>
#include <stddef.h>

/* A frame that is ready to go, maybe through several connections. */
typedef struct hce_boot_buf {
    int refs;
    size_t len;
    uint8_t data[];
} hce_boot_buf_t;

typedef struct hce_boot_out hce_boot_out_t;

typedef struct hce_boot_conn {
    int fd; /* -1 when closed */
    uint32_t max_len;
    uint64_t bytes_in;
    /* coming in */
    hce_boot_frame_t frame;
    size_t got; /* of frame and body together */
    uint8_t *body;
    size_t body_size; /* allocated */
    /* going out */
    hce_boot_out_t *first, *last;
    size_t first_done; /* bytes of the first buffer that are gone */
} hce_boot_conn_t;

/* Takes over fd. */
void hce_boot_conn_init(hce_boot_conn_t *conn, int fd, uint32_t max_len);
void hce_boot_conn_close(hce_boot_conn_t *conn);
/* to becomes what from was; from is closed without touching the socket. */
void hce_boot_conn_move(hce_boot_conn_t *to, hce_boot_conn_t *from);

/* The next whole frame. *body_p is aligned for any struct and valid until
 * the next call. HCE_INPROGRESS when nothing is there, HCE_ERR_GONE when the
 * other side has closed, HCE_ERR_TRANSPORT when it sends no such frames,
 * HCE_ERR_NO_MEMORY. */
hce_status_t hce_boot_conn_next(hce_boot_conn_t *conn,
                                const hce_boot_frame_t **frame_p,
                                const void **body_p);

/* One reference, for the caller. head and tail make up the body; NULL when
 * there is no memory. */
hce_boot_buf_t *hce_boot_buf_create(hce_boot_type_t type, const void *head,
                                    size_t head_len, const void *tail,
                                    size_t tail_len);
void hce_boot_buf_put(hce_boot_buf_t *buf);

/* Queues a frame (adds a reference) and sends what can be sent at once.
 * HCE_ERR_GONE when the other side has closed: what is queued is dropped, but
 * frames that had come before can still be read. HCE_ERR_NO_MEMORY. */
hce_status_t hce_boot_conn_post(hce_boot_conn_t *conn, hce_boot_buf_t *buf);
hce_status_t hce_boot_conn_send(hce_boot_conn_t *conn, hce_boot_type_t type,
                                const void *body, size_t len);

/* HCE_OK when nothing is left to send, HCE_INPROGRESS, HCE_ERR_GONE. */
hce_status_t hce_boot_conn_flush(hce_boot_conn_t *conn);
static inline bool hce_boot_conn_is_idle(const hce_boot_conn_t *conn)
{
    return conn->first == NULL;
}

#endif
