/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * A group outlives its hub. As long as there are two others or more, the hub
 * has an heir, which listens on a port of its own. A hub that leaves before
 * the others tells them all, with its last words, who that is and who has
 * left; they turn to the heir, which becomes the hub and appoints the next.
 */
#include <config.h>

#include "boot/group.h"
#include "boot/host.h"
#include "boot/mac.h"
#include "util/log.h"

#include <stdlib.h>
#include <string.h>

void hce_boot_heir_mac(const hce_boot_t *boot, int rank,
                       const uint8_t nonce[HCE_BOOT_NONCE_LEN],
                       hce_boot_type_t type, uint8_t mac[HCE_BOOT_KEY_LEN])
{
    hce_boot_claim_t claim = {.rank = rank, .size = boot->size, .type = type};

    memcpy(claim.leaf_nonce, nonce, sizeof(claim.leaf_nonce));
    memcpy(claim.hub_nonce, boot->heir.hub_nonce, sizeof(claim.hub_nonce));
    hce_boot_mac(boot->secret, &claim, sizeof(claim), mac);
}

/* --- hub --- */

/* How long a hub that leaves waits for an answer that is under way. */
#define SETTLE_NS (200 * HCE_NS_PER_MS)

static bool is_here(const hce_boot_link_t *link)
{
    return hce_boot_link_is_open(link) && !link->has_left;
}

void hce_boot_heir_appoint(hce_boot_t *boot)
{
    hce_boot_appoint_msg_t msg = {.is_one_host = 1};
    hce_boot_link_t *chosen = NULL;
    int num = 0;

    for (int i = 0; i < boot->num_links; i++) {
        hce_boot_link_t *link = &boot->links[i];

        msg.is_one_host &= link->who.host_id == boot->who.host_id;
        if (is_here(link)) {
            chosen = chosen == NULL ? link : chosen;
            num++;
        }
    }
    if (boot->heir.rank >= 0 || num < 2 || boot->verdict.have)
        return;
    boot->heir.has_place = false;
    boot->heir.rank = chosen->rank;
    hce_boot_link_send(boot, chosen, HCE_BOOT_APPOINT, &msg, sizeof(msg));
}

hce_status_t hce_boot_on_place(hce_boot_t *boot, hce_boot_link_t *link,
                               const void *body, size_t len)
{
    hce_boot_place_msg_t place;

    memcpy(&place, body, sizeof(place));
    if (place.num_addrs < 1 || place.num_addrs > HCE_BOOT_LISTEN_MAX)
        return HCE_ERR_TRANSPORT;
    if (link->rank == boot->heir.rank && !link->has_left) {
        boot->heir.place = place;
        boot->heir.has_place = true;
    }
    return HCE_OK;
}

/* All have returned to this hub, and its own heir is ready. */
static bool is_settled(const hce_boot_t *boot)
{
    return boot->has_ended || boot->verdict.have ||
           (boot->heir.return_ns == HCE_TIME_NEVER &&
            (boot->heir.rank < 0 || boot->heir.has_place));
}

void hce_boot_hand_over(hce_boot_t *boot)
{
    hce_boot_heir_t *heir = &boot->heir;
    hce_boot_until_t until = {.done = is_settled,
                              .deadline = hce_clock_deadline(SETTLE_NS),
                              .ignore_news = true};
    size_t left_len = ((size_t)boot->size + 7) / 8;
    hce_boot_handover_msg_t msg = {.heir = -1};
    uint8_t *left;

    if (!hce_boot_is_hub(boot) || heir->is_handed)
        return;
    (void)hce_boot_wait(boot, &until);
    if (boot->has_ended || boot->verdict.have || heir->rank < 0 ||
        !heir->has_place)
        return;
    msg.heir = heir->rank;
    msg.place = heir->place;
    left = calloc(left_len, 1);
    if (left == NULL) {
        hce_log(ERROR, BOOT, "no memory to hand %d ranks over", boot->size);
        return;
    }
    left[boot->rank / 8] |= (uint8_t)(1u << boot->rank % 8);
    for (int i = 0; i < boot->num_links; i++) {
        int rank = boot->links[i].rank;

        if (!is_here(&boot->links[i]))
            left[rank / 8] |= (uint8_t)(1u << rank % 8);
    }
    msg.who = hce_boot_link_of(boot, heir->rank)->who;
    heir->is_handed = true;
    hce_boot_links_post(boot,
                        hce_boot_buf_create(HCE_BOOT_HANDOVER, &msg,
                                            sizeof(msg), left, left_len));
    free(left);
}

