/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * What every transport must do when things go wrong: peers that are killed or
 * leave, wrong addresses, fork, and what is left after closing.
 */
#include "config.h"

#include "rma_proxy_world.h"

#include "util/math.h"

#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static const hce_transport_ops_t *ops;
static uint64_t seed = 20240607;
static int victim_posts; /* of this run */

static void run(int size, bool processes, world_body_t body)
{
    world_t world = {.ops = ops,
                     .size = size,
                     .contexts = 2,
                     .processes = processes,
                     .body = body};

    assert_int_equal(world_run(&world), 0);
}

#define VICTIM      2
#define KILL_RUNS   12
#define VICTIM_PUTS 120
#define CHUNK       100003

/* Puts as fast as it can, then dies with much under way. */
static void victim(world_rank_t *self)
{
    hce_transport_req_t req = {0};

    for (int i = 0; i < victim_posts; i++) {
        int peer = i % 2;

        world_put(self, peer, i / 2 % 2, self->src, CHUNK,
                  world_remote(self, peer), &req);
        world_signal(self, peer, i / 2 % 2, 0, (uint64_t)i + 1);
    }
    raise(SIGKILL);
}

/* Sends to the victim, too, until its end is known; then goes on with the
 * other survivor. */
static void survivor(world_rank_t *self)
{
    hce_transport_req_t req = {0};
    int other = 1 - self->rank;
    hce_status_t status;

    while (self->errors == 0) {
        status = world_try_put(self, VICTIM, 0, self->src, self->segment,
                               world_remote(self, VICTIM), &req);
        (void)self->ops->progress(self->t);
        if (status != HCE_OK && status != HCE_ERR_NO_RESOURCE)
            world_wait_error(self);
    }
    WORLD_CHECK(self, self->errors == 1 && self->error_peer == VICTIM);
    WORLD_CHECK(self, self->error_status == HCE_ERR_GONE);
    world_wait_req(self, &req);
    status = self->ops->signal(self->t, VICTIM, 0, 0, 1);
    WORLD_CHECK(self, status == HCE_ERR_GONE || status == HCE_ERR_TRANSPORT);
    req = (hce_transport_req_t){0};
    world_fill(self->src, CHUNK, self->rank, 9);
    world_put(self, other, 1, self->src, CHUNK, world_remote(self, other),
              &req);
    world_signal(self, other, 1, 0, 1);
    world_wait(self, other, 0, 1, true);
    WORLD_CHECK(self, world_is(world_local(self, other), CHUNK, other, 9));
    world_wait_req(self, &req);
    WORLD_CHECK(self, self->errors == 1);
}

static void kill_body(world_rank_t *self)
{
    if (self->rank == VICTIM)
        victim(self);
    else
        survivor(self);
    /* both survivors have ended before either closes */
    atomic_fetch_add(&self->world->shared->flags[0], 1);
    world_wait_flag(self, 0, 2);
}

static void test_kill(void **state)
{
    printf("# seed %llu\n", (unsigned long long)seed);
    for (int i = 0; i < KILL_RUNS; i++) {
        victim_posts = (int)(hce_rand_next(&seed) % VICTIM_PUTS);
        run(3, true, kill_body);
    }
}

/* A rank that flushes and closes is nobody's error, also not while others go
 * on for long. */
static void leave_body(world_rank_t *self)
{
    int other = 1 - self->rank;

    for (int peer = 0; peer < self->size; peer++) {
        if (peer != self->rank)
            world_signal(self, peer, 1, 0, 1);
    }
    for (int peer = 0; peer < self->size; peer++) {
        if (peer != self->rank)
            world_wait(self, peer, 0, 1, false);
    }
    world_flush(self);
    if (self->rank == VICTIM) {
        world_close(self);
        atomic_store(&self->world->shared->flags[0], 1);
        return;
    }
    world_wait_flag(self, 0, 1);
    for (uint64_t i = 2; i < 200; i++) {
        world_signal(self, other, 0, 1, i);
        world_wait(self, other, 1, i, true);
    }
    WORLD_CHECK(self, self->errors == 0);
    atomic_fetch_add(&self->world->shared->flags[1], 1);
    world_wait_flag(self, 1, 2);
}

static void test_leave_threads(void **state)
{
    run(3, false, leave_body);
}

static void test_leave_processes(void **state)
{
    run(3, true, leave_body);
}

/* Rank 0 puts where nothing is registered: rank 1 does not write there, and
 * both are told. */
static void wrong_put(world_rank_t *self, uint64_t remote, size_t len)
{
    hce_transport_req_t req = {0};

    if (self->rank == 0) {
        world_put(self, 1, 0, self->src, len, remote, &req);
        (void)self->ops->signal(self->t, 1, 0, 0, 1);
    }
    world_wait_error(self);
    world_wait_req(self, &req);
    WORLD_CHECK(self, self->error_peer == 1 - self->rank);
    WORLD_CHECK(self, self->error_status == HCE_ERR_TRANSPORT);
    atomic_fetch_add(&self->world->shared->flags[2], 1);
    world_wait_flag(self, 2, 2);
}

