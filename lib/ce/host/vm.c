/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Another process' memory, written and read.
 */
#include <config.h>

#include "ce/host/host.h"

#include <errno.h>
#include <sys/uio.h>

typedef ssize_t (*vm_call_t)(pid_t pid, const struct iovec *local,
                             unsigned long num_local,
                             const struct iovec *remote,
                             unsigned long num_remote, unsigned long flags);

static int vm_move(vm_call_t call, pid_t pid, uint64_t remote, char *local,
                   size_t len)
{
    struct iovec here, there;
    ssize_t n;

    while (len > 0) {
        here = (struct iovec){local, len};
        there = (struct iovec){(void *)(uintptr_t)remote, len};
        n = call(pid, &here, 1, &there, 1, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? errno : EIO;
        local += n;
        remote += (uint64_t)n;
        len -= (size_t)n;
    }
    return 0;
}

int hce_ce_vm_write(pid_t pid, uint64_t remote, const char *src, size_t len)
{
    return vm_move(process_vm_writev, pid, remote, (char *)src, len);
}

int hce_ce_vm_read(pid_t pid, uint64_t remote, char *dst, size_t len)
{
    return vm_move(process_vm_readv, pid, remote, dst, len);
}
