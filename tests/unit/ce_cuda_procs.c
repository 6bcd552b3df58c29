/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The CUDA copy engines of two processes: memory of either kind opened by the
 * other, with offsets; counters in host memory that both map; one of them
 * killed.
 */
#include "config.h"

#include "ce_cuda.h"

#include "util/clock.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum { MAX_PARTS = 3, LEN = 100000, ROUNDS = 100 };

/* An export without its pointer; descriptors go beside it. */
typedef struct parcel {
    hce_ce_dev_export_t exported;
    hce_ce_dev_part_t parts[MAX_PARTS];
} parcel_t;

static hce_counter_t *shared; /* two lines, mapped by both processes */
static int ends[2];           /* of the socket: owner, opener */

static void parcel_send(const hce_ce_dev_export_t *exported)
{
    char room[CMSG_SPACE(MAX_PARTS * sizeof(int))] = {0};
    parcel_t parcel = {.exported = *exported};
    struct iovec iov = {&parcel, sizeof(parcel)};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    struct cmsghdr *head;
    int fds[MAX_PARTS], num = 0;
    uint32_t i;

    CUDA_CHECK(exported->num_parts <= MAX_PARTS);
    for (i = 0; i < exported->num_parts; i++) {
        parcel.parts[i] = exported->parts[i];
        if (exported->parts[i].fd >= 0)
            fds[num++] = exported->parts[i].fd;
    }
    if (num > 0) {
        msg.msg_control = room;
        msg.msg_controllen = CMSG_SPACE((size_t)num * sizeof(int));
        head = CMSG_FIRSTHDR(&msg);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN((size_t)num * sizeof(int));
        memcpy(CMSG_DATA(head), fds, (size_t)num * sizeof(int));
    }
    CUDA_CHECK(sendmsg(ends[0], &msg, 0) == sizeof(parcel));
}

/* Its parts are the parcel's; descriptors end with fds_close. */
static void parcel_take(parcel_t *parcel)
{
    char room[CMSG_SPACE(MAX_PARTS * sizeof(int))];
    struct iovec iov = {parcel, sizeof(*parcel)};
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = room,
                         .msg_controllen = sizeof(room)};
    struct cmsghdr *head;
    int fds[MAX_PARTS], num = 0;
    uint32_t i;

    CUDA_CHECK(recvmsg(ends[1], &msg, MSG_CMSG_CLOEXEC | MSG_WAITALL) ==
               sizeof(*parcel));
    head = CMSG_FIRSTHDR(&msg);
    if (head != NULL)
        memcpy(fds, CMSG_DATA(head), head->cmsg_len - CMSG_LEN(0));
    for (i = 0; i < parcel->exported.num_parts; i++) {
        if (parcel->parts[i].fd >= 0)
            parcel->parts[i].fd = fds[num++];
    }
    parcel->exported.parts = parcel->parts;
}

static void fds_close(const parcel_t *parcel)
{
    uint32_t i;

    for (i = 0; i < parcel->exported.num_parts; i++) {
        if (parcel->parts[i].fd >= 0)
            close(parcel->parts[i].fd);
    }
}

static void token_send(int end)
{
    CUDA_CHECK(send(end, "x", 1, MSG_NOSIGNAL) == 1);
}

static void token_take(int end)
{
    char token;

    CUDA_CHECK(recv(end, &token, 1, 0) == 1);
}

static void memops(hce_ce_dev_launch_t *launch, bool waits, int line,
                   uint64_t value, hce_ce_dev_ptr_t ptr)
{
    hce_ce_dev_memop_t op = {.addr = ptr + 64 * (unsigned)line,
                             .value = value};

    CUDA_CHECK((waits ? OPS->wait : OPS->write)(launch, 0, &op, 1) == HCE_OK);
}

typedef hce_ce_dev_ptr_t (*make_t)(hce_ce_dev_t *dev);

