/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The node link. Both sides prove that they belong to the group: a listener
 * has a name that only the group knows, a caller sends the group's secret.
 * Whoever else connects is dropped, and can hold a bounded number of places
 * only until the links stand. Every turn tries all that is due without
 * blocking, then sleeps until a descriptor says that something may go.
 */
#include <config.h>

#include "ce/host/host.h"

#include "ce/host/link_msg.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/math.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG       256
#define STRANGERS_MAX 32 /* connections that have not said who they are */
#define RETRY_MS      5 /* a full backlog, or too many descriptors in flight */
#define NAP_MS        1000 /* longest sleep, so that a deadline is kept */
#define GRACE_MS      50
#define RETRIES_MAX   200 /* of links that break at once */

/* State of one exchange. */
typedef struct run {
    hce_ce_t *ce;
    hce_ce_exchange_t *exchange;
    const uint8_t (*names)[HCE_CE_LINK_NAME_LEN];
    int strangers[STRANGERS_MAX]; /* oldest first */
    int num_strangers;
    bool must_retry; /* nothing to poll for */
    int num_retries;
    struct pollfd *polls;
} run_t;

static socklen_t name_address(const uint8_t name[HCE_CE_LINK_NAME_LEN],
                              struct sockaddr_un *addr)
{
    size_t at = 1; /* a leading NUL: the abstract name space */
    int i;

    *addr = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(addr->sun_path + at, "hce-", 4);
    at += 4;
    for (i = 0; i < HCE_CE_LINK_NAME_LEN; i++, at += 2)
        snprintf(addr->sun_path + at, 3, "%02x", name[i]);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + at);
}

static int socket_create(void)
{
    return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

hce_status_t hce_ce_link_listen(hce_ce_t *ce)
{
    hce_ce_link_t *link = &ce->link;
    struct sockaddr_un addr;
    socklen_t len;

    if (getrandom(link->name, sizeof(link->name), 0) != sizeof(link->name)) {
        hce_log(ERROR, CE, "no random numbers: %m");
        return HCE_ERR_SYSTEM;
    }
    len = name_address(link->name, &addr);
    link->listener = socket_create();
    if (link->listener < 0 ||
        bind(link->listener, (struct sockaddr *)&addr, len) != 0 ||
        listen(link->listener, BACKLOG) != 0) {
        hce_log(ERROR, CE, "cannot listen for node peers: %m");
        hce_ce_link_unlisten(ce);
        return HCE_ERR_SYSTEM;
    }
    return HCE_OK;
}

void hce_ce_link_unlisten(hce_ce_t *ce)
{
    if (ce->link.listener >= 0)
        close(ce->link.listener);
    ce->link.listener = -1;
}

void hce_ce_parcel_close(hce_ce_parcel_t *parcel)
{
    while (parcel->num_fds > 0)
        close(parcel->fds[--parcel->num_fds]);
}

static void stranger_drop(run_t *run, int i, const char *why)
{
    if (run->strangers[i] >= 0)
        close(run->strangers[i]);
    run->num_strangers--;
    memmove(run->strangers + i, run->strangers + i + 1,
            (size_t)(run->num_strangers - i) * sizeof(run->strangers[0]));
    if (why != NULL)
        hce_log(INFO, CE, "dropped a connection from a stranger: %s", why);
}

/* The peer whose valid hello this is, or -1. */
static int hello_lrank(run_t *run, int fd, const hce_ce_link_msg_t *msg)
{
    struct ucred cred;
    socklen_t len = sizeof(cred);
    int l;

    if (!hce_ce_link_msg_is_valid(msg, hce_boot_secret(run->ce->boot),
                                  run->exchange) ||
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) != 0 ||
        cred.uid != geteuid())
        return -1;
    for (l = run->ce->lrank + 1; l < run->ce->num_lranks; l++) {
        if (run->ce->peers[l].rank == msg->rank)
            return !run->ce->peers[l].is_local && run->ce->peers[l].link < 0
                       ? l
                       : -1;
    }
    return -1;
}

