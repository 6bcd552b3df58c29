/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * What every transport must do, through its ops table; built once for each
 * transport (TEST_TRANSPORT). Ranks are threads, then processes.
 */
#include "config.h"

#include "rma_proxy_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static const hce_transport_ops_t *ops;

static void run(int size, int contexts, bool processes, world_body_t body)
{
    world_t world = {.ops = ops,
                     .size = size,
                     .contexts = contexts,
                     .processes = processes,
                     .body = body};

    assert_int_equal(world_run(&world), 0);
}

/* Sizes and offsets that divide nothing; what lies beside stays zero. */
static void puts_body(world_rank_t *self)
{
    static const size_t lens[] = {1,    3,    7,     8,     63,     65,
                                  4095, 4097, 65535, 65537, 131075, 300007};
    size_t at = 13;
    char *src = self->src;

    for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
        for (int k = 1; k < self->size; k++) {
            int peer = (self->rank + k) % self->size;
            hce_transport_req_t req = {0};

            world_fill(src, lens[i], self->rank, i);
            world_put(self, peer, 0, src, lens[i],
                      world_remote(self, peer) + at, &req);
            world_wait_req(self, &req);
            WORLD_CHECK(self, req.status == HCE_OK);
        }
        at += lens[i] + 5;
    }
    for (int k = 1; k < self->size; k++)
        world_signal(self, (self->rank + k) % self->size, 0, 0, 1);
    for (int k = 1; k < self->size; k++) {
        int writer = (self->rank + k) % self->size;
        const char *dst = world_local(self, writer);
        static const char zeros[16];

        world_wait(self, writer, 0, 1, false);
        WORLD_CHECK(self, memcmp(dst, zeros, 13) == 0);
        dst += 13;
        for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
            WORLD_CHECK(self, world_is(dst, lens[i], writer, i));
            WORLD_CHECK(self, memcmp(dst + lens[i], zeros, 5) == 0);
            dst += lens[i] + 5;
        }
    }
    world_barrier(self);
}

#ifndef ORDER_ROUNDS
#define ORDER_ROUNDS 320
#endif
#define ORDER_LEN    40001
#define ORDER_PUTS   5

/* One round of one pair: several puts in a row, then a signal. */
static void order_send(world_rank_t *self, int peer, int context, char *src,
                       uint64_t round)
{
    hce_transport_req_t req = {0};
    uint64_t remote = world_remote(self, peer) + (round % 2) * ORDER_LEN +
                      context * ORDER_LEN * 2;

    world_fill(src, ORDER_LEN, self->rank, round);
    for (int i = 0; i < ORDER_PUTS; i++) {
        size_t first = (size_t)i * ORDER_LEN / ORDER_PUTS;
        size_t end = (size_t)(i + 1) * ORDER_LEN / ORDER_PUTS;

        world_put(self, peer, context, src + first, end - first,
                  remote + first, &req);
    }
    world_signal(self, peer, context, context, round + 1);
    world_wait_req(self, &req);
}

static void order_body(world_rank_t *self)
{
    int contexts = self->world->contexts;
    char *src = self->src;
    int peer = (self->rank + 1) % self->size;
    int writer = (self->rank + self->size - 1) % self->size;

    for (uint64_t round = 0; round < ORDER_ROUNDS; round++) {
        int context = (int)(round / 2) % contexts;

        /* the slot of two rounds ago has been read */
        if (round >= 2)
            world_wait(self, peer, 7, round - 1, false);
        order_send(self, peer, context, src, round);
        world_wait(self, writer, context, round + 1, false);
        WORLD_CHECK(self, world_is(world_local(self, writer) +
                                       (round % 2) * ORDER_LEN +
                                       (size_t)context * ORDER_LEN * 2,
                                   ORDER_LEN, writer, round));
        world_signal(self, writer, 0, 7, round + 1);
    }
    world_barrier(self);
}

#define PRESSURE_POSTS 3000
#define PRESSURE_LEN   1021

/* Rank 0 posts while rank 1 does nothing, not even progress. */
static void pressure_send(world_rank_t *self, const char *src)
{
    _Atomic int *go = &self->world->shared->flags[0];
    uint64_t remote = world_remote(self, 1);
    hce_transport_req_t req = {0};
    uint64_t tries = 0;

    for (uint64_t i = 0; i < PRESSURE_POSTS;) {
        hce_status_t status = self->ops->put(
            self->t, 1, 0, src + i * PRESSURE_LEN % 999983, self->mem,
            PRESSURE_LEN, remote + i * PRESSURE_LEN % 999983, self->keys[1],
            &req);

        WORLD_CHECK(self, status == HCE_OK || status == HCE_ERR_NO_RESOURCE);
        i += status == HCE_OK;
        if (++tries == 2 * PRESSURE_POSTS)
            atomic_store(go, 1);
        (void)self->ops->progress(self->t);
    }
    WORLD_CHECK(self, tries > PRESSURE_POSTS); /* some were refused */
    atomic_store(go, 1);
    world_signal(self, 1, 0, 0, 1);
    world_wait_req(self, &req);
    WORLD_CHECK(self, req.status == HCE_OK);
}

