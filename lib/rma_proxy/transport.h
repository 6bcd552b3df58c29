/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The seam between the proxy and a network: one ops table. All calls come
 * from the engine's owner, one at a time, but for mem_register, mem_pack and
 * mem_deregister (caller's thread; the transport locks what it must).
 *
 * Order: on one (peer, context) a signal is seen by the target only after
 * all earlier puts and signals there have landed. Messages to a peer are seen
 * in their order, but have none against puts and signals: networks carry
 * them on another path. Puts have no order among themselves. Nothing may be
 * dropped: a refused post returns HCE_ERR_NO_RESOURCE and is made again by
 * the caller.
 */
#ifndef HCE_RMA_PROXY_TRANSPORT_H
#define HCE_RMA_PROXY_TRANSPORT_H

#include "util/counter.h"

#include <hce/hce.h>
#include <stdbool.h>
#include <stdint.h>

#define HCE_TRANSPORT_MAX_KEY     160 /* bytes of a packed memory key */
#define HCE_TRANSPORT_MAX_MESSAGE 512 /* payload bytes */
#define HCE_TRANSPORT_MAX_FDS     20

typedef struct hce_transport hce_transport_t;         /* opaque */
typedef struct hce_transport_mem hce_transport_mem_t; /* registration */
typedef struct hce_transport_key hce_transport_key_t; /* peer's memory */

/* Counts puts that have been started and not ended locally (the source may
 * not be changed before). Lives with the caller. */
typedef struct hce_transport_req {
    uint32_t pending;
    hce_status_t status; /* first error of any of them */
} hce_transport_req_t;

/* Once a peer. status is HCE_ERR_GONE where the network says that the peer's
 * process ended, else HCE_ERR_TRANSPORT; text is for people. A peer that
 * closes in good order is no error, but where the network loses its goodbye
 * it looks like one that ended. */
typedef void (*hce_transport_error_cb_t)(void *arg, int peer,
                                         hce_status_t status,
                                         const char *text);

typedef struct hce_transport_params {
    int rank, size;
    int contexts;          /* how many to open; 0: as many as are useful */
    int flows; /* peers, of all ranks of my node, that share its links */
    uint64_t silence_ns; /* how long a broken link may be mended; 0: ever */
    const uint8_t *secret; /* 16 bytes, the same on all ranks */
    hce_counter_t *inbox;  /* words that peers' signals and messages write */
    uint32_t inbox_words;
    char *mail; /* bytes that peers' messages write */
    size_t mail_size;
    hce_transport_error_cb_t error_cb; /* from within progress or a post */
    void *error_arg;
} hce_transport_params_t;

typedef struct hce_transport_attr {
    int contexts;     /* opened */
    uint32_t segment; /* most bytes of one put */
    uint32_t depth;   /* best puts in flight on one (peer, context) */
    uint32_t parcel;  /* most data bytes of a parcel; 0: there are none */
    const char *kind; /* of network, for figures of cost: "tcp", "rdma" */
} hce_transport_attr_t;

/* A put and a message in one: data to the peer's memory and mail to its
 * mail, then inbox[word] becomes value. */
typedef struct hce_transport_parcel {
    const void *data; /* not changed before the request has ended */
    size_t data_len;
    hce_transport_mem_t *mem;
    uint64_t remote_addr;
    hce_transport_key_t *key;
    const void *mail; /* copied at once */
    size_t mail_len;
    uint64_t mail_offset;
    uint64_t value;
    uint32_t word;
} hce_transport_parcel_t;

typedef struct hce_transport_ops {
    const char *name;
    bool automatic; /* may be chosen by HCE_TRANSPORT=auto */
    /* NULL if usable on this machine, else why not. */
    const char *(*unusable)(void);
    /* One line for hce_info: devices, versions. */
    void (*describe)(char *buf, size_t size);
    /* One line each for hce_info; false: there are no more. May be NULL. */
    bool (*describe_device)(int index, char *buf, size_t size);
    hce_status_t (*open)(const hce_transport_params_t *params,
                         hce_transport_t **transport_p);
    /* After a successful flush, or abruptly. */
    void (*close)(hce_transport_t *transport);
    void (*query)(hce_transport_t *transport, hce_transport_attr_t *attr_p);
    /* My address, malloc'd: what peers need to connect. */
    hce_status_t (*address)(hce_transport_t *transport, void **addr_p,
                            size_t *len_p);
    hce_status_t (*connect)(hce_transport_t *transport, int peer,
                            const void *addr, size_t len);
    hce_status_t (*mem_register)(hce_transport_t *transport, void *addr,
                                 size_t len, hce_transport_mem_t **mem_p);
    void (*mem_deregister)(hce_transport_t *transport,
                           hce_transport_mem_t *mem);
    /* key has HCE_TRANSPORT_MAX_KEY bytes. */
    hce_status_t (*mem_pack)(hce_transport_mem_t *mem, void *key,
                             size_t *len_p);
    hce_status_t (*key_unpack)(hce_transport_t *transport, int peer,
                               const void *key, size_t len,
                               hce_transport_key_t **key_p);
    void (*key_destroy)(hce_transport_key_t *key);
    /* len is at most the segment. HCE_OK: started (req->pending raised) or
     * already ended. */
    hce_status_t (*put)(hce_transport_t *transport, int peer, int context,
                        const void *src, hce_transport_mem_t *mem, size_t len,
                        uint64_t remote_addr, hce_transport_key_t *key,
                        hce_transport_req_t *req);
    /* inbox[word] of peer becomes value. */
    hce_status_t (*signal)(hce_transport_t *transport, int peer, int context,
                           uint32_t word, uint64_t value);
    /* payload to mail + offset of peer, then inbox[word] becomes value. */
    hce_status_t (*message)(hce_transport_t *transport, int peer,
                            uint64_t offset, const void *payload, size_t len,
                            uint32_t word, uint64_t value);
    /* May be NULL. Parcels and messages to a peer are seen in their order;
     * against puts and signals there is none. */
    hce_status_t (*parcel)(hce_transport_t *transport, int peer,
                           const hce_transport_parcel_t *parcel,
                           hce_transport_req_t *req);
    /* True if something moved. */
    bool (*progress)(hce_transport_t *transport);
    /* Fills fds (HCE_TRANSPORT_MAX_FDS) and returns their number; constant
     * after open unless connect is called. Nested epoll fds are fine. */
    int (*fds)(hce_transport_t *transport, int *fds);
    /* Before sleeping on the fds: false if there is work (do not sleep). */
    bool (*arm)(hce_transport_t *transport);
    /* Start, then test: everything posted so far is at its target. An error
     * where a peer has failed (not: left), once the others are through. */
    hce_status_t (*flush)(hce_transport_t *transport); /* HCE_INPROGRESS */
    /* In the child after fork: close descriptors, touch nothing else. */
    void (*forked)(hce_transport_t *transport);
} hce_transport_ops_t;

extern const hce_transport_ops_t hce_transport_loop;
#ifdef HCE_HAVE_UCX
extern const hce_transport_ops_t hce_transport_ucx;
#endif
#ifdef HCE_HAVE_VERBS
extern const hce_transport_ops_t hce_transport_verbs;
#endif

/* All that are built in, ends with NULL. */
extern const hce_transport_ops_t *const hce_transports[];

#endif
