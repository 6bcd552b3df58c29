/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * A small world of ranks for tests of transports.
 */
#include "config.h"

#include "rma_proxy_world.h"

#include "rma_proxy/proxy.h"
#include "util/clock.h"
#include "util/math.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <signal.h>
#include <unistd.h>

#ifndef TEST_ENV
#define TEST_ENV ""
#endif

const uint8_t world_secret[16] = "world of tests.";

const hce_transport_ops_t *world_transport(void)
{
    const hce_config_table_t *const tables[] = {&hce_rma_proxy_config, NULL};
    const hce_transport_ops_t *ops = NULL;
    static char env[] = TEST_ENV;
    char *item, *save;
    const char *why = "not built in";

    /* All traffic stays on this machine. */
    setenv("UCX_NET_DEVICES", "lo", 0);
    for (item = strtok_r(env, " ", &save); item != NULL;
         item = strtok_r(NULL, " ", &save)) {
        printf("# %s\n", item);
        putenv(item);
    }
    if (hce_config_init(tables) != HCE_OK)
        exit(1);
    for (int i = 0; hce_transports[i] != NULL; i++) {
        if (strcmp(hce_transports[i]->name, TEST_TRANSPORT) == 0)
            ops = hce_transports[i];
    }
    if (ops != NULL)
        why = ops->unusable();
    if (why != NULL) {
        printf("skipped: %s: %s\n", TEST_TRANSPORT, why);
        exit(77);
    }
    return ops;
}

void world_fail(world_rank_t *self, const char *file, int line,
                const char *text)
{
    world_shared_t *shared = self->world->shared;

    if (atomic_fetch_add(&shared->failed, 1) == 0)
        snprintf(shared->text, sizeof(shared->text), "rank %d, %s:%d: %s",
                 self->rank, file, line, text);
    longjmp(self->failure, 1);
}

static void on_error(void *arg, int peer, hce_status_t status,
                     const char *text)
{
    world_rank_t *self = arg;

    self->errors++;
    self->error_peer = peer;
    self->error_status = status;
    snprintf(self->error_text, sizeof(self->error_text), "%s", text);
}

/* One turn of any waiting loop; fails when another rank has, or in the end. */
static void turn(world_rank_t *self, uint64_t deadline, const char *what)
{
    if (!self->quiet && self->t != NULL)
        (void)self->ops->progress(self->t);
    if (atomic_load(&self->world->shared->failed))
        longjmp(self->failure, 1);
    if (hce_clock_ns() > deadline)
        world_fail(self, __FILE__, __LINE__, what);
    sched_yield();
}

static uint64_t limit(void)
{
    return hce_clock_deadline(WORLD_TIMEOUT * HCE_NS_PER_SEC);
}

void world_barrier(world_rank_t *self)
{
    _Atomic int *arrived = &self->world->shared->arrived;
    int want = ++self->rounds * self->size;
    uint64_t end = limit();

    atomic_fetch_add(arrived, 1);
    while (atomic_load(arrived) < want)
        turn(self, end, "waits for ever for a barrier");
}

size_t world_share(const world_rank_t *self)
{
    return WORLD_BUF / (size_t)self->size;
}

uint64_t world_remote(world_rank_t *self, int target)
{
    return self->world->shared->base[target] +
           world_share(self) * (size_t)self->rank;
}

char *world_local(world_rank_t *self, int writer)
{
    return self->buf + world_share(self) * (size_t)writer;
}

hce_status_t world_try_put(world_rank_t *self, int peer, int context,
                           const void *src, size_t len, uint64_t remote,
                           hce_transport_req_t *req)
{
    return self->ops->put(self->t, peer, context, src, self->mem, len, remote,
                          self->keys[peer], req);
}

void world_put(world_rank_t *self, int peer, int context, const void *src,
               size_t len, uint64_t remote, hce_transport_req_t *req)
{
    uint64_t end = limit();
    hce_status_t status;
    size_t done = 0;

    while (done < len) {
        size_t part = hce_min(len - done, self->segment);

        status = world_try_put(self, peer, context, (const char *)src + done,
                               part, remote + done, req);
        if (status == HCE_ERR_NO_RESOURCE) {
            turn(self, end, "a put that is refused for ever");
            continue;
        }
        WORLD_CHECK(self, status == HCE_OK);
        done += part;
    }
}

