/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Every way of copying between ranks, with data that depend on the rank, the
 * offset and the iteration: processes and threads, each way forced, windows
 * of both kinds and plain memory, odd lengths and alignments.
 */
#include <config.h>

#include "ce_ranks.h"

#include "util/clock.h"
#include "util/math.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define SLICE_MAX  (600u * 1024)
#define SKEW_MAX   100
#define ITERATIONS 12

typedef enum memory {
    MEMORY_PLAIN,         /* malloc, no window */
    MEMORY_PLAIN_WINDOW,  /* malloc, in a window */
    MEMORY_EXPORTED,      /* inside of an allocation, in a window */
    MEMORY_EXPORTED_BARE, /* from hce_ce_mem_alloc, no window */
    MEMORY_MIXED          /* by rank */
} memory_t;

typedef struct setup {
    memory_t memory;
    /* How rank a is expected to reach rank b's buffer. */
    hce_ce_how_t (*expect)(int a, int b, memory_t memory);
} setup_t;

typedef struct buffer {
    char *base, *start;
    memory_t memory;
    uint32_t window;
    size_t size;
} buffer_t;

static memory_t memory_of(const setup_t *setup, int rank)
{
    return setup->memory == MEMORY_MIXED ? (memory_t)(rank % 4)
                                         : setup->memory;
}

static unsigned char pattern(uint64_t seed, int rank, uint64_t iteration,
                             size_t offset)
{
    return (unsigned char)(seed + (uint64_t)rank * 67 + iteration * 151 +
                           offset * 7 + (offset >> 8) * 31);
}

/* What all ranks know of an iteration. */
static void draw(const ranks_self_t *self, uint64_t iteration, size_t *len_p,
                 size_t *skew_p)
{
    uint64_t state = self->seed + iteration;
    uint64_t kind = hce_rand_next(&state) % 4, len = hce_rand_next(&state);

    *skew_p = hce_rand_next(&state) % SKEW_MAX;
    *len_p = kind == 0 ? len % 70 : kind == 1 ? len % 5000 : len % SLICE_MAX;
}

static void buffer_create(ranks_self_t *self, memory_t memory,
                          buffer_t *buffer)
{
    void *base;

    *buffer = (buffer_t){.memory = memory};
    buffer->size = (size_t)self->size * SLICE_MAX + SKEW_MAX;
    if (memory == MEMORY_EXPORTED || memory == MEMORY_EXPORTED_BARE) {
        RANKS_CHECK(hce_ce_mem_alloc(buffer->size + 8192, &base) == HCE_OK);
        buffer->base = base;
        buffer->start = buffer->base + 4099;
    } else {
        buffer->base = buffer->start = malloc(buffer->size);
    }
    RANKS_CHECK(buffer->base != NULL);
}

static void buffer_destroy(ranks_self_t *self, buffer_t *buffer)
{
    if (buffer->memory == MEMORY_EXPORTED ||
        buffer->memory == MEMORY_EXPORTED_BARE)
        RANKS_CHECK(hce_ce_mem_free(buffer->base) == HCE_OK);
    else
        free(buffer->base);
}

/* All ranks register, some of them nothing. */
static void buffer_register(ranks_self_t *self, buffer_t *buffer)
{
    bool is_in = buffer->memory == MEMORY_PLAIN_WINDOW ||
                 buffer->memory == MEMORY_EXPORTED;

    RANKS_CHECK(hce_ce_window_add(self->ce, is_in ? buffer->start : NULL,
                                  is_in ? buffer->size : 0, HCE_TIME_NEVER,
                                  &buffer->window) == HCE_OK);
}

