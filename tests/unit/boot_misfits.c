/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Ranks that do not fit into a group that forms: of another version, with
 * another secret, twice, of another size; hubs that are none.
 */
#include <config.h>

#include "boot_part.h"

#include "boot/local.h"
#include "boot/unique_id.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

/* --- versions --- */

static void test_version_at_hub(void **state)
{
    hce_unique_id_t id;
    hce_boot_hello_t hello = {.rank = 1, .size = 3};
    hce_boot_frame_t frame = part_frame_make(HCE_BOOT_HELLO, sizeof(hello));
    hce_boot_refuse_t refuse;
    part_t parts[2];
    int fd;

    assert_int_equal(hce_boot_local_prepare(&id), HCE_OK);
    part_start(&parts[0], 0, 3, &id);
    part_start(&parts[1], 2, 3, &id);
    fd = part_connect(&id);
    frame.version = HCE_BOOT_WIRE_VERSION + 1;
    hello.job = part_id_inside(&id)->job;
    send(fd, &frame, sizeof(frame), MSG_NOSIGNAL);
    send(fd, &hello, sizeof(hello), MSG_NOSIGNAL);
    part_recv(fd, &frame, sizeof(frame));
    assert_int_equal(frame.type, HCE_BOOT_REFUSE);
    part_recv(fd, &refuse, sizeof(refuse));
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
    part_id_inside(&id)->addrs[0] = listen.addr[0];
    part_start(&leaf, 1, 2, &id);
    while (hce_boot_net_accept(listen.fd[0], &fd) != 0) {
        poll(NULL, 0, 1);
    }
    part_frame_await(fd, HCE_BOOT_HELLO, &hello, sizeof(hello));
    frame = part_frame_make(HCE_BOOT_REFUSE, sizeof(refuse));
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
    part_id_inside(&id)->addrs[0] = listen.addr[0];
    part_start(&leaf, 1, 2, &id);
    while (hce_boot_net_accept(listen.fd[0], &fd) != 0) {
        poll(NULL, 0, 1);
    }
    hce_boot_listen_close(&listen);
    part_frame_await(fd, HCE_BOOT_HELLO, &hello, sizeof(hello));
    part_frame_send(fd, HCE_BOOT_CHALLENGE, &challenge, sizeof(challenge));
    part_frame_await(fd, HCE_BOOT_PROOF, &proof, sizeof(proof));
    part_frame_send(fd, HCE_BOOT_WELCOME, &welcome, sizeof(welcome));
    /* The leaf may have seen through it and be gone. */
    start = part_frame_make(HCE_BOOT_START, 0);
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
    hello.job = part_id_inside(&id)->job + 1;
    part_start(&parts[0], 0, 2, &id);
    fd = part_connect(&id);
    part_frame_send(fd, HCE_BOOT_HELLO, &hello, sizeof(hello));
    part_recv(fd, &frame, sizeof(frame));
    assert_int_equal(frame.type, HCE_BOOT_REFUSE);
    part_recv(fd, &refuse, sizeof(refuse));
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
    part_id_inside(&wrong)->key[3] ^= 1;
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
        cmocka_unit_test(test_version_at_hub),
        cmocka_unit_test(test_version_at_leaf),
        cmocka_unit_test(test_false_hub),
        cmocka_unit_test(test_other_job),
        cmocka_unit_test(test_wrong_secret),
        cmocka_unit_test(test_misfits),
        cmocka_unit_test(test_hub_gone),
    };

    ranks_setup();
    return cmocka_run_group_tests_name("boot_misfits", tests, NULL, NULL);
}
