/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Memory of others: each is opened once and counted, however often its
 * owner registers it. What names it is the owner's process and the driver's
 * number of the allocation, which changes when an address is used again.
 */
#include "config.h"

#include "ce/cuda/cuda.h"

#include "ce/host/mem.h"
#include "util/log.h"

#include <stdlib.h>
#include <string.h>

static uint64_t parts_size(const hce_ce_dev_export_t *exported)
{
    uint64_t size = 0;
    uint32_t i;

    for (i = 0; i < exported->num_parts; i++)
        size += exported->parts[i].len;
    return size;
}

/* What another process says: the buffer must lie in its parts. */
static bool is_sound(const hce_ce_dev_export_t *exported)
{
    uint64_t size = 0, skip = exported->addr - exported->base;
    uint32_t i;

    for (i = 0; i < exported->num_parts; i++) {
        if (exported->parts[i].len == 0 ||
            exported->parts[i].len > UINT64_MAX / 4 - size ||
            (exported->parts[i].how == HCE_CE_DEV_IPC &&
             exported->num_parts != 1))
            return false;
        size += exported->parts[i].len;
    }
    return exported->num_parts > 0 && exported->addr >= exported->base &&
           skip <= size && exported->len <= size - skip;
}

static hce_status_t ipc_open(hce_ce_dev_t *dev, const hce_ce_dev_part_t *part,
                             hce_ce_dev_import_t *import)
{
    hce_cu_ipc_mem_t handle;

    memcpy(&handle, part->handle, sizeof(handle));
    import->is_ipc = true;
    return hce_drv_check(
        dev->drv->ipc_open_mem_handle(&import->ptr, handle,
                                      HCE_CU_IPC_LAZY_PEER_ACCESS),
        "cuIpcOpenMemHandle", "%llu bytes of another process, on device %d",
        (unsigned long long)part->len, dev->attr.ordinal);
}

static hce_status_t part_map(hce_ce_dev_t *dev, const hce_ce_dev_part_t *part,
                             hce_cu_ptr_t va)
{
    bool is_fd = part->how == HCE_CE_DEV_FD;
    void *from = is_fd ? (void *)(intptr_t)part->fd : (void *)part->handle;
    const hce_drv_t *drv = dev->drv;
    hce_cu_mem_t handle;
    hce_status_t status;

    status = hce_drv_check(
        drv->mem_import(&handle, from,
                        is_fd ? HCE_CU_HANDLE_FD : HCE_CU_HANDLE_FABRIC),
        "cuMemImportFromShareableHandle", "%llu bytes of another process",
        (unsigned long long)part->len);
    if (status != HCE_OK)
        return status;
    status = hce_drv_check(drv->mem_map(va, part->len, 0, handle, 0),
                           "cuMemMap", "%llu bytes of another process",
                           (unsigned long long)part->len);
    /* The mapping holds the memory. */
    (void)hce_drv_check(drv->mem_release(handle), "cuMemRelease",
                        "memory of another process");
    return status;
}

static void vmm_unmap(hce_ce_dev_t *dev, hce_cu_ptr_t ptr, uint64_t mapped,
                      uint64_t size)
{
    if (mapped > 0)
        (void)hce_drv_check(dev->drv->mem_unmap(ptr, mapped), "cuMemUnmap",
                            "memory of another process");
    (void)hce_drv_check(dev->drv->mem_address_free(ptr, size),
                        "cuMemAddressFree", "memory of another process");
}

static hce_status_t vmm_open(hce_ce_dev_t *dev,
                             const hce_ce_dev_export_t *exported,
                             hce_ce_dev_import_t *import)
{
    uint64_t mapped = 0;
    hce_status_t status;
    uint32_t i;

    status = hce_drv_check(
        dev->drv->mem_address_reserve(&import->ptr, import->size, 0, 0, 0),
        "cuMemAddressReserve", "%llu bytes", (unsigned long long)import->size);
    if (status != HCE_OK)
        return status;
    for (i = 0; i < exported->num_parts && status == HCE_OK; i++) {
        status = part_map(dev, &exported->parts[i], import->ptr + mapped);
        if (status == HCE_OK)
            mapped += exported->parts[i].len;
    }
    if (status == HCE_OK)
        status = hce_ce_cuda_access(dev, import->ptr, import->size);
    if (status != HCE_OK)
        vmm_unmap(dev, import->ptr, mapped, import->size);
    return status;
}

