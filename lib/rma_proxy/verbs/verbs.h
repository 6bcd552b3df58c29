/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The verbs transport: RDMA WRITEs over reliable connections, straight on
 * libibverbs. Owner thread: the engine's owner, but for mem.c.
 *
 * Each (peer, context) that is written to has an endpoint: a queue pair of
 * mine whose partner at the peer only receives. A TCP connection from the
 * writer to the target, the control connection, sets the pair up, and sets a
 * new one up when it fails (recover.c).
 *
 * An op that others wait for (signal, message, parcel) ends with two WRITEs
 * of 8 bytes: the op's number to the target's table of arrivals, then the
 * value to the inbox, with immediate data, which wakes the target. A queue
 * pair writes in order, so the number says that everything before has landed,
 * and a target that reports it tells the writer where to go on.
 */
#ifndef HCE_RMA_PROXY_VERBS_VERBS_H
#define HCE_RMA_PROXY_VERBS_VERBS_H

#include "rma_proxy/transport.h"
#include "rma_proxy/verbs/wire.h"

#include <infiniband/verbs.h>

#define VERBS_CONTEXTS 16
#define VERBS_MAILS    8 /* messages under way to a peer; bits of mails_used */
#define VERBS_WRS      4 /* work requests of the largest op, a parcel */

typedef struct verbs verbs_t;
typedef struct verbs_peer verbs_peer_t;
typedef struct verbs_ep verbs_ep_t;

/* What an epoll event points to; first member of what owns fd. */
typedef enum verbs_role {
    VERBS_LISTENER,
    VERBS_CALLER, /* has not said who it is */
    VERBS_OUT,    /* control connection to a peer */
    VERBS_IN,     /* control connection of a peer */
    VERBS_CHANNEL,
    VERBS_ASYNC,
    VERBS_TIMER
} verbs_role_t;

typedef struct verbs_source {
    verbs_role_t role;
    int fd; /* -1 once closed */
} verbs_source_t;

typedef struct verbs_conn {
    verbs_source_t source;
    bool is_connected;
    uint32_t have; /* bytes of frame */
    verbs_frame_t frame;
} verbs_conn_t;

typedef struct verbs_device {
    verbs_source_t channel_source, async_source;
    int index;
    struct ibv_context *context;
    const char *name;
    uint8_t port;
    bool is_active;
    int gid_index;
    verbs_port_t address; /* qpn and psn are 0 */
    struct ibv_pd *pd;
    struct ibv_comp_channel *channel;
    struct ibv_cq *send_cq, *recv_cq;
    struct ibv_srq *srq;
    struct ibv_mr *inbox, *mail, *arrived;
    uint32_t credits; /* work requests that send_cq has room for */
} verbs_device_t;

typedef enum verbs_kind {
    VERBS_PUT,
    VERBS_SIGNAL,
    VERBS_MESSAGE,
    VERBS_PARCEL
} verbs_kind_t;

/* An op that has not ended: all that it takes to post it once more. */
typedef struct verbs_op {
    verbs_kind_t kind;
    bool has_landed; /* but its value may not have */
    int mail;        /* index to give back, or -1 */
    uint32_t mail_len;
    uint32_t data_len;
    uint32_t word;
    const void *data;
    uint64_t remote_addr;
    uint64_t mail_offset;
    uint32_t lkey[VERBS_DEVICES];
    uint32_t rkey[VERBS_DEVICES];
    hce_transport_req_t *req;
} verbs_op_t;

/* Read by the device until the op has ended. */
typedef struct verbs_slot {
    uint64_t number;
    uint64_t value;
} verbs_slot_t;

typedef enum verbs_ep_state {
    VERBS_EP_WAITING, /* for its control connection, a port, or its turn */
    VERBS_EP_ASKING,  /* has sent CONNECT */
    VERBS_EP_LIVE,
    VERBS_EP_BROKEN /* a completion failed; recover.c is to look at it */
} verbs_ep_state_t;

