/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The CUDA copy engines in one process with four devices: memory, launches,
 * counters, multicast.
 */
#include "config.h"

#include "ce_cuda.h"

#include "util/clock.h"

#include <stdatomic.h>

static hce_ce_dev_t *dev;

static int setup(void **state)
{
    hce_ce_cuda_settings.copy_limit = 128 << 20;
    return OPS->open(0, &dev) == HCE_OK ? 0 : -1;
}

static int teardown(void **state)
{
    cuda_drained(dev);
    OPS->close(dev);
    return 0;
}

static void test_open(void **state)
{
    softgpu_counters_t before = rig_counters(), after;
    hce_ce_dev_t *again, *other, *none = NULL;
    char text[256];

    assert_int_equal(OPS->count(text, sizeof(text)), 4);
    assert_int_equal(OPS->open(0, &again), HCE_OK);
    assert_ptr_equal(again, dev);
    assert_int_equal(OPS->open(3, &other), HCE_OK);
    assert_int_equal(OPS->attr(other)->ordinal, 3);
    assert_true(OPS->attr(other)->has_multicast);
    assert_int_equal(OPS->attr(other)->num_queues, 4);
    assert_int_equal(OPS->open(4, &none), HCE_ERR_SYSTEM);
    assert_null(none);
    OPS->close(again);
    OPS->close(other);
    after = rig_counters();
    assert_int_equal(after.streams, before.streams);
    assert_int_equal(after.events, before.events);
    assert_int_equal(after.contexts, before.contexts);
}

static void test_order(void **state)
{
    static const struct {
        const char *attrs;
        hce_ce_dev_order_t order;
    } cases[] = {{"118=0", HCE_CE_ORDER_STREAM},
                 {"118=0,98=0", HCE_CE_ORDER_READBACK},
                 {"118=100", HCE_CE_ORDER_NONE},
                 {"118=200", HCE_CE_ORDER_NONE}};
    hce_ce_dev_t *other;
    size_t i;

    for (i = 0; i < 4; i++) {
        setenv("SOFTGPU_ATTR", cases[i].attrs, 1);
        assert_int_equal(OPS->open(2, &other), HCE_OK);
        assert_int_equal(OPS->attr(other)->order, cases[i].order);
        OPS->close(other);
    }
    setenv("SOFTGPU_ATTR", "122=0", 1);
    assert_int_equal(OPS->open(2, &other), HCE_ERR_UNSUPPORTED);
    setenv("SOFTGPU_ATTR", "99=0", 1);
    assert_int_equal(OPS->open(2, &other), HCE_ERR_UNSUPPORTED);
    unsetenv("SOFTGPU_ATTR");
}

static void test_mem(void **state)
{
    softgpu_counters_t before = rig_counters(), after;
    hce_ce_dev_ptr_t ptr, tiny;
    static int plain;
    int where;

    assert_int_equal(OPS->mem_alloc(dev, 3 * RIG_MIB, &ptr), HCE_OK);
    assert_int_equal(OPS->mem_alloc(dev, 0, &tiny), HCE_OK);
    assert_int_equal(OPS->mem_where(dev, ptr + 5, &where), HCE_OK);
    assert_int_equal(where, 0);
    assert_int_equal(OPS->mem_where(dev, rig_ptr(&plain), &where), HCE_OK);
    assert_int_equal(where, -1);
    cuda_put(0, ptr, 3 * RIG_MIB, 1);
    assert_true(cuda_holds(0, ptr, 3 * RIG_MIB, 1));
    assert_int_equal(OPS->mem_free(dev, ptr + 1), HCE_ERR_INVALID_ARG);
    assert_int_equal(OPS->mem_free(dev, ptr), HCE_OK);
    assert_int_equal(OPS->mem_free(dev, ptr), HCE_ERR_INVALID_ARG);
    assert_int_equal(OPS->mem_free(dev, tiny), HCE_OK);
    after = rig_counters();
    assert_int_equal(after.mappings, before.mappings);
    assert_int_equal(after.handles, before.handles);
}

enum { PIECES = 150, PIECE = 1000 };

