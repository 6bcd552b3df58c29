/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Groups whose hub leaves before the others: they go on watching each other
 * under a new one.
 */
#include <config.h>

#include "boot_ranks.h"

#include "boot/group.h"
#include "util/math.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

/* RANKS_MAX numbers that children see, too. */
static _Atomic int *shared_get(void)
{
    void *shared = mmap(NULL, RANKS_MAX * sizeof(int), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    assert_ptr_not_equal(shared, MAP_FAILED);
    return shared;
}

static void shared_put(_Atomic int *shared)
{
    munmap((void *)shared, RANKS_MAX * sizeof(int));
}

typedef struct orphans {
    int leavers; /* ranks from 0 on leave in good order, one by one */
    int victim;  /* then ends, or complains */
    bool is_stuck;
    _Atomic int *moved; /* by rank: how many have it as their hub */
} orphans_t;

/* Until the hub is another one, and this rank belongs to it. */
static bool hub_await(ranks_self_t *self, int hub)
{
    uint64_t deadline = ranks_soon();
    bool is_settled = false;

    while (!is_settled && hce_clock_ns() < deadline &&
           !ranks_await_news(self, HCE_NS_PER_MS)) {
        hce_boot_lock(self->boot);
        is_settled = self->boot->hub == hub &&
                     self->boot->heir.return_ns == HCE_TIME_NEVER &&
                     (self->rank == hub ||
                      (hce_boot_link_is_open(&self->boot->links[0]) &&
                       !self->boot->links[0].is_unproved));
        hce_boot_unlock(self->boot);
    }
    return is_settled;
}

/* Progresses until so many ranks have come here; from then on they may have
 * news of each other. */
static void all_await(ranks_self_t *self, _Atomic int *moved, int num)
{
    uint64_t deadline = ranks_soon();

    ++*moved;
    while (*moved < num && !ranks_await_news(self, HCE_NS_PER_MS) &&
           hce_clock_ns() < deadline) {
    }
    RANKS_CHECK(self, *moved == num);
}

/* Who remains goes on progressing until all have the new hub: that one may
 * leave then. */
static void orphans_run(ranks_self_t *self)
{
    const orphans_t *orphans = self->arg;
    hce_boot_report_t report = {.call = 7, .waits_for = orphans->victim};
    int complains = self->size - 1 - (orphans->victim == self->size - 1);
    char text[64];

    RANKS_CHECK(self, hce_boot_barrier(self->boot, ranks_soon()) == HCE_OK);
    for (int hub = 0; hub < orphans->leavers; hub++) {
        _Atomic int *moved = &orphans->moved[hub + 1];

        if (self->rank == hub) {
            hce_boot_goodbye(self->boot, 0);
            RANKS_CHECK(self, self->news.count == 0);
            return;
        }
        RANKS_CHECK(self, hub_await(self, hub + 1));
        all_await(self, moved, self->size - hub - 1);
    }
    report.call -= self->rank == orphans->victim;
    hce_boot_set_report(self->boot, &report);
    if (!orphans->is_stuck && self->rank == orphans->victim) {
        raise(SIGKILL);
    }
    if (orphans->is_stuck && self->rank == complains) {
        hce_boot_stuck(self->boot, 7, orphans->victim, "the snapshot");
    }
    snprintf(text, sizeof(text), "rank %d %s", orphans->victim,
             orphans->is_stuck ? "has not entered call 7" : "on ");
    ranks_check_news(self, orphans->is_stuck ? HCE_ERR_TIMEOUT : HCE_ERR_GONE,
                     orphans->victim, text);
    /* Exchanges are over since rank 0 has left; news came first. */
    RANKS_CHECK(self, hce_boot_barrier(self->boot, ranks_soon()) ==
                          (hce_status_t)self->news.news.status);
    hce_boot_goodbye(self->boot, 2 * HCE_NS_PER_SEC);
}

/* 5 ranks; some leave in good order, and then one ends or is stuck. */
static void orphans_check(int leavers, int victim, bool is_stuck)
{
    orphans_t orphans = {
        .leavers = leavers, .victim = victim, .is_stuck = is_stuck};
    ranks_spec_t spec = {.size = 5, .fn = orphans_run, .arg = &orphans};
    pid_t pids[5];

    orphans.moved = shared_get();
    ranks_fork(&spec, pids);
    for (int r = 0; r < 5; r++) {
        assert_int_equal(ranks_reap(pids[r]), is_stuck || r != victim);
    }
    shared_put(orphans.moved);
}

static void test_orphans(void **state)
{
    for (int leavers = 1; leavers < 4; leavers++) {
        for (int victim = leavers; victim < 5; victim++) {
            orphans_check(leavers, victim, false);
            orphans_check(leavers, victim, true);
        }
    }
}

/* The last ones leave while rank 0 does, at all possible moments: nobody is
 * reported, and nobody waits for long. */
static void crossing_run(ranks_self_t *self)
{
    uint64_t seed = *(uint64_t *)self->arg + (uint64_t)self->rank;

    RANKS_CHECK(self, hce_boot_barrier(self->boot, ranks_soon()) == HCE_OK);
    RANKS_CHECK(self,
                !ranks_await_news(self, hce_rand_next(&seed) % HCE_NS_PER_MS));
    hce_boot_goodbye(self->boot, hce_rand_next(&seed) % 3 * HCE_NS_PER_MS);
    RANKS_CHECK(self, self->news.count == 0);
}

static void test_crossing(void **state)
{
    for (uint64_t seed = 0; seed < 200; seed++) {
        ranks_spec_t spec = {.size = 4, .fn = crossing_run, .arg = &seed};

        assert_int_equal(ranks_processes(&spec), 0);
    }
}

/* Strangers call on the heir's port, before and after it is the hub. */
static void stranger_run(ranks_self_t *self)
{
    hce_boot_addr_t addr;
    int fds[8];

    RANKS_CHECK(self, hce_boot_barrier(self->boot, ranks_soon()) == HCE_OK);
    if (self->rank == 0) {
        hce_boot_lock(self->boot);
        addr = self->boot->heir.place.addrs[0];
        RANKS_CHECK(self, self->boot->heir.has_place);
        hce_boot_unlock(self->boot);
        for (int i = 0; i < 8; i++) {
            RANKS_CHECK(self, hce_boot_net_connect(&addr, &fds[i]) == 0);
            if (i % 2 == 0) {
                (void)!write(fds[i], "GET / HTTP/1.0\r\n\r\n", 18);
            }
        }
        hce_boot_goodbye(self->boot, 0);
        return;
    }
    RANKS_CHECK(self, hub_await(self, 1));
    all_await(self, self->arg, self->size - 1);
    if (self->rank == 2) {
        raise(SIGKILL);
    }
    ranks_check_news(self, HCE_ERR_GONE, 2, "is gone");
}

static void test_stranger(void **state)
{
    _Atomic int *moved = shared_get();
    ranks_spec_t spec = {.size = 4, .fn = stranger_run, .arg = moved};
    pid_t pids[4];

    ranks_fork(&spec, pids);
    for (int r = 0; r < 4; r++) {
        assert_int_equal(ranks_reap(pids[r]), r != 2);
    }
    shared_put(moved);
}

/* Rank 0 leaves, and a rank ends that has not read of it yet. Nobody knows
 * whether that one has left as well, until the others wait for it. */
typedef struct unread {
    int victim;
    _Atomic int *steps; /* 1: the victim reads no more, 2: rank 0 is away */
} unread_t;

/* Without progress. */
static void step_await(const unread_t *unread, int step)
{
    uint64_t deadline = ranks_soon();

    while (*unread->steps < step && hce_clock_ns() < deadline) {
        usleep(1000);
    }
}

static void unread_run(ranks_self_t *self)
{
    const unread_t *unread = self->arg;
    hce_boot_report_t report = {.call = 7, .waits_for = unread->victim};

    hce_boot_set_report(self->boot, &report);
    RANKS_CHECK(self, hce_boot_barrier(self->boot, ranks_soon()) == HCE_OK);
    if (self->rank == 0) {
        step_await(unread, 1);
        hce_boot_goodbye(self->boot, 0);
        *unread->steps = 2;
        return;
    }
    if (self->rank == unread->victim) {
        *unread->steps = 1;
        step_await(unread, 2);
        raise(SIGKILL);
    }
    ranks_check_news(self, HCE_ERR_SILENT, unread->victim, "in call 7");
}

static void test_unread(void **state)
{
    for (int victim = 1; victim < 3; victim++) {
        unread_t unread = {.victim = victim, .steps = shared_get()};
        ranks_spec_t spec = {.size = 4,
                             .silence_ns = 300 * HCE_NS_PER_MS,
                             .fn = unread_run,
                             .arg = &unread};
        pid_t pids[4];

        ranks_fork(&spec, pids);
        for (int r = 0; r < 4; r++) {
            assert_int_equal(ranks_reap(pids[r]), r != victim);
        }
        shared_put(unread.steps);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_orphans),
        cmocka_unit_test(test_crossing),
        cmocka_unit_test(test_stranger),
        cmocka_unit_test(test_unread),
    };

    ranks_setup();
    return cmocka_run_group_tests_name("boot_heir", tests, NULL, NULL);
}