/* My slice to all, k destinations at once. */
static void slice_send(ranks_self_t *self, const char *src, size_t len,
                       const hce_ce_target_t *targets)
{
    hce_ce_dst_t dsts[RANKS_MAX];
    hce_ce_copy_t copy = {.dsts = dsts, .num_dsts = self->size};
    size_t done;
    int l, bad;

    for (done = 0; done < len; done += copy.len) {
        copy.src = src + done;
        copy.len = hce_min(len - done, HCE_CE_QUANTUM);
        copy.streaming = done % 2 == 1 || len % 3 == 0;
        for (l = 0; l < self->size; l++)
            dsts[l] =
                (hce_ce_dst_t){&targets[l], (uint64_t)self->rank * len + done};
        RANKS_CHECK(ranks_copy(self, &copy, &bad) == HCE_OK);
    }
}

static void pattern_fill(uint64_t seed, int rank, uint64_t iteration,
                         char *buf, size_t len)
{
    size_t at;

    for (at = 0; at < len; at++)
        buf[at] = (char)pattern(seed, rank, iteration, at);
}

/* scratch: SLICE_MAX bytes */
static void slices_check(const ranks_self_t *self, const char *recv,
                         size_t len, uint64_t iteration, char *scratch)
{
    int r;

    for (r = 0; r < self->size; r++) {
        pattern_fill(self->seed, r, iteration, scratch, len);
        RANKS_CHECK(memcmp(recv + (size_t)r * len, scratch, len) == 0);
    }
}

/* Bytes that nobody may write. */
static void margin_check(const ranks_self_t *self, const char *from,
                         const char *to)
{
    RANKS_CHECK(from == to || (unsigned char)from[0] == 0xee);
    if (to - from > 1)
        RANKS_CHECK(memcmp(from, from + 1, (size_t)(to - from) - 1) == 0);
}

static void targets_get(ranks_self_t *self, hce_ce_target_t *targets)
{
    const setup_t *setup = self->spec->arg;
    hce_ce_how_t expected;
    hce_ce_buf_t buf;
    int l;

    for (l = 0; l < self->size; l++) {
        memcpy(&buf, hce_ce_board(self->ce, l), sizeof(buf));
        RANKS_CHECK(hce_ce_reach(self->ce, l, &buf, &targets[l]) == HCE_OK);
        if (setup->expect == NULL)
            continue;
        expected = setup->expect(self->rank, l, memory_of(setup, l));
        if (targets[l].how != expected)
            fprintf(stderr, "rank %d reaches rank %d by %s\n", self->rank, l,
                    hce_ce_how_string(targets[l].how));
        RANKS_CHECK(targets[l].how == expected);
    }
}

static bool is_forced_to_stage(const ranks_self_t *self)
{
    return self->spec->force[self->proc] == HCE_CE_FORCE_STAGED;
}

/* What lrank has gathered, read from here. scratch: SLICE_MAX bytes */
static void slices_read(ranks_self_t *self, const hce_ce_target_t *target,
                        size_t len, uint64_t iteration, char *scratch)
{
    static _Thread_local char into[HCE_CE_QUANTUM];
    const void *at = NULL;
    hce_status_t status;
    size_t done, part;
    int r;

    for (r = 0; r < self->size; r++) {
        pattern_fill(self->seed, r, iteration, scratch, len);
        for (done = 0; done < len; done += part) {
            hce_ce_dst_t src = {target, (uint64_t)r * len + done};

            part = hce_min(len - done, sizeof(into));
            status = hce_ce_read(self->ce, &src, part, into, &at);
            if (target->how == HCE_CE_STAGED && is_forced_to_stage(self)) {
                RANKS_CHECK(status == HCE_ERR_UNSUPPORTED);
                RANKS_CHECK(!hce_ce_can_read(self->ce));
            }
            if (status == HCE_ERR_UNSUPPORTED) {
                RANKS_CHECK(target->how == HCE_CE_STAGED);
                RANKS_CHECK(!hce_ce_can_pull(self->ce));
                return;
            }
            RANKS_CHECK(status == HCE_OK);
            RANKS_CHECK((at == into) == (target->how != HCE_CE_MAP));
            RANKS_CHECK(memcmp(at, scratch + done, part) == 0);
        }
    }
}

