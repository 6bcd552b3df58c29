/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * What the soft GPU refuses, row by row, by the driver's results; refusals
 * that end the process are in crashes.c.
 */
#include "config.h"

#include "rig.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static hce_cu_ptr_t dev0, dev1; /* 1 MiB on either device */
static hce_cu_stream_t stream;
static uint64_t *host;

static int setup(void **state)
{
    dev0 = rig_alloc(0, RIG_MIB);
    dev1 = rig_alloc(1, RIG_MIB);
    stream = rig_stream();
    host = rig_host(8192);
    return 0;
}

static int teardown(void **state)
{
    RIG_OK(gpu.stream_synchronize(stream));
    RIG_OK(gpu.stream_destroy(stream));
    RIG_OK(gpu.mem_free(dev0));
    RIG_OK(gpu.mem_free(dev1));
    rig_host_free(host, 8192);
    return 0;
}

static hce_cu_result_t batch_one(hce_cu_stream_t on, size_t len)
{
    hce_cu_ptr_t dst = dev0, src = rig_ptr(host);

    return rig_batch(on, 1, &dst, &src, &len);
}

static void test_batch_streams(void **state)
{
    assert_int_equal(batch_one(NULL, 64), HCE_CU_INVALID_VALUE);
    assert_int_equal(batch_one(HCE_CU_STREAM_LEGACY, 64),
                     HCE_CU_INVALID_VALUE);
    assert_int_equal(batch_one(HCE_CU_STREAM_PER_THREAD, 64), HCE_CU_OK);
    rig_sync(HCE_CU_STREAM_PER_THREAD);
}

/* Refused in a capture, which goes on without the copy. */
static void test_batch_in_capture(void **state)
{
    hce_cu_graph_t graph = NULL;
    hce_cu_enum_t mode = HCE_CU_CAPTURE_THREAD_LOCAL;
    size_t num = 0;

    RIG_OK(gpu.stream_begin_capture(stream, mode));
    assert_int_equal(batch_one(stream, 64), HCE_CU_CAPTURE_UNSUPPORTED);
    RIG_OK(gpu.memcpy_async(dev0, rig_ptr(host), 64, stream));
    RIG_OK(gpu.stream_end_capture(stream, &graph));
    RIG_OK(gpu.graph_get_nodes(graph, NULL, &num));
    assert_int_equal(num, 1);
    RIG_OK(gpu.graph_destroy(graph));
}

static void test_batch_arguments(void **state)
{
    hce_cu_copy_attr_t attr = {.src_order = 1}, none = {0};
    hce_cu_ptr_t dst[2] = {dev0, dev0 + 64}, src[2] = {rig_ptr(host), 0};
    size_t len[2] = {64, 64}, first = 0, bad = 1, twice[2] = {0, 0};
    hce_cu_copy_attr_t attrs[2] = {attr, attr};

    assert_int_equal(batch_one(stream, 0), HCE_CU_INVALID_VALUE);
    assert_int_equal(rig_batch(stream, 2, dst, src, len),
                     HCE_CU_INVALID_VALUE);
    src[1] = src[0] + 64;
    assert_int_equal(rig_batch(stream, 0, dst, src, len),
                     HCE_CU_INVALID_VALUE);
    assert_int_equal(
        gpu.memcpy_batch_async(dst, src, len, 2, &none, &first, 1, stream),
        HCE_CU_INVALID_VALUE);
    assert_int_equal(
        gpu.memcpy_batch_async(dst, src, len, 2, &attr, &bad, 1, stream),
        HCE_CU_INVALID_VALUE);
    assert_int_equal(
        gpu.memcpy_batch_async(dst, src, len, 2, attrs, twice, 2, stream),
        HCE_CU_INVALID_VALUE);
    assert_int_equal(
        gpu.memcpy_batch_async(dst, src, len, 2, &attr, &first, 0, stream),
        HCE_CU_INVALID_VALUE);
    RIG_OK(gpu.memcpy_batch_async(dst, src, len, 2, &attr, &first, 1, stream));
}

static void memops_fill(hce_cu_memop_t *memops, int num)
{
    int i;

    for (i = 0; i < num; i++)
        memops[i] = (hce_cu_memop_t){
            .op = {.kind = HCE_CU_MEMOP_WAIT_64, .address = rig_ptr(host)}};
}