/* Returns false while it has said nothing yet. */
static bool stranger_hear(run_t *run, int i)
{
    hce_ce_parcel_t parcel = {0};
    hce_ce_link_msg_t msg;
    int fd = run->strangers[i], l;
    hce_status_t status;

    status = hce_ce_link_msg_recv(fd, &msg, &parcel);
    if (status == HCE_INPROGRESS)
        return false;
    l = status == HCE_OK ? hello_lrank(run, fd, &msg) : -1;
    if (l < 0) {
        hce_ce_parcel_close(&parcel);
        /* Peers, too, look whether somebody listens and say nothing. */
        stranger_drop(run, i,
                      status == HCE_ERR_GONE ? NULL : "no valid hello");
        return true;
    }
    run->ce->peers[l].link = fd;
    run->exchange->in[l] = parcel; /* nothing is due any more */
    run->strangers[i] = -1;
    stranger_drop(run, i, NULL);
    return true;
}

static hce_status_t accept_turn(run_t *run)
{
    int fd, i;

    for (i = 0; i < STRANGERS_MAX; i++) {
        fd = accept4(run->ce->link.listener, NULL, NULL,
                     SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0 &&
            (errno == EAGAIN || errno == ECONNABORTED || errno == EINTR))
            break;
        if (fd < 0)
            return hce_ce_fail(run->ce, HCE_ERR_SYSTEM,
                               "rank %d cannot accept node peers: %s",
                               run->ce->rank, strerror(errno));
        if (run->num_strangers == STRANGERS_MAX)
            stranger_drop(run, 0, "too many say nothing");
        run->strangers[run->num_strangers++] = fd;
    }
    for (i = 0; i < run->num_strangers;) {
        if (!stranger_hear(run, i))
            i++;
    }
    return HCE_OK;
}

/* A link breaks a little before the end of its process shows, and the peers
 * that see it first break theirs: finds the one where it began, if any. */
static int ended_lrank(run_t *run)
{
    int l, n = 0;

    for (l = 0; l < run->ce->num_lranks; l++)
        run->polls[n++] = (struct pollfd){run->ce->peers[l].pidfd, POLLIN, 0};
    if (poll(run->polls, (nfds_t)n, GRACE_MS) <= 0)
        return -1;
    for (l = 0; run->polls[l].revents == 0; l++)
        ;
    return l;
}

static hce_status_t peer_lost(run_t *run, int lrank, const char *why)
{
    int ended = ended_lrank(run);

    if (ended >= 0) {
        lrank = ended;
        why = "its process has ended";
    }
    return hce_ce_fail(run->ce, HCE_ERR_GONE,
                       "rank %d lost its node link to rank %d: %s",
                       run->ce->rank, run->ce->peers[lrank].rank, why);
}

/* Caller's side of a missing link; a full backlog is tried again. */
static hce_status_t connect_turn(run_t *run, int lrank)
{
    hce_ce_peer_t *peer = &run->ce->peers[lrank];
    struct sockaddr_un addr;
    socklen_t len = name_address(run->names[lrank], &addr);
    int fd = socket_create(), error;

    if (fd >= 0 && connect(fd, (struct sockaddr *)&addr, len) == 0) {
        peer->link = fd;
        return HCE_OK;
    }
    error = errno;
    if (fd >= 0)
        close(fd);
    if (fd >= 0 && (error == EAGAIN || error == EINTR)) {
        run->must_retry = true;
        return HCE_OK;
    }
    if (error == ECONNREFUSED)
        return peer_lost(run, lrank, "it has given up");
    return hce_ce_fail(run->ce, HCE_ERR_SYSTEM,
                       "rank %d cannot connect to rank %d on its node: %s",
                       run->ce->rank, peer->rank, strerror(error));
}

