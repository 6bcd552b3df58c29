/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The doorbell: no wake-up is lost, whoever sleeps whenever. A lost one shows
 * as a sleep without end, which the harness ends as a failure.
 */
#include <config.h>

#include "ce_duel.h"
#include "ce_ranks.h"

#include "ce/host/segment.h"
#include "util/clock.h"
#include "util/math.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/eventfd.h>

#include <cmocka.h>

#define ROUNDS 20000

/* Each rank in turn posts to the next; all others sleep or are about to. */
static void token_body(ranks_self_t *self)
{
    int next = (self->rank + 1) % self->size;
    uint64_t i;

    for (i = 1; i <= ROUNDS; i++) {
        if (self->rank != 0 || i > 1)
            ranks_wait_counter(self, 0, self->rank == 0 ? i - 1 : i);
        ranks_post(self, next, 0, i);
    }
    if (self->rank == 0)
        ranks_wait_counter(self, 0, ROUNDS);
}

/* All post to all in bursts of random length, then wait for each other. */
static void burst_body(ranks_self_t *self)
{
    uint64_t state = self->seed, value = 0;
    int round, l, posts;

    for (round = 0; round < ROUNDS / 10; round++) {
        posts = 1 + (int)(hce_rand_next(&state) % 20);
        while (posts-- > 0) {
            value++;
            for (l = 0; l < self->size; l++)
                ranks_post(self, l, (uint32_t)self->rank, value);
        }
        for (l = 0; l < self->size; l++)
            ranks_wait_counter(self, (uint32_t)l, value);
    }
}

/* A full ring: the writer sleeps until the reader makes room, the reader
 * sleeps until there is something. */
static void pressure_body(ranks_self_t *self)
{
    static const size_t len = 60000;
    char *src = malloc(len), *dst = calloc(1, len);
    hce_ce_buf_t buf = {.addr = (uint64_t)(uintptr_t)dst, .len = len};
    hce_ce_target_t target;
    hce_ce_dst_t to = {&target, 0};
    hce_ce_copy_t copy = {.src = src, .dsts = &to, .num_dsts = 1};
    uint64_t i;
    int bad;

    RANKS_CHECK(hce_ce_allow(self->ce, dst, len) == HCE_OK);
    memcpy(hce_ce_board(self->ce, self->rank), &buf, sizeof(buf));
    ranks_barrier(self);
    memcpy(&buf, hce_ce_board(self->ce, 1 - self->rank), sizeof(buf));
    RANKS_CHECK(hce_ce_reach(self->ce, 1 - self->rank, &buf, &target) ==
                HCE_OK);
    RANKS_CHECK(target.how == HCE_CE_STAGED);
    for (i = 1; i <= ROUNDS / 10; i++) {
        copy.len = i * 7919 % len;
        memset(src, (int)i, copy.len);
        RANKS_CHECK(ranks_copy(self, &copy, &bad) == HCE_OK);
        /* One rank never waits for the other but where there is no room. */
        if (self->rank == 1)
            ranks_wait_counter(self, 1, i);
        ranks_post(self, 1 - self->rank, 1, i);
    }
    if (self->rank == 0)
        ranks_wait_counter(self, 1, ROUNDS / 10);
    RANKS_CHECK(dst[0] == (char)(ROUNDS / 10));
    ranks_barrier(self);
    hce_ce_disallow(self->ce, dst, len);
    free(src);
    free(dst);
}

/* Rings only who sleeps: an awake rank's descriptor stays silent. */
static void silence_body(ranks_self_t *self)
{
    struct pollfd fd = {self->doorbell, POLLIN, 0};
    int i, bad;

    if (self->rank == 0) {
        for (i = 1; i <= 100; i++)
            ranks_post(self, 1, 0, (uint64_t)i);
        ranks_wait_counter(self, 0, 1);
        return;
    }
    while (hce_counter_read(&hce_ce_counters(self->ce)[0]) < 100)
        RANKS_CHECK(hce_ce_progress(self->ce, &bad) >= 0);
    RANKS_CHECK(poll(&fd, 1, 0) == 0);
    hce_ce_progress(self->ce, &bad);
    RANKS_CHECK(hce_ce_arm(self->ce));
    hce_ce_awake(self->ce);
    ranks_post(self, 1, 1, 1); /* to myself */
    RANKS_CHECK(!hce_ce_arm(self->ce));
    RANKS_CHECK(poll(&fd, 1, 0) == 0);
    ranks_post(self, 0, 0, 1);
}

