/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Verbs transport: peers, from their first connection to their end.
 */
#include "config.h"

#include "rma_proxy/verbs/verbs.h"

#include "boot/net.h"
#include "util/log.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

verbs_peer_t *hce_verbs_peer_get(verbs_t *verbs, int rank)
{
    verbs_peer_t *peer = verbs->peers[rank];

    if (peer != NULL)
        return peer;
    peer = calloc(1, sizeof(*peer));
    if (peer == NULL) {
        hce_log(ERROR, PROXY, "verbs: no memory for rank %d", rank);
        return NULL;
    }
    peer->verbs = verbs;
    peer->rank = rank;
    peer->out.source = (verbs_source_t){.role = VERBS_OUT, .fd = -1};
    peer->in.source = (verbs_source_t){.role = VERBS_IN, .fd = -1};
    verbs->peers[rank] = peer;
    return peer;
}

static size_t slots_size(const verbs_t *verbs)
{
    return (size_t)verbs->params.contexts * verbs->queue *
           sizeof(verbs_slot_t);
}

static void eps_free(verbs_peer_t *peer)
{
    for (int i = 0; peer->eps != NULL && i < peer->verbs->params.contexts; i++)
        free(peer->eps[i].ops);
    for (int i = 0; i < VERBS_DEVICES; i++) {
        if (peer->block_mr[i] != NULL)
            (void)ibv_dereg_mr(peer->block_mr[i]);
        peer->block_mr[i] = NULL;
    }
    free(peer->eps);
    free(peer->block);
    peer->eps = NULL;
    peer->block = NULL;
}

static hce_status_t block_register(verbs_peer_t *peer, size_t size)
{
    verbs_t *verbs = peer->verbs;

    for (int i = 0; i < verbs->num_devices; i++) {
        peer->block_mr[i] = ibv_reg_mr(verbs->devices[i].pd, peer->block, size,
                                       IBV_ACCESS_LOCAL_WRITE);
        if (peer->block_mr[i] == NULL) {
            hce_log(ERROR, PROXY,
                    "verbs: %s: registering %zu bytes for rank %d: %m",
                    verbs->devices[i].name, size, peer->rank);
            return HCE_ERR_TRANSPORT;
        }
    }
    return HCE_OK;
}

static hce_status_t eps_create(verbs_peer_t *peer)
{
    verbs_t *verbs = peer->verbs;
    size_t size = slots_size(verbs) + VERBS_MAILS * HCE_TRANSPORT_MAX_MESSAGE;
    hce_status_t status = HCE_ERR_NO_MEMORY;

    peer->eps = calloc((size_t)verbs->params.contexts, sizeof(*peer->eps));
    peer->block = calloc(1, size);
    if (peer->eps == NULL || peer->block == NULL)
        goto err;
    for (int i = 0; i < verbs->params.contexts; i++) {
        verbs_ep_t *ep = &peer->eps[i];

        ep->peer = peer;
        ep->context = i;
        ep->slots = (verbs_slot_t *)peer->block + (size_t)i * verbs->queue;
        ep->ops = calloc(verbs->queue, sizeof(*ep->ops));
        if (ep->ops == NULL)
            goto err;
    }
    status = block_register(peer, size);
    if (status == HCE_OK)
        return HCE_OK;

err:
    if (status == HCE_ERR_NO_MEMORY)
        hce_log(ERROR, PROXY, "verbs: no memory to connect rank %d",
                peer->rank);
    eps_free(peer);
    return status;
}

static hce_status_t address_parse(const verbs_t *verbs, const void *addr,
                                  size_t len, verbs_address_t *address_p)
{
    if (len != sizeof(*address_p))
        return HCE_ERR_TRANSPORT;
    memcpy(address_p, addr, len);
    return address_p->magic == VERBS_MAGIC &&
                   address_p->contexts == verbs->params.contexts &&
                   address_p->devices >= 1 &&
                   address_p->devices <= VERBS_DEVICES
               ? HCE_OK
               : HCE_ERR_TRANSPORT;
}

static hce_status_t dial(verbs_peer_t *peer)
{
    char text[HCE_BOOT_ADDR_TEXT];
    hce_boot_addr_t addr;
    int rc;

    static_assert(sizeof(addr) == sizeof(peer->address.listener),
                  "size in the address");
    memcpy(&addr, peer->address.listener, sizeof(addr));
    rc = hce_boot_net_connect(&addr, &peer->out.source.fd);
    if (rc == 0)
        return hce_verbs_watch(peer->verbs, &peer->out.source, EPOLLOUT, true);
    hce_log(ERROR, PROXY, "verbs: connecting to rank %d at %s: %s", peer->rank,
            hce_boot_addr_text(&addr, text, sizeof(text)), strerror(-rc));
    return HCE_ERR_TRANSPORT;
}

/* The rest follows by itself: until then posts are refused. */
hce_status_t hce_verbs_connect(hce_transport_t *transport, int rank,
                               const void *addr, size_t len)
{
    verbs_t *verbs = verbs_of(transport);
    verbs_peer_t *peer = hce_verbs_peer_get(verbs, rank);
    hce_status_t status;

    if (peer == NULL)
        return HCE_ERR_NO_MEMORY;
    if (peer->status != HCE_OK || peer->eps != NULL)
        return peer->status;
    if (address_parse(verbs, addr, len, &peer->address) != HCE_OK) {
        hce_log(ERROR, PROXY, "verbs: rank %d sent no address for %d contexts",
                rank, verbs->params.contexts);
        return HCE_ERR_TRANSPORT;
    }
    status = eps_create(peer);
    if (status != HCE_OK)
        return status;
    status = dial(peer);
    if (status != HCE_OK) {
        hce_verbs_conn_close(&peer->out);
        eps_free(peer);
    }
    return status;
}

static void queue_pairs_drop(verbs_peer_t *peer, hce_status_t status)
{
    for (int i = 0; peer->eps != NULL && i < peer->verbs->params.contexts;
         i++) {
        hce_verbs_ep_reset(&peer->eps[i]);
        hce_verbs_ops_drop(&peer->eps[i], status);
    }
    for (int i = 0; i < VERBS_CONTEXTS; i++) {
        if (peer->ins[i].qp != NULL)
            hce_verbs_qp_destroy(peer->ins[i].qp);
        peer->ins[i].qp = NULL;
    }
}

void hce_verbs_peer_fail(verbs_peer_t *peer, hce_status_t status,
                         const char *text)
{
    verbs_t *verbs = peer->verbs;

    if (peer->status != HCE_OK)
        return;
    peer->status = peer->has_left ? HCE_ERR_TRANSPORT : status;
    hce_log(DEBUG, PROXY, "verbs: rank %d%s: %s", peer->rank,
            peer->has_left ? " (left)" : "", text);
    queue_pairs_drop(peer, peer->status);
    if (!peer->has_left)
        verbs->params.error_cb(verbs->params.error_arg, peer->rank, status,
                               text);
}

void hce_verbs_peer_free(verbs_peer_t *peer)
{
    if (peer == NULL)
        return;
    queue_pairs_drop(peer, HCE_ERR_TRANSPORT);
    hce_verbs_conn_close(&peer->out);
    hce_verbs_conn_close(&peer->in);
    eps_free(peer);
    free(peer);
}