/* A listener may have taken this rank for one of many strangers who say
 * nothing, and dropped it before its hello came: connects again. If the peer
 * has given up, that is refused. */
static hce_status_t link_broken(run_t *run, int lrank, const char *why)
{
    hce_ce_peer_t *peer = &run->ce->peers[lrank];

    if (run->names == NULL || lrank > run->ce->lrank ||
        !run->exchange->in[lrank].is_due || run->num_retries == RETRIES_MAX)
        return peer_lost(run, lrank, why);
    run->num_retries++;
    run->must_retry = true;
    run->exchange->out[lrank].is_due = true;
    close(peer->link);
    peer->link = -1;
    return HCE_OK;
}

static hce_status_t send_turn(run_t *run, int lrank)
{
    hce_ce_parcel_t *parcel = &run->exchange->out[lrank];
    hce_ce_link_msg_t msg;
    hce_status_t status;

    hce_ce_link_msg_fill(&msg, hce_boot_secret(run->ce->boot), run->exchange);
    msg.rank = run->ce->rank;
    status = hce_ce_link_msg_send(run->ce->peers[lrank].link, &msg, parcel);
    if (status == HCE_INPROGRESS)
        run->must_retry = true;
    else if (status != HCE_OK)
        return link_broken(run, lrank, strerror(errno));
    else
        parcel->is_due = false;
    return HCE_OK;
}

static hce_status_t recv_turn(run_t *run, int lrank)
{
    hce_ce_peer_t *peer = &run->ce->peers[lrank];
    hce_ce_parcel_t parcel = {0};
    hce_ce_link_msg_t msg;
    hce_status_t status;

    status = hce_ce_link_msg_recv(peer->link, &msg, &parcel);
    if (status == HCE_INPROGRESS)
        return HCE_OK;
    if (status != HCE_OK)
        return link_broken(run, lrank, "it has been closed");
    run->exchange->in[lrank] = parcel;
    if (msg.rank != peer->rank ||
        !hce_ce_link_msg_is_valid(&msg, hce_boot_secret(run->ce->boot),
                                  run->exchange))
        return peer_lost(run, lrank, "a message that was not expected");
    return HCE_OK;
}

/* All that can be done with one peer now. */
static hce_status_t peer_turn(run_t *run, int lrank)
{
    hce_ce_peer_t *peer = &run->ce->peers[lrank];
    hce_ce_exchange_t *exchange = run->exchange;
    hce_status_t status = HCE_OK;

    if (peer->link < 0 && exchange->out[lrank].is_due &&
        lrank < run->ce->lrank)
        status = connect_turn(run, lrank);
    if (status != HCE_OK || peer->link < 0)
        return status;
    if (exchange->out[lrank].is_due)
        status = send_turn(run, lrank);
    if (status == HCE_OK && exchange->in[lrank].is_due && peer->link >= 0)
        status = recv_turn(run, lrank);
    return status;
}

static bool is_due(const run_t *run, int lrank)
{
    return run->exchange->in[lrank].is_due || run->exchange->out[lrank].is_due;
}

static bool is_any_due(const run_t *run, int *lrank_p)
{
    int l;

    for (l = 0; l < run->ce->num_lranks; l++) {
        if (is_due(run, l)) {
            *lrank_p = l;
            return true;
        }
    }
    return false;
}

static int polls_fill(run_t *run)
{
    const hce_ce_t *ce = run->ce;
    int n = 0, i;

    for (i = 0; i < ce->num_lranks; i++) {
        if (!is_due(run, i))
            continue;
        /* poll skips a descriptor of -1 */
        run->polls[n++] = (struct pollfd){ce->peers[i].link, POLLIN, 0};
        run->polls[n++] = (struct pollfd){ce->peers[i].pidfd, POLLIN, 0};
    }
    if (run->names != NULL)
        run->polls[n++] = (struct pollfd){ce->link.listener, POLLIN, 0};
    for (i = 0; i < run->num_strangers; i++)
        run->polls[n++] = (struct pollfd){run->strangers[i], POLLIN, 0};
    return n;
}

