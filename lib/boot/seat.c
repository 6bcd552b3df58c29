/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The hub while its group forms: answers whoever calls on the port, seats the
 * ranks that prove that they belong here. Runs in the thread that creates the
 * group. Strangers get few bytes, little time and a bounded number of places,
 * and never hold up the others.
 */
#include <config.h>

#include "boot/host.h"
#include "boot/mac.h"
#include "boot/meet.h"
#include "util/log.h"
#include "util/math.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define CALLERS_MAX 256
#define CALLER_NS   (5 * HCE_NS_PER_SEC)  /* from accept to seat */
#define CROWD_NS    (200 * HCE_NS_PER_MS) /* the same, when places are short */
#define PAUSE_NS    (20 * HCE_NS_PER_MS)  /* between looks for a free place */
#define SEAT_EVENTS 64
/* A leaf whose connection ends calls again within a second (join.c). */
#define LOST_NS (1500 * HCE_NS_PER_MS)

typedef struct caller {
    hce_boot_conn_t conn; /* conn.fd is -1 for a free place */
    uint64_t since_ns;
    bool has_greeted;
    hce_boot_hello_t hello;
    hce_boot_nonces_t nonces;
    char addr[HCE_BOOT_ADDR_TEXT];
} caller_t;

typedef struct seats {
    hce_boot_meeting_t *meeting;
    hce_boot_t *boot;
    int epfd; /* listeners, callers, and the group's own descriptor */
    bool is_paused;
    int missing;
    uint8_t seed[HCE_BOOT_NONCE_LEN];
    char note[256]; /* the last rank of this job that did not fit, or could
                       not be let in */
    /* The first rank that was here, has no seat, and went away. */
    hce_boot_hello_t lost;
    uint64_t lost_ns; /* when it must be back, or HCE_TIME_NEVER */
    caller_t callers[CALLERS_MAX];
} seats_t;

static void caller_drop(seats_t *seats, caller_t *caller)
{
    epoll_ctl(seats->epfd, EPOLL_CTL_DEL, caller->conn.fd, NULL);
    hce_boot_conn_close(&caller->conn);
}