/* Many copies, some of nothing: as few calls as may be. */
static void test_copies(void **state)
{
    hce_ce_dev_copy_t copies[PIECES];
    hce_ce_dev_launch_t *launch;
    hce_ce_dev_stats_t stats, old;
    hce_ce_dev_ptr_t from, to;
    uint64_t batches = rig_counters().batches;
    size_t i;

    OPS->get_stats(dev, &old);
    assert_int_equal(OPS->mem_alloc(dev, PIECES * PIECE, &from), HCE_OK);
    assert_int_equal(OPS->mem_alloc(dev, PIECES * PIECE, &to), HCE_OK);
    cuda_put(0, from, PIECES * PIECE, 2);
    for (i = 0; i < PIECES; i++)
        copies[i] = (hce_ce_dev_copy_t){.dst = to + i * PIECE,
                                        .src = from + i * PIECE,
                                        .len = PIECE,
                                        .kind = HCE_CE_DEV_SAME};
    /* One takes its neighbour along, which is left with nothing. */
    copies[10].len = 2 * PIECE;
    copies[11].len = 0;
    assert_int_equal(OPS->begin(dev, NULL, &launch), HCE_OK);
    assert_false(OPS->is_captured(launch));
    assert_int_equal(OPS->copy(launch, 1, copies, PIECES), HCE_OK);
    assert_int_equal(OPS->copy(launch, 1, copies, 0), HCE_OK);
    assert_int_equal(OPS->end(launch), HCE_OK);
    assert_true(cuda_holds(0, to, PIECES * PIECE, 2));
    assert_int_equal(rig_counters().batches, batches + 3);
    OPS->get_stats(dev, &stats);
    assert_int_equal(stats.copies[HCE_CE_DEV_SAME],
                     old.copies[HCE_CE_DEV_SAME] + PIECES - 1);
    assert_int_equal(stats.bytes[HCE_CE_DEV_SAME],
                     old.bytes[HCE_CE_DEV_SAME] + PIECES * PIECE);
    assert_int_equal(OPS->mem_free(dev, from), HCE_OK);
    assert_int_equal(OPS->mem_free(dev, to), HCE_OK);
}

static void test_copy_limit(void **state)
{
    hce_ce_dev_ptr_t from, to;
    uint64_t before = rig_counters().copies_same;
    hce_ce_dev_t *other;

    hce_ce_cuda_settings.copy_limit = 4096;
    assert_int_equal(OPS->open(1, &other), HCE_OK);
    hce_ce_cuda_settings.copy_limit = 128 << 20;
    assert_int_equal(OPS->mem_alloc(other, RIG_MIB, &from), HCE_OK);
    assert_int_equal(OPS->mem_alloc(other, RIG_MIB, &to), HCE_OK);
    cuda_put(1, from, 100000, 3);
    cuda_copy(other, NULL,
              (hce_ce_dev_copy_t){to, from, 100000, HCE_CE_DEV_SAME});
    assert_true(cuda_holds(1, to, 100000, 3));
    assert_int_equal(rig_counters().copies_same, before + 25);
    assert_int_equal(OPS->mem_free(other, from), HCE_OK);
    assert_int_equal(OPS->mem_free(other, to), HCE_OK);
    OPS->close(other);
}

/* After what the caller's stream was given, and before what comes next. */
static void order_check(hce_cu_stream_t user)
{
    unsigned char *host = rig_host(RIG_MIB), *back = rig_host(RIG_MIB);
    hce_ce_dev_ptr_t one, two;
    unsigned i;

    assert_int_equal(OPS->mem_alloc(dev, RIG_MIB, &one), HCE_OK);
    assert_int_equal(OPS->mem_alloc(dev, RIG_MIB, &two), HCE_OK);
    for (i = 0; i < 30; i++) {
        cuda_fill(host, 65536, i);
        RIG_OK(gpu.memcpy_async(one, rig_ptr(host), 65536, user));
        cuda_copy(dev, user,
                  (hce_ce_dev_copy_t){two, one, 65536, HCE_CE_DEV_SAME});
        RIG_OK(gpu.memcpy_async(rig_ptr(back), two, 65536, user));
        RIG_OK(gpu.stream_synchronize(user));
        assert_true(cuda_is_filled(back, 65536, i));
    }
    assert_int_equal(OPS->mem_free(dev, one), HCE_OK);
    assert_int_equal(OPS->mem_free(dev, two), HCE_OK);
    rig_host_free(host, RIG_MIB);
    rig_host_free(back, RIG_MIB);
}

