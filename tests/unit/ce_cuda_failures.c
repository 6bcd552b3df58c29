/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Each call of the driver is made to fail, the first and some later ones, in
 * a run through all that the copy engines do: a clean error that names the
 * call, nothing left behind, no hang. And older drivers, where calls are
 * missing.
 */
#include "config.h"

#include "ce_cuda.h"

#include "child.h"
#include "util/clock.h"

#include <sched.h>
#include <sys/wait.h>

#define NAME(_need, _member, _name, _version, _params) #_name,

static const char *const calls[] = {HCE_DRV_CALLS(NAME)};

enum { LEN = 5000 };

static hce_ce_words_t *words; /* of the captured launch */

static hce_status_t launch_run(hce_ce_dev_t *dev, hce_cu_stream_t on,
                               hce_ce_dev_ptr_t mem, hce_ce_dev_ptr_t host)
{
    hce_ce_dev_copy_t copies[2] = {
        {mem, host, LEN, HCE_CE_DEV_FROM_HOST},
        {mem + LEN, host + LEN, LEN, HCE_CE_DEV_FROM_HOST}};
    hce_ce_dev_memop_t op = {.addr = host + 4 * LEN, .value = 0};
    hce_ce_dev_launch_t *launch;
    hce_status_t status, end_status;

    status = OPS->begin(dev, on, &launch);
    if (status != HCE_OK)
        return status;
    status = OPS->wait(launch, 0, &op, 1);
    if (status == HCE_OK)
        status = OPS->copy(launch, 0, copies, 2);
    if (status == HCE_OK && OPS->is_captured(launch))
        status = OPS->words_get(launch, 3, &words);
    if (status == HCE_OK && words != NULL)
        status = OPS->word_set(launch, 1, words, 1);
    if (status == HCE_OK)
        status = OPS->write(launch, 0, &op, 1);
    end_status = OPS->end(launch);
    return status == HCE_OK ? end_status : status;
}

/* The test's own stream, of device 1, and its own calls do not fail. */
static hce_cu_stream_t user;

static hce_status_t captured_run(hce_ce_dev_t *dev, hce_ce_dev_ptr_t mem,
                                 hce_ce_dev_ptr_t host)
{
    hce_cu_graph_t graph = NULL;
    hce_status_t status;

    gpu.stream_begin_capture(user, HCE_CU_CAPTURE_GLOBAL);
    status = launch_run(dev, user, mem, host);
    gpu.stream_end_capture(user, &graph);
    if (graph != NULL)
        gpu.graph_destroy(graph);
    if (words != NULL) {
        while (!OPS->words_are_gone(words))
            sched_yield();
        OPS->words_put(words);
    }
    return status;
}

static hce_status_t share_run(hce_ce_dev_t *dev, hce_ce_dev_ptr_t mem)
{
    hce_ce_dev_export_t exported;
    hce_ce_dev_import_t *import;
    hce_ce_dev_ptr_t ptr;
    hce_status_t status;
    int where;

    status = OPS->mem_where(dev, mem, &where);
    if (status == HCE_OK)
        status = OPS->mem_export(dev, mem, LEN, &exported);
    if (status != HCE_OK)
        return status;
    /* As another process would; IPC handles do not open in their own. */
    if (exported.parts[0].how == HCE_CE_DEV_FD)
        exported.token[0] ^= 1;
    status = OPS->mem_import(dev, &exported, &import, &ptr);
    if (status == HCE_OK)
        OPS->import_put(import);
    OPS->export_free(&exported);
    return status;
}

static hce_status_t multicast_run(hce_ce_dev_t *dev, hce_ce_dev_ptr_t mem)
{
    hce_ce_dev_multicast_t *multicast;
    hce_status_t status;
    int fd;

    if (!OPS->attr(dev)->has_multicast)
        return HCE_OK;
    status = OPS->multicast_create(dev, 3, 2 * RIG_MIB, &fd, &multicast);
    if (status != HCE_OK)
        return status;
    close(fd);
    status = OPS->multicast_add(multicast);
    OPS->multicast_close(multicast);
    return status;
}

static void nothing(void *arg)
{
}

/* Everything once. */
static hce_status_t all_run(bool *counts_p)
{
    hce_ce_dev_ptr_t mem, host;
    hce_ce_dev_t *dev;
    hce_status_t status, drained;
    char *memory = aligned_alloc(4096, 32768);

    memset(memory, 0, 32768);
    status = OPS->open(1, &dev);
    if (status != HCE_OK)
        goto err_memory;
    status = OPS->mem_alloc(dev, 2 * RIG_MIB, &mem);
    if (status != HCE_OK)
        goto err_dev;
    status = OPS->host_map(dev, memory, 32768, &host);
    if (status != HCE_OK)
        goto err_mem;
    status = launch_run(dev, NULL, mem, host);
    if (status == HCE_OK)
        status = captured_run(dev, mem, host);
    if (status == HCE_OK)
        status = share_run(dev, mem);
    if (status == HCE_OK)
        status = multicast_run(dev, mem);
    drained = OPS->drain(dev, hce_clock_ns() + 60000000000ull, nothing, NULL);
    if (status == HCE_OK)
        status = drained;
    OPS->host_unmap(dev, memory);
err_mem:
    if (OPS->mem_free(dev, mem) != HCE_OK)
        *counts_p = false;
err_dev:
    OPS->close(dev);
err_memory:
    free(memory);
    return status;
}

typedef struct fault {
    const char *call;
    int nth;
} fault_t;

