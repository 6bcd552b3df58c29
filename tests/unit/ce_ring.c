/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The staging ring alone: order, wrap-around, a full ring, and contents that
 * no honest writer makes.
 */
#include <config.h>

#include "ce_duel.h"

#include "ce/host/ring.h"
#include "util/clock.h"
#include "util/math.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNTERS 4
#define AREA_LEN (1u << 20)

/* Of the wire form: entries are whole units of 32 bytes. */
enum { KIND_DATA = 1, KIND_POST = 2, KIND_REFER = 3 };

#define OUTBOX_LEN 1000u
typedef struct wire {
    uint32_t kind, len;
    uint64_t where, value, reserved;
} wire_t;

typedef struct rig {
    hce_ce_ring_t *ring;
    hce_ce_ring_end_t tx, rx;
    char *area, *src, *outbox;
    hce_counter_t counters[COUNTERS];
    hce_ce_range_t ranges[2];
    hce_ce_ring_sink_t sink;
    const char *why; /* the last error */
} rig_t;

static int rig_create(void **state)
{
    rig_t *rig = calloc(1, sizeof(*rig));
    char *data = calloc(1, HCE_CE_RING_SIZE);

    rig->ring = aligned_alloc(64, sizeof(*rig->ring));
    memset(rig->ring, 0, sizeof(*rig->ring));
    rig->tx = rig->rx = (hce_ce_ring_end_t){rig->ring, data, 0};
    rig->area = calloc(1, AREA_LEN);
    rig->src = malloc(HCE_CE_QUANTUM);
    rig->ranges[0] = (hce_ce_range_t){(uintptr_t)rig->area, 100};
    rig->ranges[1] =
        (hce_ce_range_t){(uintptr_t)rig->area + 4096, AREA_LEN - 8192};
    rig->outbox = malloc(OUTBOX_LEN);
    memset(rig->outbox, 0x55, OUTBOX_LEN);
    rig->sink = (hce_ce_ring_sink_t){.ranges = rig->ranges,
                                     .num_ranges = 2,
                                     .counters = rig->counters,
                                     .num_counters = COUNTERS,
                                     .outbox = rig->outbox,
                                     .outbox_size = OUTBOX_LEN};
    *state = rig;
    return 0;
}

static int rig_destroy(void **state)
{
    rig_t *rig = *state;

    free(rig->tx.data);
    free(rig->ring);
    free(rig->area);
    free(rig->src);
    free(rig->outbox);
    free(rig);
    return 0;
}

static hce_status_t drain(rig_t *rig, bool *starved_p)
{
    hce_status_t status;

    rig->why = NULL;
    status = hce_ce_ring_drain(&rig->rx, &rig->sink, starved_p, &rig->why);
    assert_true((status < 0) == (rig->why != NULL));
    return status;
}

static void test_data_and_posts_in_order(void **state)
{
    rig_t *rig = *state;
    char *to = rig->area + 4096 + 13;
    size_t len = 77777;
    bool starved;

    memset(rig->src, 0x17, len);
    assert_true(hce_ce_ring_is_drained(&rig->tx));
    assert_true(hce_ce_ring_has_room(&rig->tx, hce_ce_ring_need(len)));
    hce_ce_ring_put(&rig->tx, (uintptr_t)to, rig->src, len);
    hce_ce_ring_post(&rig->tx, 3, 42);
    assert_false(hce_ce_ring_is_drained(&rig->tx));
    assert_int_equal(hce_counter_read(&rig->counters[3]), 0);
    assert_int_equal(drain(rig, &starved), HCE_INPROGRESS);
    assert_false(starved);
    assert_memory_equal(to, rig->src, len);
    assert_int_equal(to[-1], 0);
    assert_int_equal(to[len], 0);
    assert_int_equal(hce_counter_read(&rig->counters[3]), 42);
    assert_true(hce_ce_ring_is_drained(&rig->tx));
    assert_int_equal(drain(rig, &starved), HCE_OK);
}