/* Behind data that the peer has not taken out a post waits. */
static void behind_body(ranks_self_t *self)
{
    char area[1000] = {0}, src[1000];
    hce_ce_buf_t buf = {.addr = (uint64_t)(uintptr_t)area, .len = 1000};
    hce_ce_target_t target;
    hce_ce_dst_t to = {&target, 0};
    hce_ce_copy_t copy = {.src = src, .len = 1000, .dsts = &to, .num_dsts = 1};
    const hce_counter_t *counter = &hce_ce_counters(self->ce)[0];
    int bad;

    memset(src, 'b', sizeof(src));
    RANKS_CHECK(hce_ce_allow(self->ce, area, sizeof(area)) == HCE_OK);
    memcpy(hce_ce_board(self->ce, self->rank), &buf, sizeof(buf));
    ranks_barrier(self);
    memcpy(&buf, hce_ce_board(self->ce, 1 - self->rank), sizeof(buf));
    if (self->rank == 0) {
        RANKS_CHECK(hce_ce_reach(self->ce, 1, &buf, &target) == HCE_OK);
        while (atomic_load(&self->shared->flags[1]) == 0)
            sched_yield();
        RANKS_CHECK(hce_ce_copy(self->ce, &copy, &bad) == HCE_OK);
        RANKS_CHECK(hce_ce_post(self->ce, 1, 0, 7) == HCE_OK);
        atomic_store(&self->shared->flags[0], 1);
    } else {
        atomic_store(&self->shared->flags[1], 1); /* out of the barrier */
        while (atomic_load(&self->shared->flags[0]) == 0)
            sched_yield();
        RANKS_CHECK(hce_counter_read(counter) == 0 && area[0] == 0);
        RANKS_CHECK(hce_ce_progress(self->ce, &bad) == HCE_INPROGRESS);
        RANKS_CHECK(hce_counter_read(counter) == 7);
        RANKS_CHECK(memcmp(area, src, sizeof(area)) == 0);
    }
    ranks_barrier(self);
    hce_ce_disallow(self->ce, area, sizeof(area));
}

typedef struct duel {
    hce_ce_seg_t *seg;
    _Atomic int turn; /* both start a round when they see it change */
    _Atomic int done;
} duel_t;

static void *duel_poster(void *arg)
{
    duel_t *duel = arg;
    int i;

    for (i = 1; i <= DUELS; i++) {
        hce_duel_await(&duel->turn, i);
        if (atomic_load(&duel->turn) > DUELS)
            break;
        hce_ce_seg_ring_bell(duel->seg);
        atomic_store(&duel->done, i);
    }
    return NULL;
}

/* The owner falls asleep in the very moment in which the bell rings: it
 * notices, or the descriptor is written. */
static void test_ring_while_falling_asleep(void **state)
{
    struct pollfd fd = {eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), POLLIN, 0};
    const hce_ce_seg_shape_t shape = {1, 1};
    duel_t duel = {0};
    pthread_t thread;
    uint64_t end = hce_clock_deadline(DUELS_NS);
    hce_duel_aim_t aim = {.state = 1};
    uint64_t seen, rings;
    int i, slept = 0, lost = 0;
    bool sleeps;

    assert_int_equal(hce_ce_seg_create(&shape, 0, fd.fd, &duel.seg), HCE_OK);
    assert_int_equal(pthread_create(&thread, NULL, duel_poster, &duel), 0);
    for (i = 1; i <= DUELS && hce_clock_ns() < end; i++) {
        seen = hce_ce_seg_events(duel.seg);
        atomic_store(&duel.turn, i);
        hce_duel_aim_wait(&aim);
        sleeps = hce_ce_seg_arm(duel.seg, seen);
        hce_duel_await(&duel.done, i);
        lost += sleeps && poll(&fd, 1, 0) != 1;
        slept += sleeps;
        hce_duel_aim_correct(&aim, sleeps);
        hce_ce_seg_awake(duel.seg);
        while (read(fd.fd, &rings, sizeof(rings)) > 0)
            ;
    }
    atomic_store(&duel.turn, DUELS + 1);
    pthread_join(thread, NULL);
    printf("# fell asleep in %d of %d rounds\n", slept, i - 1);
    assert_int_equal(lost, 0);
    hce_ce_seg_put(duel.seg);
    close(fd.fd);
}

static void run(ranks_body_t body, int procs, int threads, int force)
{
    ranks_spec_t spec = {.procs = procs, .threads = threads, .body = body};
    int i;

    for (i = 0; i < procs; i++)
        spec.force[i] = force;
    assert_true(ranks_run(&spec));
}

static void test_token(void **state)
{
    run(token_body, 2, 1, HCE_CE_FORCE_AUTO);
    run(token_body, 3, 1, HCE_CE_FORCE_AUTO);
    run(token_body, 1, 2, HCE_CE_FORCE_AUTO);
    run(token_body, 2, 1, HCE_CE_FORCE_STAGED);
}

static void test_burst(void **state)
{
    run(burst_body, 4, 1, HCE_CE_FORCE_AUTO);
    run(burst_body, 2, 2, HCE_CE_FORCE_AUTO);
    run(burst_body, 3, 1, HCE_CE_FORCE_STAGED);
}

static void test_back_pressure(void **state)
{
    run(pressure_body, 2, 1, HCE_CE_FORCE_STAGED);
    run(pressure_body, 1, 2, HCE_CE_FORCE_STAGED);
}

static void test_post_behind_data(void **state)
{
    run(behind_body, 2, 1, HCE_CE_FORCE_STAGED);
}

static void test_silence(void **state)
{
    run(silence_body, 2, 1, HCE_CE_FORCE_AUTO);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_token),
        cmocka_unit_test(test_burst),
        cmocka_unit_test(test_back_pressure),
        cmocka_unit_test(test_silence),
        cmocka_unit_test(test_post_behind_data),
        cmocka_unit_test(test_ring_while_falling_asleep),
    };

    ranks_init(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