static void test_memop_count(void **state)
{
    hce_cu_memop_t memops[256];

    memops_fill(memops, 256);
    RIG_OK(gpu.stream_batch_memop(stream, 255, memops, 0));
    assert_int_equal(gpu.stream_batch_memop(stream, 256, memops, 0),
                     HCE_CU_INVALID_VALUE);
    assert_int_equal(gpu.stream_batch_memop(stream, 1, memops, 1),
                     HCE_CU_INVALID_VALUE);
    assert_int_equal(gpu.stream_batch_memop(stream, 0, memops, 0),
                     HCE_CU_INVALID_VALUE);
}

static void test_memop_addresses(void **state)
{
    static uint64_t unregistered;
    hce_cu_ptr_t at = rig_ptr(host);
    char *plain = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_int_equal(
        gpu.stream_write_value64(stream, rig_ptr(&unregistered), 1, 0),
        HCE_CU_INVALID_VALUE);
    assert_int_equal(gpu.stream_write_value64(stream, at + 4, 1, 0),
                     HCE_CU_INVALID_VALUE);
    RIG_OK(gpu.stream_write_value32(stream, at + 4, 1, 0));
    assert_int_equal(gpu.stream_write_value32(stream, at + 2, 1, 0),
                     HCE_CU_INVALID_VALUE);
    /* Registered, but not mapped for devices. */
    RIG_OK(gpu.mem_host_register(plain, 4096, HCE_CU_HOST_PORTABLE));
    assert_int_equal(gpu.stream_wait_value64(stream, rig_ptr(plain), 0, 0),
                     HCE_CU_INVALID_VALUE);
    RIG_OK(gpu.mem_host_unregister(plain));
    munmap(plain, 4096);
}

static void test_memop_flags(void **state)
{
    hce_cu_ptr_t at = rig_ptr(host);

    assert_int_equal(
        gpu.stream_write_value64(stream, at, 1, HCE_CU_WRITE_NO_BARRIER),
        HCE_CU_INVALID_VALUE);
    assert_int_equal(gpu.stream_wait_value64(stream, at, 0, 8),
                     HCE_CU_INVALID_VALUE);
    RIG_OK(gpu.stream_wait_value64(stream, at, 0, HCE_CU_WAIT_FLUSH));
    setenv("SOFTGPU_ATTR", "98=0", 1);
    assert_int_equal(gpu.stream_wait_value64(stream, at, 0, HCE_CU_WAIT_FLUSH),
                     HCE_CU_NOT_SUPPORTED);
    setenv("SOFTGPU_ATTR", "122=0", 1);
    assert_int_equal(gpu.stream_wait_value64(stream, at, 0, 0),
                     HCE_CU_NOT_SUPPORTED);
    unsetenv("SOFTGPU_ATTR");
}

/* Memory of another GPU is no place for a stream's words. */
static void test_memop_remote(void **state)
{
    hce_cu_mem_t handle;
    hce_cu_ptr_t va = rig_map(1, 0, &handle);

    rig_access(va, 2 * RIG_MIB, 0);
    assert_int_equal(gpu.stream_write_value64(stream, dev1, 1, 0),
                     HCE_CU_NOT_SUPPORTED);
    assert_int_equal(gpu.stream_wait_value64(stream, dev1, 1, 0),
                     HCE_CU_NOT_SUPPORTED);
    assert_int_equal(gpu.stream_write_value64(stream, va, 1, 0),
                     HCE_CU_NOT_SUPPORTED);
    RIG_OK(gpu.stream_write_value64(stream, dev0, 1, 0));
    RIG_OK(gpu.mem_unmap(va, 2 * RIG_MIB));
    RIG_OK(gpu.mem_address_free(va, 2 * RIG_MIB));
    RIG_OK(gpu.mem_release(handle));
}

static void test_wait_eq_is_counted(void **state)
{
    uint64_t before = rig_counters().waits_eq;

    host[3] = 7;
    RIG_OK(
        gpu.stream_wait_value64(stream, rig_ptr(&host[3]), 7, HCE_CU_WAIT_EQ));
    rig_sync(stream);
    assert_int_equal(rig_counters().waits_eq, before + 1);
}

