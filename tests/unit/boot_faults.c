/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Groups that end badly: ranks that are killed, stopped, stuck, or late, and
 * whom the others blame. And ranks that leave in good order, whom nobody may
 * blame.
 */
#include <config.h>

#include "boot_ranks.h"

#include "boot/group.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

/* What every rank but the victim must learn. */
typedef struct expected {
    int victim;
    hce_status_t status;
    const char *text;
    int other_victim; /* may be blamed instead; -1 is nobody */
} expected_t;

/* All later calls fail alike, and at once. */
static void dead_check(ranks_self_t *self)
{
    RANKS_CHECK(self, hce_boot_barrier(self->boot, ranks_soon()) ==
                          (hce_status_t)self->news.news.status);
}

/* --- killed --- */

static void killed_run(ranks_self_t *self)
{
    const expected_t *expected = self->arg;
    char name[64];

    RANKS_CHECK(self, hce_boot_barrier(self->boot, ranks_soon()) == HCE_OK);
    if (self->rank == expected->victim) {
        raise(SIGKILL);
    }
    snprintf(name, sizeof(name), "rank %d on ", expected->victim);
    ranks_check_news(self, HCE_ERR_GONE, expected->victim, "is gone");
    RANKS_CHECK(self, strstr(self->news.news.text, name) != NULL);
    RANKS_CHECK(self, strstr(self->news.news.text, "(pid ") != NULL);
    dead_check(self);
    hce_boot_goodbye(self->boot, 2 * HCE_NS_PER_SEC);
}

static void test_killed(void **state)
{
    for (int victim = 0; victim < 4; victim++) {
        expected_t expected = {.victim = victim};
        ranks_spec_t spec = {.size = 4, .fn = killed_run, .arg = &expected};
        pid_t pids[4];

        ranks_fork(&spec, pids);
        for (int r = 0; r < 4; r++) {
            assert_int_equal(ranks_reap(pids[r]), r != victim);
        }
    }
}

/* Ranks that are inside of a blocking call learn it there. */
static void killed_in_call_run(ranks_self_t *self)
{
    const expected_t *expected = self->arg;

    RANKS_CHECK(self, hce_boot_barrier(self->boot, ranks_soon()) == HCE_OK);
    if (self->rank == expected->victim) {
        raise(SIGKILL);
    }
    RANKS_CHECK(self,
                hce_boot_barrier(self->boot, ranks_soon()) == HCE_ERR_GONE);
    ranks_check_news(self, HCE_ERR_GONE, expected->victim, "is gone");
}

static void test_killed_in_call(void **state)
{
    for (int victim = 0; victim < 3; victim++) {
        expected_t expected = {.victim = victim};
        ranks_spec_t spec = {
            .size = 3, .fn = killed_in_call_run, .arg = &expected};
        pid_t pids[3];

        ranks_fork(&spec, pids);
        for (int r = 0; r < 3; r++) {
            assert_int_equal(ranks_reap(pids[r]), r != victim);
        }
    }
}

/* Takes part in a split's exchanges, and is gone before it comes together:
 * nobody there knows it yet, but the parent does. */
static void killed_in_split_run(ranks_self_t *self)
{
    struct {
        int32_t color, key;
        uint64_t host_id;
    } choice = {0, 0, 0}, choices[3];
    uint8_t place[64] = {0}, places[3 * 64];
    hce_boot_t *boot = NULL;

    if (self->rank == 2) {
        RANKS_CHECK(self,
                    hce_boot_allgather(self->boot, &choice, sizeof(choice),
                                       choices, ranks_soon()) == HCE_OK);
        RANKS_CHECK(self, hce_boot_allgather(self->boot, place, sizeof(place),
                                             places, ranks_soon()) == HCE_OK);
        raise(SIGKILL);
    }
    RANKS_CHECK(self, hce_boot_split(self->boot, 0, 0, ranks_soon(), &boot) ==
                          HCE_ERR_GONE);
    RANKS_CHECK(self, boot == NULL);
    ranks_check_news(self, HCE_ERR_GONE, 2, "rank 2 on ");
}

static void test_killed_in_split(void **state)
{
    ranks_spec_t spec = {.size = 3, .fn = killed_in_split_run};
    pid_t pids[3];

    ranks_fork(&spec, pids);
    for (int r = 0; r < 3; r++) {
        assert_int_equal(ranks_reap(pids[r]), r != 2);
    }
}

/* exit without a goodbye is no better than a crash. */
static void exit_run(ranks_self_t *self)
{
    RANKS_CHECK(self, hce_boot_barrier(self->boot, ranks_soon()) == HCE_OK);
    if (self->rank == 1) {
        _exit(0);
    }
    ranks_check_news(self, HCE_ERR_GONE, 1, "rank 1 on ");
}

