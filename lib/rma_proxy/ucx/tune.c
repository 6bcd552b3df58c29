/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * UCX transport: how large the socket buffers of TCP connections may be. What
 * all of them hold lands in the queue of one port: beyond what that keeps,
 * segments are lost, and the flows share the link unevenly. A port that is
 * shaped to 500 Mbit/s and queues 20 ms, three nodes sending to it over two
 * flows each, carried 88 % of its rate with 256 KiB each, 94 % with 64 KiB.
 *
 * Receivers get as much as senders. With 512 KiB behind 64 KiB, connections
 * stood still for 50 ms now and then, without a loss: calls of 128 KiB a rank
 * reached 66 to 99 % of that port's rate, with 64 KiB on both sides over 99.
 */
#include "config.h"

#include "rma_proxy/ucx/ucx.h"

#include "rma_proxy/settings.h"
#include "util/math.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* 6.4 ms, of a queue of 20 ms: the kernel lets twice as much in, and with
 * 10 ms the same port carried 90 %. A link of unknown rate is taken for a
 * slow one, which costs a fast one little while round trips are short. */
#define QUEUE_BYTES_A_MBIT 800
#define QUEUE_UNKNOWN      (384 * HCE_KIB)
#define SOCKBUF_MIN         (32 * HCE_KIB)
#define SOCKBUF_MAX_UNKNOWN (256 * HCE_KIB)
#define SOCKBUF_MAX         (1 * HCE_MIB)

#define TCP_DEVICE "tcp/"

size_t hce_ucx_sockbuf(int flows, uint64_t mbit)
{
    uint64_t queue = mbit == 0 ? QUEUE_UNKNOWN : mbit * QUEUE_BYTES_A_MBIT;
    uint64_t most = mbit == 0 ? SOCKBUF_MAX_UNKNOWN : SOCKBUF_MAX;
    uint64_t size = queue / (uint64_t)hce_max(flows, 1);

    return (size_t)hce_max(hce_min(size, most), SOCKBUF_MIN);
}

/* Mbit/s, 0: unknown. Virtual devices name a speed that means nothing; those
 * with hardware behind them have a link to it. */
static uint64_t device_mbit(const char *name, int len)
{
    char path[128], text[32] = "";
    ssize_t got = -1;
    long mbit;
    int fd;

    snprintf(path, sizeof(path), "/sys/class/net/%.*s/device", len, name);
    if (access(path, F_OK) < 0)
        return 0;
    snprintf(path, sizeof(path), "/sys/class/net/%.*s/speed", len, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    got = read(fd, text, sizeof(text) - 1); /* EINVAL while it is down */
    close(fd);
    mbit = got > 0 ? strtol(text, NULL, 10) : 0;
    return mbit > 0 ? (uint64_t)mbit : 0;
}

uint64_t hce_ucx_link_mbit(const char *devices)
{
    uint64_t least = UINT64_MAX, mbit;
    const char *at = devices;
    int len;

    if (hce_proxy_settings.link_mbit > 0)
        return (uint64_t)hce_proxy_settings.link_mbit;
    while ((at = strstr(at, TCP_DEVICE)) != NULL) {
        at += strlen(TCP_DEVICE);
        len = (int)strcspn(at, " ");
        if (len == 2 && strncmp(at, "lo", 2) == 0)
            continue;
        mbit = device_mbit(at, len);
        if (mbit == 0)
            return 0;
        least = hce_min(least, mbit);
    }
    return least == UINT64_MAX ? 0 : least;
}