/* --- leaf --- */

/* Where the others are likely to reach this rank. */
static hce_status_t own_addr_find(const hce_boot_t *boot, bool is_one_host,
                                  hce_boot_addr_t *addr_p)
{
    if (is_one_host) {
        hce_boot_addr_loopback(addr_p);
        return HCE_OK;
    }
    if (hce_boot_net_own_addr(boot->links[0].conn.fd, addr_p) == 0 &&
        !hce_boot_addr_is_loopback(addr_p)) {
        addr_p->port = 0;
        return HCE_OK;
    }
    return hce_boot_net_primary(addr_p);
}

static hce_status_t place_open(hce_boot_t *boot, bool is_one_host,
                               hce_boot_place_msg_t *place_p)
{
    hce_boot_heir_t *heir = &boot->heir;
    hce_boot_place_msg_t place = {.num_addrs = 0};
    hce_boot_addr_t addr;
    hce_status_t status = own_addr_find(boot, is_one_host, &addr);

    if (status == HCE_OK)
        status = hce_boot_random(place.nonce, sizeof(place.nonce));
    if (status == HCE_OK)
        status = hce_boot_listen_open(&addr, &heir->listen);
    if (status == HCE_OK) {
        place.num_addrs = (uint32_t)heir->listen.num;
        memcpy(place.addrs, heir->listen.addr, sizeof(place.addrs));
        memcpy(heir->hub_nonce, place.nonce, sizeof(heir->hub_nonce));
        *place_p = place;
    }
    return status;
}

/* A rank that cannot listen has said so in the log; nobody follows then. */
hce_status_t hce_boot_on_appoint(hce_boot_t *boot, hce_boot_link_t *link,
                                 const void *body, size_t len)
{
    hce_boot_appoint_msg_t msg;
    hce_boot_place_msg_t place;

    memcpy(&msg, body, sizeof(msg));
    if (!boot->has_left && boot->heir.listen.num == 0 &&
        place_open(boot, msg.is_one_host != 0, &place) == HCE_OK)
        hce_boot_link_send(boot, link, HCE_BOOT_PLACE, &place, sizeof(place));
    return HCE_OK;
}

hce_status_t hce_boot_on_handover(hce_boot_t *boot, hce_boot_link_t *link,
                                  const void *body, size_t len)
{
    hce_boot_heir_t *heir = &boot->heir;
    size_t left_len = ((size_t)boot->size + 7) / 8;
    hce_boot_handover_msg_t *msg = &heir->handover;

    if (len != sizeof(*msg) + left_len || heir->is_due || !link->has_left)
        return HCE_ERR_TRANSPORT;
    memcpy(msg, body, sizeof(*msg));
    hce_boot_who_clean(&msg->who);
    if (msg->heir < 0 || msg->heir >= boot->size || msg->heir == boot->hub ||
        msg->place.num_addrs < 1 ||
        msg->place.num_addrs > HCE_BOOT_LISTEN_MAX ||
        (msg->heir == boot->rank && heir->listen.num == 0))
        return HCE_ERR_TRANSPORT;
    heir->left = malloc(left_len);
    if (heir->left == NULL)
        return HCE_ERR_NO_MEMORY;
    memcpy(heir->left, (const uint8_t *)body + sizeof(*msg), left_len);
    heir->is_due = true;
    return HCE_OK;
}

