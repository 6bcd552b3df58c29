/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Strangers on the port while a group forms, and ranks that do not fit: of
 * another version, with another secret, twice, of another size.
 */
#include <config.h>

#include "boot_ranks.h"

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

static uint64_t soon(void)
{
    return hce_clock_deadline(RANKS_LIMIT_NS);
}

static hce_boot_uid_t *inside(hce_unique_id_t *id)
{
    return (hce_boot_uid_t *)id->data;
}

static int stranger_connect(const hce_unique_id_t *id)
{
    const hce_boot_uid_t *uid = (const hce_boot_uid_t *)id->data;
    const hce_boot_addr_t *addr = &uid->addrs[uid->num_addrs - 1];
    struct sockaddr_in in = {.sin_family = AF_INET,
                             .sin_port = htons(addr->port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    memcpy(&in.sin_addr, addr->ip, 4);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&in, sizeof(in)), 0);
    return fd;
}

static hce_boot_frame_t frame_make(hce_boot_type_t type, size_t len)
{
    hce_boot_frame_t frame = {.magic = HCE_BOOT_MAGIC,
                              .version = HCE_BOOT_WIRE_VERSION,
                              .type = (uint16_t)type,
                              .len = (uint32_t)len};

    return frame;
}

/* Whole frames of a fake hub's caller. */
static void frame_await(int fd, hce_boot_type_t type, void *body, size_t len)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    hce_boot_frame_t frame;

    while (recv(fd, &frame, sizeof(frame), MSG_PEEK) < 0) {
        poll(&poll_fd, 1, 1000);
    }
    assert_int_equal(recv(fd, &frame, sizeof(frame), 0), sizeof(frame));
    assert_int_equal(frame.type, type);
    assert_int_equal(frame.len, len);
    assert_int_equal(recv(fd, body, len, 0), (ssize_t)len);
}

static void frame_send(int fd, hce_boot_type_t type, const void *body,
                       size_t len)
{
    hce_boot_frame_t frame = frame_make(type, len);

    assert_int_equal(send(fd, &frame, sizeof(frame), MSG_NOSIGNAL),
                     sizeof(frame));
    assert_int_equal(send(fd, body, len, MSG_NOSIGNAL), (ssize_t)len);
}

/* --- one rank in a thread --- */

typedef struct part {
    pthread_t thread;
    ranks_self_t self;
    hce_boot_params_t params;
} part_t;

static void *part_main(void *arg)
{
    part_t *part = arg;

    part->self.status = hce_boot_create(&part->params, &part->self.boot);
    if (part->self.status == HCE_OK) {
        part->self.failures +=
            hce_boot_barrier(part->self.boot, soon()) != HCE_OK;
        hce_boot_goodbye(part->self.boot, 10 * HCE_NS_PER_SEC);
        hce_boot_destroy(part->self.boot);
    }
    return NULL;
}

static void part_start(part_t *part, int rank, int size,
                       const hce_unique_id_t *id)
{
    memset(part, 0, sizeof(*part));
    part->params.bootstrap = HCE_BOOTSTRAP_TCP;
    part->params.rank = rank;
    part->params.size = size;
    part->params.unique_id = id;
    part->params.deadline = soon();
    assert_int_equal(pthread_create(&part->thread, NULL, part_main, part), 0);
}