static void test_exit_without_goodbye(void **state)
{
    ranks_spec_t spec = {.size = 3, .fn = exit_run};

    assert_int_equal(ranks_processes(&spec), 0);
}

/* --- stopped --- */

typedef struct stop_shared {
    _Atomic int attached; /* ranks that progress */
    _Atomic int informed; /* ranks that have the news */
} stop_shared_t;

typedef struct stop {
    int victim;
    stop_shared_t *shared;
} stop_t;

static void stopped_run(ranks_self_t *self)
{
    stop_t *stop = self->arg;

    RANKS_CHECK(self, hce_boot_barrier(self->boot, ranks_soon()) == HCE_OK);
    RANKS_CHECK(self, !ranks_await_news(self, HCE_NS_PER_SEC / 2));
    stop->shared->attached++;
    ranks_check_news(self, HCE_ERR_SILENT, stop->victim,
                     "has sent nothing for");
    stop->shared->informed++;
    hce_boot_goodbye(self->boot, 0);
}

static void atomic_await(_Atomic int *value, int wanted)
{
    uint64_t deadline = ranks_soon();

    while (*value < wanted && hce_clock_ns() < deadline) {
        usleep(1000);
    }
    assert_true(*value >= wanted);
}

/* The stopped one goes on when all others know, and then blames itself as
 * well, not those it has not heard in the meantime. */