/* An entry stands for data in the outbox; has_passed says when they have
 * been copied out. */
static void test_data_in_the_outbox(void **state)
{
    rig_t *rig = *state;
    char *to = rig->area + 4096;
    bool starved;
    int i;

    for (i = 0; i < 2; i++) {
        const hce_ce_ring_refer_t refer = {400, 600, i == 1};

        memset(rig->outbox, 0x21 + i, OUTBOX_LEN);
        hce_ce_ring_refer(&rig->tx, (uintptr_t)to, &refer);
        hce_ce_ring_post(&rig->tx, 2, (uint64_t)i + 1);
        assert_false(hce_ce_ring_has_passed(&rig->tx, rig->tx.here));
        assert_false(hce_ce_ring_await(&rig->tx, rig->tx.here));
        assert_int_equal(drain(rig, &starved), HCE_INPROGRESS);
        assert_true(starved);
        assert_memory_equal(to, rig->outbox + 400, 600);
        assert_int_equal(to[600], 0);
        assert_int_equal(hce_counter_read(&rig->counters[2]), i + 1);
        assert_true(hce_ce_ring_has_passed(&rig->tx, rig->tx.here));
        assert_true(hce_ce_ring_await(&rig->tx, rig->tx.here));
        atomic_store(&rig->ring->starved, 0);
    }
}

static void test_empty_ring_takes_a_quantum_anywhere(void **state)
{
    rig_t *rig = *state;
    char *to = rig->area + 4096;
    uint64_t i;
    bool starved;

    for (i = 0; i < 3 * HCE_CE_RING_SIZE / 32; i += 61) {
        rig->tx.here = rig->rx.here = i * 32;
        atomic_store(&rig->ring->head, i * 32);
        atomic_store(&rig->ring->tail, i * 32);
        memset(rig->src, (int)i, HCE_CE_QUANTUM);
        assert_true(
            hce_ce_ring_has_room(&rig->tx, hce_ce_ring_need(HCE_CE_QUANTUM)));
        hce_ce_ring_put(&rig->tx, (uintptr_t)to, rig->src, HCE_CE_QUANTUM);
        assert_int_equal(drain(rig, &starved), HCE_INPROGRESS);
        assert_memory_equal(to, rig->src, HCE_CE_QUANTUM);
    }
}

static void test_full_ring_starves_and_recovers(void **state)
{
    rig_t *rig = *state;
    size_t need = hce_ce_ring_need(1000);
    bool starved;
    int n = 0;

    while (hce_ce_ring_has_room(&rig->tx, need)) {
        hce_ce_ring_put(&rig->tx, (uintptr_t)rig->area + 4096, rig->src, 1000);
        n++;
        assert_true(n < 1000);
    }
    assert_int_equal(n, (int)(HCE_CE_RING_SIZE / need));
    assert_int_equal(drain(rig, &starved), HCE_INPROGRESS);
    assert_true(starved);
    assert_true(hce_ce_ring_has_room(&rig->tx, HCE_CE_RING_SIZE));
    assert_int_equal(drain(rig, &starved), HCE_OK);
    assert_false(starved);
}

static uint64_t stream_value(uint64_t i)
{
    return i * 0x9e3779b97f4a7c15ull;
}

static void *stream_main(void *arg)
{
    rig_t *rig = arg;
    uint64_t i, value;

    for (i = 1; i <= 40000; i++) {
        size_t len = 8 + i * 37 % 900;

        value = stream_value(i);
        memset(rig->src, (int)i, len);
        memcpy(rig->src, &value, 8);
        while (!hce_ce_ring_has_room(&rig->tx, hce_ce_ring_need(len) +
                                                   HCE_CE_RING_POST_SIZE))
            sched_yield();
        hce_ce_ring_put(&rig->tx, (uintptr_t)rig->area + 4096 + i % 8 * 1024,
                        rig->src, len);
        hce_ce_ring_post(&rig->tx, 1, i);
    }
    return NULL;
}

