/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Loading the driver: over the soft GPU, in all the ways in which that can
 * end. Each case in its own process, since a process loads it once.
 */
#include "config.h"

#include "child.h"
#include "drv/drv.h"
#include "util/log.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct attempt {
    const char *name, *value; /* a variable of the soft GPU */
    hce_status_t status;
    const char *reason; /* part of it */
} attempt_t;

static int attempt_run(void *arg)
{
    const attempt_t *attempt = arg;
    const hce_drv_t *drv = NULL;
    hce_status_t status;

    if (attempt->name != NULL)
        setenv(attempt->name, attempt->value, 1);
    status = hce_drv_get(&drv);
    if (status != attempt->status ||
        strstr(hce_drv_reason(), attempt->reason) == NULL) {
        fprintf(stderr, "status %d, \"%s\"\n", status, hce_drv_reason());
        return 1;
    }
    if ((drv != NULL) != (status == HCE_OK))
        return 2;
    /* The answer stays, whatever has changed since. */
    unsetenv("SOFTGPU_STUB");
    return hce_drv_get(&drv) == status ? 0 : 3;
}

static void check(attempt_t attempt)
{
    child_t child;

    child_run(attempt_run, &attempt, &child);
    if (child.exit_status != 0 && child.num_lines > 0)
        fail_msg("%s: %s", attempt.reason, child.lines[0]);
    assert_int_equal(child.exit_status, 0);
}

static void test_loads(void **state)
{
    check((attempt_t){NULL, NULL, HCE_OK, ""});
    check((attempt_t){"SOFTGPU_VERSION", "12000", HCE_OK, ""});
    check((attempt_t){"SOFTGPU_VERSION", "13020", HCE_OK, ""});
}

static void test_stub(void **state)
{
    check((attempt_t){"SOFTGPU_STUB", "1", HCE_ERR_UNSUPPORTED, "stub"});
}

static void test_too_old(void **state)
{
    check((attempt_t){"SOFTGPU_VERSION", "11080", HCE_ERR_UNSUPPORTED,
                      "for CUDA 11.8, at least 12.0"});
}

static void test_no_device(void **state)
{
    check((attempt_t){"SOFTGPU_DEVICES", "0", HCE_ERR_UNSUPPORTED,
                      "CUDA_ERROR_NO_DEVICE"});
    check((attempt_t){"SOFTGPU_FAIL", "cuDeviceGetCount:1:999",
                      HCE_ERR_UNSUPPORTED, "CUDA_ERROR_UNKNOWN"});
}

static void test_init_fails(void **state)
{
    check((attempt_t){"SOFTGPU_FAIL", "cuInit:1:1234", HCE_ERR_UNSUPPORTED,
                      "result 1234"});
}

static void test_missing_call(void **state)
{
    check((attempt_t){"SOFTGPU_HIDE", "cuMemMap", HCE_ERR_UNSUPPORTED,
                      "no cuMemMap of version 10020"});
    check((attempt_t){"SOFTGPU_HIDE", "cuDriverGetVersion",
                      HCE_ERR_UNSUPPORTED, "does not know"});
    check((attempt_t){"SOFTGPU_HIDE", "cuMulticastCreate", HCE_OK, ""});
}

/* Of what came after 12.0 only the pointer is missing. */
static int optional_run(void *arg)
{
    const hce_drv_t *drv;

    setenv("SOFTGPU_VERSION", arg, 1);
    if (hce_drv_get(&drv) != HCE_OK)
        return 1;
    return (drv->memcpy_batch_async != NULL ? 10 : 0) +
           (drv->memcpy_batch_async_12080 != NULL ? 20 : 0) +
           (drv->multicast_create != NULL ? 40 : 0) +
           (drv->mem_get_handle_for_address_range != NULL ? 80 : 0);
}

static void test_optional(void **state)
{
    child_t child;

    child_run(optional_run, "12000", &child);
    assert_int_equal(child.exit_status, 80);
    child_run(optional_run, "12010", &child);
    assert_int_equal(child.exit_status, 120);
    child_run(optional_run, "12080", &child);
    assert_int_equal(child.exit_status, 140);
    child_run(optional_run, "13000", &child);
    assert_int_equal(child.exit_status, 150);
}

