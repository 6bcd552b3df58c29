/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * A buffer as others can open it. The driver exports whole allocations: what
 * is told besides is where in there the buffer begins. Memory by handle may
 * be several allocations side by side.
 */
#include "config.h"

#include "ce/cuda/cuda.h"

#include "ce/host/mem.h"
#include "util/log.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static_assert(HCE_CE_DEV_TOKEN == HCE_CE_TOKEN_LEN, "one token");
static_assert(sizeof(hce_cu_ipc_mem_t) == HCE_CE_DEV_HANDLE &&
                  sizeof(hce_cu_fabric_t) == HCE_CE_DEV_HANDLE,
              "one size of handles");

static hce_status_t ask(const hce_ce_dev_t *dev, hce_cu_enum_t attr,
                        hce_cu_ptr_t ptr, void *out)
{
    return hce_drv_check(dev->drv->pointer_get_attribute(out, attr, ptr),
                         "cuPointerGetAttribute",
                         "attribute %u of %#llx on device %d", attr, ptr,
                         dev->attr.ordinal);
}

static hce_ce_dev_part_t *part_add(hce_ce_dev_export_t *exported)
{
    size_t num = exported->num_parts;
    hce_ce_dev_part_t *parts =
        realloc(exported->parts, (num + 1) * sizeof(*parts));

    if (parts == NULL) {
        hce_log(ERROR, CE, "no memory to export a buffer");
        return NULL;
    }
    exported->parts = parts;
    parts[num] = (hce_ce_dev_part_t){.fd = -1};
    return &parts[num];
}

/* cudaMalloc'd: one allocation. Several small ones may share the driver's
 * unit of memory; the handle's opener gets where the allocation begins. */
static hce_status_t ipc_export(hce_ce_dev_t *dev,
                               hce_ce_dev_export_t *exported)
{
    hce_ce_dev_part_t *part = part_add(exported);
    hce_cu_ipc_mem_t handle;
    hce_cu_ptr_t base;
    hce_status_t status;
    size_t size;

    if (part == NULL)
        return HCE_ERR_NO_MEMORY;
    status = hce_drv_check(
        dev->drv->mem_get_address_range(&base, &size, exported->addr),
        "cuMemGetAddressRange", "%#llx", (unsigned long long)exported->addr);
    if (status != HCE_OK)
        return status;
    if (exported->len > size - (exported->addr - base)) {
        hce_log(ERROR, CE,
                "%llu bytes at %#llx are more than their allocation",
                (unsigned long long)exported->len,
                (unsigned long long)exported->addr);
        return HCE_ERR_INVALID_ARG;
    }
    status = hce_drv_check(dev->drv->ipc_get_mem_handle(&handle, base),
                           "cuIpcGetMemHandle", "%zu bytes", size);
    if (status != HCE_OK)
        return status;
    part->len = size;
    part->how = HCE_CE_DEV_IPC;
    memcpy(part->handle, &handle, sizeof(handle));
    exported->base = base;
    exported->num_parts = 1;
    return HCE_OK;
}

/* One allocation that begins at va. */
static hce_status_t part_export(hce_ce_dev_t *dev, hce_cu_ptr_t va,
                                hce_ce_dev_how_t how, hce_ce_dev_part_t *part)
{
    const hce_drv_t *drv = dev->drv;
    hce_cu_mem_t handle;
    hce_status_t status;
    int fd = -1;
    bool is_fd = how == HCE_CE_DEV_FD;

    status =
        hce_drv_check(drv->mem_retain_handle(&handle, (void *)(uintptr_t)va),
                      "cuMemRetainAllocationHandle", "%#llx", va);
    if (status != HCE_OK)
        return status;
    status = hce_drv_check(
        drv->mem_export(is_fd ? (void *)&fd : part->handle, handle,
                        is_fd ? HCE_CU_HANDLE_FD : HCE_CU_HANDLE_FABRIC, 0),
        "cuMemExportToShareableHandle", "%#llx", va);
    (void)hce_drv_check(drv->mem_release(handle), "cuMemRelease", "%#llx", va);
    if (status == HCE_OK) {
        part->how = how;
        part->fd = fd;
    }
    return status;
}

static hce_status_t vmm_export(hce_ce_dev_t *dev, hce_ce_dev_how_t how,
                               hce_ce_dev_export_t *exported)
{
    hce_cu_ptr_t end = exported->addr + exported->len, va;
    hce_ce_dev_part_t *part;
    hce_status_t status;
    size_t size;

    status = ask(dev, HCE_CU_PTR_MAPPING_BASE, exported->addr, &va);
    exported->base = va;
    while (status == HCE_OK && va < end) {
        part = part_add(exported);
        if (part == NULL)
            return HCE_ERR_NO_MEMORY;
        status = ask(dev, HCE_CU_PTR_MAPPING_SIZE, va, &size);
        if (status == HCE_OK)
            status = part_export(dev, va, how, part);
        if (status != HCE_OK)
            break;
        part->len = size;
        exported->num_parts++;
        va += size;
    }
    return status;
}

static hce_status_t any_export(hce_ce_dev_t *dev,
                               hce_ce_dev_export_t *exported)
{
    unsigned is_ipc = 0;
    uint64_t types = 0;
    hce_status_t status;

    status = ask(dev, HCE_CU_PTR_BUFFER_ID, exported->addr, &exported->id);
    if (status == HCE_OK)
        status = ask(dev, HCE_CU_PTR_IS_IPC_CAPABLE, exported->addr, &is_ipc);
    if (status == HCE_OK && is_ipc)
        return ipc_export(dev, exported);
    if (status == HCE_OK)
        status = ask(dev, HCE_CU_PTR_HANDLE_TYPES, exported->addr, &types);
    if (status != HCE_OK)
        return status;
    if (types & HCE_CU_HANDLE_FD)
        return vmm_export(dev, HCE_CE_DEV_FD, exported);
    if (types & HCE_CU_HANDLE_FABRIC)
        return vmm_export(dev, HCE_CE_DEV_FABRIC, exported);
    hce_log(ERROR, CE,
            "memory at %#llx of device %d cannot be opened by other "
            "processes: it was made with no handle to export",
            (unsigned long long)exported->addr, dev->attr.ordinal);
    return HCE_ERR_UNSUPPORTED;
}

hce_status_t hce_ce_cuda_export(hce_ce_dev_t *dev, hce_ce_dev_ptr_t ptr,
                                size_t len, hce_ce_dev_export_t *export_p)
{
    hce_ce_dev_export_t exported = {
        .addr = ptr, .len = len, .ordinal = dev->attr.ordinal};
    hce_drv_scope_t scope;
    hce_status_t status;

    status = hce_ce_process_token(exported.token);
    if (status != HCE_OK)
        return status;
    status = hce_ce_cuda_enter(dev, &scope);
    if (status != HCE_OK)
        return status;
    status = any_export(dev, &exported);
    hce_drv_leave(&scope);
    if (status != HCE_OK) {
        hce_ce_cuda_export_free(&exported);
        return status;
    }
    *export_p = exported;
    return HCE_OK;
}

void hce_ce_cuda_export_free(hce_ce_dev_export_t *exported)
{
    uint32_t i;

    for (i = 0; i < exported->num_parts; i++) {
        if (exported->parts[i].fd >= 0)
            close(exported->parts[i].fd);
    }
    free(exported->parts);
    exported->parts = NULL;
    exported->num_parts = 0;
}