static void wrong_end_body(world_rank_t *self)
{
    memset(self->buf, 1 + self->rank, 2 * WORLD_BUF);
    world_barrier(self);
    wrong_put(self, self->world->shared->base[1] + 2 * WORLD_BUF - 100, 101);
    WORLD_CHECK(self, self->buf[2 * WORLD_BUF - 1] == 1 + self->rank);
}

static void wrong_start_body(world_rank_t *self)
{
    wrong_put(self, self->world->shared->base[1] - 1, 2);
}

static void wrong_wrap_body(world_rank_t *self)
{
    wrong_put(self, UINT64_MAX - 3, 8);
}

static void gone_region_body(world_rank_t *self)
{
    memset(self->buf, 1 + self->rank, WORLD_BUF);
    if (self->rank == 1) {
        self->ops->mem_deregister(self->t, self->mem);
        self->mem = NULL;
    }
    world_barrier(self);
    wrong_put(self, self->world->shared->base[1], 3000);
    WORLD_CHECK(self, self->buf[0] == 1 + self->rank);
}

static void test_wrong(void **state)
{
    run(2, true, wrong_end_body);
    run(2, false, wrong_start_body);
    run(2, true, wrong_wrap_body);
    run(2, false, gone_region_body);
}

/* A region of no bytes is a region, and other memory may come and go while
 * peers write. */
static void regions_body(world_rank_t *self)
{
    hce_transport_req_t req = {0};
    int peer = 1 - self->rank;
    char key[HCE_TRANSPORT_MAX_KEY];
    hce_transport_mem_t *mem;
    char other[64];
    size_t len;

    for (uint64_t i = 0; i < 100; i++) {
        bool empty = i % 3 == 0;

        WORLD_CHECK(self, self->ops->mem_register(
                              self->t, empty ? NULL : other,
                              empty ? 0 : sizeof(other), &mem) == HCE_OK);
        WORLD_CHECK(self, self->ops->mem_pack(mem, key, &len) == HCE_OK);
        WORLD_CHECK(self, len <= sizeof(key));
        world_put(self, peer, 0, self->src, 999, world_remote(self, peer),
                  &req);
        world_signal(self, peer, 0, 0, i + 1);
        world_wait(self, peer, 0, i + 1, false);
        self->ops->mem_deregister(self->t, mem);
    }
    world_wait_req(self, &req);
    world_flush(self);
    world_barrier(self);
}

static void test_regions(void **state)
{
    run(2, false, regions_body);
}

/* The child of a fork gives up its copy; the parent notices nothing. */
static void fork_body(world_rank_t *self)
{
    int peer = 1 - self->rank;
    int status;
    pid_t pid;

    world_signal(self, peer, 0, 0, 1);
    world_wait(self, peer, 0, 1, false);
    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        self->ops->forked(self->t);
        _exit(0);
    }
    WORLD_CHECK(self, waitpid(pid, &status, 0) == pid && status == 0);
    for (uint64_t i = 2; i < 50; i++) {
        world_signal(self, peer, 0, 0, i);
        world_wait(self, peer, 0, i, true);
    }
    world_flush(self);
    WORLD_CHECK(self, self->errors == 0);
    world_barrier(self);
}

static void test_fork(void **state)
{
    run(2, true, fork_body);
}

static int count_fds(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int n = 0;

    assert_non_null(dir);
    while (readdir(dir) != NULL)
        n++;
    closedir(dir);
    return n;
}

static void short_body(world_rank_t *self)
{
    int peer = 1 - self->rank;

    world_signal(self, peer, 1, 0, 1);
    world_wait(self, peer, 0, 1, false);
    world_flush(self);
    world_barrier(self);
}

#define OPEN_RUNS 100

static void test_open_close(void **state)
{
    int before = 0;

    for (int i = 0; i < OPEN_RUNS; i++) {
        run(2, false, short_body);
        /* UCX keeps some for the process, from the first time on */
        if (i == 0)
            before = count_fds();
    }
    assert_int_equal(count_fds(), before);
}

/* Closing at once, with puts and signals under way, ends. */
static void abrupt_body(world_rank_t *self)
{
    hce_transport_req_t req = {0};
    int peer = 1 - self->rank;

    for (int i = 0; i < 20; i++) {
        (void)world_try_put(self, peer, i % 2, self->src, self->segment,
                            world_remote(self, peer), &req);
        (void)self->ops->signal(self->t, peer, i % 2, 0, 1);
    }
    world_close(self);
    WORLD_CHECK(self, req.pending == 0);
}

static void test_abrupt(void **state)
{
    for (int i = 0; i < 10; i++) {
        run(2, false, abrupt_body);
        run(2, true, abrupt_body);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kill),
        cmocka_unit_test(test_leave_threads),
        cmocka_unit_test(test_leave_processes),
        cmocka_unit_test(test_wrong),
        cmocka_unit_test(test_regions),
        cmocka_unit_test(test_fork),
        cmocka_unit_test(test_abrupt),
        cmocka_unit_test(test_open_close),
    };

    ops = world_transport();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
