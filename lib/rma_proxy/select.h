/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Which transport: the choice of one rank, and the agreement of all.
 */
#ifndef HCE_RMA_PROXY_SELECT_H
#define HCE_RMA_PROXY_SELECT_H

#include "rma_proxy/transport.h"

#include <assert.h>

/* What a rank tells the others before its address. One job, one build of the
 * library: the hello of the bootstrap has compared versions. */
typedef struct hce_proxy_offer {
    char name[16];    /* transport, "" if none could be opened */
    int32_t status;   /* hce_status_t */
    int32_t contexts; /* opened */
    char text[224];   /* why not, for people */
} hce_proxy_offer_t;

static_assert(sizeof(hce_proxy_offer_t) == 248, "wire size");

/* By HCE_TRANSPORT. On failure offer->status and text say why. */
const hce_transport_ops_t *hce_proxy_select(hce_proxy_offer_t *offer);

/* Offers of all ranks, in their order: the same result everywhere. Logs what
 * is wrong. *contexts_p is what all ranks have. */
hce_status_t hce_proxy_agree(const hce_proxy_offer_t *offers, int size,
                             int *contexts_p);

#endif