static void caller_refuse(seats_t *seats, caller_t *caller,
                          hce_boot_reason_t reason, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static void caller_refuse(seats_t *seats, caller_t *caller,
                          hce_boot_reason_t reason, const char *format, ...)
{
    hce_boot_refuse_t refuse = {.reason = reason,
                                .version = HCE_BOOT_WIRE_VERSION};
    va_list args;

    va_start(args, format);
    vsnprintf(refuse.text, sizeof(refuse.text), format, args);
    va_end(args);
    hce_log(DEBUG, BOOT, "%s: refused: %s", caller->addr, refuse.text);
    (void)hce_boot_conn_send(&caller->conn, HCE_BOOT_REFUSE, &refuse,
                             sizeof(refuse));
    caller_drop(seats, caller);
}

/* A rank that claims to be of this job and is not right: ends the group if it
 * can be of no other. */
static void caller_misfit(seats_t *seats, caller_t *caller,
                          hce_boot_reason_t reason, const char *what)
{
    const hce_boot_hello_t *hello = &caller->hello;
    hce_status_t status =
        reason == HCE_BOOT_REASON_VERSION ? HCE_ERR_VERSION : HCE_ERR_CONFIG;

    snprintf(seats->note, sizeof(seats->note), "rank %d at %s %s", hello->rank,
             caller->addr, what);
    if (seats->meeting->is_private || reason == HCE_BOOT_REASON_VERSION) {
        hce_boot_lock(seats->boot);
        hce_boot_news_tell(seats->boot, status, hello->rank, "%s",
                           seats->note);
        hce_boot_unlock(seats->boot);
    } else {
        hce_log(INFO, BOOT, "%s: refused", seats->note);
    }
    caller_refuse(seats, caller, reason, "rank %d %s", hello->rank, what);
}

/* Only what all versions have in common is looked at. */
static void version_differs(seats_t *seats, caller_t *caller,
                            const hce_boot_frame_t *frame, const void *body)
{
    hce_boot_hello_t *hello = &caller->hello;
    char what[96];

    if (frame->type != HCE_BOOT_HELLO ||
        frame->len < offsetof(hce_boot_hello_t, nonce)) {
        caller_drop(seats, caller);
        return;
    }
    memcpy(hello, body, offsetof(hce_boot_hello_t, nonce));
    if (hello->job != seats->meeting->job) {
        caller_refuse(seats, caller, HCE_BOOT_REASON_JOB,
                      "this rank 0 belongs to another job");
        return;
    }
    snprintf(what, sizeof(what),
             "speaks wire version %u, rank 0 speaks version %u",
             frame->version, HCE_BOOT_WIRE_VERSION);
    caller_misfit(seats, caller, HCE_BOOT_REASON_VERSION, what);
}

static void hello_handle(seats_t *seats, caller_t *caller, const void *body)
{
    hce_boot_challenge_t challenge = {.who = seats->boot->who};

    memcpy(&caller->hello, body, sizeof(caller->hello));
    hce_boot_who_clean(&caller->hello.who);
    if (caller->hello.job != seats->meeting->job) {
        caller_refuse(seats, caller, HCE_BOOT_REASON_JOB,
                      "this rank 0 belongs to another job");
        return;
    }
    memcpy(caller->nonces.leaf, caller->hello.nonce,
           sizeof(caller->nonces.leaf));
    if (hce_boot_random(caller->nonces.hub, sizeof(caller->nonces.hub)) !=
        HCE_OK) {
        caller_drop(seats, caller);
        return;
    }
    memcpy(challenge.nonce, caller->nonces.hub, sizeof(challenge.nonce));
    caller->has_greeted = true;
    if (hce_boot_conn_send(&caller->conn, HCE_BOOT_CHALLENGE, &challenge,
                           sizeof(challenge)) != HCE_OK)
        caller_drop(seats, caller);
}

static void caller_seat(seats_t *seats, caller_t *caller)
{
    hce_boot_link_t *link = &seats->boot->links[caller->hello.rank - 1];
    hce_boot_welcome_t welcome;

    hce_boot_claim_mac(seats->meeting, &caller->hello, &caller->nonces,
                       HCE_BOOT_WELCOME, welcome.mac);
    memcpy(welcome.seed, seats->seed, sizeof(welcome.seed));
    hce_boot_lock(seats->boot);
    epoll_ctl(seats->epfd, EPOLL_CTL_DEL, caller->conn.fd, NULL);
    if (hce_boot_link_open(seats->boot, link, &caller->conn,
                           &caller->hello.who) == HCE_OK) {
        hce_boot_link_send(seats->boot, link, HCE_BOOT_WELCOME, &welcome,
                           sizeof(welcome));
        seats->missing--;
    } else {
        hce_boot_conn_close(&caller->conn);
    }
    hce_boot_unlock(seats->boot);
    hce_log(DEBUG, BOOT, "rank %d has come from %s; %d to come", link->rank,
            caller->addr, seats->missing);
}

static bool is_seated(const seats_t *seats, int rank)
{
    return hce_boot_link_is_open(&seats->boot->links[rank - 1]);
}

static void proof_handle(seats_t *seats, caller_t *caller, const void *body)
{
    const hce_boot_hello_t *hello = &caller->hello;
    int size = seats->meeting->size;
    uint8_t mac[HCE_BOOT_KEY_LEN];
    char what[128];

    hce_boot_claim_mac(seats->meeting, hello, &caller->nonces, HCE_BOOT_PROOF,
                       mac);
    if (!hce_boot_mac_equal(mac, body)) {
        hce_log(WARN, BOOT, "%s (rank %d, host %s): refused: wrong secret",
                caller->addr, hello->rank, hello->who.host);
        caller_refuse(seats, caller, HCE_BOOT_REASON_SECRET,
                      "rank %d has another secret than rank 0", hello->rank);
    } else if (hello->size != size) {
        snprintf(what, sizeof(what), "is one of %d ranks, rank 0 is one of %d",
                 hello->size, size);
        caller_misfit(seats, caller, HCE_BOOT_REASON_SIZE, what);
    } else if (hello->rank < 1 || hello->rank >= size) {
        snprintf(what, sizeof(what), "does not exist among %d ranks", size);
        caller_misfit(seats, caller, HCE_BOOT_REASON_RANK, what);
    } else if (is_seated(seats, hello->rank)) {
        hce_boot_who_t *first = &seats->boot->links[hello->rank - 1].who;

        snprintf(what, sizeof(what),
                 "(pid %d) is there twice, also as pid "
                 "%d on %s",
                 hello->who.pid, first->pid, first->host);
        caller_misfit(seats, caller, HCE_BOOT_REASON_TAKEN, what);
    } else {
        caller_seat(seats, caller);
    }
}

/* Only a rank of ours can know the job of a private meeting. A living one
 * calls again. */
static void caller_lost(seats_t *seats, caller_t *caller)
{
    const hce_boot_hello_t *hello = &caller->hello;

    hce_log(DEBUG, BOOT, "%s: gone before it proved anything", caller->addr);
    if (seats->meeting->is_private && caller->has_greeted &&
        hello->rank >= 1 && hello->rank < seats->meeting->size &&
        seats->lost_ns == HCE_TIME_NEVER && !is_seated(seats, hello->rank)) {
        seats->lost = *hello;
        seats->lost_ns = hce_clock_deadline(LOST_NS);
    }
    caller_drop(seats, caller);
}

static bool is_calling(const seats_t *seats, int rank)
{
    for (int i = 0; i < CALLERS_MAX; i++) {
        const caller_t *caller = &seats->callers[i];

        if (caller->conn.fd >= 0 && caller->has_greeted &&
            caller->hello.rank == rank)
            return true;
    }
    return false;
}

/* Caller holds the group's lock. */
static void lost_check(seats_t *seats)
{
    int rank = seats->lost.rank;

    if (seats->lost_ns == HCE_TIME_NEVER)
        return;
    if (is_seated(seats, rank) || is_calling(seats, rank)) {
        seats->lost_ns = HCE_TIME_NEVER;
    } else if (hce_clock_ns() >= seats->lost_ns) {
        hce_boot_news_tell(seats->boot, HCE_ERR_GONE, rank,
                           "rank %d on %s (pid %d) is gone; it did not wait "
                           "until all had come",
                           rank, seats->lost.who.host, seats->lost.who.pid);
    }
}

static void caller_read(seats_t *seats, caller_t *caller)
{
    const hce_boot_frame_t *frame;
    const void *body;
    hce_status_t status;

    status = hce_boot_conn_next(&caller->conn, &frame, &body);
    if (status == HCE_INPROGRESS)
        return;
    if (status == HCE_ERR_GONE) {
        caller_lost(seats, caller);
    } else if (status != HCE_OK) {
        hce_log(DEBUG, BOOT, "%s: speaks something else", caller->addr);
        caller_drop(seats, caller);
    } else if (frame->version != HCE_BOOT_WIRE_VERSION) {
        version_differs(seats, caller, frame, body);
    } else if (!caller->has_greeted && frame->type == HCE_BOOT_HELLO &&
               frame->len == sizeof(hce_boot_hello_t)) {
        hello_handle(seats, caller, body);
    } else if (caller->has_greeted && frame->type == HCE_BOOT_PROOF &&
               frame->len == sizeof(hce_boot_proof_t)) {
        proof_handle(seats, caller, body);
    } else {
        caller_drop(seats, caller);
    }
}

/* A free place, if need be that of one who has had time to greet and did
 * not. */
static caller_t *place_find(seats_t *seats, uint64_t now)
{
    caller_t *oldest = NULL;

    for (int i = 0; i < CALLERS_MAX; i++) {
        caller_t *caller = &seats->callers[i];

        if (caller->conn.fd < 0)
            return caller;
        if (!caller->has_greeted && now - caller->since_ns > CROWD_NS &&
            (oldest == NULL || caller->since_ns < oldest->since_ns))
            oldest = caller;
    }
    if (oldest != NULL)
        caller_drop(seats, oldest);
    return oldest;
}

static void listen_pause(seats_t *seats, bool is_paused)
{
    hce_boot_listen_t *listen = &seats->meeting->listen;

    for (int i = 0; i < listen->num; i++) {
        struct epoll_event event = {.events = is_paused ? 0 : EPOLLIN,
                                    .data.ptr = &listen->fd[i]};

        epoll_ctl(seats->epfd, EPOLL_CTL_MOD, listen->fd[i], &event);
    }
    seats->is_paused = is_paused;
}

static void caller_add(seats_t *seats, caller_t *caller, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = caller};
    hce_boot_addr_t addr;

    memset(caller, 0, sizeof(*caller));
    hce_boot_conn_init(&caller->conn, fd, HCE_BOOT_HELLO_MAX);
    caller->since_ns = hce_clock_ns();
    if (hce_boot_net_peer_addr(fd, &addr) != 0 ||
        epoll_ctl(seats->epfd, EPOLL_CTL_ADD, fd, &event) != 0) {
        hce_boot_conn_close(&caller->conn);
        return;
    }
    hce_boot_addr_text(&addr, caller->addr, sizeof(caller->addr));
}

