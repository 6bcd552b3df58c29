/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * One rank in a thread, and callers that speak the protocol by hand.
 */
#include <config.h>

#include "boot_part.h"

#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

hce_boot_uid_t *part_id_inside(hce_unique_id_t *id)
{
    return (hce_boot_uid_t *)id->data;
}

int part_connect(const hce_unique_id_t *id)
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

hce_boot_frame_t part_frame_make(hce_boot_type_t type, size_t len)
{
    hce_boot_frame_t frame = {.magic = HCE_BOOT_MAGIC,
                              .version = HCE_BOOT_WIRE_VERSION,
                              .type = (uint16_t)type,
                              .len = (uint32_t)len};

    return frame;
}

void part_frame_await(int fd, hce_boot_type_t type, void *body, size_t len)
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

void part_frame_send(int fd, hce_boot_type_t type, const void *body,
                     size_t len)
{
    hce_boot_frame_t frame = part_frame_make(type, len);

    assert_int_equal(send(fd, &frame, sizeof(frame), MSG_NOSIGNAL),
                     sizeof(frame));
    assert_int_equal(send(fd, body, len, MSG_NOSIGNAL), (ssize_t)len);
}

static void *part_main(void *arg)
{
    part_t *part = arg;

    part->self.status = hce_boot_create(&part->params, &part->self.boot);
    if (part->self.status == HCE_OK) {
        part->self.failures +=
            hce_boot_barrier(part->self.boot, ranks_soon()) != HCE_OK;
        hce_boot_goodbye(part->self.boot, 10 * HCE_NS_PER_SEC);
        hce_boot_destroy(part->self.boot);
    }
    return NULL;
}

void part_start(part_t *part, int rank, int size, const hce_unique_id_t *id)
{
    memset(part, 0, sizeof(*part));
    part->params.bootstrap = HCE_BOOTSTRAP_TCP;
    part->params.rank = rank;
    part->params.size = size;
    part->params.unique_id = id;
    part->params.deadline = ranks_soon();
    assert_int_equal(pthread_create(&part->thread, NULL, part_main, part), 0);
}

hce_status_t part_end(part_t *part)
{
    pthread_join(part->thread, NULL);
    assert_int_equal(part->self.failures, 0);
    return part->self.status;
}

void part_recv(int fd, void *data, size_t len)
{
    assert_int_equal(recv(fd, data, len, MSG_WAITALL), (ssize_t)len);
}