static void pressure_body(world_rank_t *self)
{
    size_t len = 999983 + PRESSURE_LEN;
    char *src = self->src;

    world_fill(src, len, 0, 5);
    if (self->rank == 0) {
        pressure_send(self, src);
    } else {
        self->quiet = true;
        world_wait_flag(self, 0, 1);
        self->quiet = false;
        world_wait(self, 0, 0, 1, false);
        WORLD_CHECK(self, world_is(world_local(self, 0), 999983, 0, 5));
    }
    world_barrier(self);
}

#define MESSAGE_ROUNDS 400

static void message_body(world_rank_t *self)
{
    char payload[HCE_TRANSPORT_MAX_MESSAGE];

    for (uint64_t round = 0; round < MESSAGE_ROUNDS; round++) {
        size_t len = (size_t)(round * 37 % (sizeof(payload) + 1));
        size_t parity = (size_t)(round % 2) * HCE_TRANSPORT_MAX_MESSAGE;

        world_fill(payload, len, self->rank, round);
        for (int k = 1; k < self->size; k++) {
            int peer = (self->rank + k) % self->size;

            if (round >= 2)
                world_wait(self, peer, 1, round - 1, false);
            world_message(self, peer,
                          (uint64_t)self->rank * WORLD_MAIL + parity, payload,
                          len, 0, round + 1);
        }
        for (int k = 1; k < self->size; k++) {
            int writer = (self->rank + k) % self->size;

            world_wait(self, writer, 0, round + 1, false);
            WORLD_CHECK(self,
                        world_is(self->mail + writer * WORLD_MAIL + parity,
                                 len, writer, round));
            world_signal(self, writer, 0, 1, round + 1);
        }
    }
    world_barrier(self);
}

#define PARCEL_ROUNDS 300
#define PARCEL_MAIL   200
#define PARCEL_SLOT   131072 /* no transport takes more in one */

static void parcel_send(world_rank_t *self, int peer, size_t len,
                        uint64_t round)
{
    uint64_t parity = round % 2;
    char mail[PARCEL_MAIL];
    hce_transport_parcel_t parcel = {
        .data = self->src + parity * PARCEL_SLOT,
        .data_len = len,
        .mem = self->mem,
        .remote_addr = world_remote(self, peer) + parity * PARCEL_SLOT,
        .key = self->keys[peer],
        .mail = mail,
        .mail_len = PARCEL_MAIL,
        .mail_offset =
            (uint64_t)self->rank * WORLD_MAIL + parity * PARCEL_MAIL,
        .word = (uint32_t)(self->rank * WORLD_WORDS),
        .value = round + 1,
    };
    hce_transport_req_t req = {0};
    hce_status_t status;

    world_fill(mail, sizeof(mail), self->rank, round + 1000);
    do {
        status = self->ops->parcel(self->t, peer, &parcel, &req);
        (void)self->ops->progress(self->t);
    } while (status == HCE_ERR_NO_RESOURCE);
    WORLD_CHECK(self, status == HCE_OK);
    world_wait_req(self, &req);
    WORLD_CHECK(self, req.status == HCE_OK);
}

/* Data, mail and word of a parcel come together, in order among parcels. */
static void parcel_body(world_rank_t *self)
{
    hce_transport_attr_t attr = {0};

    self->ops->query(self->t, &attr);
    for (uint64_t round = 0; attr.parcel > 0 && round < PARCEL_ROUNDS;
         round++) {
        size_t len = (size_t)(round * 2003 % (attr.parcel + 1));
        size_t parity = (size_t)(round % 2);

        if (round % 100 == 99)
            len = attr.parcel;
        WORLD_CHECK(self, len <= PARCEL_SLOT);
        world_fill(self->src + parity * PARCEL_SLOT, len, self->rank, round);
        for (int k = 1; k < self->size; k++) {
            int peer = (self->rank + k) % self->size;

            if (round >= 2)
                world_wait(self, peer, 1, round - 1, false);
            parcel_send(self, peer, len, round);
        }
        for (int k = 1; k < self->size; k++) {
            int writer = (self->rank + k) % self->size;

            world_wait(self, writer, 0, round + 1, false);
            WORLD_CHECK(self, world_is(world_local(self, writer) +
                                           parity * PARCEL_SLOT,
                                       len, writer, round));
            WORLD_CHECK(self, world_is(self->mail + writer * WORLD_MAIL +
                                           parity * PARCEL_MAIL,
                                       PARCEL_MAIL, writer, round + 1000));
            world_signal(self, writer, 0, 1, round + 1);
        }
    }
    world_barrier(self);
}