struct verbs_ep {
    verbs_peer_t *peer;
    int context;
    verbs_ep_state_t state;
    struct ibv_qp *qp; /* NULL while WAITING */
    uint32_t psn;
    uint32_t inline_len;
    verbs_device_t *device;
    int remote;       /* index of the peer's device */
    uint32_t attempt; /* number of the queue pair; each tries other ports */
    /* Something waits, and nothing has ended since it failed; 0: not so. */
    uint64_t since_ns;
    uint64_t retry_ns;            /* WAITING: when to try again */
    enum ibv_wc_status wc_status; /* of the failure */
    char text[VERBS_TEXT];        /* that says it */
    char refusal[VERBS_TEXT];     /* what the target said since */
    uint64_t head, tail;          /* numbers of ops that have not ended */
    uint32_t room;                /* work requests that still fit */
    uint32_t due;                 /* work requests that hold credits */
    verbs_op_t *ops;              /* [queue] */
    verbs_slot_t *slots;          /* [queue], in the peer's block */
};

/* The receiving end of a peer's endpoint. */
typedef struct verbs_in {
    struct ibv_qp *qp;
    int device;
} verbs_in_t;

struct verbs_peer {
    verbs_t *verbs;
    int rank;
    hce_status_t status; /* why posts fail, or HCE_OK */
    bool has_left;       /* said goodbye */
    verbs_conn_t out, in;
    verbs_in_t ins[VERBS_CONTEXTS];
    /* What follows is there once I have connected. */
    verbs_address_t address;
    verbs_ep_t *eps; /* [contexts] */
    char *block;     /* slots of all eps, then mails: registered */
    struct ibv_mr *block_mr[VERBS_DEVICES];
    uint32_t mails_used;
};

/* Connections of strangers: few, and the oldest makes room. */
#define VERBS_CALLERS 16

struct verbs {
    hce_transport_params_t params;
    uint32_t queue; /* work requests of a queue pair */
    int epoll;
    verbs_source_t listener, timer;
    verbs_conn_t callers[VERBS_CALLERS];
    uint32_t next_caller;
    verbs_address_t address;
    verbs_device_t devices[VERBS_DEVICES];
    int num_devices;
    hce_counter_t *arrived; /* [size * contexts] numbers of ops, by peers */
    verbs_peer_t **peers;   /* [size], NULL until one of us connected */
    bool is_armed;          /* events may have come that nobody read */
    bool is_ticking;        /* some endpoint waits for its turn */
    bool is_failing;        /* some endpoint is BROKEN */
    uint64_t seed;          /* of packet numbers */
    uint32_t turns;
};

static inline verbs_t *verbs_of(hce_transport_t *transport)
{
    return (verbs_t *)transport;
}

/* list.c: what this machine has */
typedef struct verbs_choice {
    char name[64];
    uint8_t port;
} verbs_choice_t;

const char *hce_verbs_unusable(void);
void hce_verbs_describe(char *buf, size_t size);
bool hce_verbs_device_describe(int index, char *buf, size_t size);
/* By HCE_VERBS_DEVICES, else the active ports that are closest. */
hce_status_t hce_verbs_choose(verbs_choice_t choices[VERBS_DEVICES],
                              int *num_p);

/* gid.c */
/* Index, by setting or by rule. */
int hce_verbs_gid_choose(struct ibv_context *context, uint8_t port,
                         bool is_roce);
const char *hce_verbs_gid_text(const uint8_t gid[16], char *buf, size_t size);

/* device.c */
hce_status_t hce_verbs_device_open(verbs_t *verbs, verbs_device_t *device,
                                   const verbs_choice_t *choice);
void hce_verbs_device_close(verbs_device_t *device);
/* What the port says now. */
void hce_verbs_device_look(verbs_device_t *device);
/* The first active one from index on; NULL if there is none. */
verbs_device_t *hce_verbs_device_active(verbs_t *verbs, uint32_t index);
void hce_verbs_device_event(verbs_t *verbs, verbs_device_t *device);
hce_status_t hce_verbs_recv_refill(verbs_device_t *device, int num);

/* qp.c */
typedef struct verbs_qp_made {
    struct ibv_qp *qp;
    uint32_t psn;
    uint32_t inline_len;
} verbs_qp_made_t;
hce_status_t hce_verbs_qp_create(verbs_t *verbs, verbs_device_t *device,
                                 verbs_qp_made_t *made_p);
/* To the state in which it receives; writer: and sends. */
hce_status_t hce_verbs_qp_connect(verbs_device_t *device,
                                  const verbs_qp_made_t *made,
                                  const verbs_port_t *port, bool is_writer);
/* Nothing of it lands any more, and nothing of mine is read any more. */
void hce_verbs_qp_destroy(struct ibv_qp *qp);