/* Whoever waits in the listen queue meanwhile gets his turn later. */
static void callers_accept(seats_t *seats, int listen_fd)
{
    for (int i = 0; i < SEAT_EVENTS; i++) {
        caller_t *caller = place_find(seats, hce_clock_ns());
        int fd = -1;
        int rc =
            caller == NULL ? -ENOBUFS : hce_boot_net_accept(listen_fd, &fd);

        if (rc == 0) {
            caller_add(seats, caller, fd);
        } else if (rc == -EAGAIN) {
            return;
        } else if (rc != -ECONNABORTED && rc != -EINTR) {
            hce_log(DEBUG, BOOT, "accept: %s", strerror(-rc));
            if (rc != -ENOBUFS) {
                snprintf(seats->note, sizeof(seats->note),
                         "it could not accept callers: %s", strerror(-rc));
            }
            listen_pause(seats, true);
            return;
        }
    }
}

/* Returns when the next one's time will be over. */
static uint64_t callers_expire(seats_t *seats, uint64_t now)
{
    uint64_t next = HCE_TIME_NEVER;

    for (int i = 0; i < CALLERS_MAX; i++) {
        caller_t *caller = &seats->callers[i];

        if (caller->conn.fd < 0)
            continue;
        if (now >= caller->since_ns + CALLER_NS) {
            hce_log(DEBUG, BOOT, "%s: proved nothing in time", caller->addr);
            caller_drop(seats, caller);
        } else {
            next = hce_min(next, caller->since_ns + CALLER_NS);
        }
    }
    return next;
}