static void test_ipc_handles(void **state)
{
    hce_cu_ipc_mem_t ipc, junk = {{0}};
    hce_cu_mem_t handle;
    hce_cu_ptr_t va, vmm = rig_map(0, HCE_CU_HANDLE_FD, &handle);

    RIG_OK(gpu.ipc_get_mem_handle(&ipc, dev0 + 100));
    assert_int_equal(gpu.ipc_open_mem_handle(&va, ipc, 1),
                     HCE_CU_INVALID_CONTEXT);
    assert_int_equal(gpu.ipc_open_mem_handle(&va, ipc, 0),
                     HCE_CU_INVALID_VALUE);
    assert_int_equal(gpu.ipc_open_mem_handle(&va, junk, 1),
                     HCE_CU_INVALID_VALUE);
    assert_int_equal(gpu.ipc_get_mem_handle(&ipc, vmm), HCE_CU_INVALID_VALUE);
    assert_int_equal(gpu.ipc_get_mem_handle(&ipc, rig_ptr(host)),
                     HCE_CU_INVALID_VALUE);
    assert_int_equal(gpu.ipc_close_mem_handle(dev0), HCE_CU_INVALID_VALUE);
    RIG_OK(gpu.mem_unmap(vmm, 2 * RIG_MIB));
    RIG_OK(gpu.mem_address_free(vmm, 2 * RIG_MIB));
    RIG_OK(gpu.mem_release(handle));
}

