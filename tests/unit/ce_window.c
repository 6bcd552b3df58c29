/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Windows: which buffers are reached as mapped, bounds, sizes that differ,
 * repeated registration, and that nothing grows over many cycles.
 */
#include <config.h>

#include "ce_ranks.h"

#include "util/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define ALLOC_LEN (256u * 1024)
#define CYCLES    10000

static uint32_t window_add(ranks_self_t *self, void *buf, size_t size)
{
    uint32_t window = 0;

    RANKS_CHECK(hce_ce_window_add(self->ce, buf, size, HCE_TIME_NEVER,
                                  &window) == HCE_OK);
    RANKS_CHECK(window != 0);
    return window;
}

static char *alloc(ranks_self_t *self, size_t size)
{
    void *ptr;

    RANKS_CHECK(hce_ce_mem_alloc(size, &ptr) == HCE_OK);
    return ptr;
}

/* Shows buf to all, and gets what rank's is. */
static void boards_swap(ranks_self_t *self, const hce_ce_buf_t *mine,
                        hce_ce_buf_t *all)
{
    int l;

    memcpy(hce_ce_board(self->ce, self->rank), mine, sizeof(*mine));
    ranks_barrier(self);
    for (l = 0; l < self->size; l++)
        memcpy(&all[l], hce_ce_board(self->ce, l), sizeof(all[l]));
    ranks_barrier(self);
}

/* Describes [addr, addr + len) on each rank; how is it reached from the
 * others, and in which window? */
static void reach_check(ranks_self_t *self, const char *addr, size_t len,
                        uint32_t window, bool mapped)
{
    hce_ce_buf_t mine, all[RANKS_MAX];
    hce_ce_target_t target;
    int l;

    hce_ce_describe(self->ce, addr, len, &mine);
    RANKS_CHECK(mine.window == window);
    RANKS_CHECK(mine.addr == (uint64_t)(uintptr_t)addr && mine.len == len);
    boards_swap(self, &mine, all);
    for (l = 0; l < self->size; l++) {
        RANKS_CHECK(hce_ce_reach(self->ce, l, &all[l], &target) == HCE_OK);
        RANKS_CHECK((target.how == HCE_CE_MAP) == (mapped || l == self->rank));
        RANKS_CHECK(target.lrank == l && target.len == len);
        RANKS_CHECK(target.remote == all[l].addr);
        if (len > 0 && target.how == HCE_CE_MAP && l != self->rank)
            RANKS_CHECK(target.local[0] == (char)('A' + l));
    }
}

static void bounds_body(ranks_self_t *self)
{
    char *exported = alloc(self, ALLOC_LEN), *plain = malloc(ALLOC_LEN);
    uint32_t whole, part, unexported;

    memset(exported, 'A' + self->rank, ALLOC_LEN);
    memset(plain, 'A' + self->rank, ALLOC_LEN);
    reach_check(self, exported + 10, 100, 0, false);
    part = window_add(self, exported + 1000, 1001);
    RANKS_CHECK(part == 1);
    unexported = window_add(self, plain, ALLOC_LEN);
    RANKS_CHECK(unexported == 2);
    reach_check(self, exported + 1000, 1001, part, true);
    reach_check(self, exported + 1500, 501, part, true);
    reach_check(self, exported + 1500, 502, 0, false);
    reach_check(self, exported + 999, 2, 0, false);
    reach_check(self, exported + 2001, 0, part, true);
    reach_check(self, plain + 7, 100, unexported, false);
    reach_check(self, plain + ALLOC_LEN - 1, 2, 0, false);
    whole = window_add(self, exported, ALLOC_LEN);
    reach_check(self, exported + 1500, 502, whole, true);
    reach_check(self, exported + ALLOC_LEN - 1, 2, 0, false);
    hce_ce_window_remove(self->ce, whole);
    reach_check(self, exported + 1500, 502, 0, false);
    reach_check(self, exported + 1500, 501, part, true);
    RANKS_CHECK(hce_ce_mem_free(exported) == HCE_ERR_INVALID_ARG);
    hce_ce_window_remove(self->ce, part);
    hce_ce_window_remove(self->ce, unexported);
    ranks_barrier(self);
    RANKS_CHECK(hce_ce_mem_free(exported) == HCE_OK);
    free(plain);
}