static void test_stopped(void **state)
{
    for (int victim = 0; victim < 3; victim++) {
        stop_t stop = {.victim = victim};
        ranks_spec_t spec = {.size = 3,
                             .silence_ns = HCE_NS_PER_SEC,
                             .fn = stopped_run,
                             .arg = &stop};
        pid_t pids[3];

        stop.shared = mmap(NULL, sizeof(*stop.shared), PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        assert_ptr_not_equal(stop.shared, MAP_FAILED);
        ranks_fork(&spec, pids);
        atomic_await(&stop.shared->attached, 3);
        kill(pids[victim], SIGSTOP);
        atomic_await(&stop.shared->informed, 2);
        kill(pids[victim], SIGCONT);
        for (int r = 0; r < 3; r++) {
            assert_true(ranks_reap(pids[r]));
        }
        munmap(stop.shared, sizeof(*stop.shared));
    }
}

/* All stand still, as when a machine is suspended: nobody is to blame for
 * what nobody could hear. */
static void suspended_run(ranks_self_t *self)
{
    stop_t *stop = self->arg;

    RANKS_CHECK(self, hce_boot_barrier(self->boot, ranks_soon()) == HCE_OK);
    RANKS_CHECK(self, !ranks_await_news(self, HCE_NS_PER_SEC / 2));
    stop->shared->attached++;
    while (stop->shared->informed == 0 && self->failures == 0) {
        RANKS_CHECK(self, !ranks_await_news(self, HCE_NS_PER_SEC / 20));
    }
    RANKS_CHECK(self, !ranks_await_news(self, HCE_NS_PER_SEC / 2));
    RANKS_CHECK(self, hce_boot_barrier(self->boot, ranks_soon()) == HCE_OK);
    hce_boot_goodbye(self->boot, 10 * HCE_NS_PER_SEC);
}

static void test_suspended(void **state)
{
    stop_t stop = {.victim = -1};
    ranks_spec_t spec = {.size = 3,
                         .silence_ns = HCE_NS_PER_SEC,
                         .fn = suspended_run,
                         .arg = &stop};
    pid_t pids[3];

    stop.shared = mmap(NULL, sizeof(*stop.shared), PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(stop.shared, MAP_FAILED);
    ranks_fork(&spec, pids);
    atomic_await(&stop.shared->attached, 3);
    for (int r = 0; r < 3; r++) {
        kill(pids[r], SIGSTOP);
    }
    usleep(1500000); /* longer than the silence that is allowed */
    for (int r = 0; r < 3; r++) {
        kill(pids[r], SIGCONT);
    }
    stop.shared->informed = 1;
    for (int r = 0; r < 3; r++) {
        assert_true(ranks_reap(pids[r]));
    }
    munmap(stop.shared, sizeof(*stop.shared));
}

/* Without a first hce_boot_progress nobody watches a rank. */
static void unattached_run(ranks_self_t *self)
{
    RANKS_CHECK(self, hce_boot_barrier(self->boot, ranks_soon()) == HCE_OK);
    if (self->rank == 1) {
        usleep(1500000); /* busy with its own start */
    } else {
        RANKS_CHECK(self, !ranks_await_news(self, HCE_NS_PER_SEC));
    }
    RANKS_CHECK(self, hce_boot_barrier(self->boot, ranks_soon()) == HCE_OK);
    hce_boot_goodbye(self->boot, 10 * HCE_NS_PER_SEC);
    RANKS_CHECK(self, self->news.count == 0);
}

static void test_unattached(void **state)
{
    ranks_spec_t spec = {
        .size = 3, .silence_ns = HCE_NS_PER_SEC / 2, .fn = unattached_run};

    assert_int_equal(ranks_processes(&spec), 0);
}

/* --- stuck --- */

typedef struct stuck {
    const hce_boot_report_t *reports; /* [size] */
    int complains;
    int blamed;
    const char *text;
} stuck_t;

static void stuck_run(ranks_self_t *self)
{
    const stuck_t *stuck = self->arg;
    const hce_boot_report_t *report = &stuck->reports[self->rank];

    hce_boot_set_report(self->boot, report);
    RANKS_CHECK(self, hce_boot_barrier(self->boot, ranks_soon()) == HCE_OK);
    if (self->rank == stuck->complains) {
        hce_boot_stuck(self->boot, report->call, report->waits_for,
                       "the snapshot");
    }
    ranks_check_news(self, HCE_ERR_TIMEOUT, stuck->blamed, stuck->text);
    RANKS_CHECK(self, strstr(self->news.news.text, "the snapshot") != NULL);
    hce_boot_goodbye(self->boot, 10 * HCE_NS_PER_SEC);
}

static void stuck_check(const stuck_t *stuck, int size)
{
    ranks_spec_t spec = {.size = size, .fn = stuck_run, .arg = (void *)stuck};

    assert_int_equal(ranks_threads(&spec), 0);
}

static void test_stuck(void **state)
{
    static const hce_boot_report_t absent[] = {
        {17, 2, 0}, {17, 2, 0}, {16, -1, 0}};
    static const hce_boot_report_t hub_absent[] = {
        {3, -1, 0}, {17, 0, 0}, {17, 0, 0}};
    static const hce_boot_report_t chain[] = {
        {9, 1, 0}, {9, 3, 0}, {9, 0, 0}, {9, -1, 0}};
    static const hce_boot_report_t circle[] = {
        {9, 1, 0}, {9, 2, 0}, {9, 1, 0}};
    static const hce_boot_report_t itself[] = {{9, 1, 0}, {9, -1, 0}};
    static const hce_boot_report_t ahead[] = {{9, 1, 0}, {10, -1, 0}};
    static const hce_boot_report_t row[] = {{9, 1, 0}, {9, 2, 0}, {9, 3, 0},
                                            {9, 4, 0}, {9, 5, 0}, {9, 6, 0},
                                            {9, 7, 0}, {8, -1, 0}};
    const stuck_t cases[] = {
        {absent, 0, 2,
         "rank 2 has not entered call 17: rank 0 waits for "
         "rank 2"},
        {absent, 1, 2, "rank 1 waits for rank 2"},
        {hub_absent, 2, 0,
         "rank 0 has not entered call 17: rank 2 waits "
         "for rank 0"},
        {chain, 2, 3,
         "rank 3 makes no progress in call 9: rank 2 waits "
         "for rank 0, which waits for rank 1, which waits "
         "for rank 3"},
        {circle, 0, 2, "wait for each other in call 9"},
        {itself, 1, 1, "rank 1 makes no progress in call 9; "},
        {ahead, 0, 1, "rank 1 has gone on to a call after call 9"},
        {row, 0, 7, "which waits for 4 more in a row and at last rank 7"},
    };
    static const int sizes[] = {3, 3, 3, 4, 3, 2, 2, 8};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        stuck_check(&cases[i], sizes[i]);
    }
}

/* --- aborted --- */

static void abort_run(ranks_self_t *self)
{
    hce_boot_news_t mine = {.status = HCE_ERR_ABORTED, .rank = self->rank};
    hce_boot_news_t all[RANKS_MAX];
    hce_boot_t *witness = NULL;

    /* A second group tells what all ranks have heard in the first. */
    RANKS_CHECK(self, hce_boot_split(self->boot, 0, 0, ranks_soon(),
                                     &witness) == HCE_OK);
    snprintf(mine.text, sizeof(mine.text), "rank %d aborts", self->rank);
    hce_boot_abort(self->boot, &mine);
    RANKS_CHECK(self, ranks_await_news(self, RANKS_NEWS_NS));
    RANKS_CHECK(self,
                hce_boot_allgather(witness, &self->news.news, sizeof(all[0]),
                                   all, ranks_soon()) == HCE_OK);
    for (int r = 0; r < self->size; r++) {
        RANKS_CHECK(self, memcmp(&all[r], &all[0], sizeof(all[0])) == 0);
    }
    hce_boot_goodbye(self->boot, 0);
    hce_boot_goodbye(witness, 10 * HCE_NS_PER_SEC);
    hce_boot_destroy(witness);
}

/* All at once: one wins everywhere. */
static void test_abort(void **state)
{
    ranks_spec_t spec = {.size = 5, .fn = abort_run};

    for (int i = 0; i < 20; i++) {
        assert_int_equal(ranks_threads(&spec), 0);
    }
}

/* A transport's error is the shadow of the rank that is gone. */
static void shadow_run(ranks_self_t *self)
{
    hce_boot_news_t mine = {
        .status = HCE_ERR_TRANSPORT, .rank = 2, .text = "endpoint broken"};

    RANKS_CHECK(self, hce_boot_barrier(self->boot, ranks_soon()) == HCE_OK);
    if (self->rank == 2) {
        raise(SIGKILL);
    }
    hce_boot_abort(self->boot, &mine);
    ranks_check_news(self, HCE_ERR_GONE, 2, "is gone");
}

static void test_shadow(void **state)
{
    ranks_spec_t spec = {.size = 4, .fn = shadow_run};
    pid_t pids[4];

    ranks_fork(&spec, pids);
    for (int r = 0; r < 4; r++) {
        assert_int_equal(ranks_reap(pids[r]), r != 2);
    }
}

/* --- good order --- */

/* Whoever is first ends the process while the others may still be at their
 * last call. */
static void goodbye_run(ranks_self_t *self)
{
    RANKS_CHECK(self, hce_boot_barrier(self->boot, ranks_soon()) == HCE_OK);
    hce_boot_progress(self->boot);
    if (self->rank == *(int *)self->arg) {
        hce_boot_goodbye(self->boot, 0);
        _exit(self->failures > 0);
    }
    hce_boot_goodbye(self->boot, 10 * HCE_NS_PER_SEC);
    RANKS_CHECK(self, self->news.count == 0);
}

static void test_goodbye(void **state)
{
    for (int i = 0; i < 200; i++) {
        int first = i % 4; /* 3: nobody hurries */
        ranks_spec_t spec = {.size = 3, .fn = goodbye_run, .arg = &first};

        assert_int_equal(ranks_processes(&spec), 0);
    }
}

/* --- after fork --- */

static void fork_run(ranks_self_t *self)
{
    pid_t child;

    RANKS_CHECK(self, hce_boot_barrier(self->boot, ranks_soon()) == HCE_OK);
    if (self->rank == 1) {
        child = fork();
        if (child == 0) {
            hce_boot_forked(self->boot);
            pause(); /* outlives its parent's end */
            _exit(0);
        }
        /* The parent goes on as if nothing had happened. */
        RANKS_CHECK(self,
                    hce_boot_barrier(self->boot, ranks_soon()) == HCE_OK);
        RANKS_CHECK(self, write(*(int *)self->arg, &child, sizeof(child)) ==
                              sizeof(child));
        raise(SIGKILL);
    }
    RANKS_CHECK(self, hce_boot_barrier(self->boot, ranks_soon()) == HCE_OK);
    ranks_check_news(self, HCE_ERR_GONE, 1, "is gone");
}

static void test_fork(void **state)
{
    int fds[2];
    ranks_spec_t spec = {.size = 2, .fn = fork_run, .arg = &fds[1]};
    pid_t pids[2], child = 0;

    assert_int_equal(pipe(fds), 0);
    ranks_fork(&spec, pids);
    assert_int_equal(read(fds[0], &child, sizeof(child)), sizeof(child));
    assert_true(ranks_reap(pids[0]));
    assert_false(ranks_reap(pids[1]));
    kill(child, SIGKILL);
    close(fds[0]);
    close(fds[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_killed),
        cmocka_unit_test(test_killed_in_call),
        cmocka_unit_test(test_killed_in_split),
        cmocka_unit_test(test_exit_without_goodbye),
        cmocka_unit_test(test_stopped),
        cmocka_unit_test(test_suspended),
        cmocka_unit_test(test_unattached),
        cmocka_unit_test(test_stuck),
        cmocka_unit_test(test_abort),
        cmocka_unit_test(test_shadow),
        cmocka_unit_test(test_goodbye),
        cmocka_unit_test(test_fork),
    };

    ranks_setup();
    return cmocka_run_group_tests_name("boot_faults", tests, NULL, NULL);
}
