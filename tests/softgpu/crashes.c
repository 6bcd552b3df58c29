/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Errors of a program that the soft GPU answers with its end, or the end of
 * a context: each in its own process.
 */
#include "config.h"

#include "rig.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

typedef void (*fault_t)(void);

/* The soft GPU is opened in the child only: it does not survive fork. */
static int fault_run(fault_t fault, char *text, size_t size)
{
    const struct rlimit none = {0, 0};
    int pipe_fds[2], status;
    ssize_t len = 0, part;
    pid_t pid;

    assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        dup2(pipe_fds[1], STDERR_FILENO);
        setrlimit(RLIMIT_CORE, &none);
        signal(SIGABRT, SIG_DFL); /* cmocka has its own */
        signal(SIGSEGV, SIG_DFL);
        rig_open();
        fault();
        _exit(0);
    }
    close(pipe_fds[1]);
    while ((part = read(pipe_fds[0], text + len, size - 1 - (size_t)len)) > 0)
        len += part;
    text[len] = '\0';
    close(pipe_fds[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

/* By a signal, or by a sanitizer's exit. */
static void check_ends(fault_t fault, const char *message)
{
    char text[65536];
    int status = fault_run(fault, text, sizeof(text));

    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        fail_msg("went on: %s", message);
    if (strstr(text, message) == NULL)
        fail_msg("no \"%s\" in: %s", message, text);
}

static void touch(void)
{
    hce_cu_ptr_t va = rig_alloc(1, 4096);

    *(_Atomic int *)(uintptr_t)(va + 64) = 1;
}

static void test_touch(void **state)
{
    check_ends(touch, "the CPU touched memory of device 1");
}

static void system_call(void)
{
    hce_cu_ptr_t va = rig_alloc(0, 4096);
    int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);

    if (read(fd, (void *)(uintptr_t)va, 8) == -1 && errno == EFAULT)
        fprintf(stderr, "EFAULT\n");
    _exit(7);
}

static void test_system_call(void **state)
{
    check_ends(system_call, "EFAULT");
}

static void overlap(void)
{
    hce_cu_ptr_t va = rig_alloc(0, RIG_MIB);
    hce_cu_ptr_t dsts[2] = {va, va + 32}, srcs[2] = {va + 4096, va + 8192};
    size_t lens[2] = {64, 64};

    rig_batch(rig_stream(), 2, dsts, srcs, lens);
}

static void dependent(void)
{
    hce_cu_ptr_t va = rig_alloc(0, RIG_MIB);
    hce_cu_ptr_t dsts[2] = {va, va + 8192}, srcs[2] = {va + 4096, va};
    size_t lens[2] = {64, 64};

    rig_batch(rig_stream(), 2, dsts, srcs, lens);
}

static void test_overlap(void **state)
{
    check_ends(overlap, "of a batch overlap");
    check_ends(dependent, "of a batch overlap");
}

static void pageable(void)
{
    static char plain[64];

    gpu.memcpy_async(rig_alloc(0, 64), rig_ptr(plain), 64, NULL);
}

static void test_pageable(void **state)
{
    check_ends(pageable, "not registered");
}

static void source_any(void)
{
    hce_cu_copy_attr_t attr = {.src_order = HCE_CU_SRC_ANY};
    hce_cu_ptr_t dst = rig_alloc(0, 64), src = rig_alloc(0, 64);
    size_t len = 64, index = 0;

    gpu.memcpy_batch_async(&dst, &src, &len, 1, &attr, &index, 1,
                           rig_stream());
}

static void test_source_any(void **state)
{
    check_ends(source_any, "read before earlier work");
}

static void call_by_name(const char *name)
{
    void (*call)(void);
    void *fn = NULL;

    gpu.get_proc(name, &fn, 13000, 1, NULL);
    memcpy(&call, &fn, sizeof(fn));
    call();
}

static void launch(void)
{
    call_by_name("cuLaunchKernel");
}

static void clear(void)
{
    call_by_name("cuMemsetD8Async");
}

static void load(void)
{
    call_by_name("cuModuleLoadData");
}

static void test_launch(void **state)
{
    check_ends(launch, "may run on a multiprocessor");
    check_ends(clear, "may run on a multiprocessor");
    check_ends(load, "may run on a multiprocessor");
}

static void bind_early(void)
{
    hce_cu_multicast_prop_t prop = {.num_devices = 2, .size = 2 * RIG_MIB};
    hce_cu_mem_t handle, mem;

    rig_map(0, 0, &mem);
    gpu.multicast_create(&handle, &prop);
    gpu.multicast_add_device(handle, 0);
    gpu.multicast_bind_mem(handle, 0, mem, 0, 2 * RIG_MIB, 0);
}

static void test_bind_early(void **state)
{
    check_ends(bind_early, "before all 2 devices were added");
}

/* A copy to memory that the device was given no access to. */
static void no_access(void)
{
    hce_cu_ptr_t va, host = rig_ptr(rig_host(4096));
    hce_cu_stream_t stream = rig_stream();
    hce_cu_mem_t handle;
    void *addr;

    va = rig_map(0, 0, &handle);
    if (gpu.memcpy_async(va, host, 64, stream) == HCE_CU_OK &&
        gpu.stream_synchronize(stream) == HCE_CU_ILLEGAL_ADDRESS &&
        gpu.mem_host_alloc(&addr, 64, 0) == HCE_CU_ILLEGAL_ADDRESS)
        fprintf(stderr, "sticky 700\n");
    _exit(7);
}

static void test_no_access(void **state)
{
    check_ends(no_access, "sticky 700");
}

static void forked(void)
{
    int count, status;
    pid_t pid = fork();

    if (pid == 0)
        _exit(gpu.device_get_count(&count) == HCE_CU_NOT_INITIALIZED ? 0 : 1);
    waitpid(pid, &status, 0);
    if (status == 0 && gpu.device_get_count(&count) == HCE_CU_OK)
        fprintf(stderr, "refused in the child\n");
    _exit(7);
}

static void test_forked(void **state)
{
    check_ends(forked, "refused in the child");
}

/* A second process may only use the memory as far as it was asked for. */
static void beyond(void)
{
    hce_cu_ptr_t va = rig_alloc(0, 1000), host = rig_ptr(rig_host(4096));

    if (gpu.memcpy_async(va, host, 1001, NULL) == HCE_CU_INVALID_VALUE &&
        gpu.memcpy_async(va + 999, host, 1, NULL) == HCE_CU_OK)
        fprintf(stderr, "refused beyond the end\n");
    gpu.stream_synchronize(NULL);
    _exit(7);
}

static void test_beyond(void **state)
{
    check_ends(beyond, "refused beyond the end");
}

static void out_of_memory(void)
{
    hce_cu_ptr_t va;

    if (gpu.mem_alloc(&va, 6 * RIG_MIB) == HCE_CU_OK &&
        gpu.mem_alloc(&va, 6 * RIG_MIB) == HCE_CU_OUT_OF_MEMORY)
        fprintf(stderr, "out of memory\n");
    _exit(7);
}

static void test_out_of_memory(void **state)
{
    setenv("SOFTGPU_MEMORY", "8", 1);
    check_ends(out_of_memory, "out of memory");
    unsetenv("SOFTGPU_MEMORY");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_touch),
        cmocka_unit_test(test_system_call),
        cmocka_unit_test(test_overlap),
        cmocka_unit_test(test_pageable),
        cmocka_unit_test(test_source_any),
        cmocka_unit_test(test_launch),
        cmocka_unit_test(test_bind_early),
        cmocka_unit_test(test_no_access),
        cmocka_unit_test(test_forked),
        cmocka_unit_test(test_beyond),
        cmocka_unit_test(test_out_of_memory),
    };

    unsetenv("SOFTGPU_FAIL");
    unsetenv("SOFTGPU_ATTR");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
