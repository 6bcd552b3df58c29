/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Verbs transport: device memory, where RDMA drivers do not find it by its
 * address. The driver gives a descriptor of the whole allocation, as it is
 * page-aligned; of that, the part asked for is registered. Any thread.
 */
#include "config.h"

#include "rma_proxy/verbs/verbs.h"

#include "drv/drv.h"
#include "util/math.h"

#include <errno.h>
#include <unistd.h>

#define PAGE 4096

/* -1: it is no device memory, or cannot be exported. */
static int descriptor_get(const hce_drv_t *drv, hce_cu_ptr_t addr,
                          uint64_t *offset_p)
{
    hce_cu_ptr_t base;
    size_t size;
    int fd;

    if (drv->mem_get_address_range(&base, &size, addr) != HCE_CU_OK ||
        drv->mem_get_handle_for_address_range(
            &fd, base, hce_round_up(size, PAGE), HCE_CU_RANGE_DMA_BUF, 0) !=
            HCE_CU_OK)
        return -1;
    *offset_p = addr - base;
    return fd;
}

static int descriptor_open(hce_cu_ptr_t addr, uint64_t *offset_p)
{
    hce_drv_scope_t scope;
    const hce_drv_t *drv;
    hce_cu_device_t device;
    hce_cu_ctx_t ctx;
    int ordinal, fd = -1;

    if (hce_drv_get(&drv) != HCE_OK ||
        drv->mem_get_handle_for_address_range == NULL ||
        drv->pointer_get_attribute(&ordinal, HCE_CU_PTR_DEVICE_ORDINAL,
                                   addr) != HCE_CU_OK ||
        drv->device_get(&device, ordinal) != HCE_CU_OK ||
        drv->primary_ctx_retain(&ctx, device) != HCE_CU_OK)
        return -1;
    if (hce_drv_enter(drv, ctx, &scope) == HCE_OK) {
        fd = descriptor_get(drv, addr, offset_p);
        hce_drv_leave(&scope);
    }
    (void)drv->primary_ctx_release(device);
    return fd;
}

/* Strictly ordered: a flush of a device's writes covers those that have come
 * to it, not those that others have overtaken. */
struct ibv_mr *hce_verbs_dmabuf_register(struct ibv_pd *pd, void *addr,
                                         size_t len)
{
    uint64_t iova = (uintptr_t)addr, offset = 0;
    int fd = descriptor_open(iova, &offset);
    struct ibv_mr *mr;
    int error;

    if (fd < 0) {
        errno = EFAULT;
        return NULL;
    }
    mr = ibv_reg_dmabuf_mr(pd, offset, len, iova, fd,
                           IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    error = errno;
    close(fd);
    errno = error;
    return mr;
}
