/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The CPU RMA proxy of one rank and communicator: opens a transport, connects
 * peers, cuts puts into segments with a bounded number in flight, publishes
 * arrivals. Owner thread: the engine's owner.
 */
#ifndef HCE_RMA_PROXY_PROXY_H
#define HCE_RMA_PROXY_PROXY_H

#include "boot/boot.h"
#include "rma_proxy/transport.h"
#include "util/config.h"
#include "util/counter.h"
#include "util/layout.h"

#define HCE_PROXY_MAIL_SIZE 512 /* bytes a peer may leave, two slots each */

extern const hce_config_table_t hce_rma_proxy_config;

typedef struct hce_proxy hce_proxy_t;
typedef struct hce_proxy_mem hce_proxy_mem_t;

typedef struct hce_proxy_params {
    const hce_layout_t *layout;
    hce_boot_t *boot;
    uint64_t deadline;
    int rank;
    uint64_t silence_ns; /* how long a broken link may be mended; 0: ever */
    uint32_t words; /* inbox words a peer may write here: HCE_SLOT_NET */
    hce_transport_error_cb_t error_cb;
    void *error_arg;
} hce_proxy_params_t;

/* A put of any length: segments of it are in flight. Zero it, then fill in
 * the upper part, then call hce_proxy_put until it returns HCE_OK. */
typedef struct hce_proxy_put {
    const char *src;
    hce_proxy_mem_t *mem;
    uint64_t len;
    uint64_t remote_addr;
    hce_transport_key_t *key;
    int peer;
    int context;
    uint64_t posted; /* bytes handed to the transport */
    hce_transport_req_t req;
} hce_proxy_put_t;

/* Collective over boot: chooses by HCE_TRANSPORT, compares across ranks,
 * exchanges addresses. *proxy_p is NULL where there is only one node. */
hce_status_t hce_proxy_open(const hce_proxy_params_t *params,
                            hce_proxy_t **proxy_p);
/* Until all that was posted is at its target, or deadline. */
void hce_proxy_flush(hce_proxy_t *proxy, uint64_t deadline);
/* HCE_OK: all that was posted is at its target. HCE_INPROGRESS: call again
 * after progress. Else an error: there is nothing to wait for. */
hce_status_t hce_proxy_test_flush(hce_proxy_t *proxy);
/* Flushes until deadline (0: not at all), then closes. */
void hce_proxy_close(hce_proxy_t *proxy, uint64_t deadline);
const char *hce_proxy_name(const hce_proxy_t *proxy);
void hce_proxy_query(hce_proxy_t *proxy, hce_transport_attr_t *attr_p);

/* Connects if that has not been done; not on the progress path. */
hce_status_t hce_proxy_connect(hce_proxy_t *proxy, int peer);

hce_status_t hce_proxy_register(hce_proxy_t *proxy, void *addr, size_t len,
                                hce_proxy_mem_t **mem_p);
void hce_proxy_deregister(hce_proxy_t *proxy, hce_proxy_mem_t *mem);
const void *hce_proxy_key(const hce_proxy_mem_t *mem, size_t *len_p);

/* A peer's key. Valid until hce_proxy_key_close. */
hce_status_t hce_proxy_key_open(hce_proxy_t *proxy, int peer, const void *key,
                                size_t len, hce_transport_key_t **key_p);
void hce_proxy_key_close(hce_proxy_t *proxy, hce_transport_key_t *key);

/* Starts what fits. HCE_OK: all of it has been started (a signal on the same
 * peer and context is seen after it); HCE_INPROGRESS: call again after
 * progress. The put has ended when req.pending is 0. */
hce_status_t hce_proxy_put(hce_proxy_t *proxy, hce_proxy_put_t *put);

/* Word of the peer's inbox for this rank. HCE_ERR_NO_RESOURCE: try again. */
hce_status_t hce_proxy_signal(hce_proxy_t *proxy, int peer, int context,
                              int slot, uint64_t value);
/* The same with a payload for the peer's mailbox, slot parity 0 or 1. */
hce_status_t hce_proxy_message(hce_proxy_t *proxy, int peer, int parity,
                               const void *payload, size_t len, int slot,
                               uint64_t value);
/* The same with the data of put, which must fit one parcel: they are there
 * when the word is seen. HCE_OK: started, like hce_proxy_put. */
typedef struct hce_proxy_letter {
    const void *payload;
    size_t len;
    uint64_t value;
    int parity;
    int slot;
} hce_proxy_letter_t;
hce_status_t hce_proxy_parcel(hce_proxy_t *proxy, hce_proxy_put_t *put,
                              const hce_proxy_letter_t *letter);
/* What peer left here; valid after its word was seen. */
const void *hce_proxy_mail(const hce_proxy_t *proxy, int peer, int parity);

/* Progress of the transport, then one pass over the words: those that have
 * risen are published to counters[], which is indexed like the inbox
 * (peer * words + slot). True if something moved. */
bool hce_proxy_progress(hce_proxy_t *proxy, hce_counter_t *counters);

int hce_proxy_fds(hce_proxy_t *proxy, int *fds);
bool hce_proxy_arm(hce_proxy_t *proxy);
uint64_t hce_proxy_retries(const hce_proxy_t *proxy);
void hce_proxy_forked(hce_proxy_t *proxy);

#endif
