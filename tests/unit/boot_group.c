/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Groups that work: sizes, exchanges, orderly ends.
 */
#include <config.h>

#include "boot_ranks.h"

#include "util/math.h"

#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static unsigned char pattern(int rank, int round, size_t i)
{
    return (unsigned char)(rank * 31 + round * 7 + (int)i * 3);
}

static void allgather_check(ranks_self_t *self, int round, size_t len)
{
    size_t total = len * (size_t)self->size;
    unsigned char *in = malloc(len + 1), *out = malloc(total + 1);
    size_t wrong = 0;

    for (size_t i = 0; i < len; i++) {
        in[i] = pattern(self->rank, round, i);
    }
    RANKS_CHECK(self, hce_boot_allgather(self->boot, in, len, out,
                                         hce_clock_deadline(RANKS_LIMIT_NS)) ==
                          HCE_OK);
    for (size_t i = 0; i < total; i++) {
        wrong += out[i] != pattern((int)(i / len), round, i % len);
    }
    RANKS_CHECK(self, wrong == 0);
    free(in);
    free(out);
}

/* Rank r gives (r * 13 + round) % 50 bytes. */
static void allgatherv_check(ranks_self_t *self, int round)
{
    size_t len = (size_t)(self->rank * 13 + round) % 50, at = 0, wrong = 0;
    size_t lens[RANKS_MAX];
    unsigned char in[50];
    void *out = NULL;

    for (size_t i = 0; i < len; i++) {
        in[i] = pattern(self->rank, round, i);
    }
    RANKS_CHECK(self, hce_boot_allgatherv(
                          self->boot, in, len, lens, &out,
                          hce_clock_deadline(RANKS_LIMIT_NS)) == HCE_OK);
    for (int r = 0; out != NULL && r < self->size; r++) {
        RANKS_CHECK(self, lens[r] == (size_t)(r * 13 + round) % 50);
        for (size_t i = 0; i < lens[r]; i++) {
            wrong += ((unsigned char *)out)[at++] != pattern(r, round, i);
        }
    }
    RANKS_CHECK(self, wrong == 0);
    free(out);
}

static void exchange_all(ranks_self_t *self)
{
    static const size_t lens[] = {8, 0, 1, 4097, 20000};
    const uint8_t *secret = hce_boot_secret(self->boot);
    uint8_t secrets[RANKS_MAX * 16];

    RANKS_CHECK(self, hce_boot_rank(self->boot) == self->rank);
    RANKS_CHECK(self, hce_boot_size(self->boot) == self->size);
    RANKS_CHECK(self, strcmp(hce_boot_name(self->boot), "tcp") == 0);
    for (int round = 0; round < 5; round++) {
        allgather_check(self, round, lens[round]);
        allgatherv_check(self, round);
        RANKS_CHECK(self, hce_boot_barrier(
                              self->boot,
                              hce_clock_deadline(RANKS_LIMIT_NS)) == HCE_OK);
    }
    RANKS_CHECK(self, hce_boot_allgather(self->boot, secret, 16, secrets,
                                         hce_clock_deadline(RANKS_LIMIT_NS)) ==
                          HCE_OK);
    for (int r = 0; r < self->size; r++) {
        RANKS_CHECK(self, memcmp(secrets + 16 * r, secret, 16) == 0);
    }
    hce_boot_goodbye(self->boot, 10 * HCE_NS_PER_SEC);
    RANKS_CHECK(self, self->news.count == 0);
}

/* What all ranks draw alike: colours (-1 is none) and keys. */
typedef struct shape {
    int color[RANKS_MAX], key[RANKS_MAX];
} shape_t;

static void shape_draw(shape_t *shape, int size, uint64_t *state)
{
    int colors = 1 + (int)(hce_rand_next(state) % (uint64_t)size);
    int keys = 1 + (int)(hce_rand_next(state) % 5);

    for (int r = 0; r < size; r++) {
        shape->color[r] =
            (int)(hce_rand_next(state) % (uint64_t)(colors + 1)) - 1;
        shape->key[r] = (int)(hce_rand_next(state) % (uint64_t)keys) - 2;
    }
}

/* The expected members in order; returns their number. */
static int members_list(const shape_t *shape, int size, int color,
                        int *members)
{
    int num = 0;

    for (int key = -2; key < 4; key++) {
        for (int r = 0; r < size; r++) {
            if (shape->color[r] == color && shape->key[r] == key) {
                members[num++] = r;
            }
        }
    }
    return num;
}

static void members_check(ranks_self_t *self, const shape_t *shape,
                          hce_boot_t *boot)
{
    int expected[RANKS_MAX], got[RANKS_MAX];
    int num =
        members_list(shape, self->size, shape->color[self->rank], expected);

    RANKS_CHECK(self, hce_boot_size(boot) == num);
    RANKS_CHECK(self, expected[hce_boot_rank(boot)] == self->rank);
    RANKS_CHECK(self, hce_boot_allgather(boot, &self->rank, sizeof(int), got,
                                         hce_clock_deadline(RANKS_LIMIT_NS)) ==
                          HCE_OK);
    RANKS_CHECK(self, memcmp(got, expected, (size_t)num * sizeof(int)) == 0);
}

#define SPLITS 6