static void test_user_streams(void **state)
{
    hce_cu_stream_t own = rig_stream(), blocking, foreign;
    hce_ce_dev_launch_t *launch;

    RIG_OK(gpu.stream_create(&blocking, 0, 0));
    order_check(own);
    order_check(blocking);
    order_check(NULL);
    order_check(HCE_CU_STREAM_PER_THREAD);
    RIG_OK(gpu.ctx_set_current(gpu.ctx[1]));
    RIG_OK(gpu.stream_create(&foreign, 1, 0));
    RIG_OK(gpu.ctx_set_current(gpu.ctx[0]));
    assert_int_equal(OPS->begin(dev, foreign, &launch), HCE_ERR_INVALID_ARG);
    RIG_OK(gpu.stream_destroy(foreign));
    RIG_OK(gpu.stream_destroy(own));
    RIG_OK(gpu.stream_destroy(blocking));
}

enum { COUNTERS = 600 };

/* More than one batch of waits; all of them count. */
static void test_counters(void **state)
{
    hce_counter_t *counters = rig_host(COUNTERS * 8);
    hce_ce_dev_memop_t waits[COUNTERS], write;
    hce_ce_dev_launch_t *launch;
    hce_ce_dev_ptr_t ptr;
    size_t i;

    assert_int_equal(OPS->host_map(dev, counters, COUNTERS * 8, &ptr), HCE_OK);
    for (i = 0; i < COUNTERS - 1; i++)
        waits[i] = (hce_ce_dev_memop_t){.addr = ptr + 8 * i, .value = 5};
    write = (hce_ce_dev_memop_t){.addr = ptr + 8 * (COUNTERS - 1), .value = 9};
    assert_int_equal(OPS->begin(dev, NULL, &launch), HCE_OK);
    assert_int_equal(OPS->wait(launch, 0, waits, COUNTERS - 1), HCE_OK);
    assert_int_equal(OPS->write(launch, 0, &write, 1), HCE_OK);
    assert_int_equal(OPS->end(launch), HCE_OK);
    for (i = 0; i < COUNTERS - 1; i++) {
        assert_int_equal(OPS->query(dev), HCE_INPROGRESS);
        assert_int_equal(hce_counter_read(&counters[COUNTERS - 1]), 0);
        hce_counter_post(&counters[i], 5 + i);
    }
    cuda_drained(dev);
    assert_int_equal(hce_counter_read(&counters[COUNTERS - 1]), 9);
    OPS->host_unmap(dev, counters);
    rig_host_free(counters, COUNTERS * 8); /* the test's own stays */
}

static void test_host_map(void **state)
{
    int64_t before = rig_counters().host_ranges;
    char *memory = aligned_alloc(4096, 8192);
    hce_ce_dev_ptr_t ptr, again;

    assert_int_equal(OPS->host_map(dev, memory, 8192, &ptr), HCE_OK);
    assert_int_equal(OPS->host_map(dev, memory, 8192, &again), HCE_OK);
    assert_int_equal(ptr, again);
    assert_int_equal(rig_counters().host_ranges, before + 1);
    OPS->host_unmap(dev, memory);
    assert_int_equal(rig_counters().host_ranges, before + 1);
    OPS->host_unmap(dev, memory);
    assert_int_equal(rig_counters().host_ranges, before);
    assert_int_equal(OPS->host_map(dev, memory, 0, &ptr), HCE_ERR_INVALID_ARG);
    /* What the application has registered in part cannot be mapped. */
    RIG_OK(gpu.mem_host_register(memory, 4096, 3));
    assert_int_not_equal(OPS->host_map(dev, memory, 8192, &ptr), HCE_OK);
    assert_int_equal(rig_counters().host_ranges, before + 1);
    RIG_OK(gpu.mem_host_unregister(memory));
    free(memory);
}

static void release(void *arg)
{
    hce_counter_t *counters = arg;
    int i;

    for (i = 0; i < 4; i++)
        hce_counter_post(&counters[i], HCE_COUNTER_RELEASE);
}

static void nothing(void *arg)
{
}

