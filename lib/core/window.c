/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Registration of buffers with the copy engine and the proxy.
 */
#include "config.h"

#include "core/window.h"

#include <stdlib.h>
#include <string.h>

#include "core/comm.h"
#include "core/group.h"
#include "util/clock.h"
#include "util/log.h"

hce_window_h hce_window_find(hce_comm_h comm, const void *addr, size_t len)
{
    const char *start = addr;
    hce_window_h win;

    for (win = comm->windows; win != NULL; win = win->next)
        if (start >= win->addr && len <= win->len &&
            (size_t)(start - win->addr) <= win->len - len)
            return win;
    return NULL;
}

/* All ranks succeed or fail together: the rank that could not register names
 * itself. */
static hce_status_t agree(hce_comm_h comm, hce_status_t mine,
                          uint64_t deadline)
{
    int32_t status32 = mine, *all;
    hce_status_t status;
    int r;

    all = calloc((size_t)hce_comm_size(comm), sizeof(*all));
    if (all == NULL)
        return HCE_ERR_NO_MEMORY;
    status = hce_boot_allgather(comm->boot, &status32, sizeof(status32), all,
                                deadline);
    for (r = 0; status == HCE_OK && r < hce_comm_size(comm); r++) {
        if (all[r] != HCE_OK) {
            status = (hce_status_t)all[r];
            hce_log(ERROR, CORE, "rank %d could not register its window: %s",
                    r, hce_status_string(status));
        }
    }
    free(all);
    return status;
}

hce_status_t hce_window_open(hce_comm_h comm, void *buf, size_t size,
                             hce_window_h *win_p)
{
    uint64_t deadline = hce_clock_deadline(hce_boot_timeout_ns());
    hce_window_h win = calloc(1, sizeof(*win));
    hce_status_t status;

    if (win == NULL)
        return HCE_ERR_NO_MEMORY;
    win->comm = comm;
    win->addr = buf;
    win->len = size;
    status = hce_ce_window_add(comm->ce, buf, size, deadline, &win->id);
    if (status != HCE_OK)
        goto err_free;
    if (comm->proxy != NULL && size > 0)
        status = hce_proxy_register(comm->proxy, buf, size, &win->mem);
    status = agree(comm, status, deadline);
    if (status != HCE_OK)
        goto err_window;
    win->next = comm->windows;
    comm->windows = win;
    *win_p = win;
    return HCE_OK;
err_window:
    if (win->mem != NULL)
        hce_proxy_deregister(comm->proxy, win->mem);
    hce_ce_window_remove(comm->ce, win->id);
err_free:
    free(win);
    return status;
}

static void window_close(hce_window_h win)
{
    hce_comm_h comm = win->comm;

    hce_engine_acquire(); /* keys of it may be cached by the owner */
    hce_run_forget_window(comm, win->id);
    hce_ce_window_remove(comm->ce, win->id);
    hce_engine_release();
    if (win->mem != NULL)
        hce_proxy_deregister(comm->proxy, win->mem);
    free(win);
}

void hce_window_close_all(hce_comm_h comm)
{
    hce_window_h win;

    while ((win = comm->windows) != NULL) {
        comm->windows = win->next;
        window_close(win);
    }
}

hce_status_t hce_window_deregister(hce_window_h win)
{
    hce_window_h *at;
    hce_status_t status;

    if (win == NULL)
        return HCE_OK;
    status = hce_comm_check(win->comm, "hce_window_deregister");
    if (status != HCE_OK)
        return status;
    for (at = &win->comm->windows; *at != NULL; at = &(*at)->next) {
        if (*at == win) {
            *at = win->next;
            window_close(win);
            return HCE_OK;
        }
    }
    hce_log(ERROR, CORE, "hce_window_deregister: not a window of its "
                         "communicator");
    return HCE_ERR_INVALID_ARG;
}

hce_status_t hce_window_register(hce_comm_h comm, void *buf, size_t size,
                                 hce_window_h *win_p)
{
    hce_group_job_t job = {.kind = HCE_GROUP_WINDOW,
                           .comm = comm,
                           .window = {buf, size, win_p}};
    hce_status_t status = hce_comm_check(comm, "hce_window_register");

    if (status == HCE_OK && (win_p == NULL || (buf == NULL && size > 0))) {
        hce_log(ERROR, CORE,
                "hce_window_register: win_p is NULL, or buf is with a size "
                "of %zu",
                size);
        status = HCE_ERR_INVALID_ARG;
    }
    if (status == HCE_OK)
        status = hce_fault_status(&comm->fault);
    return hce_group_submit(&job, status, "hce_window_register");
}

hce_status_t hce_mem_alloc(hce_device_t device, size_t size, void **ptr_p)
{
    if (device != HCE_DEVICE_HOST || ptr_p == NULL) {
        hce_log(ERROR, CORE,
                "hce_mem_alloc: device %d is not known here, or ptr_p is "
                "NULL",
                (int)device);
        return HCE_ERR_INVALID_ARG;
    }
    return hce_ce_mem_alloc(size, ptr_p);
}

hce_status_t hce_mem_free(void *ptr)
{
    return ptr == NULL ? HCE_OK : hce_ce_mem_free(ptr);
}
