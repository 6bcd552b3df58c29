/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The node link: one connection between each two processes' ranks of a node,
 * over which descriptors are passed. Listening sockets have random names in
 * the abstract name space: nothing is left behind. Blocking, with deadlines;
 * never used by the engine's owner.
 */
#ifndef HCE_CE_HOST_LINK_H
#define HCE_CE_HOST_LINK_H

#include <hce/hce.h>
#include <stdbool.h>

#define HCE_CE_LINK_NAME_LEN 16 /* random bytes */
#define HCE_CE_PARCEL_FDS    3

typedef struct hce_ce_link {
    int listener; /* while opening, else -1 */
    uint8_t name[HCE_CE_LINK_NAME_LEN];
} hce_ce_link_t;

/* Descriptors for one peer, or from one. */
typedef struct hce_ce_parcel {
    bool is_due; /* still to be sent or received */
    int num_fds;
    int fds[HCE_CE_PARCEL_FDS];
} hce_ce_parcel_t;

enum { HCE_CE_LINK_HELLO = 1, HCE_CE_LINK_WINDOW = 2 };

/* One exchange with all peers: in[] and out[] by local rank. What has come
 * is the caller's, also after an error. */
typedef struct hce_ce_exchange {
    uint32_t kind;
    uint64_t value; /* the same at both ends, checked */
    uint64_t deadline;
    hce_ce_parcel_t *in, *out;
} hce_ce_exchange_t;

struct hce_ce;

/* Starts to listen under a random name. */
hce_status_t hce_ce_link_listen(struct hce_ce *ce);
void hce_ce_link_unlisten(struct hce_ce *ce);

/* Connects to the peers of lower rank, whose names are given, and waits for
 * those of higher rank; names[] by local rank. Exchanges the parcels. */
hce_status_t hce_ce_link_connect(struct hce_ce *ce,
                                 hce_ce_exchange_t *exchange,
                                 const uint8_t (*names)[HCE_CE_LINK_NAME_LEN]);

/* Exchanges parcels over connections that exist. */
hce_status_t hce_ce_link_exchange(struct hce_ce *ce,
                                  hce_ce_exchange_t *exchange);

void hce_ce_parcel_close(hce_ce_parcel_t *parcel);

#endif