static void iteration_run(ranks_self_t *self, buffer_t *buffer, char *send,
                          uint64_t iteration)
{
    hce_ce_target_t targets[RANKS_MAX];
    size_t len, skew;
    hce_ce_buf_t buf;
    char *recv;
    int l;

    draw(self, iteration, &len, &skew);
    recv = buffer->start + skew;
    pattern_fill(self->seed, self->rank, iteration, send, len);
    memset(buffer->start, 0xee, buffer->size);
    RANKS_CHECK(hce_ce_allow(self->ce, recv, (size_t)self->size * len) ==
                HCE_OK);
    hce_ce_describe(self->ce, recv, (size_t)self->size * len, &buf);
    memcpy(hce_ce_board(self->ce, self->rank), &buf, sizeof(buf));
    for (l = 0; l < self->size; l++)
        ranks_post(self, l, (uint32_t)self->rank, iteration);
    for (l = 0; l < self->size; l++)
        ranks_wait_counter(self, (uint32_t)l, iteration);
    targets_get(self, targets);
    slice_send(self, send, len, targets);
    for (l = 0; l < self->size; l++)
        ranks_post(self, l, 16 + (uint32_t)self->rank, iteration);
    for (l = 0; l < self->size; l++)
        ranks_wait_counter(self, 16 + (uint32_t)l, iteration);
    slices_check(self, recv, len, iteration, send);
    margin_check(self, buffer->start, recv);
    margin_check(self, recv + (size_t)self->size * len,
                 buffer->start + buffer->size);
    ranks_barrier(self); /* nobody writes to any of them */
    for (l = 0; l < self->size; l++)
        slices_read(self, &targets[l], len, iteration, send);
    ranks_barrier(self);
    hce_ce_disallow(self->ce, recv, (size_t)self->size * len);
}

static void gather_body(ranks_self_t *self)
{
    const setup_t *setup = self->spec->arg;
    char *send = malloc(SLICE_MAX);
    buffer_t buffer;
    uint64_t i;

    RANKS_CHECK(send != NULL);
    buffer_create(self, memory_of(setup, self->rank), &buffer);
    buffer_register(self, &buffer);
    for (i = 1; i <= ITERATIONS; i++)
        iteration_run(self, &buffer, send, i);
    hce_ce_window_remove(self->ce, buffer.window);
    ranks_barrier(self); /* nobody writes to it any more */
    buffer_destroy(self, &buffer);
    free(send);
}

static hce_ce_how_t expect_map(int a, int b, memory_t memory)
{
    if (a == b || memory == MEMORY_EXPORTED)
        return HCE_CE_MAP;
    return ranks_have_vm() ? HCE_CE_VM : HCE_CE_STAGED;
}

/* Where process_vm_writev is not wanted, or refused. */
static hce_ce_how_t expect_auto(int a, int b, memory_t memory)
{
    return a == b || memory == MEMORY_EXPORTED ? HCE_CE_MAP : HCE_CE_STAGED;
}

static hce_ce_how_t expect_vm(int a, int b, memory_t memory)
{
    return a == b ? HCE_CE_MAP : HCE_CE_VM;
}

static hce_ce_how_t expect_staged(int a, int b, memory_t memory)
{
    return a == b ? HCE_CE_MAP : HCE_CE_STAGED;
}

static hce_ce_how_t expect_local(int a, int b, memory_t memory)
{
    return HCE_CE_MAP;
}

static void gather(int procs, int threads, int force, const setup_t *setup)
{
    ranks_spec_t spec = {
        .procs = procs, .threads = threads, .body = gather_body, .arg = setup};
    int i;

    for (i = 0; i < procs; i++)
        spec.force[i] = force;
    assert_true(ranks_run(&spec));
}

static void test_threads(void **state)
{
    const setup_t setup = {MEMORY_MIXED, expect_local};

    gather(1, 4, HCE_CE_FORCE_AUTO, &setup);
    gather(1, 3, HCE_CE_FORCE_MAP, &setup);
}