/* One thread writes, one reads: what a post says is there. */
static void test_two_threads(void **state)
{
    rig_t *rig = *state;
    pthread_t thread;
    uint64_t have = 0, value;
    bool starved;
    hce_status_t status;

    assert_int_equal(pthread_create(&thread, NULL, stream_main, rig), 0);
    while (have < 40000) {
        status = drain(rig, &starved);
        assert_true(status >= 0);
        if (status == HCE_OK) {
            sched_yield();
            continue;
        }
        have = hce_counter_read(&rig->counters[1]);
        if (have == 0)
            continue;
        memcpy(&value, rig->area + 4096 + have % 8 * 1024, 8);
        /* The next but eight may have overwritten it, never an older one. */
        assert_true(value == stream_value(have) ||
                    value == stream_value(have + 8));
    }
    pthread_join(thread, NULL);
}

/* Puts one entry of any kind, as a hostile writer might. */
static hce_status_t wild(rig_t *rig, wire_t entry, uint64_t head)
{
    bool starved;

    memcpy(rig->tx.data + rig->tx.here % HCE_CE_RING_SIZE, &entry,
           sizeof(entry));
    atomic_store(&rig->ring->head, rig->tx.here + head);
    return drain(rig, &starved);
}

static void test_wild_entries(void **state)
{
    rig_t *rig = *state;
    uint64_t base = (uintptr_t)rig->area, end = base + AREA_LEN - 4096;
    const wire_t entries[] = {
        {.kind = KIND_DATA, .len = 32, .where = 0},
        {.kind = KIND_DATA, .len = 32, .where = base + 69},
        {.kind = KIND_DATA, .len = 32, .where = base + 4095},
        {.kind = KIND_DATA, .len = 32, .where = end - 31},
        {.kind = KIND_DATA, .len = 1, .where = end + 1},
        {.kind = KIND_DATA, .len = 32, .where = UINT64_MAX - 8},
        {.kind = KIND_DATA, .len = UINT32_MAX, .where = base + 4096},
        {.kind = KIND_DATA, .len = 33, .where = base + 4096},
        {.kind = KIND_POST, .where = COUNTERS, .value = 1},
        {.kind = KIND_POST, .where = UINT64_MAX, .value = 1},
        {.kind = KIND_POST, .len = 8, .where = 1, .value = 1},
        {.kind = KIND_REFER, .len = 32, .where = 0},
        {.kind = KIND_REFER, .len = 32, .where = base + 4095},
        {.kind = KIND_REFER, .len = 32, .where = end - 31},
        {.kind = KIND_REFER, .len = 1, .where = base, .value = OUTBOX_LEN},
        {.kind = KIND_REFER, .len = 1001, .where = base + 4096},
        {.kind = KIND_REFER, .len = 8, .where = base, .value = UINT64_MAX - 4},
        {.kind = KIND_REFER, .len = UINT32_MAX, .where = base + 4096},
        {.kind = 0},
        {.kind = 77},
    };
    const wire_t good = {.kind = KIND_DATA, .len = 32, .where = base + 68};
    char *before = malloc(AREA_LEN);
    size_t i;

    memcpy(before, rig->area, AREA_LEN);
    memset(rig->tx.data, 0x66, HCE_CE_RING_SIZE);
    for (i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
        assert_int_equal(wild(rig, entries[i], 64), HCE_ERR_INTERNAL);
        assert_memory_equal(before, rig->area, AREA_LEN);
    }
    free(before);
    assert_int_equal(wild(rig, good, 64), HCE_INPROGRESS);
    for (i = 0; i < COUNTERS; i++)
        assert_int_equal(hce_counter_read(&rig->counters[i]), 0);
}

