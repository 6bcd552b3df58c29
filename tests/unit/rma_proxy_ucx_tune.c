/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The ucx transport's socket buffers: the rule, and what the sockets of a
 * running transport have got, with the user's own setting and without.
 */
#include "config.h"

#include "rma_proxy/settings.h"
#include "rma_proxy/ucx/ucx.h"
#include "rma_proxy_world.h"
#include "util/math.h"

#include <dirent.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <cmocka.h>

/* What the kernel makes of a wish: no more than it allows, and twice that. */
static int granted(const char *limit, size_t wish)
{
    FILE *file = fopen(limit, "re");
    unsigned long most = 0;

    assert_non_null(file);
    assert_int_equal(fscanf(file, "%lu", &most), 1);
    fclose(file);
    return (int)(2 * hce_min(wish, most));
}

/* Is fd a TCP connection that stands? If so, its buffer of that kind. */
static bool connection_buffer(int fd, int kind, int *size_p)
{
    struct sockaddr_in peer;
    socklen_t peer_len = sizeof(peer), type_len = sizeof(int);
    socklen_t size_len = sizeof(*size_p);
    int type;

    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_len) == 0 &&
           type == SOCK_STREAM &&
           getpeername(fd, (struct sockaddr *)&peer, &peer_len) == 0 &&
           peer.sin_family == AF_INET &&
           getsockopt(fd, SOL_SOCKET, kind, size_p, &size_len) == 0;
}

/* Connections of this process; *differ_p counts those whose buffer of a kind
 * is not as expected. */
static int connections_count(int kind, int expected, int *differ_p)
{
    DIR *dir = opendir("/proc/self/fd");
    struct dirent *entry;
    int num = 0, size;

    *differ_p = 0;
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        if (!connection_buffer(atoi(entry->d_name), kind, &size))
            continue;
        num++;
        if (size != expected)
            printf("# a buffer of %d, not %d\n", size, expected);
        *differ_p += size != expected;
    }
    if (dir != NULL)
        closedir(dir);
    return num;
}

static size_t send_wish, receive_wish;

static bool buffers_are(int kind, const char *limit, size_t wish)
{
    int differ, num = connections_count(kind, granted(limit, wish), &differ);

    return num > 0 && differ == 0;
}

static void connected_body(world_rank_t *self)
{
    hce_transport_req_t req = {0};
    int peer = 1 - self->rank;

    world_fill(self->src, 1000, self->rank, 1);
    world_put(self, peer, 0, self->src, 1000, world_remote(self, peer), &req);
    world_signal(self, peer, 0, 0, 1);
    world_wait(self, peer, 0, 1, false);
    WORLD_CHECK(self, world_is(world_local(self, peer), 1000, peer, 1));
    world_barrier(self);
    if (self->rank == 0) {
        WORLD_CHECK(self, buffers_are(SO_SNDBUF, "/proc/sys/net/core/wmem_max",
                                      send_wish));
        WORLD_CHECK(self, buffers_are(SO_RCVBUF, "/proc/sys/net/core/rmem_max",
                                      receive_wish));
    }
    world_barrier(self);
}

static void connect_and_look(size_t send, size_t receive)
{
    world_t world = {.ops = &hce_transport_ucx,
                     .size = 2,
                     .contexts = 1,
                     .body = connected_body};

    send_wish = send;
    receive_wish = receive;
    assert_int_equal(world_run(&world), 0);
}

static void test_rule(void **state)
{
    /* Known rates: the sum of all stays below what queues. */
    assert_int_equal(hce_ucx_sockbuf(6, 500), 500 * 800 / 6);
    assert_int_equal(hce_ucx_sockbuf(2, 500), 500 * 800 / 2);
    assert_int_equal(hce_ucx_sockbuf(1, 100000), HCE_MIB);
    /* Unknown ones. */
    assert_int_equal(hce_ucx_sockbuf(1, 0), 256 * HCE_KIB);
    assert_int_equal(hce_ucx_sockbuf(6, 0), 64 * HCE_KIB);
    /* Never nothing, however many share it. */
    assert_int_equal(hce_ucx_sockbuf(100000, 10), 32 * HCE_KIB);
    assert_int_equal(hce_ucx_sockbuf(100000, 0), 32 * HCE_KIB);
    assert_int_equal(hce_ucx_sockbuf(0, 0), 256 * HCE_KIB);
}

static void test_rate(void **state)
{
    hce_proxy_settings.link_mbit = 0;
    assert_int_equal(hce_ucx_link_mbit(""), 0);
    assert_int_equal(hce_ucx_link_mbit("tcp/lo"), 0);
    assert_int_equal(hce_ucx_link_mbit("tcp/lo tcp/none77"), 0);
    assert_int_equal(hce_ucx_link_mbit("tcp/../../../../etc"), 0);
    hce_proxy_settings.link_mbit = 60;
    assert_int_equal(hce_ucx_link_mbit("tcp/lo tcp/none77"), 60);
    hce_proxy_settings.link_mbit = 0;
}

static void test_sockets_have_it(void **state)
{
    unsetenv("UCX_TCP_SNDBUF");
    unsetenv("UCX_TCP_RCVBUF");
    connect_and_look(256 * HCE_KIB, 256 * HCE_KIB);
    hce_proxy_settings.link_mbit = 60;
    connect_and_look(60 * 800, 60 * 800);
    hce_proxy_settings.link_mbit = 0;
}

static void test_the_user_wins(void **state)
{
    setenv("UCX_TCP_SNDBUF", "100kb", 1);
    connect_and_look(100 * HCE_KIB, 256 * HCE_KIB);
    setenv("UCX_TCP_RCVBUF", "150kb", 1);
    connect_and_look(100 * HCE_KIB, 150 * HCE_KIB);
    hce_proxy_settings.link_mbit = 60;
    connect_and_look(100 * HCE_KIB, 150 * HCE_KIB);
    hce_proxy_settings.link_mbit = 0;
    unsetenv("UCX_TCP_SNDBUF");
    unsetenv("UCX_TCP_RCVBUF");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rule),
        cmocka_unit_test(test_rate),
        cmocka_unit_test(test_sockets_have_it),
        cmocka_unit_test(test_the_user_wins),
    };

    /* Whatever the user of this test has set for UCX. */
    setenv("UCX_TLS", "tcp,self", 1);
    world_transport();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