static void test_threads_staged(void **state)
{
    const setup_t setup = {MEMORY_MIXED, expect_staged};

    gather(1, 4, HCE_CE_FORCE_STAGED, &setup);
}

static void test_threads_vm(void **state)
{
    const setup_t setup = {MEMORY_MIXED, expect_vm};

    if (!ranks_have_vm())
        skip();
    gather(1, 3, HCE_CE_FORCE_VM, &setup);
}

static void test_processes_map(void **state)
{
    const setup_t exported = {MEMORY_EXPORTED, expect_map};
    const setup_t mixed = {MEMORY_MIXED, expect_map};

    gather(4, 1, HCE_CE_FORCE_MAP, &exported);
    gather(4, 1, HCE_CE_FORCE_MAP, &mixed);
}

static void test_processes_auto(void **state)
{
    const setup_t mixed = {MEMORY_MIXED, expect_auto};

    gather(4, 1, HCE_CE_FORCE_AUTO, &mixed);
    gather(2, 1, HCE_CE_FORCE_AUTO, &mixed);
}

static void test_processes_vm(void **state)
{
    const setup_t exported = {MEMORY_EXPORTED, expect_vm};
    const setup_t plain = {MEMORY_PLAIN, expect_vm};

    if (!ranks_have_vm())
        skip();
    gather(3, 1, HCE_CE_FORCE_VM, &exported);
    gather(2, 1, HCE_CE_FORCE_VM, &plain);
}

static void test_processes_staged(void **state)
{
    const setup_t exported = {MEMORY_EXPORTED, expect_staged};
    const setup_t plain = {MEMORY_PLAIN_WINDOW, expect_staged};

    gather(3, 1, HCE_CE_FORCE_STAGED, &exported);
    gather(4, 1, HCE_CE_FORCE_STAGED, &plain);
}

static void test_processes_of_threads(void **state)
{
    const setup_t setup = {MEMORY_MIXED, NULL};

    gather(2, 2, HCE_CE_FORCE_AUTO, &setup);
    gather(2, 2, HCE_CE_FORCE_STAGED, &setup);
}

static void test_each_its_own_way(void **state)
{
    const setup_t setup = {MEMORY_MIXED, NULL};
    ranks_spec_t spec = {.procs = 4,
                         .threads = 1,
                         .force = {HCE_CE_FORCE_AUTO, HCE_CE_FORCE_VM,
                                   HCE_CE_FORCE_STAGED, HCE_CE_FORCE_MAP},
                         .body = gather_body,
                         .arg = &setup};

    if (!ranks_have_vm())
        skip();
    assert_true(ranks_run(&spec));
}

static void test_refused_vm(void **state)
{
    const setup_t setup = {MEMORY_MIXED, expect_auto};
    ranks_spec_t spec = {.procs = 4,
                         .threads = 1,
                         .force = {HCE_CE_FORCE_MAP, HCE_CE_FORCE_MAP,
                                   HCE_CE_FORCE_MAP, HCE_CE_FORCE_MAP},
                         .before = ranks_refuse_vm,
                         .body = gather_body,
                         .arg = &setup};

    if (!ranks_can_refuse_vm())
        skip();
    assert_true(ranks_run(&spec));
}

static void test_one_rank(void **state)
{
    const setup_t setup = {MEMORY_EXPORTED, expect_local};

    gather(1, 1, HCE_CE_FORCE_AUTO, &setup);
    gather(1, 1, HCE_CE_FORCE_STAGED, &setup);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_rank),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_threads_staged),
        cmocka_unit_test(test_threads_vm),
        cmocka_unit_test(test_processes_map),
        cmocka_unit_test(test_processes_auto),
        cmocka_unit_test(test_processes_vm),
        cmocka_unit_test(test_processes_staged),
        cmocka_unit_test(test_processes_of_threads),
        cmocka_unit_test(test_each_its_own_way),
        cmocka_unit_test(test_refused_vm),
    };

    ranks_init(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