static void seats_sleep(seats_t *seats, uint64_t then)
{
    struct epoll_event events[SEAT_EVENTS];
    hce_boot_listen_t *listen = &seats->meeting->listen;
    int count = epoll_wait(seats->epfd, events, SEAT_EVENTS,
                           hce_boot_meeting_sleep_ms(seats->meeting, then));

    for (int i = 0; i < count; i++) {
        int *fd = events[i].data.ptr;
        caller_t *caller = events[i].data.ptr;

        if (fd == NULL)
            continue; /* the group's: it gets its turn in any case */
        if (fd >= listen->fd && fd < listen->fd + HCE_BOOT_LISTEN_MAX)
            callers_accept(seats, *fd);
        else if (caller->conn.fd >= 0)
            caller_read(seats, caller);
    }
}

/* Caller holds the group's lock. */
static void absent_blame(seats_t *seats)
{
    hce_boot_t *boot = seats->boot;
    char list[200] = "";
    int len = 0, first = -1, shown = 0;

    for (int i = 0; i < boot->num_links; i++) {
        if (hce_boot_link_is_open(&boot->links[i]))
            continue;
        first = first < 0 ? boot->links[i].rank : first;
        if (shown < 16) {
            len += snprintf(list + len, sizeof(list) - (size_t)len, "%s%d",
                            shown > 0 ? ", " : "", boot->links[i].rank);
            shown++;
        }
    }
    hce_boot_news_tell(boot, HCE_ERR_BOOTSTRAP, first,
                       "rank %s%s of %d did not come to rank 0 on %s in "
                       "time%s%s",
                       list, seats->missing > shown ? ", ..." : "", boot->size,
                       boot->who.host, seats->note[0] != '\0' ? "; " : "",
                       seats->note);
}