/* Each queue lowers, by its own write, what the other waits for next. */
static void test_drain(void **state)
{
    hce_counter_t *counters = rig_host(4096);
    hce_ce_dev_memop_t op[4];
    hce_ce_dev_launch_t *launch;
    hce_ce_dev_ptr_t ptr;
    int i;

    assert_int_equal(OPS->host_map(dev, counters, 4096, &ptr), HCE_OK);
    assert_int_equal(OPS->begin(dev, NULL, &launch), HCE_OK);
    for (i = 0; i < 20; i++) {
        op[0] = (hce_ce_dev_memop_t){.addr = ptr, .value = 1000};
        op[1] = (hce_ce_dev_memop_t){.addr = ptr + 8, .value = 1};
        op[2] = (hce_ce_dev_memop_t){.addr = ptr + 8, .value = 1000};
        op[3] = (hce_ce_dev_memop_t){.addr = ptr, .value = 1};
        assert_int_equal(OPS->wait(launch, 0, &op[0], 1), HCE_OK);
        assert_int_equal(OPS->write(launch, 0, &op[1], 1), HCE_OK);
        assert_int_equal(OPS->wait(launch, 1, &op[2], 1), HCE_OK);
        assert_int_equal(OPS->write(launch, 1, &op[3], 1), HCE_OK);
    }
    assert_int_equal(OPS->end(launch), HCE_OK);
    assert_int_equal(OPS->drain(dev, hce_clock_ns(), nothing, NULL),
                     HCE_ERR_TIMEOUT);
    assert_int_equal(
        OPS->drain(dev, hce_clock_ns() + 60000000000ull, release, counters),
        HCE_OK);
    OPS->host_unmap(dev, counters);
    rig_host_free(counters, 4096);
}

/* Other devices of this process: the memory itself, once they may. */
static void test_own_process(void **state)
{
    hce_ce_dev_ptr_t vmm, to, ptr;
    hce_cu_ptr_t plain = rig_alloc(0, RIG_MIB);
    hce_ce_dev_export_t exported;
    hce_ce_dev_import_t *import;
    hce_ce_dev_t *other;
    int i;

    assert_int_equal(OPS->open(3, &other), HCE_OK);
    assert_int_equal(OPS->mem_alloc(dev, RIG_MIB, &vmm), HCE_OK);
    assert_int_equal(OPS->mem_alloc(other, RIG_MIB, &to), HCE_OK);
    for (i = 0; i < 2; i++) {
        cuda_put(0, i ? plain : vmm, 10000, 40 + i);
        assert_int_equal(
            OPS->mem_export(dev, (i ? plain : vmm) + 4000, 6000, &exported),
            HCE_OK);
        assert_int_equal(OPS->mem_import(other, &exported, &import, &ptr),
                         HCE_OK);
        assert_int_equal(ptr, (i ? plain : vmm) + 4000);
        cuda_copy(
            other, NULL,
            (hce_ce_dev_copy_t){to, ptr - 4000, 10000, HCE_CE_DEV_TO_PEER});
        assert_true(cuda_holds(3, to, 10000, 40 + i));
        OPS->import_put(import);
        OPS->export_free(&exported);
    }
    assert_int_equal(OPS->mem_free(dev, vmm), HCE_OK);
    assert_int_equal(OPS->mem_free(other, to), HCE_OK);
    RIG_OK(gpu.mem_free(plain));
    OPS->close(other);
}

static void test_not_exportable(void **state)
{
    hce_cu_mem_t handle;
    hce_cu_ptr_t va = rig_map(0, 0, &handle), small = rig_alloc(0, 1000);
    hce_ce_dev_export_t exported;

    assert_int_equal(OPS->mem_export(dev, va, 100, &exported),
                     HCE_ERR_UNSUPPORTED);
    assert_int_equal(OPS->mem_export(dev, small, 1001, &exported),
                     HCE_ERR_INVALID_ARG);
    RIG_OK(gpu.mem_unmap(va, 2 * RIG_MIB));
    RIG_OK(gpu.mem_address_free(va, 2 * RIG_MIB));
    RIG_OK(gpu.mem_release(handle));
    RIG_OK(gpu.mem_free(small));
}