/* Two allocations side by side: a buffer may lie on both. */
static hce_ce_dev_ptr_t make_two_parts(hce_ce_dev_t *dev)
{
    hce_cu_mem_prop_t prop = {.type = HCE_CU_MEM_PINNED,
                              .handle_types = HCE_CU_HANDLE_FD,
                              .location = {HCE_CU_LOCATION_DEVICE, 0}};
    hce_cu_mem_t handle;
    hce_cu_ptr_t va;
    int i;

    CUDA_CHECK(gpu.mem_address_reserve(&va, 4 * RIG_MIB, 0, 0, 0) == 0);
    for (i = 0; i < 2; i++) {
        CUDA_CHECK(gpu.mem_create(&handle, 2 * RIG_MIB, &prop, 0) == 0);
        CUDA_CHECK(gpu.mem_map(va + (unsigned)i * 2 * RIG_MIB, 2 * RIG_MIB, 0,
                               handle, 0) == 0);
        CUDA_CHECK(gpu.mem_release(handle) == 0);
    }
    rig_access(va, 4 * RIG_MIB, 0);
    return va + 2 * RIG_MIB - 30000; /* across */
}

static hce_ce_dev_ptr_t make_by_handle(hce_ce_dev_t *dev)
{
    hce_ce_dev_ptr_t ptr;

    CUDA_CHECK(OPS->mem_alloc(dev, RIG_MIB, &ptr) == HCE_OK);
    return ptr + 12345;
}

static hce_ce_dev_ptr_t make_plain(hce_ce_dev_t *dev)
{
    return rig_alloc(0, RIG_MIB) + 54321;
}

/* Owner: sends in each round what the opener takes out of its memory. */
static void owner_rounds(hce_ce_dev_t *dev, hce_ce_dev_ptr_t mem,
                         hce_ce_dev_ptr_t counters)
{
    unsigned char *host = rig_host(LEN);
    hce_ce_dev_copy_t copy = {mem, rig_ptr(host), LEN, HCE_CE_DEV_FROM_HOST};
    hce_ce_dev_launch_t *launch;
    unsigned i;

    for (i = 1; i <= ROUNDS; i++) {
        cuda_drained(dev); /* host is free */
        cuda_fill(host, LEN, i);
        CUDA_CHECK(OPS->begin(dev, NULL, &launch) == HCE_OK);
        memops(launch, true, 1, i - 1, counters);
        CUDA_CHECK(OPS->copy(launch, 0, &copy, 1) == HCE_OK);
        memops(launch, false, 0, i, counters);
        CUDA_CHECK(OPS->end(launch) == HCE_OK);
    }
    cuda_drained(dev);
    rig_host_free(host, LEN);
}

static int owner_main(make_t make)
{
    hce_ce_dev_ptr_t mem, counters;
    hce_ce_dev_export_t exported;
    hce_ce_dev_t *dev;

    rig_open();
    CUDA_CHECK(OPS->open(0, &dev) == HCE_OK);
    CUDA_CHECK(OPS->host_map(dev, shared, 4096, &counters) == HCE_OK);
    mem = make(dev);
    CUDA_CHECK(OPS->mem_export(dev, mem, LEN, &exported) == HCE_OK);
    parcel_send(&exported);
    OPS->export_free(&exported);
    owner_rounds(dev, mem, counters);
    token_take(ends[0]); /* it has closed all */
    OPS->host_unmap(dev, shared);
    OPS->close(dev);
    return 0;
}

static void opener_rounds(hce_ce_dev_t *dev, hce_ce_dev_ptr_t theirs,
                          hce_ce_dev_ptr_t counters)
{
    unsigned char *host = rig_host(LEN);
    hce_ce_dev_copy_t copy = {0, theirs, LEN, HCE_CE_DEV_TO_PEER};
    hce_ce_dev_copy_t out = {rig_ptr(host), 0, LEN, HCE_CE_DEV_TO_HOST};
    hce_ce_dev_launch_t *launch;
    hce_ce_dev_ptr_t mine;
    unsigned i;

    CUDA_CHECK(OPS->mem_alloc(dev, LEN, &mine) == HCE_OK);
    copy.dst = out.src = mine;
    for (i = 1; i <= ROUNDS; i++) {
        CUDA_CHECK(OPS->begin(dev, NULL, &launch) == HCE_OK);
        memops(launch, true, 0, i, counters);
        CUDA_CHECK(OPS->copy(launch, 0, &copy, 1) == HCE_OK);
        memops(launch, false, 1, i, counters);
        CUDA_CHECK(OPS->copy(launch, 0, &out, 1) == HCE_OK);
        CUDA_CHECK(OPS->end(launch) == HCE_OK);
        cuda_drained(dev);
        CUDA_CHECK(cuda_is_filled(host, LEN, i));
    }
    CUDA_CHECK(OPS->mem_free(dev, mine) == HCE_OK);
    rig_host_free(host, LEN);
}

