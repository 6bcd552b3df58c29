/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The UCX transport. A UCP context for each transport (registrations come
 * from other threads), a worker for each of our contexts, an endpoint for
 * each (peer, context). Owner thread: the engine's owner, but for mem.c.
 *
 * Puts go one of two ways. Where the network has puts they are UCX's. On tcp
 * UCX would emulate them, and its receiver ends the process when a sender
 * dies at the wrong moment (the completion that ucp_rma_sw_send_cmpl sends
 * through a failed endpoint is fatal; UCX 1.13 to 1.19). There puts and
 * signals are active messages of ours: one lane keeps them in order, the
 * target checks the address, and no completion goes back. They are sent at
 * once or refused: a request that UCX queued would first ask for the other
 * end's id, and a peer that dies in that moment takes this process with it
 * (assertions in wireup_ep.c, ucp_request.c and ucp_ep.inl of UCX 1.13).
 */
#ifndef HCE_RMA_PROXY_UCX_UCX_H
#define HCE_RMA_PROXY_UCX_UCX_H

#include "rma_proxy/regions.h"
#include "rma_proxy/transport.h"

#include <assert.h>
#include <ucp/api/ucp.h>

#define UCX_MAX_CONTEXTS 16
#define UCX_OPS          64 /* posted and not ended, on one endpoint */
#define UCX_MESSAGES     8  /* hce messages; bits of payloads_used */

/* Our active messages. */
typedef enum ucx_am {
    UCX_AM_PUT,     /* payload to offset, if region value covers it */
    UCX_AM_SIGNAL,  /* value to word */
    UCX_AM_MESSAGE, /* payload to offset of the mail, value to word */
    UCX_AM_FLUSH,   /* payload is an address; UCX_AM_ACK has its value */
    UCX_AM_ACK,
    UCX_AM_REFUSE, /* the target does not accept what was put */
    UCX_AM_BYE,    /* the sender closes in good order */
    UCX_AM_BELL,   /* only wakes the target; has no header */
    UCX_AM_PARCEL, /* head, mail, data: see ucx_parcel_t; value to word */
    UCX_AM_LAST
} ucx_am_t;

/* Workers listen on the network: who does not know the secret is no peer. */
typedef struct ucx_header {
    uint8_t secret[16];
    uint32_t rank; /* of the sender */
    uint32_t word;
    uint64_t offset;
    uint64_t value;
} ucx_header_t;

static_assert(sizeof(ucx_header_t) == 40, "wire size");

/* A parcel begins with this; mail_len bytes follow for offset of the mail,
 * then the data. */
typedef struct ucx_parcel {
    uint64_t addr;   /* of the data there */
    uint64_t region; /* that covers it */
    uint32_t mail_len;
    uint32_t reserved;
} ucx_parcel_t;

static_assert(sizeof(ucx_parcel_t) == 24, "wire size");

#define UCX_PAYLOAD (HCE_TRANSPORT_MAX_MESSAGE + sizeof(ucx_parcel_t))

typedef struct ucx ucx_t;
typedef struct ucx_peer ucx_peer_t;
typedef struct ucx_ep ucx_ep_t;

/* A post that has not ended; else in the endpoint's list of free ones. */
typedef struct ucx_op {
    struct ucx_op *next;
    ucx_ep_t *ep;
    hce_transport_req_t *req;
    int payload;         /* index to give back, or -1 */
    ucx_header_t header; /* read by UCX until it has ended; value of a put */
    ucp_dt_iov_t iov[2]; /* so is this, of a parcel */
} ucx_op_t;

struct ucx_ep {
    ucx_peer_t *peer;
    int context;
    ucp_ep_h ep; /* NULL once closed */
    ucp_rkey_h inbox;
    bool requests;  /* messages do not go at once: let UCX queue them */
    bool dirty;     /* active messages since the last flush */
    bool flush_due; /* its UCX_AM_FLUSH is still to be sent */
    bool bye_due;   /* its UCX_AM_BYE is still to be sent */
    uint64_t flush, acked;
    uint32_t num_free;
    ucx_op_t *free;
    ucx_op_t ops[UCX_OPS];
};

struct ucx_peer {
    ucx_t *ucx;
    int rank;
    hce_status_t status; /* why posts fail, or HCE_OK */
    bool left;           /* said goodbye */
    uint64_t inbox;      /* address there */
    uint32_t payloads_used;
    char payloads[UCX_MESSAGES][UCX_PAYLOAD];
    ucx_ep_t eps[]; /* [contexts] */
};

/* What a peer is to be told; not from inside UCX, and maybe not at once. */
typedef struct ucx_answer {
    bool ack, refuse;
    uint64_t value; /* of the flush */
    void *addr;     /* the peer's, if I have not connected to it; or NULL */
    size_t addr_len;
} ucx_answer_t;

/* What UCX gives back with an active message. */
typedef struct ucx_route {
    struct ucx_worker *worker;
    ucx_am_t id;
} ucx_route_t;

typedef struct ucx_worker {
    ucx_t *ucx;
    int context;
    int fd;
    ucp_worker_h worker;
    ucs_status_ptr_t flush; /* request, or its end */
    ucx_answer_t *answers;  /* [size] */
    bool answering;         /* there are some */
    ucx_route_t routes[UCX_AM_LAST];
} ucx_worker_t;

