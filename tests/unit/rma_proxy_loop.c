/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * What only the loop transport has: a listener that strangers can reach, and
 * faults on demand.
 */
#include "config.h"

#include "rma_proxy_world.h"

#include "rma_proxy/loop/loop.h"
#include "rma_proxy/settings.h"
#include "util/math.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

static const hce_transport_ops_t *ops;

static void run(const char *faults, world_body_t body)
{
    /* rank 2 is for those who say that they are it */
    world_t world = {
        .ops = ops, .size = 2, .phantoms = 1, .contexts = 1, .body = body};

    hce_proxy_settings.loop_faults = faults;
    for (int processes = 0; processes < 2; processes++) {
        world.processes = processes;
        assert_int_equal(world_run(&world), 0);
    }
    hce_proxy_settings.loop_faults = NULL;
}

/* Rank 0's 7th op breaks its endpoint: both sides hear of it, as of a
 * network that failed and not of a process that ended. */
static void break_body(world_rank_t *self)
{
    hce_transport_req_t req = {0};
    hce_status_t status = HCE_OK;
    int posted = 0;

    if (self->rank == 0) {
        while (status == HCE_OK && posted < 20) {
            status = world_try_put(self, 1, 0, self->src, 100000,
                                   world_remote(self, 1), &req);
            posted += status == HCE_OK;
        }
        WORLD_CHECK(self, posted == 6 && status == HCE_ERR_TRANSPORT);
        WORLD_CHECK(self, req.pending == 0);
    }
    world_wait_error(self);
    WORLD_CHECK(self, self->errors == 1);
    WORLD_CHECK(self, self->error_peer == 1 - self->rank);
    WORLD_CHECK(self, self->error_status == HCE_ERR_TRANSPORT);
    /* the other direction works, and is not told again */
    if (self->rank == 1)
        world_signal(self, 0, 0, 0, 1);
    else
        world_wait(self, 1, 0, 1, true);
    WORLD_CHECK(self, self->errors == 1);
    world_barrier(self);
}

static void test_break(void **state)
{
    run("break=7@0", break_body);
}

#define LOST_TURNS 2000

/* From its 3rd op on rank 0 sends into the void: nobody is told, nothing
 * arrives, and no flush says that it has. */
static void lose_body(world_rank_t *self)
{
    hce_transport_req_t req = {0};
    hce_status_t status = HCE_INPROGRESS;

    if (self->rank == 0) {
        world_signal(self, 1, 0, 0, 1);
        world_signal(self, 1, 0, 0, 2);
        world_put(self, 1, 0, self->src, 1000, world_remote(self, 1), &req);
        world_signal(self, 1, 0, 0, 3);
        world_wait_req(self, &req);
        for (int i = 0; i < LOST_TURNS && status == HCE_INPROGRESS; i++) {
            (void)self->ops->progress(self->t);
            status = self->ops->flush(self->t);
        }
        WORLD_CHECK(self, status == HCE_INPROGRESS);
    }
    world_barrier(self);
    for (int i = 0; i < LOST_TURNS; i++)
        (void)self->ops->progress(self->t);
    WORLD_CHECK(self, self->errors == 0);
    if (self->rank == 1)
        WORLD_CHECK(self, world_word(self, 0, 0) <= 2);
    world_barrier(self);
}

static void test_lose(void **state)
{
    run("lose=3@0", lose_body);
}

static void test_settings(void **state)
{
    static const char *const wrong[] = {
        "delay",     "delay=",  "delay=101",         "delay=-1",
        "delay=5%",  "slow=5",  "break=5",           "break=0@1",
        "break=@1",  "lose=5@", "delay=5,,refuse=x", "refuse=5 ",
        "lose=5@-1",
    };

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        hce_transport_params_t params = {.size = 2, .contexts = 1};
        hce_transport_t *t = NULL;

        hce_proxy_settings.loop_faults = wrong[i];
        assert_int_equal(ops->open(&params, &t), HCE_ERR_CONFIG);
        assert_null(t);
    }
    hce_proxy_settings.loop_faults = NULL;
}

static int stranger_connect(world_rank_t *self)
{
    loop_address_t addr;
    struct sockaddr_un name;
    uint32_t len;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    memcpy(&addr, self->world->shared->addr[1], sizeof(addr));
    hce_loop_name(&addr, &name, &len);
    WORLD_CHECK(self, fd >= 0);
    WORLD_CHECK(self, connect(fd, (struct sockaddr *)&name, len) == 0);
    return fd;
}

/* Until the other side has closed; what it says first is thrown away. */
static void wait_closed(world_rank_t *self, int fd)
{
    char buf[64];

    while (recv(fd, buf, sizeof(buf), 0) > 0)
        ;
    close(fd);
}

static loop_hello_t make_hello(uint32_t rank)
{
    loop_hello_t hello = {.rank = rank};

    memcpy(hello.magic, LOOP_MAGIC, sizeof(hello.magic));
    memcpy(hello.secret, world_secret, sizeof(hello.secret));
    return hello;
}