void world_signal(world_rank_t *self, int peer, int context, int slot,
                  uint64_t value)
{
    uint32_t word = (uint32_t)(self->rank * WORLD_WORDS + slot);
    uint64_t end = limit();
    hce_status_t status;

    for (;;) {
        status = self->ops->signal(self->t, peer, context, word, value);
        if (status != HCE_ERR_NO_RESOURCE)
            break;
        turn(self, end, "a signal that is refused for ever");
    }
    WORLD_CHECK(self, status == HCE_OK);
}

void world_message(world_rank_t *self, int peer, uint64_t offset,
                   const void *payload, size_t len, int slot, uint64_t value)
{
    uint32_t word = (uint32_t)(self->rank * WORLD_WORDS + slot);
    uint64_t end = limit();
    hce_status_t status;

    for (;;) {
        status = self->ops->message(self->t, peer, offset, payload, len, word,
                                    value);
        if (status != HCE_ERR_NO_RESOURCE)
            break;
        turn(self, end, "a message that is refused for ever");
    }
    WORLD_CHECK(self, status == HCE_OK);
}

uint64_t world_word(const world_rank_t *self, int writer, int slot)
{
    return hce_counter_read(&self->inbox[writer * WORLD_WORDS + slot]);
}

/* Sleeps until the transport has something. A wake-up that is lost shows as
 * a poll that ends by its limit. */
static void nap(world_rank_t *self)
{
    struct pollfd polls[HCE_TRANSPORT_MAX_FDS];
    int fds[HCE_TRANSPORT_MAX_FDS];
    int n = self->ops->fds(self->t, fds);

    for (int i = 0; i < n; i++)
        polls[i] = (struct pollfd){.fd = fds[i], .events = POLLIN};
    if (self->ops->progress(self->t) || !self->ops->arm(self->t))
        return;
    WORLD_CHECK(self, poll(polls, (nfds_t)n, WORLD_TIMEOUT * 500) > 0);
}

void world_wait(world_rank_t *self, int writer, int slot, uint64_t value,
                bool sleep)
{
    uint64_t end = limit();

    while (!hce_counter_geq(world_word(self, writer, slot), value)) {
        if (sleep)
            nap(self);
        else
            turn(self, end, "waits for ever for a word");
    }
}

void world_wait_req(world_rank_t *self, const hce_transport_req_t *req)
{
    uint64_t end = limit();

    while (req->pending > 0)
        turn(self, end, "waits for ever for a request");
}

void world_wait_flag(world_rank_t *self, int flag, int value)
{
    uint64_t end = limit();

    while (atomic_load(&self->world->shared->flags[flag]) < value)
        turn(self, end, "waits for ever for a flag");
}

void world_wait_error(world_rank_t *self)
{
    uint64_t end = limit();

    while (self->errors == 0)
        turn(self, end, "waits for ever for a error callback");
}

void world_flush(world_rank_t *self)
{
    uint64_t end = limit();
    hce_status_t status;

    while ((status = self->ops->flush(self->t)) == HCE_INPROGRESS)
        turn(self, end, "waits for ever for a flush");
    WORLD_CHECK(self, status == HCE_OK);
}

unsigned char world_byte(int rank, uint64_t iteration, uint64_t offset)
{
    uint64_t x = offset * 0x9e3779b97f4a7c15ull +
                 iteration * 0xbf58476d1ce4e5b9ull + (uint64_t)rank * 77;

    return (unsigned char)((x >> 32) ^ x ^ (iteration * 31));
}

void world_fill(void *buf, size_t len, int rank, uint64_t iteration)
{
    for (size_t i = 0; i < len; i++)
        ((unsigned char *)buf)[i] = world_byte(rank, iteration, i);
}

bool world_is(const void *buf, size_t len, int rank, uint64_t iteration)
{
    for (size_t i = 0; i < len; i++) {
        if (((const unsigned char *)buf)[i] != world_byte(rank, iteration, i))
            return false;
    }
    return true;
}

static void rank_open(world_rank_t *self)
{
    world_t *world = self->world;
    int size = world->size + world->phantoms;
    hce_transport_params_t params = {
        .rank = self->rank,
        .size = size,
        .contexts = world->contexts,
        .silence_ns = WORLD_SILENCE * HCE_NS_PER_SEC,
        .secret = world_secret,
        .inbox = self->inbox,
        .inbox_words = (uint32_t)(size * WORLD_WORDS),
        .mail = self->mail,
        .mail_size = (size_t)size * WORLD_MAIL,
        .error_cb = on_error,
        .error_arg = self,
    };

    hce_transport_attr_t attr;

    WORLD_CHECK(self, self->ops->open(&params, &self->t) == HCE_OK);
    self->ops->query(self->t, &attr);
    WORLD_CHECK(self, attr.contexts == world->contexts);
    self->segment = attr.segment;
}