/* A window past the end of the allocation is known, but not mapped. */
static void overhang_body(ranks_self_t *self)
{
    char *exported = alloc(self, ALLOC_LEN);
    uint32_t window = window_add(self, exported + 5, ALLOC_LEN);

    reach_check(self, exported + 5, 5, window, false);
    hce_ce_window_remove(self->ce, window);
    RANKS_CHECK(hce_ce_mem_free(exported) == HCE_OK);
}

/* What peers describe is not believed. */
static void lies_body(ranks_self_t *self)
{
    char *exported = alloc(self, ALLOC_LEN);
    hce_ce_buf_t mine, all[RANKS_MAX], lie;
    uint32_t window = window_add(self, exported + 4096, 4096);
    int peer = (self->rank + 1) % self->size;
    hce_ce_target_t target;

    hce_ce_describe(self->ce, exported + 4096, 4096, &mine);
    boards_swap(self, &mine, all);
    lie = all[peer];
    lie.addr -= 1;
    RANKS_CHECK(hce_ce_reach(self->ce, peer, &lie, &target) < 0);
    lie = all[peer];
    lie.len += 1;
    RANKS_CHECK(hce_ce_reach(self->ce, peer, &lie, &target) < 0);
    lie.len = UINT64_MAX;
    RANKS_CHECK(hce_ce_reach(self->ce, peer, &lie, &target) < 0);
    lie = all[peer];
    lie.addr += 4097;
    lie.len = 0;
    RANKS_CHECK(hce_ce_reach(self->ce, peer, &lie, &target) < 0);
    lie = all[peer];
    lie.window = 17;
    RANKS_CHECK(hce_ce_reach(self->ce, peer, &lie, &target) < 0);
    RANKS_CHECK(hce_ce_reach(self->ce, peer, &all[peer], &target) == HCE_OK);
    hce_ce_window_remove(self->ce, window);
    RANKS_CHECK(hce_ce_reach(self->ce, peer, &all[peer], &target) < 0);
    ranks_barrier(self);
    RANKS_CHECK(hce_ce_mem_free(exported) == HCE_OK);
}

/* Each rank another size, rank 0 nothing at all. */
static void sizes_body(ranks_self_t *self)
{
    size_t size = (size_t)self->rank * 5000;
    char *exported = self->rank > 0 ? alloc(self, size) : NULL;
    uint32_t window = window_add(self, exported, size);
    hce_ce_buf_t mine, all[RANKS_MAX];
    hce_ce_target_t target;
    int l;

    if (exported != NULL)
        memset(exported, 'A' + self->rank, size);
    hce_ce_describe(self->ce, exported, size, &mine);
    boards_swap(self, &mine, all);
    for (l = 0; l < self->size; l++) {
        RANKS_CHECK(all[l].len == (uint64_t)l * 5000);
        RANKS_CHECK(hce_ce_reach(self->ce, l, &all[l], &target) == HCE_OK);
        if (l > 0)
            RANKS_CHECK(target.how == HCE_CE_MAP &&
                        target.local[l * 5000 - 1] == (char)('A' + l));
    }
    hce_ce_window_remove(self->ce, window);
    ranks_barrier(self);
    RANKS_CHECK(hce_ce_mem_free(exported) == HCE_OK);
}

/* Mappings of shared memory; others come and go with the allocator. */
static long maps_count(ranks_self_t *self)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[512];
    long lines = 0;

    RANKS_CHECK(maps != NULL);
    while (fgets(line, sizeof(line), maps) != NULL)
        lines += strstr(line, "memfd:hce") != NULL;
    fclose(maps);
    return lines;
}

