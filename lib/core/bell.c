/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Descriptors of the engine: its doorbell, and the set of all that end its
 * sleep.
 */
#include "config.h"

#include "core/bell.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/engine.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/math.h"

#define MAX_EVENTS 8

static struct {
    int epfd;
    int doorbell;
} bell = {-1, -1};

void hce_bell_ring(void)
{
    uint64_t one = 1;

    if (write(bell.doorbell, &one, sizeof(one)) < 0 && errno != EAGAIN)
        hce_log(ERROR, CORE, "cannot write to the doorbell: %m");
}

void hce_bell_drain(void)
{
    uint64_t count;

    /* EAGAIN: another descriptor woke us. */
    (void)!read(bell.doorbell, &count, sizeof(count));
}

void hce_bell_sleep(uint64_t next_ns)
{
    struct epoll_event events[MAX_EVENTS];
    uint64_t now = hce_clock_ns();
    int ms = next_ns <= now ? 0 : (int)hce_div_up(next_ns - now,
                                                  HCE_NS_PER_MS);

    (void)epoll_wait(bell.epfd, events, MAX_EVENTS, ms);
}

hce_status_t hce_engine_watch(int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

    if (epoll_ctl(bell.epfd, EPOLL_CTL_ADD, fd, &event) < 0 &&
        errno != EEXIST) {
        hce_log(ERROR, CORE, "cannot watch descriptor %d: %m", fd);
        return HCE_ERR_SYSTEM;
    }
    return HCE_OK;
}

void hce_engine_unwatch(int fd)
{
    (void)epoll_ctl(bell.epfd, EPOLL_CTL_DEL, fd, NULL);
}

int hce_engine_doorbell(void)
{
    return bell.doorbell;
}

hce_status_t hce_bell_open(void)
{
    struct epoll_event event = {.events = EPOLLIN};

    bell.epfd = epoll_create1(EPOLL_CLOEXEC);
    bell.doorbell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    event.data.fd = bell.doorbell;
    if (bell.epfd < 0 || bell.doorbell < 0 ||
        epoll_ctl(bell.epfd, EPOLL_CTL_ADD, bell.doorbell, &event) < 0) {
        hce_log(ERROR, CORE, "cannot open the engine's descriptors: %m");
        return HCE_ERR_SYSTEM;
    }
    return HCE_OK;
}

void hce_bell_close(void)
{
    if (bell.epfd >= 0)
        close(bell.epfd);
    if (bell.doorbell >= 0)
        close(bell.doorbell);
    bell.epfd = -1;
    bell.doorbell = -1;
}