/* mem.c */
hce_status_t hce_verbs_mem_register(hce_transport_t *transport, void *addr,
                                    size_t len, hce_transport_mem_t **mem_p);
void hce_verbs_mem_deregister(hce_transport_t *transport,
                              hce_transport_mem_t *mem);
hce_status_t hce_verbs_mem_pack(hce_transport_mem_t *mem, void *key,
                                size_t *len_p);
hce_status_t hce_verbs_key_unpack(hce_transport_t *transport, int peer,
                                  const void *key, size_t len,
                                  hce_transport_key_t **key_p);
void hce_verbs_key_destroy(hce_transport_key_t *key);
void hce_verbs_mem_lkeys(const hce_transport_mem_t *mem,
                         uint32_t lkey[VERBS_DEVICES]);
void hce_verbs_key_rkeys(const hce_transport_key_t *key,
                         uint32_t rkey[VERBS_DEVICES]);

/* dmabuf.c */
/* Device memory; NULL and errno where that is not what it is. */
struct ibv_mr *hce_verbs_dmabuf_register(struct ibv_pd *pd, void *addr,
                                         size_t len);

/* post.c */
hce_status_t hce_verbs_put(hce_transport_t *transport, int peer, int context,
                           const void *src, hce_transport_mem_t *mem,
                           size_t len, uint64_t remote_addr,
                           hce_transport_key_t *key, hce_transport_req_t *req);
hce_status_t hce_verbs_signal(hce_transport_t *transport, int peer,
                              int context, uint32_t word, uint64_t value);
hce_status_t hce_verbs_message(hce_transport_t *transport, int peer,
                               uint64_t offset, const void *payload,
                               size_t len, uint32_t word, uint64_t value);
hce_status_t hce_verbs_parcel(hce_transport_t *transport, int peer,
                              const hce_transport_parcel_t *parcel,
                              hce_transport_req_t *req);
uint32_t hce_verbs_op_wrs(const verbs_op_t *op);
/* Posts op number of ep, for the first time or once more. A failure breaks
 * the endpoint, which posts again when it is whole. */
hce_status_t hce_verbs_post(verbs_ep_t *ep, uint64_t number);

/* complete.c */
/* True if something came. */
bool hce_verbs_device_poll(verbs_t *verbs, verbs_device_t *device);
/* The first op of ep has ended. */
void hce_verbs_op_end(verbs_ep_t *ep, hce_status_t status);
void hce_verbs_ops_drop(verbs_ep_t *ep, hce_status_t status);

/* peer.c */
verbs_peer_t *hce_verbs_peer_get(verbs_t *verbs, int rank);
void hce_verbs_peer_free(verbs_peer_t *peer);
hce_status_t hce_verbs_connect(hce_transport_t *transport, int peer,
                               const void *addr, size_t len);
/* Tells the owner once, ends all ops; a peer that left is no error. */
void hce_verbs_peer_fail(verbs_peer_t *peer, hce_status_t status,
                         const char *text);

/* control.c */
hce_status_t hce_verbs_watch(verbs_t *verbs, verbs_source_t *source,
                             uint32_t events, bool is_new);
hce_status_t hce_verbs_listen(verbs_t *verbs);
void hce_verbs_control_event(verbs_t *verbs, verbs_source_t *source);
/* Fills in what all frames have. */
void hce_verbs_send(verbs_t *verbs, verbs_conn_t *conn, verbs_frame_t *frame);
void hce_verbs_conn_close(verbs_conn_t *conn);
void hce_verbs_say_bye(verbs_peer_t *peer);

/* recover.c */
/* Notes that ep's queue pair is done for; hce_verbs_recover does the rest. */
void hce_verbs_ep_break(verbs_ep_t *ep, enum ibv_wc_status status,
                        const char *text);
/* Drops the queue pair; what was posted stays to be posted again. */
void hce_verbs_ep_reset(verbs_ep_t *ep);
void hce_verbs_ep_accepted(verbs_ep_t *ep, const verbs_frame_t *frame);
void hce_verbs_ep_refused(verbs_ep_t *ep, const verbs_frame_t *frame);
void hce_verbs_in_connect(verbs_peer_t *peer, const verbs_frame_t *frame);
/* Looks at all endpoints: broken ones, and those whose turn it is. */
void hce_verbs_recover(verbs_t *verbs);
/* Endpoints leave a port that went down, if there is another. */
void hce_verbs_device_down(verbs_t *verbs, verbs_device_t *device);

#endif