static hce_status_t part_end(part_t *part)
{
    pthread_join(part->thread, NULL);
    assert_int_equal(part->self.failures, 0);
    return part->self.status;
}

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
        frame_make(HCE_BOOT_HELLO, sizeof(hce_boot_hello_t));

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
    hce_boot_frame_t frame = frame_make(
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

        fds[i] = stranger_connect(&id);
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
        fds[i] = stranger_connect(&id);
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

static void exact_recv(int fd, void *data, size_t len)
{
    assert_int_equal(recv(fd, data, len, MSG_WAITALL), (ssize_t)len);
}

/* Speaks the protocol by hand, as docs/WIRE.md says, up to the start. */
static void test_by_hand(void **state)
{
    hce_unique_id_t id;
    hce_boot_uid_t *uid = inside(&id);
    hce_boot_hello_t hello = {.rank = 1, .size = 2};
    hce_boot_frame_t frame = frame_make(HCE_BOOT_HELLO, sizeof(hello));
    hce_boot_claim_t claim = {.rank = 1, .size = 2, .type = HCE_BOOT_PROOF};
    hce_boot_challenge_t challenge;
    hce_boot_welcome_t welcome;
    uint8_t mac[HCE_BOOT_KEY_LEN];
    part_t hub;
    int fd;

    assert_int_equal(hce_boot_local_prepare(&id), HCE_OK);
    part_start(&hub, 0, 2, &id);
    fd = stranger_connect(&id);
    hello.job = claim.job = uid->job;
    memset(hello.nonce, 0x42, sizeof(hello.nonce));
    slow_send(fd, &frame, sizeof(frame));
    slow_send(fd, &hello, sizeof(hello));
    exact_recv(fd, &frame, sizeof(frame));
    assert_int_equal(frame.type, HCE_BOOT_CHALLENGE);
    exact_recv(fd, &challenge, sizeof(challenge));
    memcpy(claim.leaf_nonce, hello.nonce, 16);
    memcpy(claim.hub_nonce, challenge.nonce, 16);
    hce_boot_mac(uid->key, &claim, sizeof(claim), mac);
    frame = frame_make(HCE_BOOT_PROOF, sizeof(mac));
    slow_send(fd, &frame, sizeof(frame));
    slow_send(fd, mac, sizeof(mac));
    exact_recv(fd, &frame, sizeof(frame));
    assert_int_equal(frame.type, HCE_BOOT_WELCOME);
    exact_recv(fd, &welcome, sizeof(welcome));
    claim.type = HCE_BOOT_WELCOME;
    hce_boot_mac(uid->key, &claim, sizeof(claim), mac);
    assert_memory_equal(mac, welcome.mac, sizeof(mac));
    exact_recv(fd, &frame, sizeof(frame));
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
    int fd = stranger_connect(id);

    hello.job = ((const hce_boot_uid_t *)id->data)->job;
    hello.who.pid = 4711;
    strcpy(hello.who.host, "elsewhere");
    frame_send(fd, HCE_BOOT_HELLO, &hello, sizeof(hello));
    frame_await(fd, HCE_BOOT_CHALLENGE, &challenge, sizeof(challenge));
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

/* --- versions --- */

static void test_version_at_hub(void **state)
{
    hce_unique_id_t id;
    hce_boot_hello_t hello = {.rank = 1, .size = 3};
    hce_boot_frame_t frame = frame_make(HCE_BOOT_HELLO, sizeof(hello));
    hce_boot_refuse_t refuse;
    part_t parts[2];
    int fd;

    assert_int_equal(hce_boot_local_prepare(&id), HCE_OK);
    part_start(&parts[0], 0, 3, &id);
    part_start(&parts[1], 2, 3, &id);
    fd = stranger_connect(&id);
    frame.version = HCE_BOOT_WIRE_VERSION + 1;
    hello.job = inside(&id)->job;
    send(fd, &frame, sizeof(frame), MSG_NOSIGNAL);
    send(fd, &hello, sizeof(hello), MSG_NOSIGNAL);
    exact_recv(fd, &frame, sizeof(frame));
    assert_int_equal(frame.type, HCE_BOOT_REFUSE);
    exact_recv(fd, &refuse, sizeof(refuse));
    assert_int_equal(refuse.reason, HCE_BOOT_REASON_VERSION);
    assert_int_equal(refuse.version, HCE_BOOT_WIRE_VERSION);
    assert_non_null(strstr(refuse.text, "rank 1 speaks wire version 3, "
                                        "rank 0 speaks version 2"));
    assert_int_equal(part_end(&parts[0]), HCE_ERR_VERSION);
    assert_int_not_equal(part_end(&parts[1]), HCE_OK);
    close(fd);
}

/* A hub of another version refuses. */
static void test_version_at_leaf(void **state)
{
    hce_unique_id_t id;
    hce_boot_hello_t hello;
    hce_boot_frame_t frame;
    hce_boot_refuse_t refuse = {
        .reason = HCE_BOOT_REASON_VERSION, .version = 7, .text = "go away"};
    hce_boot_listen_t listen;
    hce_boot_addr_t loopback;
    part_t leaf;
    int fd = -1;

    hce_boot_addr_loopback(&loopback);
    assert_int_equal(hce_boot_listen_open(&loopback, &listen), HCE_OK);
    assert_int_equal(hce_boot_local_prepare(&id), HCE_OK);
    hce_boot_local_release(&id);
    inside(&id)->addrs[0] = listen.addr[0];
    part_start(&leaf, 1, 2, &id);
    while (hce_boot_net_accept(listen.fd[0], &fd) != 0) {
        poll(NULL, 0, 1);
    }
    frame_await(fd, HCE_BOOT_HELLO, &hello, sizeof(hello));
    frame = frame_make(HCE_BOOT_REFUSE, sizeof(refuse));
    frame.version = 7;
    send(fd, &frame, sizeof(frame), MSG_NOSIGNAL);
    send(fd, &refuse, sizeof(refuse), MSG_NOSIGNAL);
    assert_int_equal(part_end(&leaf), HCE_ERR_VERSION);
    close(fd);
    hce_boot_listen_close(&listen);
}

/* One that plays the hub's part but has not the key: the leaf goes on
 * looking, until nobody is there any more. */
static void test_false_hub(void **state)
{
    hce_unique_id_t id;
    hce_boot_hello_t hello;
    hce_boot_proof_t proof;
    hce_boot_challenge_t challenge = {.nonce = "nonce"};
    hce_boot_welcome_t welcome = {.seed = "seed"};
    hce_boot_frame_t start;
    hce_boot_listen_t listen;
    hce_boot_addr_t loopback;
    part_t leaf;
    int fd = -1;

    hce_boot_addr_loopback(&loopback);
    assert_int_equal(hce_boot_listen_open(&loopback, &listen), HCE_OK);
    assert_int_equal(hce_boot_local_prepare(&id), HCE_OK);
    hce_boot_local_release(&id);
    inside(&id)->addrs[0] = listen.addr[0];
    part_start(&leaf, 1, 2, &id);
    while (hce_boot_net_accept(listen.fd[0], &fd) != 0) {
        poll(NULL, 0, 1);
    }
    hce_boot_listen_close(&listen);
    frame_await(fd, HCE_BOOT_HELLO, &hello, sizeof(hello));
    frame_send(fd, HCE_BOOT_CHALLENGE, &challenge, sizeof(challenge));
    frame_await(fd, HCE_BOOT_PROOF, &proof, sizeof(proof));
    frame_send(fd, HCE_BOOT_WELCOME, &welcome, sizeof(welcome));
    /* The leaf may have seen through it and be gone. */
    start = frame_make(HCE_BOOT_START, 0);
    (void)send(fd, &start, sizeof(start), MSG_NOSIGNAL);
    assert_int_equal(part_end(&leaf), HCE_ERR_BOOTSTRAP);
    close(fd);
}

/* --- ranks that do not fit --- */

static void test_other_job(void **state)
{
    hce_unique_id_t id;
    hce_boot_hello_t hello = {.rank = 1, .size = 2};
    hce_boot_frame_t frame;
    hce_boot_refuse_t refuse;
    part_t parts[2];
    int fd;

    assert_int_equal(hce_boot_local_prepare(&id), HCE_OK);
    hello.job = inside(&id)->job + 1;
    part_start(&parts[0], 0, 2, &id);
    fd = stranger_connect(&id);
    frame_send(fd, HCE_BOOT_HELLO, &hello, sizeof(hello));
    exact_recv(fd, &frame, sizeof(frame));
    assert_int_equal(frame.type, HCE_BOOT_REFUSE);
    exact_recv(fd, &refuse, sizeof(refuse));
    assert_int_equal(refuse.reason, HCE_BOOT_REASON_JOB);
    close(fd);
    part_start(&parts[1], 1, 2, &id);
    assert_int_equal(part_end(&parts[0]), HCE_OK);
    assert_int_equal(part_end(&parts[1]), HCE_OK);
}

static void test_wrong_secret(void **state)
{
    hce_unique_id_t id, wrong;
    part_t parts[3], stranger;

    assert_int_equal(hce_boot_local_prepare(&id), HCE_OK);
    wrong = id;
    inside(&wrong)->key[3] ^= 1;
    part_start(&parts[0], 0, 3, &id);
    part_start(&parts[1], 1, 3, &id);
    part_start(&stranger, 2, 3, &wrong);
    assert_int_equal(part_end(&stranger), HCE_ERR_BOOTSTRAP);
    part_start(&parts[2], 2, 3, &id);
    for (int r = 0; r < 3; r++) {
        assert_int_equal(part_end(&parts[r]), HCE_OK);
    }
}

static void test_misfits(void **state)
{
    static const struct {
        int rank, size;
    } misfits[] = {{1, 3}, {2, 4}, {2, 2 + 60000}};

    for (size_t i = 0; i < sizeof(misfits) / sizeof(misfits[0]); i++) {
        hce_unique_id_t id;
        part_t parts[3];

        assert_int_equal(hce_boot_local_prepare(&id), HCE_OK);
        part_start(&parts[0], 0, 3, &id);
        part_start(&parts[1], 1, 3, &id);
        part_start(&parts[2], misfits[i].rank, misfits[i].size, &id);
        assert_int_equal(part_end(&parts[0]), HCE_ERR_CONFIG);
        assert_int_not_equal(part_end(&parts[1]), HCE_OK);
        assert_int_not_equal(part_end(&parts[2]), HCE_OK);
    }
}

/* Nobody listens where rank 0 once did: known without any deadline. */
static void test_hub_gone(void **state)
{
    hce_unique_id_t id;
    hce_boot_params_t params = {.bootstrap = HCE_BOOTSTRAP_TCP,
                                .rank = 1,
                                .size = 2,
                                .unique_id = &id,
                                .deadline = HCE_TIME_NEVER};
    hce_boot_t *boot;

    assert_int_equal(hce_boot_unique_id_create(&id), HCE_OK);
    hce_boot_local_release(&id);
    assert_int_equal(hce_boot_create(&params, &boot), HCE_ERR_BOOTSTRAP);
}

static void test_ids(void **state)
{
    hce_unique_id_t id, none = {.data = "nonsense"};
    part_t part;

    assert_int_equal(hce_get_unique_id(NULL), HCE_ERR_INVALID_ARG);
    part_start(&part, 0, 2, &none);
    assert_int_equal(part_end(&part), HCE_ERR_INVALID_ARG);
    assert_int_equal(hce_boot_unique_id_create(&id), HCE_OK);
    part_start(&part, 2, 2, &id);
    assert_int_equal(part_end(&part), HCE_ERR_INVALID_ARG);
    part_start(&part, 0, 1, &id);
    assert_int_equal(part_end(&part), HCE_OK);
    part_start(&part, 0, 1, &id); /* it is used up */
    assert_int_equal(part_end(&part), HCE_ERR_INVALID_ARG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ids),
        cmocka_unit_test(test_strangers),
        cmocka_unit_test(test_scanners),
        cmocka_unit_test(test_crowd),
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_gone_unseated),
        cmocka_unit_test(test_back_unseated),
        cmocka_unit_test(test_version_at_hub),
        cmocka_unit_test(test_version_at_leaf),
        cmocka_unit_test(test_false_hub),
        cmocka_unit_test(test_other_job),
        cmocka_unit_test(test_wrong_secret),
        cmocka_unit_test(test_misfits),
        cmocka_unit_test(test_hub_gone),
    };

    ranks_setup();
    return cmocka_run_group_tests_name("boot_hostile", tests, NULL, NULL);
}
