/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The loop transport: ranks of one machine, threads or processes alike, over
 * AF_UNIX stream sockets with abstract names. One socket for each (peer,
 * context) that is written to; the other way it carries acknowledgements
 * only. Owner thread: the engine's owner, but for the registrations.
 */
#ifndef HCE_RMA_PROXY_LOOP_LOOP_H
#define HCE_RMA_PROXY_LOOP_LOOP_H

#include "rma_proxy/regions.h"
#include "rma_proxy/transport.h"

#include <assert.h>

#define LOOP_MAGIC     "hceloop1"
#define LOOP_QUEUE     256  /* ops waiting on one endpoint */
#define LOOP_MAILS     16   /* of them messages; bits of mail_used */
#define LOOP_STRANGERS 64   /* sockets that have not said who they are */
#define LOOP_BUF       4096 /* bytes read ahead */

typedef enum loop_kind {
    LOOP_PUT,
    LOOP_SIGNAL,
    LOOP_MESSAGE,
    LOOP_FLUSH,  /* answered by LOOP_ACK with the same value */
    LOOP_ACK,    /* from here on against the direction of the data, too */
    LOOP_REFUSE, /* the target does not accept what was sent */
    LOOP_BREAK,  /* fault injection: the link fails, the process lives */
    LOOP_BYE,    /* orderly end */
    LOOP_LETTER  /* a MESSAGE that overtakes nothing: after a parcel's PUT */
} loop_kind_t;

/* First bytes of a connection. One machine: native byte order. */
typedef struct loop_hello {
    char magic[8];
    uint32_t rank;
    uint32_t context;
    uint8_t secret[16];
} loop_hello_t;

static_assert(sizeof(loop_hello_t) == 32, "wire size");

/* Then frames, each followed by len bytes. */
typedef struct loop_frame {
    uint32_t kind; /* loop_kind_t */
    uint32_t word;
    uint64_t len;
    uint64_t addr; /* PUT: target address; else offset in the mail */
    uint64_t value;
    uint64_t mem; /* PUT: id of the target's registration */
} loop_frame_t;

static_assert(sizeof(loop_frame_t) == 40, "wire size");

/* What connect needs: the listener's name. */
typedef struct loop_address {
    char magic[8];
    uint8_t name[16];
} loop_address_t;

/* What an epoll event points to; first member of the sockets below. */
typedef enum loop_role { LOOP_LISTENER, LOOP_OUT, LOOP_IN } loop_role_t;

typedef struct loop_socket {
    int fd; /* -1 once closed */
    loop_role_t role;
} loop_socket_t;

/* An op that has not been written in full. */
typedef struct loop_entry {
    loop_frame_t frame;
    const char *src; /* the caller's (put), or in the endpoint's mails */
    hce_transport_req_t *req;
    uint32_t hold; /* fault injection: progress calls to wait */
    int mail;      /* index to give back, or -1 */
} loop_entry_t;

/* An endpoint: what I write to (peer, context). */
typedef struct loop_out {
    loop_socket_t socket;
    int peer, context;
    hce_status_t status; /* why posts fail, or HCE_OK */
    bool connected;
    bool lost;     /* fault injection: drops everything */
    bool want_out; /* EPOLLOUT is asked for */
    uint32_t head, count;
    uint64_t sent;  /* bytes written of the entry at head */
    uint64_t flush; /* number of the last LOOP_FLUSH queued, and acked */
    uint64_t acked;
    uint32_t mail_used;
    uint32_t answer_len;
    loop_address_t addr;
    loop_frame_t answer;
    char (*mails)[HCE_TRANSPORT_MAX_MESSAGE]; /* context 0 */
    loop_entry_t queue[LOOP_QUEUE];
} loop_out_t;

/* What a peer writes to me. */
typedef struct loop_in {
    loop_socket_t socket;
    int peer; /* -1 until its hello was right */
    int context;
    bool in_payload;
    loop_frame_t frame;
    uint64_t done;  /* payload bytes placed */
    int64_t budget; /* bytes that may still be read in this call */
    uint32_t pos, len;
    char buf[LOOP_BUF];
    char mail[HCE_TRANSPORT_MAX_MESSAGE];
} loop_in_t;