/* A peer that gives up stops to listen. Those whose call it would have been
 * to connect here cannot tell otherwise. */
static bool has_given_up(run_t *run, int lrank)
{
    const hce_ce_peer_t *peer = &run->ce->peers[lrank];
    struct sockaddr_un addr;
    socklen_t len;
    bool refused;
    int fd;

    if (run->names == NULL || peer->link >= 0 || lrank < run->ce->lrank)
        return false;
    fd = socket_create();
    if (fd < 0)
        return false;
    len = name_address(run->names[lrank], &addr);
    refused = connect(fd, (struct sockaddr *)&addr, len) != 0 &&
              errno == ECONNREFUSED;
    close(fd);
    return refused;
}

/* Sleeps until a turn makes sense; an error if a peer has ended meanwhile or
 * time is up. */
static hce_status_t run_wait(run_t *run, int late)
{
    int nap = run->must_retry ? RETRY_MS : NAP_MS, l;
    uint64_t now = hce_clock_ns(), left;
    int n;

    if (now >= run->exchange->deadline)
        return hce_ce_fail(run->ce, HCE_ERR_TIMEOUT,
                           "rank %d waits for the node link of rank %d",
                           run->ce->rank, run->ce->peers[late].rank);
    left = hce_div_up(run->exchange->deadline - now, HCE_NS_PER_MS);
    nap = (int)hce_min((uint64_t)nap, left);
    n = poll(run->polls, (nfds_t)polls_fill(run), nap);
    if (n < 0 && errno != EINTR)
        return hce_ce_fail(run->ce, HCE_ERR_SYSTEM, "rank %d cannot poll: %s",
                           run->ce->rank, strerror(errno));
    for (l = 0; l < run->ce->num_lranks; l++) {
        if (is_due(run, l) && hce_ce_peer_gone(run->ce, l))
            return peer_lost(run, l, "its process has ended");
        if (is_due(run, l) && n == 0 && has_given_up(run, l))
            return peer_lost(run, l, "it has given up");
    }
    return HCE_OK;
}

static hce_status_t run_exchange(run_t *run)
{
    hce_status_t status = HCE_OK;
    int l, late;

    while (is_any_due(run, &late)) {
        run->must_retry = false;
        if (run->names != NULL)
            status = accept_turn(run);
        for (l = 0; l < run->ce->num_lranks && status == HCE_OK; l++) {
            if (is_due(run, l))
                status = peer_turn(run, l);
        }
        if (status == HCE_OK && is_any_due(run, &late))
            status = run_wait(run, late);
        if (status != HCE_OK)
            break;
    }
    while (run->num_strangers > 0)
        stranger_drop(run, 0, "said nothing");
    return status;
}

static hce_status_t run_start(hce_ce_t *ce, hce_ce_exchange_t *exchange,
                              const uint8_t (*names)[HCE_CE_LINK_NAME_LEN])
{
    run_t run = {.ce = ce, .exchange = exchange, .names = names};
    hce_status_t status;

    run.polls = calloc(2 * (size_t)ce->num_lranks + 1 + STRANGERS_MAX,
                       sizeof(*run.polls));
    if (run.polls == NULL)
        return hce_ce_fail(ce, HCE_ERR_NO_MEMORY,
                           "rank %d has no memory for links", ce->rank);
    status = run_exchange(&run);
    free(run.polls);
    return status;
}

hce_status_t hce_ce_link_connect(hce_ce_t *ce, hce_ce_exchange_t *exchange,
                                 const uint8_t (*names)[HCE_CE_LINK_NAME_LEN])
{
    return run_start(ce, exchange, names);
}

hce_status_t hce_ce_link_exchange(hce_ce_t *ce, hce_ce_exchange_t *exchange)
{
    return run_start(ce, exchange, NULL);
}
