/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * A group's life and its turns. One lock a group; the callback runs without
 * it. A blocked caller sleeps on the group's epoll descriptor and on an
 * eventfd, which a turn of another thread raises.
 */
#include <config.h>

#include "boot/group.h"
#include "boot/host.h"
#include "util/log.h"
#include "util/math.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define TURN_EVENTS 64 /* events fetched by one system call */
#define TURN_ROUNDS 16 /* such calls in one turn */

hce_status_t hce_boot_group_create(const char *name, int rank, int size,
                                   hce_boot_t **boot_p)
{
    hce_boot_t *boot = calloc(1, sizeof(*boot));

    if (boot == NULL)
        goto err_memory;
    snprintf(boot->name, sizeof(boot->name), "%s", name);
    boot->rank = rank;
    boot->size = size;
    boot->num_links = rank == 0 ? size - 1 : 1;
    boot->links = calloc((size_t)boot->num_links + 1, sizeof(*boot->links));
    if (boot->links == NULL)
        goto err_free;
    for (int i = 0; i < boot->num_links; i++) {
        hce_boot_conn_init(&boot->links[i].conn, -1, 0);
        boot->links[i].rank = rank == 0 ? i + 1 : 0;
    }
    for (int i = 0; i < HCE_BOOT_CALLERS_MAX; i++)
        hce_boot_conn_init(&boot->heir.callers[i].conn, -1, 0);
    boot->heir.rank = -1;
    boot->heir.return_ns = HCE_TIME_NEVER;
    boot->watch.next_beat_ns = HCE_TIME_NEVER;
    atomic_init(&boot->report_call, 0);
    atomic_init(&boot->report_waits_for, -1);
    hce_boot_who_self(&boot->who);
    boot->epfd = epoll_create1(EPOLL_CLOEXEC);
    boot->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (boot->epfd < 0 || boot->wake_fd < 0) {
        hce_log(ERROR, BOOT, "epoll and event descriptor: %m");
        goto err_close;
    }
    pthread_mutex_init(&boot->lock, NULL);
    *boot_p = boot;
    return HCE_OK;

err_close:
    if (boot->epfd >= 0)
        close(boot->epfd);
    if (boot->wake_fd >= 0)
        close(boot->wake_fd);
    free(boot->links);
    free(boot);
    return HCE_ERR_SYSTEM;
err_free:
    free(boot);
err_memory:
    hce_log(ERROR, BOOT, "no memory for a group of %d ranks", size);
    return HCE_ERR_NO_MEMORY;
}

/* What the socket still holds is read first: a socket closed with unread data
 * resets the connection, which may overtake our last words. */
static void link_drain(hce_boot_link_t *link)
{
    char scratch[4096];
    int turns = 64;

    (void)hce_boot_conn_flush(&link->conn);
    while (turns-- > 0 &&
           recv(link->conn.fd, scratch, sizeof(scratch), MSG_DONTWAIT) > 0) {
    }
}

void hce_boot_destroy(hce_boot_t *boot)
{
    if (boot == NULL)
        return;
    for (int i = 0; i < boot->num_links; i++) {
        if (hce_boot_link_is_open(&boot->links[i]))
            link_drain(&boot->links[i]);
        hce_boot_conn_close(&boot->links[i].conn);
        free(boot->links[i].part_data);
    }
    hce_boot_heir_cleanup(boot);
    hce_boot_exchange_cleanup(boot);
    close(boot->epfd);
    close(boot->wake_fd);
    pthread_mutex_destroy(&boot->lock);
    free(boot->links);
    free(boot);
}

/* The lock may have been held when the process forked: it is not taken. No
 * other thread exists. The parent's epoll set must stay as it is, so nothing
 * is taken out of it. */
void hce_boot_forked(hce_boot_t *boot)
{
    for (int i = 0; i < boot->num_links; i++) {
        if (boot->links[i].conn.fd >= 0) {
            close(boot->links[i].conn.fd);
            boot->links[i].conn.fd = -1;
        }
    }
    for (int i = 0; i < HCE_BOOT_CALLERS_MAX; i++) {
        if (boot->heir.callers[i].conn.fd >= 0) {
            close(boot->heir.callers[i].conn.fd);
            boot->heir.callers[i].conn.fd = -1;
        }
    }
    hce_boot_listen_close(&boot->heir.listen);
    close(boot->epfd);
    close(boot->wake_fd);
    boot->epfd = -1;
    boot->wake_fd = -1;
}

int hce_boot_rank(const hce_boot_t *boot)
{
    return boot->rank;
}