static bool is_freeing(const char *call)
{
    static const char *const names[] = {
        "cuMemFree",           "cuMemUnmap",
        "cuMemRelease",        "cuMemAddressFree",
        "cuStreamDestroy",     "cuEventDestroy",
        "cuMulticastUnbind",   "cuMemHostUnregister",
        "cuIpcCloseMemHandle", "cuDevicePrimaryCtxRelease",
        "cuUserObjectRelease", "cuCtxPopCurrent",
        "cuCtxPushCurrent",    "cuThreadExchangeStreamCaptureMode"};
    size_t i;

    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(names[i], call) == 0)
            return true;
    }
    return false;
}

static bool is_clean(const softgpu_counters_t *a, const softgpu_counters_t *b)
{
    return a->allocs == b->allocs && a->handles == b->handles &&
           a->mappings == b->mappings && a->ipc_opens == b->ipc_opens &&
           a->host_ranges == b->host_ranges && a->streams == b->streams &&
           a->events == b->events && a->contexts == b->contexts;
}

/* 0: it did not matter; 10: an error, as it should be; else what is wrong. */
static int fault_run(void *arg)
{
    const fault_t *fault = arg;
    softgpu_counters_t before, after;
    bool counts = true;
    hce_status_t status;
    char spec[128];

    rig_open();
    gpu.ctx_set_current(gpu.ctx[1]);
    user = rig_stream();
    before = rig_counters();
    snprintf(spec, sizeof(spec), "%s:%d:999", fault->call, fault->nth);
    gpu.set_fail(spec);
    status = all_run(&counts);
    gpu.set_fail("");
    after = rig_counters();
    if (!is_freeing(fault->call) && !is_clean(&before, &after))
        return 20;
    if (!is_freeing(fault->call) && !counts)
        return 21;
    return status == HCE_OK ? 0 : 10;
}

static bool is_named(const child_t *child, const char *call)
{
    int i;

    for (i = 0; i < child->num_lines; i++) {
        if (strstr(child->lines[i], call) != NULL)
            return true;
    }
    return false;
}

static void test_each_call(void **state)
{
    static child_t child;
    unsigned errors = 0;
    fault_t fault;
    size_t i;

    for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        for (fault.nth = 1; fault.nth <= 4; fault.nth++) {
            fault.call = calls[i];
            child_run(fault_run, &fault, &child);
            if (child.exit_status != 0 && child.exit_status != 10)
                fail_msg("%s, call %d: exit %d", fault.call, fault.nth,
                         child.exit_status);
            /* Loading the driver keeps its reason for later. */
            if (child.exit_status == 10 && !is_named(&child, fault.call) &&
                !is_named(&child, "no usable device") &&
                !is_named(&child, "64-bit stream operations") &&
                !is_named(&child, "map registered host memory"))
                fail_msg("%s, call %d: not named in %s", fault.call, fault.nth,
                         child.lines[0]);
            errors += child.exit_status == 10;
        }
    }
    printf("%u failures were errors\n", errors);
    assert_true(errors > 60);
}

static int version_run(void *arg)
{
    softgpu_counters_t before, after;
    bool counts = true;

    setenv("SOFTGPU_VERSION", arg, 1);
    rig_open();
    gpu.ctx_set_current(gpu.ctx[1]);
    user = rig_stream();
    before = rig_counters();
    if (all_run(&counts) != HCE_OK || !counts)
        return 1;
    after = rig_counters();
    if (!is_clean(&before, &after))
        return 2;
    return after.batches > before.batches ? 10 : 0;
}

static void test_versions(void **state)
{
    static child_t child;

    child_run(version_run, "12000", &child);
    assert_int_equal(child.exit_status, 0);
    child_run(version_run, "12080", &child);
    assert_int_equal(child.exit_status, 10);
    child_run(version_run, "13020", &child);
    assert_int_equal(child.exit_status, 10);
}

/* Memory as cudaMalloc gives it, where there are no handles. */
static int plain_run(void *arg)
{
    hce_ce_dev_ptr_t mem;
    hce_ce_dev_t *dev;

    setenv("SOFTGPU_ATTR", arg, 1);
    rig_open();
    if (OPS->open(0, &dev) != HCE_OK || OPS->attr(dev)->has_multicast ||
        OPS->mem_alloc(dev, 5000, &mem) != HCE_OK ||
        rig_counters().allocs != 1 || rig_counters().handles != 0 ||
        OPS->mem_free(dev, mem) != HCE_OK || rig_counters().allocs != 0)
        return 1;
    OPS->close(dev);
    return 0;
}

static void test_without_handles(void **state)
{
    static child_t child;

    child_run(plain_run, "102=0", &child);
    assert_int_equal(child.exit_status, 0);
    child_run(plain_run, "103=0", &child);
    assert_int_equal(child.exit_status, 0);
}

static int forked_run(void *arg)
{
    hce_ce_dev_t *dev;
    char text[256];
    int status;
    pid_t pid;

    rig_open();
    if (OPS->open(0, &dev) != HCE_OK)
        return 1;
    pid = fork();
    if (pid == 0) {
        hce_ce_dev_t *other = NULL;

        _exit(OPS->open(1, &other) == HCE_ERR_FORKED && other == NULL &&
                      OPS->count(text, sizeof(text)) == 0
                  ? 0
                  : 1);
    }
    if (waitpid(pid, &status, 0) != pid || status != 0)
        return 2;
    OPS->close(dev);
    return 0;
}

static void test_forked(void **state)
{
    static child_t child;

    child_run(forked_run, NULL, &child);
    assert_int_equal(child.exit_status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_call),
        cmocka_unit_test(test_versions),
        cmocka_unit_test(test_without_handles),
        cmocka_unit_test(test_forked),
    };

    child_clean_env();
    setenv("SOFTGPU_DEVICES", "3", 1);
    setenv("SOFTGPU_JITTER", "5", 1);
    unsetenv("SOFTGPU_FAIL");
    unsetenv("SOFTGPU_ATTR");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
