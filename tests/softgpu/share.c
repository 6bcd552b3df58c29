/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Memory of other processes: legacy IPC handles, exported allocation handles.
 * An IPC handle names the exporter's descriptor; it is refused once that
 * process has ended or has freed the memory.
 */
#define _GNU_SOURCE
#include "soft.h"
#include "vmm.h"

#include <assert.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

typedef struct ticket {
    uint64_t magic;
    uint64_t start;
    uint64_t id;
    int32_t pid;
    int32_t fd;
} ticket_t;

static void ticket_fill(const soft_obj_t *obj, void *out)
{
    ticket_t ticket = {.magic = SOFT_MAGIC,
                       .start = soft_start_time(getpid()),
                       .id = obj->label->id,
                       .pid = getpid(),
                       .fd = obj->fd};

    static_assert(sizeof(ticket) <= sizeof(hce_cu_ipc_mem_t), "ticket");
    memset(out, 0, sizeof(hce_cu_ipc_mem_t));
    memcpy(out, &ticket, sizeof(ticket));
}

static soft_result_t ticket_open(const void *in, soft_obj_t **obj_p)
{
    ticket_t ticket;
    soft_result_t result;
    soft_obj_t *obj;
    int fd;

    memcpy(&ticket, in, sizeof(ticket));
    if (ticket.magic != SOFT_MAGIC)
        return HCE_CU_INVALID_VALUE;
    fd = soft_obj_reach(ticket.pid, ticket.start, ticket.fd);
    if (fd < 0)
        return HCE_CU_INVALID_HANDLE;
    result = soft_obj_open(fd, &obj);
    if (result != HCE_CU_OK) {
        close(fd);
        return HCE_CU_INVALID_HANDLE;
    }
    if (obj->label->id != ticket.id || obj->label->freed == SOFT_FREED) {
        soft_obj_put(obj);
        return HCE_CU_INVALID_HANDLE;
    }
    *obj_p = obj;
    return HCE_CU_OK;
}

soft_result_t soft_ipc_get_mem_handle(hce_cu_ipc_mem_t *handle_p,
                                      hce_cu_ptr_t va)
{
    static soft_site_t site = {.name = "cuIpcGetMemHandle",
                               .need = SOFT_UNSAFE};
    soft_result_t result = soft_enter(&site);
    soft_range_t *range;

    if (result != HCE_CU_OK)
        return result;
    pthread_mutex_lock(&soft_lock);
    range = soft_range_find(va);
    /* An interior pointer gives the whole allocation's handle. */
    if (range == NULL || range->kind != SOFT_ALLOC)
        result = HCE_CU_INVALID_VALUE;
    else
        ticket_fill(range->obj, handle_p);
    pthread_mutex_unlock(&soft_lock);
    return result;
}

/* What this process has open of an object already. Caller holds soft_lock. */
static soft_range_t *opened(uint64_t id)
{
    soft_range_t *range = soft_range_first();

    while (range != NULL &&
           (range->kind != SOFT_IPC || range->obj->label->id != id))
        range = range->next;
    return range;
}

static soft_result_t ipc_open(const hce_cu_ipc_mem_t *handle, int dev,
                              hce_cu_ptr_t *va_p)
{
    soft_range_t *range, like = {.kind = SOFT_IPC, .opener = dev, .refs = 1};
    ticket_t ticket;
    soft_result_t result;

    memcpy(&ticket, handle, sizeof(ticket));
    range = opened(ticket.id);
    if (range != NULL && range->opener != dev)
        return HCE_CU_ALREADY_MAPPED;
    if (range != NULL && range->obj->label->freed != SOFT_FREED) {
        range->refs++;
        *va_p = range->va;
        return HCE_CU_OK;
    }
    result = ticket_open(handle, &like.obj);
    if (result != HCE_CU_OK)
        return result;
    like.len = like.obj->len;
    like.asked = like.obj->label->asked;
    like.dev = like.obj->label->dev;
    like.readers = like.writers = 1u << dev;
    like.va = soft_space_take(like.len);
    if (like.va == 0) {
        soft_obj_put(like.obj);
        return HCE_CU_OUT_OF_MEMORY;
    }
    soft_range_add(&like);
    *va_p = like.va;
    return HCE_CU_OK;
}