static void test_wild_heads(void **state)
{
    static const uint64_t heads[] = {8, HCE_CE_RING_SIZE + 32, UINT64_MAX,
                                     (uint64_t)-32};
    rig_t *rig = *state;
    const wire_t entry = {.kind = KIND_POST};
    size_t i;

    for (i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
        assert_int_equal(wild(rig, entry, heads[i]), HCE_ERR_INTERNAL);
        assert_string_equal(rig->why, "a damaged ring");
    }
}

/* Random bytes: every answer is right but for a crash, an endless loop or a
 * write outside of the ranges. */
static void test_random_contents(void **state)
{
    rig_t *rig = *state;
    uint64_t seed = 1, words[4];
    int round, i;
    wire_t entry;
    bool starved;

    for (round = 0; round < 20000; round++) {
        for (i = 0; i < 4; i++)
            words[i] = hce_rand_next(&seed);
        memcpy(&entry, words, sizeof(entry));
        entry.kind %= 4;
        entry.len %= 70000;
        if (round % 2 == 0)
            entry.where = (uintptr_t)rig->area + entry.where % AREA_LEN;
        if (round % 3 == 0)
            entry.value %= OUTBOX_LEN + 100;
        memcpy(rig->tx.data + rig->rx.here % HCE_CE_RING_SIZE, &entry,
               sizeof(entry));
        atomic_store(&rig->ring->head, rig->rx.here + words[3] % 9000 * 32);
        drain(rig, &starved);
        for (i = 100; i < 4096; i++)
            assert_int_equal(rig->area[i], 0);
    }
}

typedef struct duel {
    rig_t *rig;
    _Atomic int turn; /* both start a round when they see it change */
    _Atomic int done;
    bool starved;
} duel_t;

static void *duel_reader(void *arg)
{
    duel_t *duel = arg;
    int i;

    for (i = 1; i <= DUELS; i++) {
        hce_duel_await(&duel->turn, i);
        if (atomic_load(&duel->turn) > DUELS)
            break;
        drain(duel->rig, &duel->starved);
        atomic_store(&duel->done, i);
    }
    return NULL;
}

/* The writer looks for room in the very moment in which the reader makes
 * some: it sees it, or is told of it. */
static void test_no_starved_writer_is_forgotten(void **state)
{
    rig_t *rig = *state;
    duel_t duel = {.rig = rig};
    pthread_t thread;
    uint64_t end = hce_clock_deadline(DUELS_NS);
    hce_duel_aim_t aim = {.state = 1};
    int i, refused = 0, forgotten = 0;
    bool has_room;

    assert_int_equal(pthread_create(&thread, NULL, duel_reader, &duel), 0);
    for (i = 1; i <= DUELS && hce_clock_ns() < end; i++) {
        hce_ce_ring_put(&rig->tx, (uintptr_t)rig->area + 4096, rig->src, 64);
        atomic_store(&duel.turn, i);
        hce_duel_aim_wait(&aim);
        has_room = hce_ce_ring_has_room(&rig->tx, HCE_CE_RING_SIZE);
        hce_duel_await(&duel.done, i);
        forgotten += !has_room && !duel.starved;
        refused += !has_room;
        hce_duel_aim_correct(&aim, !has_room);
        atomic_store(&rig->ring->starved, 0);
    }
    atomic_store(&duel.turn, DUELS + 1);
    pthread_join(thread, NULL);
    printf("# no room in %d of %d rounds\n", refused, i - 1);
    assert_int_equal(forgotten, 0);
}

#define ring_test(_test)                                                      \
    cmocka_unit_test_setup_teardown(_test, rig_create, rig_destroy)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ring_test(test_data_and_posts_in_order),
        ring_test(test_data_in_the_outbox),
        ring_test(test_empty_ring_takes_a_quantum_anywhere),
        ring_test(test_full_ring_starves_and_recovers),
        ring_test(test_two_threads),
        ring_test(test_no_starved_writer_is_forgotten),
        ring_test(test_wild_entries),
        ring_test(test_wild_heads),
        ring_test(test_random_contents),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