static void split_many(ranks_self_t *self)
{
    uint64_t state = *(const uint64_t *)self->arg;

    for (int i = 0; i < SPLITS; i++) {
        hce_boot_t *boot = NULL;
        shape_t shape;

        shape_draw(&shape, self->size, &state);
        RANKS_CHECK(self, hce_boot_split(self->boot, shape.color[self->rank],
                                         shape.key[self->rank],
                                         hce_clock_deadline(RANKS_LIMIT_NS),
                                         &boot) == HCE_OK);
        RANKS_CHECK(self, (boot == NULL) == (shape.color[self->rank] < 0));
        if (boot != NULL) {
            members_check(self, &shape, boot);
            RANKS_CHECK(self, memcmp(hce_boot_secret(boot),
                                     hce_boot_secret(self->boot), 16) != 0);
            hce_boot_goodbye(boot, 10 * HCE_NS_PER_SEC);
            hce_boot_destroy(boot);
        }
    }
    allgather_check(self, 0, 8); /* the parent still works */
    hce_boot_goodbye(self->boot, 10 * HCE_NS_PER_SEC);
    RANKS_CHECK(self, self->news.count == 0);
}

static void test_split(void **state)
{
    uint64_t seed = 20240229;

    for (int size = 1; size <= 13; size += 4) {
        ranks_spec_t spec = {.size = size, .fn = split_many, .arg = &seed};

        print_message("split: %d ranks, seed %llu\n", size,
                      (unsigned long long)seed);
        assert_int_equal(ranks_threads(&spec), 0);
        assert_int_equal(ranks_processes(&spec), 0);
        seed++;
    }
}

/* A child survives its parent, and a child of a child works. */
static void split_deep(ranks_self_t *self)
{
    hce_boot_t *child = NULL, *grand = NULL;
    int got[RANKS_MAX], sum = 0;

    RANKS_CHECK(self, hce_boot_split(self->boot, 0, -self->rank,
                                     hce_clock_deadline(RANKS_LIMIT_NS),
                                     &child) == HCE_OK);
    hce_boot_goodbye(self->boot, 10 * HCE_NS_PER_SEC);
    RANKS_CHECK(self, hce_boot_split(child, self->rank % 2, 0,
                                     hce_clock_deadline(RANKS_LIMIT_NS),
                                     &grand) == HCE_OK);
    hce_boot_goodbye(child, 10 * HCE_NS_PER_SEC);
    hce_boot_destroy(child);
    RANKS_CHECK(self, hce_boot_allgather(grand, &self->rank, sizeof(int), got,
                                         hce_clock_deadline(RANKS_LIMIT_NS)) ==
                          HCE_OK);
    for (int i = 0; i < hce_boot_size(grand); i++) {
        sum += got[i] % 2;
    }
    RANKS_CHECK(self, sum == self->rank % 2 * hce_boot_size(grand));
    hce_boot_goodbye(grand, 10 * HCE_NS_PER_SEC);
    hce_boot_destroy(grand);
}

static void test_split_deep(void **state)
{
    ranks_spec_t spec = {.size = 6, .fn = split_deep};

    assert_int_equal(ranks_processes(&spec), 0);
}

/* --- with an engine: another thread progresses all the while --- */

typedef struct engine {
    hce_boot_t *boot;
    _Atomic bool is_over;
    _Atomic uint64_t turns;
} engine_t;

static void *engine_main(void *arg)
{
    engine_t *engine = arg;

    while (!engine->is_over) {
        struct pollfd fd = {.fd = hce_boot_fd(engine->boot), .events = POLLIN};
        hce_boot_report_t report = {.call = engine->turns++, .waits_for = -1};

        poll(&fd, 1, 20);
        hce_boot_set_report(engine->boot, &report);
        hce_boot_progress(engine->boot);
        (void)hce_boot_next_ns(engine->boot);
    }
    return NULL;
}

static void engine_run(ranks_self_t *self)
{
    engine_t engine = {.boot = self->boot};
    pthread_t thread;

    RANKS_CHECK(self,
                pthread_create(&thread, NULL, engine_main, &engine) == 0);
    for (int round = 0; round < 200; round++) {
        allgather_check(self, round, 16);
    }
    split_many(self);
    engine.is_over = true;
    pthread_join(thread, NULL);
}

static void test_engine(void **state)
{
    uint64_t seed = 99;
    ranks_spec_t spec = {.size = 4,
                         .silence_ns = 40 * HCE_NS_PER_SEC,
                         .fn = engine_run,
                         .arg = &seed};

    print_message("engine: seed %llu\n", (unsigned long long)seed);
    assert_int_equal(ranks_threads(&spec), 0);
    assert_int_equal(ranks_processes(&spec), 0);
}

static void test_threads(void **state)
{
    static const int sizes[] = {1, 2, 3, 7, 16, 64};

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        ranks_spec_t spec = {.size = sizes[i], .fn = exchange_all};

        assert_int_equal(ranks_threads(&spec), 0);
    }
}

static void test_processes(void **state)
{
    static const int sizes[] = {1, 2, 5, 32};

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        ranks_spec_t spec = {.size = sizes[i], .fn = exchange_all};

        assert_int_equal(ranks_processes(&spec), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads),    cmocka_unit_test(test_processes),
        cmocka_unit_test(test_engine),     cmocka_unit_test(test_split),
        cmocka_unit_test(test_split_deep),
    };

    ranks_setup();
    return cmocka_run_group_tests_name("boot_group", tests, NULL, NULL);
}
