/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The outbox alone: blocks come back in order and only after their last
 * reader, and never overlap one that is in use, however they are sized.
 */
#include <config.h>

#include "ce/ce.h"
#include "ce/host/outbox.h"
#include "util/math.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define READERS 3
#define ROUNDS  20000

static uint64_t seed = 20260423;

typedef struct rig {
    hce_ce_outbox_t outbox;
    hce_ce_ring_t *rings;
    hce_ce_ring_end_t tx[READERS], *ends[READERS];
} rig_t;

static int rig_create(void **state)
{
    rig_t *rig = calloc(1, sizeof(*rig));
    int i;

    rig->rings = aligned_alloc(64, READERS * sizeof(*rig->rings));
    memset(rig->rings, 0, READERS * sizeof(*rig->rings));
    for (i = 0; i < READERS; i++) {
        rig->tx[i] = (hce_ce_ring_end_t){.ring = &rig->rings[i]};
        rig->tx[i].data = malloc(HCE_CE_RING_SIZE);
        rig->ends[i] = &rig->tx[i];
    }
    *state = rig;
    return hce_ce_outbox_init(&rig->outbox, malloc(HCE_CE_OUTBOX_SIZE),
                              READERS);
}

static int rig_destroy(void **state)
{
    rig_t *rig = *state;
    int i;

    for (i = 0; i < READERS; i++)
        free(rig->tx[i].data);
    free(rig->outbox.data);
    hce_ce_outbox_cleanup(&rig->outbox);
    free(rig->rings);
    free(rig);
    return 0;
}

/* A block for the readers whose bits are set. */
static uint64_t take(rig_t *rig, size_t len, unsigned readers)
{
    hce_ce_ring_refer_t refer = {.len = (uint32_t)len};
    int i;

    refer.offset = hce_ce_outbox_take(&rig->outbox, len);
    for (i = 0; i < READERS; i++) {
        if ((readers & 1u << i) == 0)
            continue;
        hce_ce_ring_refer(&rig->tx[i], 0, &refer);
        hce_ce_outbox_mark(&rig->outbox, i, &rig->tx[i]);
    }
    return refer.offset;
}

static bool has_room(rig_t *rig, size_t len)
{
    return hce_ce_outbox_has_room(&rig->outbox, rig->ends, len);
}

/* Reader i has dealt with its first entries up to position. */
static void pass(rig_t *rig, int i, uint64_t position)
{
    atomic_store(&rig->rings[i].tail, position);
}

static void test_last_reader_frees(void **state)
{
    rig_t *rig = *state;
    int i, n = 0;

    while (has_room(rig, HCE_CE_QUANTUM)) {
        assert_int_equal(take(rig, HCE_CE_QUANTUM, 7), n * HCE_CE_QUANTUM);
        n++;
        assert_true(n <= (int)(HCE_CE_OUTBOX_SIZE / HCE_CE_QUANTUM));
    }
    assert_int_equal(n, HCE_CE_OUTBOX_SIZE / HCE_CE_QUANTUM);
    for (i = 0; i < READERS; i++) {
        assert_false(has_room(rig, HCE_CE_QUANTUM));
        /* Whom the writer waits for has been asked to wake it. */
        assert_int_equal(atomic_load(&rig->rings[i].starved), 1);
        pass(rig, i, HCE_CE_RING_POST_SIZE);
    }
    assert_true(has_room(rig, HCE_CE_QUANTUM));
    assert_int_equal(take(rig, HCE_CE_QUANTUM, 1), 0);
    assert_false(has_room(rig, 1));
}

/* The second block is through before the first: no room yet. */
static void test_blocks_come_back_in_order(void **state)
{
    rig_t *rig = *state;

    take(rig, HCE_CE_QUANTUM, 1);
    while (has_room(rig, HCE_CE_QUANTUM))
        take(rig, HCE_CE_QUANTUM, 2);
    pass(rig, 1, rig->tx[1].here);
    assert_false(has_room(rig, HCE_CE_QUANTUM));
    pass(rig, 0, rig->tx[0].here);
    assert_true(has_room(rig, HCE_CE_QUANTUM));
}

static void test_many_small_blocks(void **state)
{
    rig_t *rig = *state;
    unsigned n = 0;

    while (has_room(rig, 64)) {
        take(rig, 64, 4);
        assert_true(++n <= HCE_CE_OUTBOX_BLOCKS);
    }
    assert_int_equal(n, HCE_CE_OUTBOX_BLOCKS);
    pass(rig, 2, rig->tx[2].here);
    assert_true(has_room(rig, 64));
}

typedef struct held {
    uint64_t offset;
    size_t len;
    uint64_t marks[READERS]; /* 0: does not read it */
} held_t;

static bool is_held(const rig_t *rig, const held_t *held)
{
    int i;

    for (i = 0; i < READERS; i++)
        if (held->marks[i] > atomic_load(&rig->rings[i].tail))
            return true;
    return false;
}

static void check_apart(const rig_t *rig, const held_t *held, unsigned num,
                        const held_t *mine)
{
    unsigned i;

    assert_true(mine->offset + mine->len <= HCE_CE_OUTBOX_SIZE);
    for (i = 0; i < num; i++)
        assert_true(!is_held(rig, &held[i]) ||
                    mine->offset + mine->len <= held[i].offset ||
                    held[i].offset + held[i].len <= mine->offset);
}

/* Against a model that only knows who still reads what. */
static void test_random_blocks_are_apart(void **state)
{
    rig_t *rig = *state;
    held_t held[HCE_CE_OUTBOX_BLOCKS] = {0}, one;
    unsigned taken = 0, round, i, readers;
    uint64_t state64 = seed;

    for (round = 0; round < ROUNDS; round++) {
        one.len = 1 + hce_rand_next(&state64) % HCE_CE_QUANTUM;
        if (hce_rand_next(&state64) % 2 == 0)
            one.len = 1 + one.len % 3000;
        if (has_room(rig, one.len)) {
            readers = 1 + (unsigned)(hce_rand_next(&state64) % 7);
            one.offset = take(rig, one.len, readers);
            for (i = 0; i < READERS; i++)
                one.marks[i] = readers & 1u << i ? rig->tx[i].here : 0;
            check_apart(rig, held, HCE_CE_OUTBOX_BLOCKS, &one);
            held[taken++ % HCE_CE_OUTBOX_BLOCKS] = one;
        }
        i = (unsigned)(hce_rand_next(&state64) % READERS);
        if (atomic_load(&rig->rings[i].tail) < rig->tx[i].here)
            pass(rig, (int)i,
                 atomic_load(&rig->rings[i].tail) + HCE_CE_RING_POST_SIZE);
    }
    printf("# %u blocks in %d rounds\n", taken, ROUNDS);
    assert_true(taken > ROUNDS / 10);
}

#define outbox_test(_test)                                                    \
    cmocka_unit_test_setup_teardown(_test, rig_create, rig_destroy)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        outbox_test(test_last_reader_frees),
        outbox_test(test_blocks_come_back_in_order),
        outbox_test(test_many_small_blocks),
        outbox_test(test_random_blocks_are_apart),
    };

    if (argc > 1)
        seed = strtoull(argv[1], NULL, 0);
    printf("# seed %llu\n", (unsigned long long)seed);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