typedef struct loop_faults {
    bool on;
    uint64_t rng;
    uint64_t ops; /* posted so far, all endpoints */
    /* percent */
    int64_t delay, reorder, refuse, pieces, twice;
    /* number of the op at which the endpoint fails; 0 is never */
    int64_t break_at, lose_at;
} loop_faults_t;

typedef struct loop {
    hce_transport_params_t params;
    int epoll;
    loop_socket_t listener;
    loop_address_t addr;
    loop_out_t **outs;       /* [size * contexts], NULL until connected */
    uint32_t num_connecting; /* outs whose peer's backlog was full */
    loop_in_t **ins;
    uint32_t num_ins, max_ins, num_strangers;
    bool *reported; /* [size] error_cb has been called */
    bool *left;     /* [size] said goodbye: its end is no error */
    bool flushing;
    bool full_warned;
    loop_faults_t faults;
    hce_regions_t regions;
} loop_t;

static inline loop_t *loop_of(hce_transport_t *transport)
{
    return (loop_t *)transport;
}

/* loop.c */
/* Tells the owner once a peer. */
void hce_loop_report(loop_t *loop, int peer, hce_status_t status,
                     const char *text);
hce_status_t hce_loop_watch(loop_t *loop, loop_socket_t *socket,
                            uint32_t events);
void hce_loop_name(const loop_address_t *addr, void *sockaddr_p,
                   uint32_t *len_p);
bool hce_loop_same_user(int fd);

/* out.c */
hce_status_t hce_loop_out_open(loop_t *loop, int peer, int context,
                               const loop_address_t *addr);
void hce_loop_out_destroy(loop_t *loop, loop_out_t *out);
bool hce_loop_out_connect(loop_t *loop, loop_out_t *out);
/* Appends and starts writing. */
hce_status_t hce_loop_out_post(loop_t *loop, loop_out_t *out,
                               const loop_entry_t *entry);
bool hce_loop_out_write(loop_t *loop, loop_out_t *out);
bool hce_loop_out_read(loop_t *loop, loop_out_t *out);
/* Reads what peer has answered, to find out whether it said goodbye. */
void hce_loop_out_ask(loop_t *loop, int peer);
void hce_loop_out_fail(loop_t *loop, loop_out_t *out, hce_status_t status,
                       const char *text);
/* Writes a frame without data if all of it fits now. */
bool hce_loop_send_now(int fd, loop_kind_t kind, uint64_t value);

/* in.c */
bool hce_loop_in_accept(loop_t *loop);
bool hce_loop_in_read(loop_t *loop, loop_in_t *in);
void hce_loop_in_sweep(loop_t *loop);
void hce_loop_in_close(loop_t *loop, loop_in_t *in);

/* mem.c */
hce_status_t hce_loop_mem_register(hce_transport_t *transport, void *addr,
                                   size_t len, hce_transport_mem_t **mem_p);
void hce_loop_mem_deregister(hce_transport_t *transport,
                             hce_transport_mem_t *mem);
hce_status_t hce_loop_mem_pack(hce_transport_mem_t *mem, void *key,
                               size_t *len_p);
hce_status_t hce_loop_key_unpack(hce_transport_t *transport, int peer,
                                 const void *key, size_t len,
                                 hce_transport_key_t **key_p);
void hce_loop_key_destroy(hce_transport_key_t *key);
uint64_t hce_loop_key_id(const hce_transport_key_t *key);
/* faults.c */
hce_status_t hce_loop_faults_init(loop_faults_t *faults, int rank);
/* True in percent of the calls. */
bool hce_loop_faults_hit(loop_faults_t *faults, int64_t percent);
uint32_t hce_loop_faults_below(loop_faults_t *faults, uint32_t limit);
/* Moves another entry that may go first to the head of the queue. */
void hce_loop_faults_reorder(loop_faults_t *faults, loop_out_t *out);

#endif