/* Rank 0 plays the strangers, rank 1 serves; then both go on as before. */
static void strangers(world_rank_t *self)
{
    uint64_t rng = 99;
    int silent[3 * LOOP_STRANGERS];
    loop_hello_t hello;
    char noise[5000];
    int fd;

    for (int i = 0; i < 3 * LOOP_STRANGERS; i++)
        silent[i] = stranger_connect(self);
    for (int i = 0; i < 50; i++) {
        fd = stranger_connect(self);
        for (size_t k = 0; k < sizeof(noise); k++)
            noise[k] = (char)hce_rand_next(&rng);
        (void)send(fd, noise, hce_rand_next(&rng) % sizeof(noise),
                   MSG_NOSIGNAL);
        shutdown(fd, SHUT_WR);
        wait_closed(self, fd);
    }
    for (int i = 0; i < 5; i++) {
        hello = make_hello(2);
        if (i == 0)
            hello.rank = 3;
        else if (i == 1)
            hello.rank = 0; /* taken, by the true one */
        else if (i == 2)
            hello.context = 1;
        else if (i == 3)
            hello.secret[15] ^= 1;
        else
            hello.magic[7] = '2';
        fd = stranger_connect(self);
        (void)send(fd, &hello, sizeof(hello), MSG_NOSIGNAL);
        wait_closed(self, fd);
    }
    for (int i = 0; i < 3 * LOOP_STRANGERS; i++)
        close(silent[i]);
    atomic_store(&self->world->shared->flags[0], 1);
}

static void stranger_body(world_rank_t *self)
{
    int peer = 1 - self->rank;

    if (self->rank == 0)
        strangers(self);
    world_wait_flag(self, 0, 1);
    for (uint64_t i = 1; i < 100; i++) {
        world_signal(self, peer, 0, 0, i);
        world_wait(self, peer, 0, i, true);
    }
    WORLD_CHECK(self, self->errors == 0);
    world_barrier(self);
}

static void test_strangers(void **state)
{
    run(NULL, stranger_body);
}

static loop_frame_t bad_frames[] = {
    {.kind = 77},
    {.kind = UINT32_MAX},
    {.kind = LOOP_PUT, .len = 8, .addr = 8, .mem = 1ull << 32},
    {.kind = LOOP_PUT, .len = 8, .addr = 8, .mem = UINT64_MAX},
    {.kind = LOOP_PUT, .len = UINT64_MAX, .addr = 8, .mem = 1ull << 32},
    {.kind = LOOP_SIGNAL, .word = 3 * WORLD_WORDS},
    {.kind = LOOP_SIGNAL, .word = UINT32_MAX},
    {.kind = LOOP_SIGNAL, .len = 8},
    {.kind = LOOP_MESSAGE, .len = HCE_TRANSPORT_MAX_MESSAGE + 1},
    {.kind = LOOP_MESSAGE, .len = 8, .addr = 3 * WORLD_MAIL - 7},
    {.kind = LOOP_MESSAGE, .len = 8, .addr = UINT64_MAX - 3},
    {.kind = LOOP_MESSAGE, .word = 3 * WORLD_WORDS},
    {.kind = LOOP_FLUSH, .len = 1},
    {.kind = LOOP_ACK},
    {.kind = LOOP_REFUSE},
};
static size_t bad_frame;

/* A peer that knows the secret sends a wrong frame: an error that names it,
 * and not a byte written. */
static void frame_body(world_rank_t *self)
{
    loop_hello_t hello = make_hello(2);
    int fd;

    if (self->rank == 0) {
        fd = stranger_connect(self);
        (void)send(fd, &hello, sizeof(hello), MSG_NOSIGNAL);
        (void)send(fd, &bad_frames[bad_frame], sizeof(loop_frame_t),
                   MSG_NOSIGNAL);
        wait_closed(self, fd);
    } else {
        world_wait_error(self);
        WORLD_CHECK(self, self->error_peer == 2);
        WORLD_CHECK(self, self->error_status == HCE_ERR_TRANSPORT);
        for (int i = 0; i < 3 * WORLD_WORDS; i++)
            WORLD_CHECK(self, hce_counter_read(&self->inbox[i]) == 0);
        for (int i = 0; i < 3 * WORLD_MAIL; i++)
            WORLD_CHECK(self, self->mail[i] == 0);
    }
    world_barrier(self);
}

static void test_frames(void **state)
{
    for (size_t i = 0; i < sizeof(bad_frames) / sizeof(bad_frames[0]); i++) {
        bad_frame = i;
        run(NULL, frame_body);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_settings), cmocka_unit_test(test_break),
        cmocka_unit_test(test_lose),     cmocka_unit_test(test_strangers),
        cmocka_unit_test(test_frames),
    };

    ops = world_transport();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