/* HCE_INPROGRESS while ranks are missing. */
static hce_status_t seats_check(seats_t *seats)
{
    hce_boot_t *boot = seats->boot;
    hce_status_t status = hce_boot_meeting_check(seats->meeting);

    hce_boot_lock(boot);
    hce_boot_turn(boot);
    lost_check(seats);
    if (boot->verdict.have) {
        status = (hce_status_t)boot->verdict.news.status;
    } else if (seats->missing == 0) {
        boot->has_started = true;
        hce_boot_watch_start(boot, boot->watch.silence_ns);
        hce_boot_heir_appoint(boot);
        hce_boot_links_post(
            boot, hce_boot_buf_create(HCE_BOOT_START, NULL, 0, NULL, 0));
        status = HCE_OK;
    } else if (status == HCE_ERR_BOOTSTRAP) {
        absent_blame(seats);
    }
    hce_boot_unlock(boot);
    return status;
}

static hce_status_t seats_run(seats_t *seats)
{
    hce_status_t status;

    while ((status = seats_check(seats)) == HCE_INPROGRESS) {
        uint64_t now = hce_clock_ns();
        uint64_t then = callers_expire(seats, now);

        then = hce_min(then, seats->meeting->deadline);
        then = hce_min(then, seats->lost_ns);
        if (seats->is_paused)
            then = hce_min(then, now + PAUSE_NS);
        seats_sleep(seats, then);
        if (seats->is_paused)
            listen_pause(seats, false);
    }
    return status;
}

static hce_status_t seats_open(seats_t *seats)
{
    hce_boot_listen_t *listen = &seats->meeting->listen;
    struct epoll_event event = {.events = EPOLLIN};
    hce_status_t status = hce_boot_random(seats->seed, sizeof(seats->seed));

    if (status != HCE_OK)
        return status;
    hce_boot_mac(seats->meeting->key, seats->seed, sizeof(seats->seed),
                 seats->boot->secret);
    for (int i = 0; i < CALLERS_MAX; i++)
        hce_boot_conn_init(&seats->callers[i].conn, -1, 0);
    seats->epfd = epoll_create1(EPOLL_CLOEXEC);
    if (seats->epfd < 0)
        goto err_log;
    if (epoll_ctl(seats->epfd, EPOLL_CTL_ADD, seats->boot->epfd, &event))
        goto err_close;
    for (int i = 0; i < listen->num; i++) {
        event.data.ptr = &listen->fd[i];
        if (epoll_ctl(seats->epfd, EPOLL_CTL_ADD, listen->fd[i], &event))
            goto err_close;
    }
    return HCE_OK;

err_close:
    close(seats->epfd);
err_log:
    hce_log(ERROR, BOOT, "epoll: %m");
    return HCE_ERR_SYSTEM;
}

hce_status_t hce_boot_seat_all(hce_boot_meeting_t *meeting, hce_boot_t *boot)
{
    seats_t *seats = calloc(1, sizeof(*seats));
    hce_status_t status;

    if (seats == NULL) {
        snprintf(meeting->why, sizeof(meeting->why), "no memory");
        return HCE_ERR_NO_MEMORY;
    }
    seats->meeting = meeting;
    seats->boot = boot;
    seats->missing = meeting->size - 1;
    seats->lost_ns = HCE_TIME_NEVER;
    status = seats_open(seats);
    if (status == HCE_OK) {
        status = seats_run(seats);
        for (int i = 0; i < CALLERS_MAX; i++)
            if (seats->callers[i].conn.fd >= 0)
                caller_drop(seats, &seats->callers[i]);
        close(seats->epfd);
    }
    free(seats);
    return status;
}