static void return_send(hce_boot_t *boot, hce_boot_link_t *link)
{
    hce_boot_return_msg_t msg = {.rank = boot->rank, .who = boot->who};

    memcpy(msg.nonce, boot->heir.leaf_nonce, sizeof(msg.nonce));
    hce_boot_heir_mac(boot, boot->rank, msg.nonce, HCE_BOOT_RETURN, msg.mac);
    hce_boot_link_send(boot, link, HCE_BOOT_RETURN, &msg, sizeof(msg));
    if (boot->has_left)
        hce_boot_link_send(boot, link, HCE_BOOT_GOODBYE, NULL, 0);
}

/* Starts to connect; what is sent meanwhile waits in the link. */
static hce_status_t heir_call(hce_boot_t *boot, hce_boot_link_t *link)
{
    const hce_boot_handover_msg_t *msg = &boot->heir.handover;
    bool is_same_host = msg->who.host_id == boot->who.host_id;
    uint32_t at = is_same_host ? msg->place.num_addrs - 1 : 0;
    hce_status_t status =
        hce_boot_random(boot->heir.leaf_nonce, sizeof(boot->heir.leaf_nonce));
    hce_boot_conn_t conn;
    int fd;

    if (status != HCE_OK)
        return status;
    if (hce_boot_net_connect(&msg->place.addrs[at], &fd) != 0)
        return HCE_ERR_TRANSPORT;
    hce_boot_conn_init(&conn, fd, HCE_BOOT_HELLO_MAX);
    status = hce_boot_link_open(boot, link, &conn, &msg->who);
    if (status != HCE_OK)
        hce_boot_conn_close(&conn);
    return status;
}

/* The old hub has said all it had to say. */
static void leaf_move(hce_boot_t *boot)
{
    hce_boot_link_t *link = &boot->links[0];

    hce_boot_link_close(boot, link);
    memset(link, 0, sizeof(*link));
    hce_boot_conn_init(&link->conn, -1, 0);
    link->rank = boot->heir.handover.heir;
    boot->hub = link->rank;
    memcpy(boot->heir.hub_nonce, boot->heir.handover.place.nonce,
           sizeof(boot->heir.hub_nonce));
    if (heir_call(boot, link) == HCE_OK) {
        link->is_unproved = true;
        return_send(boot, link);
    } else {
        hce_boot_hub_missed(boot, link);
    }
}

hce_status_t hce_boot_on_adopt(hce_boot_t *boot, hce_boot_link_t *link,
                               const void *body, size_t len)
{
    uint8_t mac[HCE_BOOT_KEY_LEN];

    hce_boot_heir_mac(boot, boot->rank, boot->heir.leaf_nonce, HCE_BOOT_ADOPT,
                      mac);
    if (!link->is_unproved || !hce_boot_mac_equal(mac, body))
        return HCE_ERR_TRANSPORT;
    link->is_unproved = false;
    return HCE_OK;
}

void hce_boot_heir_tick(hce_boot_t *boot, uint64_t now)
{
    hce_boot_heir_t *heir = &boot->heir;

    if (heir->is_due && !boot->verdict.have) {
        if (heir->handover.heir != boot->rank)
            leaf_move(boot);
        else if (hce_boot_adopt_start(boot, heir->left) != HCE_OK)
            hce_log(ERROR, BOOT, "rank %d cannot become the hub", boot->rank);
        hce_boot_exchange_forgo(boot);
    }
    heir->is_due = false;
    free(heir->left);
    heir->left = NULL;
    hce_boot_adopt_tick(boot, now);
}

void hce_boot_heir_cleanup(hce_boot_t *boot)
{
    hce_boot_adopt_stop(boot);
    free(boot->heir.left);
    boot->heir.left = NULL;
}