struct ucx {
    hce_transport_params_t params;
    bool am_puts;
    ucp_context_h context;
    ucx_worker_t workers[UCX_MAX_CONTEXTS];
    ucp_mem_h inbox;
    ucx_peer_t **peers; /* [size], NULL until connected */
    bool *refused;      /* [size] told the owner of a wrong put */
    hce_regions_t regions;
    void *addr; /* mine, for peers */
    size_t addr_len;
    bool flushing;
    bool failing; /* some peer's endpoints are to be closed */
};

static inline ucx_t *ucx_of(hce_transport_t *transport)
{
    return (ucx_t *)transport;
}

/* context.c */
/* With our defaults, wherever the user has set nothing. rma: for UCX's puts,
 * too; sockbuf: bytes a TCP connection. */
ucs_status_t hce_ucx_context_create(bool rma, size_t sockbuf,
                                    ucp_context_h *context_p);

typedef struct ucx_facts {
    char devices[160];
    char why[96]; /* why UCX cannot be used; empty if it can */
    int contexts; /* useful */
    bool rma;     /* there is more than tcp: puts need no emulation */
} ucx_facts_t;

/* Looks once a process. */
const ucx_facts_t *hce_ucx_facts(void);

/* tune.c */
/* Rate of the slowest of devices ("tcp/eth0 tcp/eth1"), which may be said by
 * HCE_LINK_RATE; 0: unknown. */
uint64_t hce_ucx_link_mbit(const char *devices);
/* Bytes that a connection may send ahead, one of so many on the link. */
size_t hce_ucx_sockbuf(int flows, uint64_t mbit);

/* ep.c */
hce_status_t hce_ucx_connect(hce_transport_t *transport, int peer,
                             const void *addr, size_t len);
hce_status_t hce_ucx_put(hce_transport_t *transport, int peer, int context,
                         const void *src, hce_transport_mem_t *mem, size_t len,
                         uint64_t remote_addr, hce_transport_key_t *key,
                         hce_transport_req_t *req);
hce_status_t hce_ucx_signal(hce_transport_t *transport, int peer, int context,
                            uint32_t word, uint64_t value);
hce_status_t hce_ucx_status(ucs_status_t status);
void hce_ucx_peer_fail(ucx_peer_t *peer, hce_status_t status,
                       const char *text);
void hce_ucx_peer_close(ucx_peer_t *peer);
ucx_op_t *hce_ucx_op_take(ucx_ep_t *ep, hce_transport_req_t *req);
/* What a post returned: ended, started, or failed. */
hce_status_t hce_ucx_op_posted(ucx_op_t *op, ucs_status_ptr_t result);
/* Send callback; user_data is the op. */
void hce_ucx_op_sent(void *request, ucs_status_t status, void *user_data);
/* Send callback for what needs no more than its request freed. */
void hce_ucx_request_done(void *request, ucs_status_t status, void *user_data);

/* address.c */
hce_status_t hce_ucx_address_create(ucx_t *ucx, void **addr_p, size_t *len_p);

typedef struct ucx_address_view {
    uint64_t inbox;
    const void *key; /* of the inbox; NULL where puts are active messages */
    const ucp_address_t *workers[UCX_MAX_CONTEXTS];
    int contexts;
} ucx_address_view_t;

/* Checks what a peer sent. */
hce_status_t hce_ucx_address_parse(const void *addr, size_t len,
                                   ucx_address_view_t *view_p);

/* am.c */
hce_status_t hce_ucx_am_put(ucx_ep_t *ep, const ucx_header_t *target,
                            const void *src, size_t len,
                            hce_transport_req_t *req);
hce_status_t hce_ucx_message(hce_transport_t *transport, int peer,
                             uint64_t offset, const void *payload, size_t len,
                             uint32_t word, uint64_t value);
hce_status_t hce_ucx_parcel(hce_transport_t *transport, int peer,
                            const hce_transport_parcel_t *parcel,
                            hce_transport_req_t *req);
hce_status_t hce_ucx_am_flush(ucx_ep_t *ep);
/* Without payload. */
hce_status_t hce_ucx_am_tell(ucx_ep_t *ep, ucx_am_t id, uint32_t word,
                             uint64_t value);
/* True if it has left: so has all that was sent before. */
bool hce_ucx_am_ring(ucx_ep_t *ep);
void hce_ucx_header_fill(const ucx_t *ucx, ucx_header_t *header);

/* handler.c */
hce_status_t hce_ucx_handlers_init(ucx_worker_t *worker);
/* Gives the answers that are due; outside of callbacks. */
void hce_ucx_answer(ucx_worker_t *worker);

/* mem.c */
hce_status_t hce_ucx_mem_register(hce_transport_t *transport, void *addr,
                                  size_t len, hce_transport_mem_t **mem_p);
void hce_ucx_mem_deregister(hce_transport_t *transport,
                            hce_transport_mem_t *mem);
hce_status_t hce_ucx_mem_pack(hce_transport_mem_t *mem, void *key,
                              size_t *len_p);
hce_status_t hce_ucx_key_unpack(hce_transport_t *transport, int peer,
                                const void *key, size_t len,
                                hce_transport_key_t **key_p);
void hce_ucx_key_destroy(hce_transport_key_t *key);
ucp_mem_h hce_ucx_mem_handle(hce_transport_mem_t *mem);
uint64_t hce_ucx_key_region(const hce_transport_key_t *key);
ucp_rkey_h hce_ucx_key_handle(hce_transport_key_t *key, int context);

#endif