int hce_boot_size(const hce_boot_t *boot)
{
    return boot->size;
}

const char *hce_boot_name(const hce_boot_t *boot)
{
    return boot->name;
}

const uint8_t *hce_boot_secret(const hce_boot_t *boot)
{
    return boot->secret;
}

int hce_boot_fd(const hce_boot_t *boot)
{
    return boot->epfd;
}

void hce_boot_lock(hce_boot_t *boot)
{
    pthread_mutex_lock(&boot->lock);
}

void hce_boot_unlock(hce_boot_t *boot)
{
    hce_boot_verdict_t *verdict = &boot->verdict;
    hce_boot_news_cb_t cb = NULL;
    hce_boot_news_t news;
    void *arg = NULL;

    if (verdict->have && !verdict->delivered && verdict->cb != NULL) {
        verdict->delivered = true;
        cb = verdict->cb;
        arg = verdict->cb_arg;
        news = verdict->news;
    }
    pthread_mutex_unlock(&boot->lock);
    if (cb != NULL)
        cb(arg, &news);
}

static void link_watch_out(hce_boot_t *boot, hce_boot_link_t *link)
{
    bool want_out = !hce_boot_conn_is_idle(&link->conn);
    struct epoll_event event = {.events = EPOLLIN,
                                .data.u32 = (uint32_t)(link - boot->links)};

    if (want_out == link->want_out)
        return;
    link->want_out = want_out;
    event.events |= want_out ? (uint32_t)EPOLLOUT : 0;
    epoll_ctl(boot->epfd, EPOLL_CTL_MOD, link->conn.fd, &event);
}

hce_status_t hce_boot_link_open(hce_boot_t *boot, hce_boot_link_t *link,
                                hce_boot_conn_t *conn,
                                const hce_boot_who_t *who)
{
    struct epoll_event event = {.events = EPOLLIN,
                                .data.u32 = (uint32_t)(link - boot->links)};

    if (epoll_ctl(boot->epfd, EPOLL_CTL_ADD, conn->fd, &event) != 0) {
        hce_log(ERROR, BOOT, "rank %d: epoll_ctl: %m", link->rank);
        return HCE_ERR_SYSTEM;
    }
    hce_boot_conn_move(&link->conn, conn);
    link->conn.max_len = HCE_BOOT_FRAME_MAX;
    link->who = *who;
    link->want_out = false;
    link_watch_out(boot, link);
    return HCE_OK;
}

/* Taken out of the set by hand: a child of fork may hold the socket open. */
void hce_boot_link_close(hce_boot_t *boot, hce_boot_link_t *link)
{
    if (hce_boot_link_is_open(link)) {
        epoll_ctl(boot->epfd, EPOLL_CTL_DEL, link->conn.fd, NULL);
        link_drain(link);
        hce_boot_conn_close(&link->conn);
    }
}

/* A failure to send shows as an end of the stream when the link is read,
 * after the frames that came before it. */
static void link_post(hce_boot_t *boot, hce_boot_link_t *link,
                      hce_boot_buf_t *buf)
{
    if (hce_boot_link_is_open(link)) {
        (void)hce_boot_conn_post(&link->conn, buf);
        link_watch_out(boot, link);
    }
}

void hce_boot_link_send(hce_boot_t *boot, hce_boot_link_t *link,
                        hce_boot_type_t type, const void *body, size_t len)
{
    hce_boot_buf_t *buf = hce_boot_buf_create(type, body, len, NULL, 0);

    if (buf == NULL) {
        hce_log(ERROR, BOOT, "no memory for a message to rank %d", link->rank);
        return;
    }
    link_post(boot, link, buf);
    hce_boot_buf_put(buf);
}

void hce_boot_links_post(hce_boot_t *boot, hce_boot_buf_t *buf)
{
    if (buf == NULL) {
        hce_log(ERROR, BOOT, "no memory for a message to all ranks");
        return;
    }
    for (int i = 0; i < boot->num_links; i++)
        link_post(boot, &boot->links[i], buf);
    hce_boot_buf_put(buf);
}

hce_boot_link_t *hce_boot_link_find(hce_boot_t *boot, int rank)
{
    for (int i = 0; i < boot->num_links; i++)
        if (boot->links[i].rank == rank)
            return &boot->links[i];
    return NULL;
}