#define WAKE_ROUNDS 300

/* Everybody sleeps until something comes: a signal, or a message. */
static void wake_body(world_rank_t *self)
{
    int peer = (self->rank + 1) % self->size;
    int writer = (self->rank + self->size - 1) % self->size;

    for (uint64_t round = 0; round < WAKE_ROUNDS; round++) {
        int slot = (int)(round % 2);

        if (self->rank != 0)
            world_wait(self, writer, slot, round + 1, true);
        if (slot == 0)
            world_signal(self, peer, 0, slot, round + 1);
        else
            world_message(self, peer, 0, "x", 1, slot, round + 1);
        if (self->rank == 0)
            world_wait(self, writer, slot, round + 1, true);
    }
    world_flush(self);
    world_barrier(self);
}

static double cpu_seconds(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Rank 0 lets the others wait: a sleeping rank does not burn its core. First
 * all get connected: UCX keeps a socket that is being connected writable, and
 * so its waiter awake, until the peer makes progress, which rank 0 will not.
 */
static void idle_body(world_rank_t *self)
{
    struct timespec pause = {.tv_nsec = 400000000};
    int peer = 1 - self->rank;
    double wall, cpu;

    world_signal(self, peer, 0, 0, 1);
    world_wait(self, peer, 0, 1, false);
    world_flush(self);
    world_barrier(self);
    wall = cpu_seconds(CLOCK_MONOTONIC);
    cpu = cpu_seconds(CLOCK_THREAD_CPUTIME_ID);
    if (self->rank == 0) {
        nanosleep(&pause, NULL);
        world_signal(self, peer, 0, 0, 2);
        world_flush(self);
    } else {
        world_wait(self, peer, 0, 2, true);
        wall = cpu_seconds(CLOCK_MONOTONIC) - wall;
        cpu = cpu_seconds(CLOCK_THREAD_CPUTIME_ID) - cpu;
        WORLD_CHECK(self, cpu < wall / 2);
    }
    world_barrier(self);
}

/* After a flush the data is there: the target need not progress again. */
static void flush_body(world_rank_t *self)
{
    _Atomic int *flag = &self->world->shared->flags[0];
    size_t len = 500009;
    char *src = self->src;
    hce_transport_req_t req = {0};

    world_fill(src, len, 0, 3);
    if (self->rank == 0) {
        world_put(self, 1, 0, src, len, world_remote(self, 1), &req);
        world_flush(self);
        atomic_store(flag, 1);
        world_wait_req(self, &req);
    } else if (self->rank == 1) {
        world_wait_flag(self, 0, 1);
        WORLD_CHECK(self, world_is(world_local(self, 0), len, 0, 3));
    }
    world_flush(self);
    world_barrier(self);
}

/* One test: what runs, by how many ranks, over how many contexts. */
typedef struct kase {
    world_body_t body;
    int size, contexts;
} kase_t;

static kase_t puts_case = {puts_body, 3, 1};
static kase_t order_case = {order_body, 2, 1};
static kase_t contexts_case = {order_body, 4, 3};
static kase_t pressure_case = {pressure_body, 2, 1};
static kase_t message_case = {message_body, 4, 1};
static kase_t parcel_case = {parcel_body, 3, 1};
static kase_t wake_case = {wake_body, 3, 1};
static kase_t idle_case = {idle_body, 2, 1};
static kase_t flush_case = {flush_body, 2, 2};

static void test_threads(void **state)
{
    const kase_t *kase = *state;

    run(kase->size, kase->contexts, false, kase->body);
}

static void test_processes(void **state)
{
    const kase_t *kase = *state;

#ifdef TEST_THREADS_ONLY
    skip();
#endif
    run(kase->size, kase->contexts, true, kase->body);
}

#define BOTH(_name)                                                           \
    {#_name ", threads", test_threads, NULL, NULL, &_name##_case},            \
    {                                                                         \
#_name ", processes", test_processes, NULL, NULL, &_name##_case       \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(puts), BOTH(order),   BOTH(contexts), BOTH(pressure),
        BOTH(wake), BOTH(message), BOTH(idle),     BOTH(flush),
        BOTH(parcel),
    };

    ops = world_transport();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