static void test_host_register(void **state)
{
    char *at = mmap(NULL, 8192, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    RIG_OK(gpu.mem_host_register(at, 1000, 3));
    assert_int_equal(gpu.mem_host_register(at, 1000, 3),
                     HCE_CU_HOST_MEMORY_ALREADY_REGISTERED);
    assert_int_equal(gpu.mem_host_register(at + 10, 5, 3),
                     HCE_CU_HOST_MEMORY_ALREADY_REGISTERED);
    RIG_OK(gpu.mem_host_register(at + 1000, 1000, 3)); /* in the same page */
    assert_int_equal(gpu.mem_host_unregister(at + 1), HCE_CU_INVALID_VALUE);
    assert_int_equal(gpu.mem_host_unregister(at + 4096),
                     HCE_CU_HOST_MEMORY_NOT_REGISTERED);
    assert_int_equal(gpu.mem_host_unregister(NULL), HCE_CU_INVALID_VALUE);
    RIG_OK(gpu.mem_host_unregister(at));
    RIG_OK(gpu.mem_host_unregister(at + 1000));
    munmap(at, 8192);
    assert_int_equal(gpu.mem_host_register(at, 1000, 3), HCE_CU_INVALID_VALUE);
}

static void test_frees(void **state)
{
    void *addr;

    RIG_OK(gpu.mem_free(0));
    RIG_OK(gpu.mem_free_host(NULL));
    assert_int_equal(gpu.mem_free(dev0 + 4096), HCE_CU_INVALID_VALUE);
    assert_int_equal(gpu.mem_free(rig_ptr(host)), HCE_CU_INVALID_VALUE);
    RIG_OK(gpu.mem_host_alloc(&addr, 4096, 3));
    assert_int_equal(gpu.mem_host_unregister(addr), HCE_CU_INVALID_VALUE);
    RIG_OK(gpu.mem_free_host(addr));
}

typedef struct freer {
    hce_cu_ptr_t va;
    _Atomic int is_done;
} freer_t;

static void *freer_main(void *arg)
{
    freer_t *freer = arg;

    gpu.ctx_set_current(gpu.ctx[0]);
    gpu.mem_free(freer->va);
    freer->is_done = 1;
    return NULL;
}

/* Blocks while any stream of the device waits. */
static void test_free_waits(void **state)
{
    freer_t freer = {.va = rig_alloc(0, 4096)};
    pthread_t thread;
    int i;

    RIG_OK(gpu.stream_wait_value64(stream, rig_ptr(&host[9]), 1, 0));
    assert_int_equal(pthread_create(&thread, NULL, freer_main, &freer), 0);
    for (i = 0; i < 20; i++) {
        assert_int_equal(gpu.stream_query(stream), HCE_CU_NOT_READY);
        assert_int_equal(freer.is_done, 0);
        usleep(500);
    }
    __atomic_store_n(&host[9], (uint64_t)INT64_MAX, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    assert_int_equal(freer.is_done, 1);
}

/* Signed and cyclic: the largest unsigned number releases nothing. */
static void test_wait_release(void **state)
{
    RIG_OK(gpu.stream_wait_value64(stream, rig_ptr(&host[10]), 5, 0));
    __atomic_store_n(&host[10], UINT64_MAX, __ATOMIC_RELEASE);
    usleep(5000);
    assert_int_equal(gpu.stream_query(stream), HCE_CU_NOT_READY);
    __atomic_store_n(&host[10], (uint64_t)INT64_MAX, __ATOMIC_RELEASE);
    rig_sync(stream);
}

static void *capture_main(void *arg)
{
    hce_cu_ptr_t va = 0;
    hce_cu_enum_t mode = HCE_CU_CAPTURE_THREAD_LOCAL;
    unsigned long first, second;

    gpu.ctx_set_current(gpu.ctx[0]);
    first = gpu.mem_alloc(&va, 4096);
    if (first == 0)
        gpu.mem_free(va);
    gpu.thread_exchange_capture_mode(&mode);
    second = gpu.mem_alloc(&va, 4096);
    if (second == 0)
        gpu.mem_free(va);
    return (void *)(first * 1000 + second);
}

static unsigned long other_thread(void)
{
    pthread_t thread;
    void *result;

    pthread_create(&thread, NULL, capture_main, NULL);
    pthread_join(thread, &result);
    return (unsigned long)result;
}

/* Allocation and its like, in a capture of this thread or any other. */
static void test_unsafe_in_capture(void **state)
{
    hce_cu_enum_t mode = HCE_CU_CAPTURE_RELAXED;
    hce_cu_graph_t graph = NULL;
    hce_cu_ptr_t va;

    RIG_OK(gpu.stream_begin_capture(stream, HCE_CU_CAPTURE_THREAD_LOCAL));
    assert_int_equal(other_thread(), 0);
    RIG_OK(gpu.thread_exchange_capture_mode(&mode));
    RIG_OK(gpu.mem_alloc(&va, 4096)); /* relaxed */
    RIG_OK(gpu.mem_free(va));
    RIG_OK(gpu.thread_exchange_capture_mode(&mode));
    assert_int_equal(mode, HCE_CU_CAPTURE_RELAXED);
    assert_int_equal(gpu.mem_alloc(&va, 4096), HCE_CU_CAPTURE_UNSUPPORTED);
    assert_int_equal(gpu.stream_end_capture(stream, &graph),
                     HCE_CU_CAPTURE_INVALIDATED);
    RIG_OK(gpu.stream_begin_capture(stream, HCE_CU_CAPTURE_GLOBAL));
    assert_int_equal(other_thread(), 900 * 1000);
    assert_int_equal(gpu.stream_end_capture(stream, &graph),
                     HCE_CU_CAPTURE_INVALIDATED);
    RIG_OK(gpu.stream_begin_capture(stream, HCE_CU_CAPTURE_RELAXED));
    assert_int_equal(gpu.mem_host_register(host, 8, 3),
                     HCE_CU_HOST_MEMORY_ALREADY_REGISTERED);
    RIG_OK(gpu.stream_end_capture(stream, &graph));
    RIG_OK(gpu.graph_destroy(graph));
}

static void test_look_in_capture(void **state)
{
    hce_cu_graph_t graph = NULL;
    hce_cu_event_t event;

    RIG_OK(gpu.event_create(&event, HCE_CU_EVENT_DISABLE_TIMING));
    RIG_OK(gpu.stream_begin_capture(stream, HCE_CU_CAPTURE_RELAXED));
    RIG_OK(gpu.event_record(event, stream));
    assert_int_equal(gpu.event_query(event), HCE_CU_CAPTURED_EVENT);
    assert_int_equal(gpu.stream_query(stream), HCE_CU_CAPTURE_UNSUPPORTED);
    assert_int_equal(gpu.stream_synchronize(stream),
                     HCE_CU_CAPTURE_UNSUPPORTED);
    assert_int_equal(gpu.stream_end_capture(stream, &graph),
                     HCE_CU_CAPTURE_INVALIDATED);
    RIG_OK(gpu.event_destroy(event));
}

static void test_capture_ends(void **state)
{
    hce_cu_stream_t other = rig_stream(), third = rig_stream();
    hce_cu_graph_t graph = NULL;
    hce_cu_event_t event, outside;

    RIG_OK(gpu.event_create(&event, 2));
    RIG_OK(gpu.event_create(&outside, 2));
    RIG_OK(gpu.event_record(outside, third));
    assert_int_equal(gpu.stream_begin_capture(NULL, 0),
                     HCE_CU_CAPTURE_UNSUPPORTED);
    RIG_OK(gpu.stream_begin_capture(stream, 2));
    RIG_OK(gpu.event_record(event, stream));
    RIG_OK(gpu.stream_wait_event(other, event, 0));
    assert_int_equal(gpu.stream_end_capture(other, &graph),
                     HCE_CU_CAPTURE_UNMATCHED);
    RIG_OK(gpu.memcpy_async(dev0, rig_ptr(host), 64, other));
    assert_int_equal(gpu.stream_end_capture(stream, &graph),
                     HCE_CU_CAPTURE_UNJOINED);
    RIG_OK(gpu.stream_begin_capture(stream, 2));
    assert_int_equal(gpu.stream_wait_event(stream, outside, 0),
                     HCE_CU_CAPTURE_ISOLATION);
    gpu.stream_end_capture(stream, &graph);
    RIG_OK(gpu.stream_begin_capture(stream, 2));
    RIG_OK(gpu.stream_begin_capture(other, 2));
    RIG_OK(gpu.event_record(event, stream));
    assert_int_equal(gpu.stream_wait_event(other, event, 0),
                     HCE_CU_CAPTURE_MERGE);
    gpu.stream_end_capture(stream, &graph);
    gpu.stream_end_capture(other, &graph);
    RIG_OK(gpu.event_destroy(event));
    RIG_OK(gpu.event_destroy(outside));
    RIG_OK(gpu.stream_destroy(other));
    RIG_OK(gpu.stream_destroy(third));
}

static void test_legacy_in_capture(void **state)
{
    hce_cu_stream_t blocking;
    hce_cu_graph_t graph = NULL;
    hce_cu_enum_t capturing;

    RIG_OK(gpu.stream_create(&blocking, 0, 0));
    RIG_OK(gpu.stream_begin_capture(blocking, 1));
    assert_int_equal(gpu.memcpy_async(dev0, rig_ptr(host), 64, NULL),
                     HCE_CU_CAPTURE_IMPLICIT);
    assert_int_equal(gpu.stream_is_capturing(NULL, &capturing),
                     HCE_CU_CAPTURE_IMPLICIT);
    assert_int_equal(gpu.stream_end_capture(blocking, &graph),
                     HCE_CU_CAPTURE_INVALIDATED);
    RIG_OK(gpu.stream_destroy(blocking));
    /* A non-blocking one does not mind. */
    RIG_OK(gpu.stream_begin_capture(stream, 1));
    RIG_OK(gpu.memcpy_async(dev0, rig_ptr(host), 64, NULL));
    RIG_OK(gpu.stream_end_capture(stream, &graph));
    RIG_OK(gpu.graph_destroy(graph));
    rig_sync(NULL);
}

static void test_map_arguments(void **state)
{
    hce_cu_mem_prop_t prop = {.type = 1, .location = {1, 0}};
    hce_cu_access_t access = {.location = {1, 0}, .flags = 3};
    hce_cu_mem_t handle;
    hce_cu_ptr_t va;

    assert_int_equal(gpu.mem_create(&handle, 4096, &prop, 0),
                     HCE_CU_INVALID_VALUE);
    RIG_OK(gpu.mem_create(&handle, 2 * RIG_MIB, &prop, 0));
    RIG_OK(gpu.mem_address_reserve(&va, 4 * RIG_MIB, 0, 0, 0));
    assert_int_equal(gpu.mem_map(va, 4096, 0, handle, 0),
                     HCE_CU_INVALID_VALUE);
    assert_int_equal(gpu.mem_map(va, 2 * RIG_MIB, 4096, handle, 0),
                     HCE_CU_INVALID_VALUE);
    assert_int_equal(gpu.mem_map(va + 8 * RIG_MIB, 2 * RIG_MIB, 0, handle, 0),
                     HCE_CU_INVALID_VALUE);
    assert_int_equal(gpu.mem_set_access(va, 2 * RIG_MIB, &access, 1),
                     HCE_CU_INVALID_VALUE);
    RIG_OK(gpu.mem_map(va, 2 * RIG_MIB, 0, handle, 0));
    assert_int_equal(gpu.mem_map(va, 2 * RIG_MIB, 0, handle, 0),
                     HCE_CU_INVALID_VALUE);
    assert_int_equal(gpu.mem_address_free(va, 4 * RIG_MIB),
                     HCE_CU_INVALID_VALUE);
    RIG_OK(gpu.mem_unmap(va, 2 * RIG_MIB));
    RIG_OK(gpu.mem_address_free(va, 4 * RIG_MIB));
    RIG_OK(gpu.mem_release(handle));
    assert_int_equal(gpu.mem_release(handle), HCE_CU_INVALID_VALUE);
}

static void test_peer_access(void **state)
{
    assert_int_equal(gpu.memcpy_async(dev1, dev0, 64, stream),
                     HCE_CU_INVALID_VALUE);
    RIG_OK(
        gpu.memcpy_peer_async(dev1, gpu.ctx[1], dev0, gpu.ctx[0], 64, stream));
    RIG_OK(gpu.ctx_enable_peer_access(gpu.ctx[1], 0));
    assert_int_equal(gpu.ctx_enable_peer_access(gpu.ctx[1], 0),
                     HCE_CU_PEER_ACCESS_ALREADY_ENABLED);
    assert_int_equal(gpu.ctx_enable_peer_access(gpu.ctx[0], 0),
                     HCE_CU_INVALID_DEVICE);
    RIG_OK(gpu.memcpy_async(dev1, dev0, 64, stream));
}

static void test_exports(void **state)
{
    hce_cu_mem_t plain, shared, other;
    hce_cu_ptr_t va[2] = {rig_map(0, 0, &plain),
                          rig_map(0, HCE_CU_HANDLE_FD, &shared)};
    hce_cu_fabric_t fabric;
    int fd, i, null = open("/dev/null", O_RDWR | O_CLOEXEC);

    assert_int_equal(gpu.mem_export(&fd, plain, HCE_CU_HANDLE_FD, 0),
                     HCE_CU_INVALID_VALUE);
    assert_int_equal(gpu.mem_export(&fabric, shared, HCE_CU_HANDLE_FABRIC, 0),
                     HCE_CU_INVALID_VALUE);
    RIG_OK(gpu.mem_export(&fd, shared, HCE_CU_HANDLE_FD, 0));
    assert_int_equal(
        gpu.mem_import(&other, (void *)(intptr_t)null, HCE_CU_HANDLE_FD),
        HCE_CU_INVALID_VALUE);
    RIG_OK(gpu.mem_import(&other, (void *)(intptr_t)fd, HCE_CU_HANDLE_FD));
    RIG_OK(gpu.mem_release(other));
    assert_int_equal(gpu.mem_retain_handle(&other, (void *)(uintptr_t)dev0),
                     HCE_CU_INVALID_VALUE);
    close(fd);
    close(null);
    for (i = 0; i < 2; i++) {
        RIG_OK(gpu.mem_unmap(va[i], 2 * RIG_MIB));
        RIG_OK(gpu.mem_address_free(va[i], 2 * RIG_MIB));
    }
    RIG_OK(gpu.mem_release(plain));
    RIG_OK(gpu.mem_release(shared));
}

static void test_multicast(void **state)
{
    hce_cu_multicast_prop_t prop = {.num_devices = 1, .size = 2 * RIG_MIB};
    hce_cu_mem_t handle;

    assert_int_equal(gpu.multicast_create(&handle, &prop),
                     HCE_CU_INVALID_VALUE);
    prop.num_devices = 2;
    gpu.set_fail("cuMulticastBindMem:1:802");
    RIG_OK(gpu.multicast_create(&handle, &prop));
    RIG_OK(gpu.multicast_add_device(handle, 0));
    assert_int_equal(gpu.multicast_add_device(handle, 0),
                     HCE_CU_INVALID_VALUE);
    RIG_OK(gpu.multicast_add_device(handle, 1));
    assert_int_equal(
        gpu.multicast_bind_mem(handle, 0, handle, 0, 2 * RIG_MIB, 0),
        HCE_CU_SYSTEM_NOT_READY);
    assert_int_equal(
        gpu.multicast_bind_mem(handle, 0, handle, 0, 2 * RIG_MIB, 0),
        HCE_CU_INVALID_VALUE);
    gpu.set_fail("");
    RIG_OK(gpu.mem_release(handle));
    setenv("SOFTGPU_ATTR", "132=0", 1);
    assert_int_equal(gpu.multicast_create(&handle, &prop),
                     HCE_CU_NOT_SUPPORTED);
    unsetenv("SOFTGPU_ATTR");
}

static void test_context(void **state)
{
    hce_cu_ctx_t ctx;
    hce_cu_ptr_t va;

    RIG_OK(gpu.ctx_pop_current(&ctx));
    assert_int_equal(gpu.mem_alloc(&va, 4096), HCE_CU_INVALID_CONTEXT);
    assert_int_equal(gpu.stream_write_value64(stream, rig_ptr(host), 1, 0),
                     HCE_CU_INVALID_CONTEXT);
    assert_int_equal(gpu.ctx_pop_current(&ctx), HCE_CU_INVALID_CONTEXT);
    assert_int_equal(gpu.ctx_push_current(NULL), HCE_CU_INVALID_CONTEXT);
    RIG_OK(gpu.ctx_set_current(gpu.ctx[0]));
}

static void test_get_proc(void **state)
{
    hce_cu_enum_t found = 9;
    void *fn = &found;

    RIG_OK(gpu.get_proc("cuNoSuchCall", &fn, 13000, 1, &found));
    assert_null(fn);
    assert_int_equal(found, HCE_CU_PROC_NOT_FOUND);
    RIG_OK(gpu.get_proc("cuMemMap", &fn, 10010, 1, &found));
    assert_null(fn);
    assert_int_equal(found, HCE_CU_PROC_VERSION_TOO_OLD);
    assert_int_equal(gpu.get_proc("cuMemMap", &fn, 13010, 1, &found),
                     HCE_CU_INVALID_VALUE);
}

static void test_pointers(void **state)
{
    hce_cu_enum_t attrs[1] = {HCE_CU_PTR_MEMORY_TYPE};
    unsigned type = 99;
    void *outs[1] = {&type};
    static int plain;

    assert_int_equal(gpu.pointer_get_attribute(&type, HCE_CU_PTR_MEMORY_TYPE,
                                               rig_ptr(&plain)),
                     HCE_CU_INVALID_VALUE);
    RIG_OK(gpu.pointer_get_attributes(1, attrs, outs, rig_ptr(&plain)));
    assert_int_equal(type, 0);
    RIG_OK(gpu.pointer_get_attribute(&type, HCE_CU_PTR_MEMORY_TYPE, dev0));
    assert_int_equal(type, 2);
    assert_int_equal(gpu.mem_get_address_range(NULL, NULL, rig_ptr(&plain)),
                     HCE_CU_NOT_FOUND);
}

static void test_injection(void **state)
{
    hce_cu_ptr_t va;

    gpu.set_fail("cuMemAlloc:2:2,cuMemFree:1:700");
    RIG_OK(gpu.mem_alloc(&va, 4096));
    assert_int_equal(gpu.mem_free(va), HCE_CU_ILLEGAL_ADDRESS);
    RIG_OK(gpu.mem_free(va));
    assert_int_equal(gpu.mem_alloc(&va, 4096), HCE_CU_OUT_OF_MEMORY);
    gpu.set_fail("");
}

#define REFUSAL(_name) cmocka_unit_test_setup_teardown(_name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        REFUSAL(test_batch_streams),
        REFUSAL(test_batch_in_capture),
        REFUSAL(test_batch_arguments),
        REFUSAL(test_memop_count),
        REFUSAL(test_memop_addresses),
        REFUSAL(test_memop_flags),
        REFUSAL(test_memop_remote),
        REFUSAL(test_wait_eq_is_counted),
        REFUSAL(test_ipc_handles),
        REFUSAL(test_host_register),
        REFUSAL(test_frees),
        REFUSAL(test_free_waits),
        REFUSAL(test_wait_release),
        REFUSAL(test_unsafe_in_capture),
        REFUSAL(test_look_in_capture),
        REFUSAL(test_capture_ends),
        REFUSAL(test_legacy_in_capture),
        REFUSAL(test_map_arguments),
        REFUSAL(test_peer_access),
        REFUSAL(test_exports),
        REFUSAL(test_multicast),
        REFUSAL(test_context),
        REFUSAL(test_get_proc),
        REFUSAL(test_pointers),
        REFUSAL(test_injection),
    };

    unsetenv("SOFTGPU_FAIL");
    unsetenv("SOFTGPU_ATTR");
    rig_open();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