static void rank_connect(world_rank_t *self)
{
    world_shared_t *shared = self->world->shared;
    void *addr;
    size_t len;

    WORLD_CHECK(self, self->ops->address(self->t, &addr, &len) == HCE_OK);
    WORLD_CHECK(self, len <= sizeof(shared->addr[0]));
    memcpy(shared->addr[self->rank], addr, len);
    shared->addr_len[self->rank] = len;
    free(addr);
    WORLD_CHECK(self,
                self->ops->mem_register(self->t, self->buf, 2 * WORLD_BUF,
                                        &self->mem) == HCE_OK);
    WORLD_CHECK(self,
                self->ops->mem_pack(self->mem, shared->key[self->rank],
                                    &shared->key_len[self->rank]) == HCE_OK);
    shared->base[self->rank] = (uintptr_t)self->buf;
    world_barrier(self);
    for (int i = 1; i < self->size; i++) {
        int peer = (self->rank + i) % self->size;

        WORLD_CHECK(self,
                    self->ops->connect(self->t, peer, shared->addr[peer],
                                       shared->addr_len[peer]) == HCE_OK);
        WORLD_CHECK(self,
                    self->ops->key_unpack(self->t, peer, shared->key[peer],
                                          shared->key_len[peer],
                                          &self->keys[peer]) == HCE_OK);
    }
    world_barrier(self);
}

void world_close(world_rank_t *self)
{
    for (int i = 0; i < self->size; i++) {
        if (self->keys[i] != NULL)
            self->ops->key_destroy(self->keys[i]);
        self->keys[i] = NULL;
    }
    if (self->mem != NULL)
        self->ops->mem_deregister(self->t, self->mem);
    self->mem = NULL;
    if (self->t != NULL)
        self->ops->close(self->t);
    self->t = NULL;
}

static void rank_free(world_rank_t *self)
{
    free(self->inbox);
    free(self->mail);
    free(self->buf);
}

static void *rank_main(void *arg)
{
    world_rank_t *self = arg;
    int size = self->size + self->world->phantoms;

    self->inbox = calloc((size_t)size * WORLD_WORDS, sizeof(*self->inbox));
    self->mail = calloc((size_t)size, WORLD_MAIL);
    self->buf = calloc(2, WORLD_BUF);
    self->src = self->buf + WORLD_BUF;
    if (setjmp(self->failure) == 0) {
        rank_open(self);
        rank_connect(self);
        self->world->body(self);
    }
    world_close(self);
    rank_free(self);
    return NULL;
}

static void run_threads(world_rank_t *ranks, int size)
{
    pthread_t threads[WORLD_MAX];

    for (int i = 0; i < size; i++)
        pthread_create(&threads[i], NULL, rank_main, &ranks[i]);
    for (int i = 0; i < size; i++)
        pthread_join(threads[i], NULL);
}

/* A rank that was killed is not a failure of itself: tests kill. */
static void run_processes(world_rank_t *ranks, int size)
{
    pid_t pids[WORLD_MAX];
    int status;

    fflush(NULL);
    for (int i = 0; i < size; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            rank_main(&ranks[i]);
            exit(0); /* runs leak checks */
        }
    }
    for (int i = 0; i < size; i++) {
        waitpid(pids[i], &status, 0);
        if (WIFEXITED(status) ? WEXITSTATUS(status) != 0
                              : WTERMSIG(status) != SIGKILL) {
            fprintf(stderr, "rank %d ended with status 0x%x\n", i, status);
            atomic_fetch_add(&ranks[i].world->shared->failed, 1);
        }
    }
}

int world_run(world_t *world)
{
    world_rank_t ranks[WORLD_MAX] = {0};
    int failed;

    world->shared = mmap(NULL, sizeof(*world->shared), PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (world->shared == MAP_FAILED)
        return 1;
    for (int i = 0; i < world->size; i++) {
        ranks[i].world = world;
        ranks[i].ops = world->ops;
        ranks[i].rank = i;
        ranks[i].size = world->size;
    }
    if (world->processes)
        run_processes(ranks, world->size);
    else
        run_threads(ranks, world->size);
    failed = atomic_load(&world->shared->failed);
    if (failed > 0)
        fprintf(stderr, "%s\n", world->shared->text);
    munmap(world->shared, sizeof(*world->shared));
    return failed;
}