/* Many registrations of one buffer: opened once. */
static void imports_check(hce_ce_dev_t *dev, const parcel_t *parcel)
{
    enum { MANY = 10000 };
    static hce_ce_dev_import_t *imports[MANY];
    int64_t before = rig_counters().mappings;
    hce_ce_dev_ptr_t ptr, first = 0;
    int i;

    for (i = 0; i < MANY; i++) {
        CUDA_CHECK(OPS->mem_import(dev, &parcel->exported, &imports[i],
                                   &ptr) == HCE_OK);
        first = i == 0 ? ptr : first;
        CUDA_CHECK(ptr == first);
    }
    CUDA_CHECK(rig_counters().mappings ==
               before + (int64_t)parcel->exported.num_parts);
    for (i = 0; i < MANY; i++)
        OPS->import_put(imports[i]);
    CUDA_CHECK(rig_counters().mappings == before);
}

static int opener_main(make_t make)
{
    hce_ce_dev_import_t *import;
    hce_ce_dev_ptr_t theirs, counters;
    hce_ce_dev_t *dev;
    parcel_t parcel;

    rig_open();
    CUDA_CHECK(OPS->open(1, &dev) == HCE_OK);
    CUDA_CHECK(OPS->host_map(dev, shared, 4096, &counters) == HCE_OK);
    parcel_take(&parcel);
    imports_check(dev, &parcel);
    CUDA_CHECK(OPS->mem_import(dev, &parcel.exported, &import, &theirs) ==
               HCE_OK);
    fds_close(&parcel);
    opener_rounds(dev, theirs, counters);
    OPS->import_put(import);
    CUDA_CHECK(rig_counters().ipc_opens == 0);
    token_send(ends[1]);
    OPS->host_unmap(dev, shared);
    OPS->close(dev);
    return 0;
}

typedef int (*body_t)(make_t make);

static pid_t start(body_t body, make_t make)
{
    pid_t pid;

    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        int status = body(make);

        fflush(NULL);
        _exit(status);
    }
    return pid;
}

/* owner_status: how the owner has to end, as wait says it. */
static void pair_run(body_t owner, body_t opener, make_t make,
                     int owner_status)
{
    pid_t pids[2];
    int status;

    shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends),
                     0);
    pids[0] = start(owner, make);
    pids[1] = start(opener, make);
    close(ends[0]);
    close(ends[1]);
    assert_int_equal(waitpid(pids[1], &status, 0), pids[1]);
    if (status != 0)
        kill(pids[0], SIGKILL); /* it would wait for ever */
    assert_int_equal(status, 0);
    assert_int_equal(waitpid(pids[0], &status, 0), pids[0]);
    assert_int_equal(status, owner_status);
    munmap(shared, 4096);
}

static void test_plain(void **state)
{
    pair_run(owner_main, opener_main, make_plain, 0);
}

static void test_by_handle(void **state)
{
    pair_run(owner_main, opener_main, make_by_handle, 0);
}

static void test_two_parts(void **state)
{
    pair_run(owner_main, opener_main, make_two_parts, 0);
}

/* The same address, other memory: right data each time. */
static int owner_renews(make_t make)
{
    hce_ce_dev_export_t exported;
    hce_ce_dev_t *dev;
    hce_cu_ptr_t va, first = 0;
    unsigned i;

    rig_open();
    CUDA_CHECK(OPS->open(0, &dev) == HCE_OK);
    for (i = 0; i < 10; i++) {
        va = rig_alloc(0, LEN);
        first = i == 0 ? va : first;
        CUDA_CHECK(va == first);
        cuda_put(0, va, LEN, i);
        CUDA_CHECK(OPS->mem_export(dev, va, LEN, &exported) == HCE_OK);
        parcel_send(&exported);
        OPS->export_free(&exported);
        token_take(ends[0]);
        CUDA_CHECK(gpu.mem_free(va) == 0);
    }
    OPS->close(dev);
    return 0;
}