/* Memory of this process, perhaps of another device of it. */
static hce_status_t own_open(hce_ce_dev_t *dev,
                             const hce_ce_dev_export_t *exported,
                             hce_ce_dev_import_t *import)
{
    const hce_drv_t *drv = dev->drv;
    hce_cu_result_t result;
    hce_status_t status;
    hce_cu_ctx_t peer;

    import->is_own = true;
    import->ptr = exported->base;
    if (exported->ordinal == dev->attr.ordinal)
        return HCE_OK;
    if (exported->parts[0].how != HCE_CE_DEV_IPC)
        return hce_ce_cuda_access(dev, import->ptr, import->size);
    status = hce_drv_check(drv->primary_ctx_retain(&peer, exported->ordinal),
                           "cuDevicePrimaryCtxRetain", "device %d",
                           exported->ordinal);
    if (status != HCE_OK)
        return status;
    result = drv->ctx_enable_peer_access(peer, 0);
    if (result != HCE_CU_PEER_ACCESS_ALREADY_ENABLED)
        status = hce_drv_check(result, "cuCtxEnablePeerAccess",
                               "device %d to device %d", dev->attr.ordinal,
                               exported->ordinal);
    (void)hce_drv_check(drv->primary_ctx_release(exported->ordinal),
                        "cuDevicePrimaryCtxRelease", "device %d",
                        exported->ordinal);
    return status;
}

static hce_status_t import_open(hce_ce_dev_t *dev,
                                const hce_ce_dev_export_t *exported,
                                hce_ce_dev_import_t *import)
{
    uint8_t token[HCE_CE_DEV_TOKEN];
    hce_drv_scope_t scope;
    hce_status_t status;

    status = hce_ce_process_token(token);
    if (status != HCE_OK)
        return status;
    status = hce_ce_cuda_enter(dev, &scope);
    if (status != HCE_OK)
        return status;
    if (memcmp(token, exported->token, sizeof(token)) == 0)
        status = own_open(dev, exported, import);
    else if (exported->parts[0].how == HCE_CE_DEV_IPC)
        status = ipc_open(dev, &exported->parts[0], import);
    else
        status = vmm_open(dev, exported, import);
    hce_drv_leave(&scope);
    return status;
}

/* Caller holds mem_lock. */
static hce_ce_dev_import_t *import_find(hce_ce_dev_t *dev,
                                        const hce_ce_dev_export_t *exported)
{
    hce_ce_dev_import_t *import = dev->imports;
    uint64_t size = parts_size(exported);

    while (import != NULL &&
           (import->id != exported->id || import->base != exported->base ||
            import->size != size ||
            memcmp(import->token, exported->token, HCE_CE_DEV_TOKEN) != 0))
        import = import->next;
    return import;
}

static hce_status_t import_create(hce_ce_dev_t *dev,
                                  const hce_ce_dev_export_t *exported,
                                  hce_ce_dev_import_t **import_p)
{
    hce_ce_dev_import_t *import = calloc(1, sizeof(*import));
    hce_status_t status;

    if (import == NULL) {
        hce_log(ERROR, CE, "no memory to open a buffer");
        return HCE_ERR_NO_MEMORY;
    }
    import->dev = dev;
    import->refs = 1;
    import->id = exported->id;
    import->base = exported->base;
    import->size = parts_size(exported);
    memcpy(import->token, exported->token, HCE_CE_DEV_TOKEN);
    status = import_open(dev, exported, import);
    if (status != HCE_OK) {
        free(import);
        return status;
    }
    import->next = dev->imports;
    dev->imports = import;
    *import_p = import;
    return HCE_OK;
}

hce_status_t hce_ce_cuda_import(hce_ce_dev_t *dev,
                                const hce_ce_dev_export_t *exported,
                                hce_ce_dev_import_t **import_p,
                                hce_ce_dev_ptr_t *ptr_p)
{
    hce_status_t status = HCE_OK;
    hce_ce_dev_import_t *import;

    if (!is_sound(exported)) {
        hce_log(ERROR, CE, "a buffer of another process makes no sense");
        return HCE_ERR_INTERNAL;
    }
    pthread_mutex_lock(&dev->mem_lock);
    import = import_find(dev, exported);
    if (import != NULL)
        import->refs++;
    else
        status = import_create(dev, exported, &import);
    pthread_mutex_unlock(&dev->mem_lock);
    if (status != HCE_OK)
        return status;
    *import_p = import;
    *ptr_p = import->ptr + (exported->addr - exported->base);
    return HCE_OK;
}

static void import_close(hce_ce_dev_import_t *import)
{
    hce_ce_dev_t *dev = import->dev;
    hce_drv_scope_t scope;

    if (import->is_own || hce_ce_cuda_enter(dev, &scope) != HCE_OK)
        return;
    if (import->is_ipc)
        (void)hce_drv_check(dev->drv->ipc_close_mem_handle(import->ptr),
                            "cuIpcCloseMemHandle",
                            "memory of another process");
    else
        vmm_unmap(dev, import->ptr, import->size, import->size);
    hce_drv_leave(&scope);
}

void hce_ce_cuda_import_put(hce_ce_dev_import_t *import)
{
    hce_ce_dev_t *dev = import->dev;
    hce_ce_dev_import_t **at = &dev->imports;

    pthread_mutex_lock(&dev->mem_lock);
    if (--import->refs == 0) {
        while (*at != import)
            at = &(*at)->next;
        *at = import->next;
        import_close(import);
        free(import);
    }
    pthread_mutex_unlock(&dev->mem_lock);
}
