/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Shared segments: two mappings of one memory, and descriptors that a peer
 * must not get away with.
 */
#include "config.h"

#include "util/shm.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#include <cmocka.h>

static void create_and_map(void **state)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    hce_shm_t mine, peers;
    const char *bytes;
    int fd;

    assert_int_equal(hce_shm_create("hce-test", page + 1, &mine), HCE_OK);
    assert_int_equal(mine.size, 2 * page);
    bytes = mine.addr;
    for (size_t i = 0; i < mine.size; i++) {
        assert_int_equal(bytes[i], 0);
    }
    assert_true(fcntl(mine.fd, F_GETFD) & FD_CLOEXEC);
    assert_int_not_equal(ftruncate(mine.fd, 0), 0);

    fd = fcntl(mine.fd, F_DUPFD_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(hce_shm_map(fd, page + 1, &peers), HCE_OK);
    assert_int_equal(peers.fd, fd);
    assert_int_equal(peers.size, 2 * page);
    assert_ptr_not_equal(peers.addr, mine.addr);
    strcpy((char *)mine.addr + page, "seen by the peer");
    assert_string_equal((char *)peers.addr + page, "seen by the peer");

    /* Either end may go first. */
    hce_shm_destroy(&mine);
    assert_int_equal(mine.fd, -1);
    assert_null(mine.addr);
    assert_string_equal((char *)peers.addr + page, "seen by the peer");
    hce_shm_destroy(&peers);
    assert_int_equal(fcntl(fd, F_GETFD), -1);
    hce_shm_destroy(&peers); /* nothing left to do */
}

static void map_refuses(void **state)
{
    hce_shm_t mine, untouched, peers;
    int plain = memfd_create("hce-test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int fds[2];

    memset(&untouched, 0x5a, sizeof(untouched));
    peers = untouched;
    assert_int_equal(hce_shm_create("hce-test", 4096, &mine), HCE_OK);
    assert_int_equal(hce_shm_map(mine.fd, mine.size + 1, &peers),
                     HCE_ERR_INVALID_ARG);
    assert_int_equal(hce_shm_map(mine.fd, 0, &peers), HCE_ERR_INVALID_ARG);
    assert_int_equal(hce_shm_map(mine.fd, SIZE_MAX, &peers),
                     HCE_ERR_INVALID_ARG);

    /* Large enough, but its owner could still cut it short. */
    assert_true(plain >= 0);
    assert_int_equal(ftruncate(plain, 4096), 0);
    assert_int_equal(hce_shm_map(plain, 4096, &peers), HCE_ERR_INVALID_ARG);
    assert_int_equal(fcntl(plain, F_ADD_SEALS, F_SEAL_SHRINK), 0);
    assert_int_equal(hce_shm_map(plain, 4096, &peers), HCE_OK);
    hce_shm_destroy(&peers);

    peers = untouched;
    assert_int_equal(pipe(fds), 0);
    assert_int_equal(hce_shm_map(fds[0], 4096, &peers), HCE_ERR_INVALID_ARG);
    close(fds[0]);
    close(fds[1]);
    assert_int_equal(hce_shm_map(fds[0], 4096, &peers), HCE_ERR_SYSTEM);
    assert_memory_equal(&peers, &untouched, sizeof(peers));
    hce_shm_destroy(&mine);
}

static void create_refuses(void **state)
{
    struct rlimit before, none;
    hce_shm_t untouched, shm;
    int low;

    memset(&untouched, 0x5a, sizeof(untouched));
    shm = untouched;
    assert_int_equal(hce_shm_create("hce-test", 0, &shm), HCE_ERR_INVALID_ARG);
    assert_int_equal(hce_shm_create("hce-test", SIZE_MAX, &shm),
                     HCE_ERR_INVALID_ARG);
    /* A file may be this long, an address space not: the descriptor must
     * have been closed, which the next creation shows. */
    low = dup(STDERR_FILENO);
    close(low);
    assert_int_equal(hce_shm_create("hce-test", (size_t)1 << 60, &shm),
                     HCE_ERR_NO_MEMORY);
    assert_int_equal(fcntl(low, F_GETFD), -1);

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = (struct rlimit){.rlim_cur = 3, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    assert_int_equal(hce_shm_create("hce-test", 4096, &shm),
                     HCE_ERR_NO_MEMORY);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_memory_equal(&shm, &untouched, sizeof(shm));
}

/* Zeroed by its owner and never created: descriptor 0 is somebody else's. */
static void destroy_leaves_zeroed(void **state)
{
    hce_shm_t shm = {0};
    int before = fcntl(0, F_GETFD);

    hce_shm_destroy(&shm);
    assert_int_equal(fcntl(0, F_GETFD), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(create_and_map),
        cmocka_unit_test(map_refuses),
        cmocka_unit_test(create_refuses),
        cmocka_unit_test(destroy_leaves_zeroed),
    };

    return cmocka_run_group_tests_name("util_shm", tests, NULL, NULL);
}
