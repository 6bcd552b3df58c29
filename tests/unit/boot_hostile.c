/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Strangers on the port while a group forms, and ranks that end before they
 * have a seat.
 */
#include <config.h>

#include "boot_part.h"

#include "boot/local.h"
#include "boot/mac.h"
#include "boot/unique_id.h"
#include "util/math.h"

#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define STRANGERS 200

/* --- strangers --- */

typedef size_t (*words_fn_t)(uint8_t *buf, size_t size, uint64_t *seed);

static size_t words_none(uint8_t *buf, size_t size, uint64_t *seed)
{
    return 0;
}

static size_t words_random(uint8_t *buf, size_t size, uint64_t *seed)
{
    size_t len = hce_rand_next(seed) % size;

    for (size_t i = 0; i < len; i++) {
        buf[i] = (uint8_t)hce_rand_next(seed);
    }
    return len;
}

/* A true beginning, then nonsense or nothing. */
static size_t words_half(uint8_t *buf, size_t size, uint64_t *seed)
{
    hce_boot_frame_t frame =
        part_frame_make(HCE_BOOT_HELLO, sizeof(hce_boot_hello_t));

    words_random(buf, size, seed);
    memcpy(buf, &frame, sizeof(frame));
    return hce_rand_next(seed) % (sizeof(frame) + sizeof(hce_boot_hello_t));
}

/* The hello of nobody. */
static size_t words_whole(uint8_t *buf, size_t size, uint64_t *seed)
{
    words_half(buf, size, seed);
    return sizeof(hce_boot_frame_t) + sizeof(hce_boot_hello_t);
}

/* A header of its own making. */
static size_t words_frame(uint8_t *buf, size_t size, uint64_t *seed)
{
    hce_boot_frame_t frame = part_frame_make(
        (hce_boot_type_t)(hce_rand_next(seed) % 20),
        hce_rand_next(seed) % 3 == 0 ? UINT32_MAX : hce_rand_next(seed) % 600);

    words_random(buf, size, seed);
    frame.version = (uint16_t)(hce_rand_next(seed) % 3);
    memcpy(buf, &frame, sizeof(frame));
    return size;
}

/* All stand in the door before the first rank comes. */
static void strangers_check(words_fn_t words, uint64_t seed)
{
    hce_unique_id_t id;
    part_t parts[4];
    int fds[STRANGERS];

    print_message("strangers: seed %llu\n", (unsigned long long)seed);
    assert_int_equal(hce_boot_local_prepare(&id), HCE_OK);
    part_start(&parts[0], 0, 4, &id);
    for (int i = 0; i < STRANGERS; i++) {
        uint8_t buf[600];
        size_t len = words(buf, sizeof(buf), &seed);

        fds[i] = part_connect(&id);
        (void)!send(fds[i], buf, len, MSG_NOSIGNAL);
    }
    for (int r = 1; r < 4; r++) {
        part_start(&parts[r], r, 4, &id);
    }
    for (int r = 0; r < 4; r++) {
        assert_int_equal(part_end(&parts[r]), HCE_OK);
    }
    for (int i = 0; i < STRANGERS; i++) {
        close(fds[i]);
    }
}

static void test_strangers(void **state)
{
    strangers_check(words_none, 1);
    strangers_check(words_random, 2);
    strangers_check(words_half, 3);
    strangers_check(words_whole, 4);
    strangers_check(words_frame, 5);
}

/* Scanners come and go all the while. */
typedef struct scan {
    const hce_unique_id_t *id;
    _Atomic bool is_over;
    _Atomic int count;
} scan_t;

static void *scan_main(void *arg)
{
    scan_t *scan = arg;
    const hce_boot_uid_t *uid = (const hce_boot_uid_t *)scan->id->data;
    struct sockaddr_in in = {.sin_family = AF_INET,
                             .sin_port = htons(uid->addrs[0].port)};

    memcpy(&in.sin_addr, uid->addrs[0].ip, 4);
    while (!scan->is_over) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        if (connect(fd, (struct sockaddr *)&in, sizeof(in)) == 0) {
            (void)!send(fd, "HCEB", (size_t)scan->count % 5, MSG_NOSIGNAL);
        }
        close(fd);
        scan->count++;
    }
    return NULL;
}

static void test_scanners(void **state)
{
    hce_unique_id_t id;
    scan_t scan = {.id = &id};
    pthread_t thread;
    part_t parts[8];

    assert_int_equal(hce_boot_local_prepare(&id), HCE_OK);
    assert_int_equal(pthread_create(&thread, NULL, scan_main, &scan), 0);
    part_start(&parts[0], 0, 8, &id);
    for (int r = 1; r < 8; r++) {
        int seen = scan.count;

        while (scan.count < seen + 20) {
            poll(NULL, 0, 1);
        }
        part_start(&parts[r], r, 8, &id);
    }
    for (int r = 0; r < 8; r++) {
        assert_int_equal(part_end(&parts[r]), HCE_OK);
    }
    scan.is_over = true;
    pthread_join(thread, NULL);
}

