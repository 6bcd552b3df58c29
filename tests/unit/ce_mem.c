/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Memory that peers can map: the table of allocations and the table of what
 * is mapped from others.
 */
#include <config.h>

#include "ce/ce.h"
#include "ce/host/mem.h"
#include "util/math.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void test_alloc_find_free(void **state)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    hce_ce_mem_t mem;
    void *ptr;
    char *at;

    assert_int_equal(hce_ce_mem_alloc(3 * page + 1, &ptr), HCE_OK);
    at = ptr;
    assert_int_equal((uintptr_t)ptr % page, 0);
    memset(ptr, 1, 3 * page + 1);

    assert_true(hce_ce_mem_get(at + 100, 3 * page, &mem));
    assert_ptr_equal(mem.addr, ptr);
    assert_int_equal(mem.size, 4 * page);
    assert_true(mem.fd >= 0);
    assert_int_equal(hce_ce_mem_free(ptr), HCE_ERR_INVALID_ARG);
    hce_ce_mem_put(mem.serial);

    assert_false(hce_ce_mem_get(at + 100, 4 * page, &mem));
    assert_false(hce_ce_mem_get(at - 1, 2, &mem));
    assert_false(hce_ce_mem_get(at + 4 * page, 1, &mem));
    assert_false(hce_ce_mem_get(at, SIZE_MAX, &mem));
    assert_int_equal(hce_ce_mem_free(at + page), HCE_ERR_INVALID_ARG);
    assert_int_equal(hce_ce_mem_free(ptr), HCE_OK);
    assert_int_equal(hce_ce_mem_free(ptr), HCE_ERR_INVALID_ARG);
    assert_false(hce_ce_mem_get(ptr, 1, &mem));
}

static void test_edge_sizes(void **state)
{
    void *ptr = NULL;

    assert_int_equal(hce_ce_mem_alloc(0, &ptr), HCE_OK);
    assert_non_null(ptr);
    assert_int_equal(hce_ce_mem_free(ptr), HCE_OK);
    assert_int_equal(hce_ce_mem_free(NULL), HCE_OK);
    ptr = state;
    assert_true(hce_ce_mem_alloc(SIZE_MAX, &ptr) < 0);
    assert_true(hce_ce_mem_alloc(SIZE_MAX / 4, &ptr) < 0);
    assert_ptr_equal(ptr, state);
}

#define CHURN_SLOTS 40

typedef struct churn {
    uint64_t seed;
    int errors;
} churn_t;

/* Random allocations, looked up by any address inside. */
static void *churn_main(void *arg)
{
    churn_t *churn = arg;
    struct {
        char *ptr;
        size_t size;
    } slots[CHURN_SLOTS] = {{NULL, 0}};
    hce_ce_mem_t mem;
    void *ptr;
    int i, n;

    for (n = 0; n < 4000; n++) {
        i = (int)(hce_rand_next(&churn->seed) % CHURN_SLOTS);
        if (slots[i].ptr == NULL) {
            slots[i].size = 1 + hce_rand_next(&churn->seed) % 20000;
            if (hce_ce_mem_alloc(slots[i].size, &ptr) != HCE_OK) {
                churn->errors++;
                continue;
            }
            slots[i].ptr = ptr;
            continue;
        }
        if (!hce_ce_mem_get(slots[i].ptr +
                                hce_rand_next(&churn->seed) % slots[i].size,
                            1, &mem) ||
            mem.addr != slots[i].ptr)
            churn->errors++;
        else
            hce_ce_mem_put(mem.serial);
        if (hce_rand_next(&churn->seed) % 2 == 0) {
            churn->errors += hce_ce_mem_free(slots[i].ptr) != HCE_OK;
            slots[i].ptr = NULL;
        }
    }
    for (i = 0; i < CHURN_SLOTS; i++)
        churn->errors += hce_ce_mem_free(slots[i].ptr) != HCE_OK;
    return NULL;
}

static void test_threads(void **state)
{
    pthread_t threads[4];
    churn_t churns[4];
    int i;

    for (i = 0; i < 4; i++) {
        churns[i] = (churn_t){.seed = (uint64_t)i + 1};
        assert_int_equal(
            pthread_create(&threads[i], NULL, churn_main, &churns[i]), 0);
    }
    for (i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(churns[i].errors, 0);
    }
}

static void test_import_is_shared(void **state)
{
    hce_ce_import_t *a, *b, *c;
    hce_ce_mem_id_t id = {{1}, 7}, other = {{1}, 8};
    hce_ce_mem_t mem;
    void *ptr;

    assert_int_equal(hce_ce_mem_alloc(100000, &ptr), HCE_OK);
    assert_true(hce_ce_mem_get(ptr, 100000, &mem));
    strcpy(ptr, "seen");
    assert_int_equal(hce_ce_import_get(&id, dup(mem.fd), mem.size, &a),
                     HCE_OK);
    assert_int_equal(hce_ce_import_get(&id, dup(mem.fd), mem.size, &b),
                     HCE_OK);
    assert_int_equal(hce_ce_import_get(&other, dup(mem.fd), mem.size, &c),
                     HCE_OK);
    assert_ptr_equal(a, b);
    assert_ptr_not_equal(a->addr, c->addr);
    assert_string_equal(a->addr, "seen");
    hce_ce_import_put(a);
    assert_string_equal(b->addr, "seen");
    hce_ce_import_put(b);
    hce_ce_import_put(c);
    hce_ce_mem_put(mem.serial);
    assert_int_equal(hce_ce_mem_free(ptr), HCE_OK);
}

/* A descriptor that is no sealed segment is the caller's still. */
static void test_import_refuses(void **state)
{
    hce_ce_mem_id_t id = {{1}, 9};
    hce_ce_import_t *import;
    int fd = open("/dev/zero", O_RDWR | O_CLOEXEC);

    assert_true(hce_ce_import_get(&id, fd, 4096, &import) < 0);
    assert_int_equal(close(fd), 0);
}

static void test_token_of_a_child(void **state)
{
    uint8_t mine[HCE_CE_TOKEN_LEN], again[HCE_CE_TOKEN_LEN];
    int status;
    pid_t pid;

    assert_int_equal(hce_ce_process_token(mine), HCE_OK);
    assert_int_equal(hce_ce_process_token(again), HCE_OK);
    assert_memory_equal(mine, again, sizeof(mine));
    pid = fork();
    if (pid == 0) {
        hce_ce_process_token(again);
        _exit(memcmp(mine, again, sizeof(mine)) != 0 ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void test_forked_child_keeps_no_descriptor(void **state)
{
    hce_ce_mem_t mem;
    void *ptr;
    int status;
    pid_t pid;

    assert_int_equal(hce_ce_mem_alloc(5000, &ptr), HCE_OK);
    assert_true(hce_ce_mem_get(ptr, 1, &mem));
    pid = fork();
    if (pid == 0) {
        hce_ce_mem_forked();
        _exit(fcntl(mem.fd, F_GETFD) == -1 ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_true(fcntl(mem.fd, F_GETFD) != -1);
    hce_ce_mem_put(mem.serial);
    assert_int_equal(hce_ce_mem_free(ptr), HCE_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alloc_find_free),
        cmocka_unit_test(test_edge_sizes),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_import_is_shared),
        cmocka_unit_test(test_import_refuses),
        cmocka_unit_test(test_token_of_a_child),
        cmocka_unit_test(test_forked_child_keeps_no_descriptor),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
