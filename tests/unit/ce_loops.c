/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Every copy loop of this CPU against memcpy, byte for byte: random lengths,
 * alignments and numbers of destinations, with guards around each.
 */
#include <config.h>

#include "ce/host/copy.h"
#include "util/math.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define DSTS_MAX 20
#define LEN_MAX  (160u * 1024)
#define GUARD    128
#define ROUNDS   400

static uint64_t seed = 20260117;
static char *src_mem, *dst_mem[DSTS_MAX];

static int memory_create(void **state)
{
    int i;

    src_mem = aligned_alloc(64, LEN_MAX + 2 * GUARD);
    for (i = 0; i < DSTS_MAX; i++)
        dst_mem[i] = aligned_alloc(64, LEN_MAX + 2 * GUARD);
    return 0;
}

static int memory_destroy(void **state)
{
    int i;

    free(src_mem);
    for (i = 0; i < DSTS_MAX; i++)
        free(dst_mem[i]);
    return 0;
}

static size_t length_draw(uint64_t *state)
{
    static const size_t limits[] = {2, 70, 600, 5000, LEN_MAX + 1};
    size_t limit = limits[hce_rand_next(state) % 5];

    return hce_rand_next(state) % limit;
}

static void guards_check(const char *mem, size_t skew, size_t len)
{
    size_t i;

    for (i = 0; i < GUARD / 2 + skew; i++)
        assert_int_equal((unsigned char)mem[i], 0xee);
    for (i = GUARD / 2 + skew + len; i < len + 2 * GUARD; i++)
        assert_int_equal((unsigned char)mem[i], 0xee);
}

static void round_run(const hce_ce_loop_t *loop, uint64_t *state)
{
    size_t len = length_draw(state), skews[DSTS_MAX], i;
    int num = 1 + (int)(hce_rand_next(state) % DSTS_MAX), d;
    bool alike = hce_rand_next(state) % 2 == 0;
    char *src = src_mem + hce_rand_next(state) % 64, *dsts[DSTS_MAX];

    for (i = 0; i < len; i++)
        src[i] = (char)hce_rand_next(state);
    for (d = 0; d < num; d++) {
        skews[d] = alike && d > 0 ? skews[0] : hce_rand_next(state) % 64;
        memset(dst_mem[d], 0xee, len + 2 * GUARD);
        dsts[d] = dst_mem[d] + GUARD / 2 + skews[d];
    }
    hce_ce_loop_run(loop, dsts, num, src, len);
    for (d = 0; d < num; d++) {
        assert_memory_equal(dsts[d], src, len);
        guards_check(dst_mem[d], skews[d], len);
    }
}

static void test_loops_equal_memcpy(void **state)
{
    uint64_t at;
    const hce_ce_loop_t *loop;
    int i, round;

    for (i = 0; (loop = hce_ce_loop_usable(i)) != NULL; i++) {
        printf("# %s\n", loop->name);
        at = seed;
        for (round = 0; round < ROUNDS; round++)
            round_run(loop, &at);
    }
    assert_true(i >= 1);
#if defined(__x86_64__)
    assert_true(i >= 3); /* rep movsb and sse2 are always there */
#endif
}

static void *init_main(void *arg)
{
    *(hce_status_t *)arg = hce_ce_loops_init();
    return NULL;
}

static void test_choice_of_many_threads(void **state)
{
    pthread_t threads[4];
    hce_status_t status[4];
    char *dst = dst_mem[0];
    int i;

    for (i = 0; i < 4; i++)
        assert_int_equal(
            pthread_create(&threads[i], NULL, init_main, &status[i]), 0);
    for (i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(status[i], HCE_OK);
    }
    for (i = 0; i < 2; i++) {
        memset(src_mem, 'a' + i, LEN_MAX);
        hce_ce_loop_copy(&dst, 1, src_mem, LEN_MAX, i == 1);
        assert_memory_equal(dst, src_mem, LEN_MAX);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loops_equal_memcpy),
        cmocka_unit_test(test_choice_of_many_threads),
    };

    if (argc > 1)
        seed = strtoull(argv[1], NULL, 0);
    printf("# seed %llu\n", (unsigned long long)seed);
    return cmocka_run_group_tests(tests, memory_create, memory_destroy);
}
