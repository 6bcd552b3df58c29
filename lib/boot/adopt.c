/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * A rank becomes the hub, in the middle of the group's life: it waits for the
 * others to return, which happens in turns. Strangers who call meanwhile get
 * few bytes and a bounded number of places. Who does not come has left at the
 * same time as the old hub, its goodbye went to nobody; or it has died, which
 * shows when somebody waits for it (watch.c).
 */
#include <config.h>

#include "boot/group.h"
#include "boot/host.h"
#include "boot/mac.h"
#include "util/log.h"
#include "util/math.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#define RETURN_NS (5 * HCE_NS_PER_SEC)
#define CROWD_NS                                                              \
    (200 * HCE_NS_PER_MS) /* a caller's, when places are short                \
                           */
#define ACCEPT_MAX 64     /* in one go */

/* Numbers of events: first the listening sockets, then the callers. */
#define EVENT_CALLER (HCE_BOOT_EVENT_ADOPT + HCE_BOOT_LISTEN_MAX)

static int event_add(hce_boot_t *boot, int fd, uint32_t number)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = number};

    return epoll_ctl(boot->epfd, EPOLL_CTL_ADD, fd, &event);
}

static void caller_drop(hce_boot_t *boot, hce_boot_caller_t *caller)
{
    if (caller->conn.fd >= 0) {
        epoll_ctl(boot->epfd, EPOLL_CTL_DEL, caller->conn.fd, NULL);
        hce_boot_conn_close(&caller->conn);
    }
}

static hce_boot_caller_t *place_find(hce_boot_t *boot, uint64_t now)
{
    hce_boot_caller_t *oldest = NULL;

    for (int i = 0; i < HCE_BOOT_CALLERS_MAX; i++) {
        hce_boot_caller_t *caller = &boot->heir.callers[i];

        if (caller->conn.fd < 0)
            return caller;
        if (now - caller->since_ns > CROWD_NS &&
            (oldest == NULL || caller->since_ns < oldest->since_ns))
            oldest = caller;
    }
    if (oldest != NULL)
        caller_drop(boot, oldest);
    return oldest;
}

/* Without a free place others wait in the queue: epoll tells again. */
static void callers_accept(hce_boot_t *boot, int listen_fd)
{
    uint64_t now = hce_clock_ns();

    for (int i = 0; i < ACCEPT_MAX; i++) {
        hce_boot_caller_t *caller = place_find(boot, now);
        int fd;

        if (caller == NULL || hce_boot_net_accept(listen_fd, &fd) != 0)
            return;
        hce_boot_conn_init(&caller->conn, fd, HCE_BOOT_HELLO_MAX);
        caller->since_ns = now;
        if (event_add(boot, fd,
                      EVENT_CALLER +
                          (uint32_t)(caller - boot->heir.callers)) != 0)
            hce_boot_conn_close(&caller->conn);
    }
}

static bool is_ours(const hce_boot_t *boot, const hce_boot_frame_t *frame,
                    const void *body, hce_boot_return_msg_t *msg_p)
{
    uint8_t mac[HCE_BOOT_KEY_LEN];

    if (frame->version != HCE_BOOT_WIRE_VERSION ||
        frame->type != HCE_BOOT_RETURN || frame->len != sizeof(*msg_p))
        return false;
    memcpy(msg_p, body, sizeof(*msg_p));
    if (msg_p->rank < 0 || msg_p->rank >= boot->size ||
        msg_p->rank == boot->rank ||
        !hce_boot_link_of(boot, msg_p->rank)->is_awaited)
        return false;
    hce_boot_heir_mac(boot, msg_p->rank, msg_p->nonce, HCE_BOOT_RETURN, mac);
    return hce_boot_mac_equal(mac, msg_p->mac);
}

/* What has happened meanwhile comes behind the proof. */
static void rank_adopt(hce_boot_t *boot, hce_boot_caller_t *caller,
                       hce_boot_return_msg_t *msg)
{
    hce_boot_link_t *link = hce_boot_link_of(boot, msg->rank);
    hce_boot_adopt_msg_t adopt;

    hce_boot_who_clean(&msg->who);
    hce_boot_heir_mac(boot, msg->rank, msg->nonce, HCE_BOOT_ADOPT, adopt.mac);
    epoll_ctl(boot->epfd, EPOLL_CTL_DEL, caller->conn.fd, NULL);
    if (hce_boot_link_open(boot, link, &caller->conn, &msg->who) != HCE_OK) {
        hce_boot_conn_close(&caller->conn);
        return;
    }
    link->is_awaited = false;
    hce_boot_link_send(boot, link, HCE_BOOT_ADOPT, &adopt, sizeof(adopt));
    hce_boot_news_repeat(boot, link);
    if (boot->has_left)
        hce_boot_link_send(boot, link, HCE_BOOT_GOODBYE, NULL, 0);
}