/* What another process says must make sense. */
static void test_hostile_export(void **state)
{
    hce_ce_dev_part_t part = {.len = 4096, .how = HCE_CE_DEV_IPC, .fd = -1};
    hce_ce_dev_export_t exported = {.addr = 8192,
                                    .base = 8192,
                                    .len = 4096,
                                    .num_parts = 1,
                                    .parts = &part};
    hce_ce_dev_import_t *import;
    hce_ce_dev_ptr_t ptr;

    exported.addr = 4096; /* before its memory */
    assert_int_equal(OPS->mem_import(dev, &exported, &import, &ptr),
                     HCE_ERR_INTERNAL);
    exported.addr = 8193; /* one byte beyond */
    assert_int_equal(OPS->mem_import(dev, &exported, &import, &ptr),
                     HCE_ERR_INTERNAL);
    exported.addr = 8192;
    exported.len = UINT64_MAX;
    assert_int_equal(OPS->mem_import(dev, &exported, &import, &ptr),
                     HCE_ERR_INTERNAL);
    exported.len = 4096; /* a handle of zeros */
    assert_int_not_equal(OPS->mem_import(dev, &exported, &import, &ptr),
                         HCE_OK);
    part.how = HCE_CE_DEV_FD;
    part.len = 2 * RIG_MIB;
    assert_int_not_equal(OPS->mem_import(dev, &exported, &import, &ptr),
                         HCE_OK);
}

enum { DEVICES = 4 };

static void test_multicast(void **state)
{
    hce_ce_dev_multicast_t *mc[DEVICES];
    hce_ce_dev_ptr_t mem[DEVICES], ptr[DEVICES], from;
    hce_ce_dev_t *devs[DEVICES];
    int i, fd;

    for (i = 0; i < DEVICES; i++) {
        assert_int_equal(OPS->open(i, &devs[i]), HCE_OK);
        assert_int_equal(OPS->mem_alloc(devs[i], 2 * RIG_MIB, &mem[i]),
                         HCE_OK);
    }
    assert_int_equal(OPS->multicast_create(dev, 2, 2 * RIG_MIB, &fd, &mc[0]),
                     HCE_ERR_UNSUPPORTED);
    assert_int_equal(
        OPS->multicast_create(dev, DEVICES, 2 * RIG_MIB, &fd, &mc[0]), HCE_OK);
    for (i = 1; i < DEVICES; i++)
        assert_int_equal(OPS->multicast_open(devs[i], fd, 2 * RIG_MIB, &mc[i]),
                         HCE_OK);
    close(fd);
    for (i = 0; i < DEVICES; i++)
        assert_int_equal(OPS->multicast_add(mc[i]), HCE_OK);
    assert_int_equal(OPS->multicast_bind(mc[0], 4096, &ptr[0]),
                     HCE_ERR_INVALID_ARG);
    for (i = 0; i < DEVICES; i++)
        assert_int_equal(OPS->multicast_bind(mc[i], mem[i], &ptr[i]), HCE_OK);
    assert_int_equal(OPS->mem_alloc(devs[2], RIG_MIB, &from), HCE_OK);
    cuda_put(2, from, RIG_MIB, 77);
    cuda_copy(devs[2], NULL,
              (hce_ce_dev_copy_t){ptr[2] + 4096, from, RIG_MIB,
                                  HCE_CE_DEV_MULTICAST});
    cuda_drained(devs[2]);
    for (i = 0; i < DEVICES; i++)
        assert_true(cuda_holds(i, mem[i] + 4096, RIG_MIB, 77));
    assert_int_equal(OPS->mem_free(devs[2], from), HCE_OK);
    for (i = 0; i < DEVICES; i++)
        OPS->multicast_close(mc[i]);
    for (i = 0; i < DEVICES; i++) {
        assert_int_equal(OPS->mem_free(devs[i], mem[i]), HCE_OK);
        OPS->close(devs[i]);
    }
}

#define CASE(_name) cmocka_unit_test_setup_teardown(_name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_open),
        CASE(test_order),
        CASE(test_mem),
        CASE(test_copies),
        CASE(test_copy_limit),
        CASE(test_user_streams),
        CASE(test_counters),
        CASE(test_host_map),
        CASE(test_drain),
        CASE(test_own_process),
        CASE(test_not_exportable),
        CASE(test_hostile_export),
        CASE(test_multicast),
    };

    unsetenv("SOFTGPU_FAIL");
    unsetenv("SOFTGPU_ATTR");
    setenv("SOFTGPU_DEVICES", "4", 1);
    rig_open();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
