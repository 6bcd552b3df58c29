/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Messages of the node link: a packet of fixed size with descriptors beside
 * it. Checked as hostile input.
 */
#ifndef HCE_CE_HOST_LINK_MSG_H
#define HCE_CE_HOST_LINK_MSG_H

#include "ce/host/link.h"

#define HCE_CE_LINK_SECRET_LEN 16

typedef struct hce_ce_link_msg {
    uint64_t magic;
    uint32_t version;
    uint32_t kind;
    uint8_t secret[HCE_CE_LINK_SECRET_LEN];
    uint64_t value;
    int32_t rank; /* of the sender */
    uint32_t num_fds;
} hce_ce_link_msg_t;

/* All but rank and num_fds. */
void hce_ce_link_msg_fill(hce_ce_link_msg_t *msg, const uint8_t *secret,
                          const hce_ce_exchange_t *exchange);
bool hce_ce_link_msg_is_valid(const hce_ce_link_msg_t *msg,
                              const uint8_t *secret,
                              const hce_ce_exchange_t *exchange);

/* HCE_INPROGRESS: not now. On error errno says why. */
hce_status_t hce_ce_link_msg_send(int fd, hce_ce_link_msg_t *msg,
                                  const hce_ce_parcel_t *parcel);

/* HCE_INPROGRESS: nothing there. An error if the connection is closed, or
 * what came has not the size and the number of descriptors that it says. */
hce_status_t hce_ce_link_msg_recv(int fd, hce_ce_link_msg_t *msg,
                                  hce_ce_parcel_t *parcel);

#endif