static void caller_read(hce_boot_t *boot, hce_boot_caller_t *caller)
{
    const hce_boot_frame_t *frame;
    hce_boot_return_msg_t msg;
    const void *body;
    hce_status_t status = hce_boot_conn_next(&caller->conn, &frame, &body);

    if (status == HCE_INPROGRESS)
        return;
    if (status == HCE_OK && is_ours(boot, frame, body, &msg))
        rank_adopt(boot, caller, &msg);
    else
        caller_drop(boot, caller);
}

void hce_boot_adopt_event(hce_boot_t *boot, uint32_t event)
{
    hce_boot_heir_t *heir = &boot->heir;

    if (event < EVENT_CALLER) {
        uint32_t at = event - HCE_BOOT_EVENT_ADOPT;

        if ((int)at < heir->listen.num)
            callers_accept(boot, heir->listen.fd[at]);
    } else if (heir->callers[event - EVENT_CALLER].conn.fd >= 0) {
        caller_read(boot, &heir->callers[event - EVENT_CALLER]);
    }
}

void hce_boot_adopt_stop(hce_boot_t *boot)
{
    hce_boot_heir_t *heir = &boot->heir;

    for (int i = 0; i < HCE_BOOT_CALLERS_MAX; i++)
        caller_drop(boot, &heir->callers[i]);
    for (int i = 0; i < heir->listen.num; i++)
        epoll_ctl(boot->epfd, EPOLL_CTL_DEL, heir->listen.fd[i], NULL);
    hce_boot_listen_close(&heir->listen);
    heir->return_ns = HCE_TIME_NEVER;
}

void hce_boot_adopt_tick(hce_boot_t *boot, uint64_t now)
{
    int missing = 0;

    if (boot->heir.return_ns == HCE_TIME_NEVER)
        return;
    for (int i = 0; i < boot->num_links; i++)
        missing += boot->links[i].is_awaited;
    if (missing > 0 && now < boot->heir.return_ns)
        return;
    for (int i = 0; i < boot->num_links; i++) {
        hce_boot_link_t *link = &boot->links[i];

        link->is_missing = link->is_awaited;
        link->has_left = link->has_left || link->is_awaited;
        link->is_awaited = false;
    }
    hce_log(INFO, BOOT, "rank %d is the hub now; %d ranks did not return",
            boot->rank, missing);
    hce_boot_adopt_stop(boot);
    hce_boot_heir_appoint(boot);
    hce_boot_end_check(boot);
}

hce_status_t hce_boot_adopt_start(hce_boot_t *boot, const uint8_t *left)
{
    hce_boot_listen_t *listen = &boot->heir.listen;
    hce_boot_link_t *links = calloc((size_t)boot->size, sizeof(*boot->links));

    if (links == NULL)
        return HCE_ERR_NO_MEMORY;
    hce_boot_link_close(boot, &boot->links[0]);
    free(boot->links);
    boot->links = links;
    boot->num_links = boot->size - 1;
    boot->hub = boot->rank;
    boot->heir.rank = -1;
    for (int i = 0; i < boot->num_links; i++) {
        int rank = i < boot->rank ? i : i + 1;

        hce_boot_conn_init(&links[i].conn, -1, 0);
        links[i].rank = rank;
        links[i].has_left = (left[rank / 8] >> rank % 8 & 1) != 0;
        links[i].is_awaited = !links[i].has_left;
        links[i].missed_by = -1;
        links[i].heard_ns = hce_clock_ns();
    }
    for (int i = 0; i < listen->num; i++) {
        (void)event_add(boot, listen->fd[i],
                        HCE_BOOT_EVENT_ADOPT + (uint32_t)i);
    }
    boot->heir.return_ns = hce_clock_deadline(RETURN_NS);
    return HCE_OK;
}