/* Keeps each until the next has come, as a window that is late to go. */
static int opener_renews(make_t make)
{
    hce_ce_dev_import_t *import, *last = NULL;
    hce_ce_dev_ptr_t theirs;
    hce_ce_dev_t *dev;
    parcel_t parcel;
    unsigned i;

    rig_open();
    CUDA_CHECK(OPS->open(1, &dev) == HCE_OK);
    for (i = 0; i < 10; i++) {
        parcel_take(&parcel);
        CUDA_CHECK(OPS->mem_import(dev, &parcel.exported, &import, &theirs) ==
                   HCE_OK);
        CUDA_CHECK(cuda_holds(1, theirs, LEN, i));
        if (last != NULL)
            OPS->import_put(last);
        last = import;
        token_send(ends[1]);
    }
    OPS->import_put(last);
    OPS->close(dev);
    return 0;
}

static void test_renewed(void **state)
{
    pair_run(owner_renews, opener_renews, NULL, 0);
}

static int owner_dies(make_t make)
{
    hce_ce_dev_export_t exported;
    hce_ce_dev_t *dev;

    rig_open();
    CUDA_CHECK(OPS->open(0, &dev) == HCE_OK);
    CUDA_CHECK(OPS->mem_export(dev, make_plain(dev), LEN, &exported) ==
               HCE_OK);
    parcel_send(&exported);
    token_take(ends[0]);
    raise(SIGKILL);
    return 1;
}

static void release(void *arg)
{
    hce_counter_post(arg, HCE_COUNTER_RELEASE);
}

/* Waits for what nobody will post any more; released, it drains; what the
 * dead one had exported opens no more. */
static int opener_survives(make_t make)
{
    hce_ce_dev_import_t *import, *again;
    hce_ce_dev_ptr_t theirs, counters;
    hce_ce_dev_launch_t *launch;
    hce_ce_dev_t *dev;
    parcel_t parcel;
    char end;

    rig_open();
    CUDA_CHECK(OPS->open(1, &dev) == HCE_OK);
    CUDA_CHECK(OPS->host_map(dev, shared, 4096, &counters) == HCE_OK);
    parcel_take(&parcel);
    CUDA_CHECK(OPS->mem_import(dev, &parcel.exported, &import, &theirs) ==
               HCE_OK);
    CUDA_CHECK(OPS->begin(dev, NULL, &launch) == HCE_OK);
    memops(launch, true, 0, 1, counters);
    CUDA_CHECK(OPS->end(launch) == HCE_OK);
    token_send(ends[1]);
    close(ends[0]);
    CUDA_CHECK(recv(ends[1], &end, 1, 0) == 0); /* it has gone */
    CUDA_CHECK(OPS->query(dev) == HCE_INPROGRESS);
    CUDA_CHECK(OPS->drain(dev, hce_clock_ns() + 60000000000ull, release,
                          &shared[0]) == HCE_OK);
    OPS->import_put(import);
    CUDA_CHECK(OPS->mem_import(dev, &parcel.exported, &again, &theirs) !=
               HCE_OK);
    OPS->host_unmap(dev, shared);
    OPS->close(dev);
    return 0;
}

static void test_killed(void **state)
{
    pair_run(owner_dies, opener_survives, NULL, SIGKILL);
}

/* The skeleton with channels as few as there can be. */
static void test_one_channel(void **state)
{
    setenv("SOFTGPU_CONNECTIONS", "1", 1);
    pair_run(owner_main, opener_main, make_by_handle, 0);
    setenv("SOFTGPU_CONNECTIONS", "2", 1);
    pair_run(owner_main, opener_main, make_plain, 0);
    unsetenv("SOFTGPU_CONNECTIONS");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain),     cmocka_unit_test(test_by_handle),
        cmocka_unit_test(test_two_parts), cmocka_unit_test(test_renewed),
        cmocka_unit_test(test_killed),    cmocka_unit_test(test_one_channel),
    };

    unsetenv("SOFTGPU_FAIL");
    unsetenv("SOFTGPU_ATTR");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
