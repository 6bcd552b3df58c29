/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Groups that work: sizes, exchanges, orderly ends.
 */
#include <config.h>

#include "boot_ranks.h"

#include "util/math.h"

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
                                         hce_clock_deadline(
                                             RANKS_LIMIT_NS)) == HCE_OK);
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
    RANKS_CHECK(self, hce_boot_allgatherv(self->boot, in, len, lens, &out,
                                          hce_clock_deadline(
                                              RANKS_LIMIT_NS)) == HCE_OK);
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
    static const size_t lens[] = {8, 0, 1, 4097, 100000};
    const uint8_t *secret = hce_boot_secret(self->boot);
    uint8_t secrets[RANKS_MAX * 16];

    RANKS_CHECK(self, hce_boot_rank(self->boot) == self->rank);
    RANKS_CHECK(self, hce_boot_size(self->boot) == self->size);
    RANKS_CHECK(self, strcmp(hce_boot_name(self->boot), "tcp") == 0);
    for (int round = 0; round < 5; round++) {
        allgather_check(self, round, lens[round]);
        allgatherv_check(self, round);
        RANKS_CHECK(self, hce_boot_barrier(self->boot,
                                           hce_clock_deadline(
                                               RANKS_LIMIT_NS)) == HCE_OK);
    }
    RANKS_CHECK(self, hce_boot_allgather(self->boot, secret, 16, secrets,
                                         hce_clock_deadline(
                                             RANKS_LIMIT_NS)) == HCE_OK);
    for (int r = 0; r < self->size; r++) {
        RANKS_CHECK(self, memcmp(secrets + 16 * r, secret, 16) == 0);
    }
    hce_boot_goodbye(self->boot, 10 * HCE_NS_PER_SEC);
    RANKS_CHECK(self, self->news.count == 0);
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
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_processes),
    };

    ranks_setup();
    return cmocka_run_group_tests_name("boot_group", tests, NULL, NULL);
}