/* More silent strangers than there are places. */
static void test_crowd(void **state)
{
    hce_unique_id_t id;
    part_t parts[3];
    int fds[300];

    assert_int_equal(hce_boot_local_prepare(&id), HCE_OK);
    part_start(&parts[0], 0, 3, &id);
    for (int i = 0; i < 300; i++) {
        fds[i] = part_connect(&id);
    }
    part_start(&parts[1], 1, 3, &id);
    part_start(&parts[2], 2, 3, &id);
    for (int r = 0; r < 3; r++) {
        assert_int_equal(part_end(&parts[r]), HCE_OK);
    }
    for (int i = 0; i < 300; i++) {
        close(fds[i]);
    }
}

/* One byte at a time, but a true rank. */
static void slow_send(int fd, const void *data, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        assert_int_equal(send(fd, (const char *)data + i, 1, MSG_NOSIGNAL), 1);
        if (i % 16 == 0) {
            poll(NULL, 0, 1);
        }
    }
}

/* Speaks the protocol by hand, as docs/WIRE.md says, up to the start. */
static void test_by_hand(void **state)
{
    hce_unique_id_t id;
    hce_boot_uid_t *uid = part_id_inside(&id);
    hce_boot_hello_t hello = {.rank = 1, .size = 2};
    hce_boot_frame_t frame = part_frame_make(HCE_BOOT_HELLO, sizeof(hello));
    hce_boot_claim_t claim = {.rank = 1, .size = 2, .type = HCE_BOOT_PROOF};
    hce_boot_challenge_t challenge;
    hce_boot_welcome_t welcome;
    uint8_t mac[HCE_BOOT_KEY_LEN];
    part_t hub;
    int fd;

    assert_int_equal(hce_boot_local_prepare(&id), HCE_OK);
    part_start(&hub, 0, 2, &id);
    fd = part_connect(&id);
    hello.job = claim.job = uid->job;
    memset(hello.nonce, 0x42, sizeof(hello.nonce));
    slow_send(fd, &frame, sizeof(frame));
    slow_send(fd, &hello, sizeof(hello));
    part_recv(fd, &frame, sizeof(frame));
    assert_int_equal(frame.type, HCE_BOOT_CHALLENGE);
    part_recv(fd, &challenge, sizeof(challenge));
    memcpy(claim.leaf_nonce, hello.nonce, 16);
    memcpy(claim.hub_nonce, challenge.nonce, 16);
    hce_boot_mac(uid->key, &claim, sizeof(claim), mac);
    frame = part_frame_make(HCE_BOOT_PROOF, sizeof(mac));
    slow_send(fd, &frame, sizeof(frame));
    slow_send(fd, mac, sizeof(mac));
    part_recv(fd, &frame, sizeof(frame));
    assert_int_equal(frame.type, HCE_BOOT_WELCOME);
    part_recv(fd, &welcome, sizeof(welcome));
    claim.type = HCE_BOOT_WELCOME;
    hce_boot_mac(uid->key, &claim, sizeof(claim), mac);
    assert_memory_equal(mac, welcome.mac, sizeof(mac));
    part_recv(fd, &frame, sizeof(frame));
    assert_int_equal(frame.type, HCE_BOOT_START);
    close(fd); /* gone, before the barrier */
    pthread_join(hub.thread, NULL);
    assert_int_equal(hub.self.status, HCE_OK);
    assert_int_equal(hub.self.failures, 1);
}

/* --- ends before it has a seat --- */

static int greet(const hce_unique_id_t *id, int rank, int size)
{
    hce_boot_hello_t hello = {.rank = rank, .size = size};
    hce_boot_challenge_t challenge;
    int fd = part_connect(id);

    hello.job = ((const hce_boot_uid_t *)id->data)->job;
    hello.who.pid = 4711;
    strcpy(hello.who.host, "elsewhere");
    part_frame_send(fd, HCE_BOOT_HELLO, &hello, sizeof(hello));
    part_frame_await(fd, HCE_BOOT_CHALLENGE, &challenge, sizeof(challenge));
    return fd;
}

/* Nobody waits for it until the deadline, which would be the test's end. */
static void test_gone_unseated(void **state)
{
    hce_unique_id_t id;
    part_t parts[2];

    assert_int_equal(hce_boot_local_prepare(&id), HCE_OK);
    part_start(&parts[0], 0, 3, &id);
    part_start(&parts[1], 2, 3, &id);
    close(greet(&id, 1, 3));
    assert_int_equal(part_end(&parts[0]), HCE_ERR_GONE);
    assert_int_equal(part_end(&parts[1]), HCE_ERR_GONE);
}

/* A connection that ends is no end of a rank that calls again. */
static void test_back_unseated(void **state)
{
    hce_unique_id_t id;
    part_t parts[3];

    assert_int_equal(hce_boot_local_prepare(&id), HCE_OK);
    part_start(&parts[0], 0, 3, &id);
    close(greet(&id, 1, 3));
    part_start(&parts[1], 1, 3, &id);
    poll(NULL, 0, 2000); /* longer than it may be away */
    part_start(&parts[2], 2, 3, &id);
    for (int r = 0; r < 3; r++) {
        assert_int_equal(part_end(&parts[r]), HCE_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_strangers),
        cmocka_unit_test(test_scanners),
        cmocka_unit_test(test_crowd),
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_gone_unseated),
        cmocka_unit_test(test_back_unseated),
    };

    ranks_setup();
    return cmocka_run_group_tests_name("boot_hostile", tests, NULL, NULL);
}
