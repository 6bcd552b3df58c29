/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Writing to another process' memory.
 */
#include <config.h>

#include "ce/host/host.h"

#include <errno.h>
#include <sys/uio.h>

int hce_ce_vm_write(pid_t pid, uint64_t remote, const char *src, size_t len)
{
    struct iovec from, to;
    ssize_t n;

    while (len > 0) {
        from = (struct iovec){(void *)(uintptr_t)src, len};
        to = (struct iovec){(void *)(uintptr_t)remote, len};
        n = process_vm_writev(pid, &from, 1, &to, 1, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? errno : EIO;
        src += n;
        remote += (uint64_t)n;
        len -= (size_t)n;
    }
    return 0;
}