const char *hce_boot_rank_text(const hce_boot_t *boot, int rank, char *buf,
                               size_t size)
{
    hce_boot_link_t *link = hce_boot_link_find((hce_boot_t *)boot, rank);
    const hce_boot_who_t *who = rank == boot->rank ? &boot->who
                                : link != NULL     ? &link->who
                                                   : NULL;

    if (who == NULL || who->host[0] == '\0') {
        snprintf(buf, size, "rank %d", rank);
    } else {
        snprintf(buf, size, "rank %d on %s (pid %d)", rank, who->host,
                 who->pid);
    }
    return buf;
}

/* Returns their number. */
static int events_handle(hce_boot_t *boot)
{
    struct epoll_event events[TURN_EVENTS];
    int count = epoll_wait(boot->epfd, events, TURN_EVENTS, 0);

    for (int i = 0; i < count; i++) {
        hce_boot_link_t *link;

        if (events[i].data.u32 >= HCE_BOOT_EVENT_ADOPT) {
            hce_boot_adopt_event(boot, events[i].data.u32);
            continue;
        }
        link = &boot->links[events[i].data.u32];
        if ((events[i].events & EPOLLOUT) != 0) {
            (void)hce_boot_conn_flush(&link->conn);
            link_watch_out(boot, link);
        }
        if ((events[i].events & ~(uint32_t)EPOLLOUT) != 0)
            hce_boot_link_read(boot, link);
    }
    return count;
}

void hce_boot_wake(hce_boot_t *boot)
{
    uint64_t one = 1;

    if (boot->waiters > 0)
        (void)!write(boot->wake_fd, &one, sizeof(one));
}

void hce_boot_turn(hce_boot_t *boot)
{
    uint64_t now = hce_clock_ns();
    int count = TURN_EVENTS;
    bool some = false;

    hce_boot_watch_resume(boot, now);
    for (int i = 0; i < TURN_ROUNDS && count == TURN_EVENTS; i++) {
        count = events_handle(boot);
        some = some || count > 0;
    }
    hce_boot_heir_tick(boot, now);
    hce_boot_watch_tick(boot, now);
    hce_boot_stuck_tick(boot, now);
    hce_boot_news_tick(boot, now);
    if (some)
        hce_boot_wake(boot);
}

uint64_t hce_boot_due_ns(const hce_boot_t *boot)
{
    uint64_t due = boot->watch.next_beat_ns;

    if (boot->verdict.has_pending)
        due = hce_min(due, boot->verdict.pending_ns);
    if (boot->complaint.is_open)
        due = hce_min(due, boot->complaint.decide_ns);
    return hce_min(due, boot->heir.return_ns);
}

static void sleep_until(hce_boot_t *boot, uint64_t then)
{
    struct pollfd fds[2] = {{.fd = boot->epfd, .events = POLLIN},
                            {.fd = boot->wake_fd, .events = POLLIN}};
    uint64_t now = hce_clock_ns();
    uint64_t len = then > now ? then - now : 0;
    struct timespec limit = {.tv_sec = (time_t)(len / HCE_NS_PER_SEC),
                             .tv_nsec = (long)(len % HCE_NS_PER_SEC)};

    ppoll(fds, 2, then == HCE_TIME_NEVER ? NULL : &limit, NULL);
}

/* Own turns raise the eventfd as well; it is cleared after each, with the
 * lock held, so that only a turn of another thread ends a sleep. */
hce_status_t hce_boot_wait(hce_boot_t *boot, const hce_boot_until_t *until)
{
    hce_status_t status = HCE_INPROGRESS;
    uint64_t raised;

    boot->waiters++;
    while (status == HCE_INPROGRESS) {
        hce_boot_turn(boot);
        (void)!read(boot->wake_fd, &raised, sizeof(raised));
        if (until->done(boot)) {
            status = HCE_OK; /* also where news came with the last of it */
        } else if (boot->verdict.have && !until->ignore_news) {
            status = (hce_status_t)boot->verdict.news.status;
        } else if (hce_clock_ns() >= until->deadline) {
            status = HCE_ERR_TIMEOUT;
        } else {
            uint64_t then = hce_min(until->deadline, hce_boot_due_ns(boot));

            hce_boot_unlock(boot);
            sleep_until(boot, then);
            hce_boot_lock(boot);
        }
    }
    boot->waiters--;
    return status;
}

void hce_boot_progress(hce_boot_t *boot)
{
    hce_boot_lock(boot);
    hce_boot_watch_attach(boot);
    hce_boot_turn(boot);
    hce_boot_unlock(boot);
}

uint64_t hce_boot_next_ns(hce_boot_t *boot)
{
    uint64_t due;

    hce_boot_lock(boot);
    due = hce_boot_due_ns(boot);
    hce_boot_unlock(boot);
    return due;
}
