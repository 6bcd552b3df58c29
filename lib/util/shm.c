/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Shared segments over memfd_create(2). A segment is sealed at birth, so that
 * whoever maps it may rely on its size for as long as it lives.
 */
#include <config.h>

#include "util/shm.h"
#include "util/log.h"
#include "util/math.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static hce_status_t status_of_errno(void)
{
    return errno == ENOMEM || errno == EMFILE || errno == ENFILE
               ? HCE_ERR_NO_MEMORY
               : HCE_ERR_SYSTEM;
}

/* Whole pages; 0 where size is 0 or too large for a file. */
static size_t page_round(size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    return size > INT64_MAX - page ? 0 : hce_round_up(size, page);
}

static hce_status_t shm_mmap(int fd, size_t size, hce_shm_t *shm_p)
{
    void *addr = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (addr == MAP_FAILED) {
        hce_log(ERROR, UTIL, "shared segment: mmap of %zu bytes: %m", size);
        return status_of_errno();
    }
    shm_p->addr = addr;
    shm_p->size = size;
    shm_p->fd = fd;
    return HCE_OK;
}

hce_status_t hce_shm_create(const char *name, size_t size, hce_shm_t *shm_p)
{
    size_t pages = page_round(size);
    hce_status_t status;
    int fd;

    if (pages == 0) {
        hce_log(ERROR, UTIL, "shared segment %s: size %zu is not possible",
                name, size);
        return HCE_ERR_INVALID_ARG;
    }
    fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) {
        hce_log(ERROR, UTIL, "shared segment %s: memfd_create: %m", name);
        return status_of_errno();
    }
    if (ftruncate(fd, (off_t)pages) != 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) !=
            0) {
        hce_log(ERROR, UTIL, "shared segment %s of %zu bytes: %m", name,
                pages);
        status = status_of_errno();
        goto err_close;
    }
    status = shm_mmap(fd, pages, shm_p);
    if (status != HCE_OK)
        goto err_close;
    return HCE_OK;

err_close:
    close(fd);
    return status;
}

/* What a peer sends may be any descriptor: reading past its end, now or after
 * the peer cut it short, would kill this process. */
static hce_status_t fd_check(int fd, size_t size)
{
    struct stat st;
    int seals;

    if (fstat(fd, &st) != 0) {
        hce_log(ERROR, UTIL, "shared segment: fstat: %m");
        return HCE_ERR_SYSTEM;
    }
    if (st.st_size < 0 || (uint64_t)st.st_size < size) {
        hce_log(ERROR, UTIL,
                "shared segment: has %lld bytes, expected at least %zu",
                (long long)st.st_size, size);
        return HCE_ERR_INVALID_ARG;
    }
    seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) {
        hce_log(ERROR, UTIL,
                "shared segment: is not sealed against shrinking");
        return HCE_ERR_INVALID_ARG;
    }
    return HCE_OK;
}

hce_status_t hce_shm_map(int fd, size_t size, hce_shm_t *shm_p)
{
    size_t pages = page_round(size);
    hce_status_t status;

    if (pages == 0) {
        hce_log(ERROR, UTIL, "shared segment: size %zu is not possible", size);
        return HCE_ERR_INVALID_ARG;
    }
    status = fd_check(fd, size);
    if (status != HCE_OK)
        return status;
    return shm_mmap(fd, pages, shm_p);
}

void hce_shm_destroy(hce_shm_t *shm)
{
    if (shm->addr == NULL)
        return; /* zeroed or destroyed: its fd is nobody's */
    munmap(shm->addr, shm->size);
    if (shm->fd >= 0)
        close(shm->fd);
    *shm = (hce_shm_t){.fd = -1};
}
