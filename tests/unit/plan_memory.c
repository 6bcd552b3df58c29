/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Memory runs out at each allocation in turn: builders and verifier say so
 * and leave nothing behind (which a build with ASan sees). The linker puts
 * the functions below in place of those of the C library.
 */
#include "config.h"

#include "plan/show.h"

#include "plan_world.h"

#include "direct/direct.h"
#include "flat/flat.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#ifdef HCE_HAVE_JANSSON
#include <jansson.h>
#endif

#define NEVER (-1)
#define MANY  100000 /* more allocations than any case makes */

static long left = NEVER; /* allocations until one fails */

static bool fails(void)
{
    return left != NEVER && left-- == 0;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t num, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t num, size_t size);
void *__wrap_realloc(void *old, size_t size);

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t num, size_t size)
{
    return fails() ? NULL : __real_calloc(num, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    return fails() ? NULL : __real_realloc(old, size);
}

/* Runs a case with its first, second, ... allocation failing, until it
 * passes; returns how many failed before. */
static long until_it_passes(hce_status_t (*run)(world_t *), world_t *w)
{
    hce_status_t status = HCE_ERR_NO_MEMORY;
    long n;

    for (n = 0; n < MANY; n++) {
        left = n;
        status = run(w);
        /* One that has failed is over: left is then NEVER. */
        if (left != NEVER) {
            left = NEVER;
            break;
        }
        assert_int_equal(status, HCE_ERR_NO_MEMORY);
    }
    assert_int_equal(status, HCE_OK);
    printf("%ld failures\n", n);
    return n;
}

static hce_status_t build(world_t *w, const hce_plan_builder_t *builder)
{
    hce_plan_t *plan = NULL;
    hce_status_t status = builder->build(&w->params, &plan);

    assert_int_equal(plan != NULL, status == HCE_OK);
    hce_plan_destroy(plan);
    return status;
}

static hce_status_t build_direct(world_t *w)
{
    return build(w, &hce_direct_allgather);
}

static hce_status_t build_flat(world_t *w)
{
    return build(w, &hce_flat_allgather);
}

static void while_building(void **state)
{
    world_t w;

    world_init(&w, "2,1,3", 6, 2000);
    w.params.contexts = 2;
    assert_true(until_it_passes(build_direct, &w) > 20);
    assert_true(until_it_passes(build_flat, &w) > 20);
    world_cleanup(&w);
}

static hce_status_t verify(world_t *w)
{
    hce_status_t status = hce_plan_verify(w->plans, w->layout->nranks,
                                          &hce_flat_allgather, &w->report);

    if (status != HCE_OK) {
        assert_non_null(strstr(w->report.text, "out of memory"));
    }
    return status;
}

static hce_status_t verify_builder(world_t *w)
{
    return hce_plan_verify_builder(&hce_direct_allgather, &w->params,
                                   &w->report);
}

static void while_verifying(void **state)
{
    world_t w;

    world_init(&w, "2,1", 3, 1100);
    world_build(&w, &hce_flat_allgather);
    assert_true(until_it_passes(verify, &w) > 40);
    assert_true(until_it_passes(verify_builder, &w) > 40);
    world_cleanup(&w);
    world_init(&w, "1", 258, 1);
    world_build(&w, &hce_flat_allgather);
    assert_true(until_it_passes(verify, &w) > 20);
    world_cleanup(&w);
}

#ifdef HCE_HAVE_JANSSON
static hce_status_t write_json(world_t *w)
{
    hce_status_t status = hce_plan_write_json(w->plans[0], stderr);

    /* Memory for the text itself is the writer's business. */
    return status == HCE_ERR_SYSTEM ? HCE_ERR_NO_MEMORY : status;
}

static void while_writing_json(void **state)
{
    world_t w;

    json_set_alloc_funcs(__wrap_malloc, free);
    world_init(&w, "1,1", 2, 100);
    world_build(&w, &hce_direct_allgather);
    assert_true(until_it_passes(write_json, &w) > 100);
    world_cleanup(&w);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(while_building),
        cmocka_unit_test(while_verifying),
#ifdef HCE_HAVE_JANSSON
        cmocka_unit_test(while_writing_json),
#endif
    };

    return cmocka_run_group_tests_name("plan_memory", tests, NULL, NULL);
}