soft_result_t soft_ipc_open_mem_handle(hce_cu_ptr_t *va_p,
                                       hce_cu_ipc_mem_t handle,
                                       unsigned int flags)
{
    static soft_site_t site = {.name = "cuIpcOpenMemHandle",
                               .need = SOFT_UNSAFE};
    soft_result_t result = soft_enter(&site);
    ticket_t ticket;

    if (result != HCE_CU_OK)
        return result;
    memcpy(&ticket, &handle, sizeof(ticket));
    if (ticket.magic != SOFT_MAGIC || flags != HCE_CU_IPC_LAZY_PEER_ACCESS)
        return HCE_CU_INVALID_VALUE;
    if (ticket.pid == getpid())
        return HCE_CU_INVALID_CONTEXT;
    pthread_mutex_lock(&soft_lock);
    result = ipc_open(&handle, soft_current(), va_p);
    pthread_mutex_unlock(&soft_lock);
    if (result == HCE_CU_OK)
        soft_count_live(&soft_counters.ipc_opens, 1);
    return result;
}

soft_result_t soft_ipc_close_mem_handle(hce_cu_ptr_t va)
{
    static soft_site_t site = {.name = "cuIpcCloseMemHandle",
                               .need = SOFT_UNSAFE};
    soft_result_t result = soft_enter(&site);
    soft_range_t *range;
    size_t len;

    if (result != HCE_CU_OK)
        return result;
    pthread_mutex_lock(&soft_lock);
    range = soft_range_find(va);
    if (range == NULL || range->kind != SOFT_IPC || range->va != va) {
        result = HCE_CU_INVALID_VALUE;
    } else if (--range->refs == 0) {
        soft_drain();
        len = range->len;
        soft_range_remove(range);
        soft_space_give(va, len);
    }
    pthread_mutex_unlock(&soft_lock);
    if (result == HCE_CU_OK)
        soft_count_live(&soft_counters.ipc_opens, -1);
    return result;
}

soft_result_t soft_mem_export(void *out, hce_cu_mem_t id, hce_cu_enum_t type,
                              unsigned long long flags)
{
    static soft_site_t site = {.name = "cuMemExportToShareableHandle",
                               .need = SOFT_UNSAFE};
    soft_result_t result = soft_enter(&site);
    soft_handle_t *handle;
    int fd;

    if (result != HCE_CU_OK)
        return result;
    pthread_mutex_lock(&soft_lock);
    handle = soft_handle_find(id);
    if (handle == NULL || flags != 0 ||
        (type != HCE_CU_HANDLE_FD && type != HCE_CU_HANDLE_FABRIC) ||
        (handle->obj->label->handle_types & type) == 0) {
        result = HCE_CU_INVALID_VALUE;
    } else if (type == HCE_CU_HANDLE_FABRIC) {
        ticket_fill(handle->obj, out);
    } else {
        fd = fcntl(handle->obj->fd, F_DUPFD_CLOEXEC, 0);
        if (fd < 0)
            result = HCE_CU_OUT_OF_MEMORY;
        else
            memcpy(out, &fd, sizeof(fd));
    }
    pthread_mutex_unlock(&soft_lock);
    return result;
}

static soft_result_t fd_open(int fd, soft_obj_t **obj_p)
{
    int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    soft_result_t result;

    if (own < 0)
        return HCE_CU_INVALID_VALUE;
    result = soft_obj_open(own, obj_p);
    if (result != HCE_CU_OK)
        close(own);
    return result;
}

soft_result_t soft_mem_import(hce_cu_mem_t *handle_p, void *in,
                              hce_cu_enum_t type)
{
    static soft_site_t site = {.name = "cuMemImportFromShareableHandle",
                               .need = SOFT_UNSAFE};
    soft_result_t result = soft_enter(&site);
    soft_obj_t *obj;

    if (result != HCE_CU_OK)
        return result;
    if (type == HCE_CU_HANDLE_FABRIC)
        result = ticket_open(in, &obj);
    else if (type == HCE_CU_HANDLE_FD)
        result = fd_open((int)(intptr_t)in, &obj);
    else
        result = HCE_CU_INVALID_VALUE;
    if (result != HCE_CU_OK)
        return result;
    pthread_mutex_lock(&soft_lock);
    *handle_p = soft_handle_add(obj);
    pthread_mutex_unlock(&soft_lock);
    return HCE_CU_OK;
}