/* The same buffer again and again, now and then twice at once, and a new
 * allocation every time: neither mappings nor descriptors nor ids of old
 * windows stay. */
static void cycles_body(ranks_self_t *self)
{
    char *exported = alloc(self, ALLOC_LEN), *fresh;
    uint32_t windows[3] = {0}, last = 0;
    long before = 0;
    int fds = ranks_fds(), i;

    for (i = 0; i < CYCLES / 2; i++) {
        fresh = alloc(self, 4096);
        windows[0] = window_add(self, exported + i % 7, ALLOC_LEN / 2);
        windows[1] = window_add(self, i % 2 == 0 ? exported : fresh, 4096);
        RANKS_CHECK(windows[0] == last + 1 && windows[1] == last + 2);
        last = windows[1];
        hce_ce_window_remove(self->ce, windows[i % 2]);
        hce_ce_window_remove(self->ce, windows[1 - i % 2]);
        RANKS_CHECK(hce_ce_mem_free(fresh) == HCE_OK);
        if (i == 100)
            before = maps_count(self);
    }
    RANKS_CHECK(before > 0 && maps_count(self) == before);
    RANKS_CHECK(ranks_fds() == fds);
    RANKS_CHECK(hce_ce_mem_free(exported) == HCE_OK);
}

/* Two communicators that register the same buffer share its mapping. */
static void two_communicators_body(ranks_self_t *self)
{
    char *exported = alloc(self, ALLOC_LEN);
    hce_ce_t *first = self->ce, *second;
    hce_ce_buf_t mine, all[RANKS_MAX];
    int peer = (self->rank + 1) % self->size;
    hce_ce_target_t a, b;
    uint32_t windows[2];

    memset(exported, 'A' + self->rank, ALLOC_LEN);
    windows[0] = window_add(self, exported, ALLOC_LEN);
    RANKS_CHECK(ranks_open(self) == HCE_OK);
    second = self->ce;
    windows[1] = window_add(self, exported, ALLOC_LEN);
    hce_ce_describe(self->ce, exported, ALLOC_LEN, &mine);
    boards_swap(self, &mine, all);
    RANKS_CHECK(hce_ce_reach(second, peer, &all[peer], &b) == HCE_OK);
    all[peer].window = windows[0];
    RANKS_CHECK(hce_ce_reach(first, peer, &all[peer], &a) == HCE_OK);
    RANKS_CHECK(a.how == HCE_CE_MAP && a.local == b.local);
    ranks_barrier(self);
    hce_ce_close(second); /* with its window */
    RANKS_CHECK(a.local[100] == (char)('A' + peer));
    self->ce = first;
    ranks_barrier(self);
    hce_ce_window_remove(first, windows[0]);
    RANKS_CHECK(hce_ce_mem_free(exported) == HCE_OK);
}

static void run(ranks_body_t body, int procs, int threads)
{
    ranks_spec_t spec = {.procs = procs, .threads = threads, .body = body};

    assert_true(ranks_run(&spec));
}

static void test_bounds(void **state)
{
    run(bounds_body, 3, 1);
}

static void test_overhang(void **state)
{
    run(overhang_body, 2, 1);
}

static void test_lies(void **state)
{
    run(lies_body, 2, 1);
    run(lies_body, 1, 2);
}

static void test_sizes(void **state)
{
    run(sizes_body, 4, 1);
    run(sizes_body, 2, 2);
}

static void test_cycles(void **state)
{
    run(cycles_body, 2, 1);
}

static void test_two_communicators(void **state)
{
    run(two_communicators_body, 2, 1);
    run(two_communicators_body, 2, 2);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_overhang),
        cmocka_unit_test(test_lies),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_cycles),
        cmocka_unit_test(test_two_communicators),
    };

    ranks_init(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