static int forked_run(void *arg)
{
    const hce_drv_t *drv;
    int status;
    pid_t pid;

    if (hce_drv_get(&drv) != HCE_OK)
        return 1;
    pid = fork();
    if (pid == 0)
        _exit(hce_drv_get(&drv) == HCE_ERR_FORKED &&
                      drv->init(0) == HCE_CU_NOT_INITIALIZED
                  ? 0
                  : 1);
    if (waitpid(pid, &status, 0) != pid || status != 0)
        return 2;
    return hce_drv_get(&drv) == HCE_OK ? 0 : 3;
}

static void test_forked(void **state)
{
    child_t child;

    child_run(forked_run, NULL, &child);
    assert_int_equal(child.exit_status, 0);
}

static int results_run(void *arg)
{
    char text[HCE_DRV_NAME_LEN];
    const hce_drv_t *drv;
    int error = 0;

    /* Before there is a driver. */
    error |= strcmp(hce_drv_result_name(3, text), "result 3") != 0;
    error |= hce_drv_get(&drv) != HCE_OK;
    error |= strcmp(hce_drv_result_name(600, text), "CUDA_ERROR_NOT_READY");
    error |= strcmp(hce_drv_result_name(4321, text), "result 4321") != 0;
    error |= hce_drv_check(0, "cuX", "nothing") != HCE_OK;
    error |= hce_drv_check(2, "cuA", "of %d", 7) != HCE_ERR_NO_MEMORY;
    error |= hce_drv_check(801, "cuB", "b") != HCE_ERR_UNSUPPORTED;
    error |= hce_drv_check(1, "cuC", "c") != HCE_ERR_INVALID_ARG;
    error |= hce_drv_check(700, "cuD", "d") != HCE_ERR_SYSTEM;
    return error != 0;
}

static void test_results(void **state)
{
    child_t child;

    child_run(results_run, NULL, &child);
    assert_int_equal(child.exit_status, 0);
    assert_int_equal(child.num_lines, 4);
    assert_non_null(strstr(child.lines[0], "of 7: cuA returns "
                                           "CUDA_ERROR_OUT_OF_MEMORY"));
}

/* Enters the context, and lets calls pass that a capture forbids. */
static int scope_run(void *arg)
{
    const hce_drv_t *drv;
    hce_drv_scope_t scope;
    hce_cu_ctx_t ctx, current;
    hce_cu_enum_t mode = HCE_CU_CAPTURE_GLOBAL;

    if (hce_drv_get(&drv) != HCE_OK || drv->primary_ctx_retain(&ctx, 1) != 0)
        return 1;
    if (hce_drv_enter(drv, ctx, &scope) != HCE_OK)
        return 2;
    if (drv->ctx_get_current(&current) != 0 || current != ctx)
        return 3;
    hce_drv_leave(&scope);
    if (drv->ctx_get_current(&current) != 0 || current != NULL)
        return 4;
    if (drv->thread_exchange_capture_mode(&mode) != 0 ||
        mode != HCE_CU_CAPTURE_GLOBAL)
        return 5;
    if (drv->primary_ctx_release(1) != 0 ||
        hce_drv_enter(drv, ctx, &scope) != HCE_ERR_SYSTEM)
        return 6;
    return 0;
}

static void test_scope(void **state)
{
    child_t child;

    child_run(scope_run, NULL, &child);
    assert_int_equal(child.exit_status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loads),      cmocka_unit_test(test_stub),
        cmocka_unit_test(test_too_old),    cmocka_unit_test(test_no_device),
        cmocka_unit_test(test_init_fails), cmocka_unit_test(test_missing_call),
        cmocka_unit_test(test_optional),   cmocka_unit_test(test_forked),
        cmocka_unit_test(test_results),    cmocka_unit_test(test_scope),
    };

    child_clean_env();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
