/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * See ce_cuda.h.
 */
#include "config.h"

#include "ce_cuda.h"

#include "util/clock.h"

#include <sched.h>
#include <sys/wait.h>

static unsigned char byte_at(size_t i, unsigned seed)
{
    return (unsigned char)(i * 7 + (i >> 8) * 13 + seed * 31 + 1);
}

void cuda_fill(unsigned char *at, size_t len, unsigned seed)
{
    size_t i;

    for (i = 0; i < len; i++)
        at[i] = byte_at(i, seed);
}

bool cuda_is_filled(const unsigned char *at, size_t len, unsigned seed)
{
    size_t i;

    for (i = 0; i < len; i++) {
        if (at[i] != byte_at(i, seed)) {
            fprintf(stderr, "byte %zu of %zu is wrong\n", i, len);
            return false;
        }
    }
    return true;
}

/* By the legacy stream of the device. */
static void transfer(int dev, hce_ce_dev_ptr_t ptr, void *host, size_t len,
                     bool to_host)
{
    hce_cu_ptr_t at = rig_ptr(host), before;
    hce_cu_ctx_t ctx, old;

    (void)before;
    CUDA_CHECK(gpu.primary_ctx_retain(&ctx, dev) == 0);
    CUDA_CHECK(gpu.ctx_push_current(ctx) == 0);
    CUDA_CHECK(gpu.memcpy_async(to_host ? at : ptr, to_host ? ptr : at, len,
                                NULL) == 0);
    CUDA_CHECK(gpu.stream_synchronize(NULL) == 0);
    CUDA_CHECK(gpu.ctx_pop_current(&old) == 0);
    CUDA_CHECK(gpu.primary_ctx_release(dev) == 0);
}

void cuda_put(int dev, hce_ce_dev_ptr_t ptr, size_t len, unsigned seed)
{
    unsigned char *host = rig_host(len);

    cuda_fill(host, len, seed);
    transfer(dev, ptr, host, len, false);
    rig_host_free(host, len);
}

bool cuda_holds(int dev, hce_ce_dev_ptr_t ptr, size_t len, unsigned seed)
{
    unsigned char *host = rig_host(len);
    bool is_right;

    transfer(dev, ptr, host, len, true);
    is_right = cuda_is_filled(host, len, seed);
    rig_host_free(host, len);
    return is_right;
}

void cuda_copy(hce_ce_dev_t *dev, void *user, hce_ce_dev_copy_t copy)
{
    hce_ce_dev_launch_t *launch;

    CUDA_CHECK(OPS->begin(dev, user, &launch) == HCE_OK);
    CUDA_CHECK(OPS->copy(launch, 0, &copy, 1) == HCE_OK);
    CUDA_CHECK(OPS->end(launch) == HCE_OK);
}

void cuda_drained(hce_ce_dev_t *dev)
{
    uint64_t deadline = hce_clock_ns() + 60000000000ull;
    hce_status_t status;

    while ((status = OPS->query(dev)) == HCE_INPROGRESS) {
        CUDA_CHECK(hce_clock_ns() < deadline);
        sched_yield();
    }
    CUDA_CHECK(status == HCE_OK);
}

int cuda_child(int (*fn)(void *arg), void *arg)
{
    int status;
    pid_t pid;

    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        status = fn(arg);
        fflush(NULL);
        _exit(status);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}
