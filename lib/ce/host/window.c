/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Windows: what each rank registered, and where it is mapped here. A window
 * of memory that is not exportable, or not mapped by choice, is known all the
 * same: its bounds are checked.
 */
#include <config.h>

#include "ce/host/host.h"

#include "ce/host/settings.h"
#include "util/log.h"

#include <stdlib.h>
#include <string.h>

/* What a rank tells all others of its part of a window. */
typedef struct notice {
    hce_ce_mem_id_t mem; /* serial 0: not exportable */
    uint64_t addr;
    uint64_t len;
    uint64_t mem_addr;
    uint64_t mem_size;
    int32_t status;
    uint32_t window;
} notice_t;

static hce_status_t window_alloc(hce_ce_t *ce, hce_ce_window_t **window_p)
{
    hce_ce_window_t *window;
    size_t size =
        sizeof(*window) + (size_t)ce->num_lranks * sizeof(window->shares[0]);

    window = calloc(1, size);
    if (window == NULL) {
        hce_log(ERROR, CE, "no memory for a window");
        return HCE_ERR_NO_MEMORY;
    }
    *window_p = window;
    return HCE_OK;
}

static void window_free(hce_ce_t *ce, hce_ce_window_t *window)
{
    int l;

    for (l = 0; l < ce->num_lranks; l++) {
        if (window->shares[l].import != NULL)
            hce_ce_import_put(window->shares[l].import);
    }
    if (window->mem != 0)
        hce_ce_mem_put(window->mem);
    free(window);
}

static void notice_fill(hce_ce_t *ce, hce_ce_window_t *window, void *buf,
                        size_t size, hce_ce_mem_t *mem, notice_t *notice)
{
    notice->window = window->id;
    notice->addr = (uint64_t)(uintptr_t)buf;
    notice->len = size;
    if (size == 0 || !hce_ce_mem_get(buf, size, mem))
        return;
    window->mem = mem->serial;
    notice->mem.serial = mem->serial;
    notice->mem_addr = (uint64_t)(uintptr_t)mem->addr;
    notice->mem_size = mem->size;
    memcpy(notice->mem.token, ce->seg->head->id.token,
           sizeof(notice->mem.token));
}

/* All ranks see the same notices, so all stop here or none does. */
static hce_status_t notices_check(const hce_ce_t *ce, const notice_t *notices)
{
    int size = hce_boot_size(ce->boot), rank;

    for (rank = 0; rank < size; rank++) {
        if (notices[rank].status != HCE_OK) {
            if (rank != ce->rank)
                hce_log(ERROR, CE, "rank %d cannot register a window: %s",
                        rank,
                        hce_status_string((hce_status_t)notices[rank].status));
            return (hce_status_t)notices[rank].status;
        }
        if (notices[rank].window != notices[0].window) {
            hce_log(ERROR, CE,
                    "rank %d registers window %u, but rank 0 window %u", rank,
                    notices[rank].window, notices[0].window);
            return HCE_ERR_MISMATCH;
        }
    }
    return HCE_OK;
}

/* Does the owner pass its memory to peer? Asked alike at both ends. */
static bool is_passed(const hce_ce_peer_t *peer, const notice_t *owner)
{
    return !peer->is_local && owner->mem.serial != 0;
}

/* Where the peer's part is here. That it cannot be mapped is an error only
 * if mapping is asked for: there are other ways. */
static hce_status_t share_map(hce_ce_t *ce, int lrank, const notice_t *notice,
                              hce_ce_parcel_t *parcel, hce_ce_share_t *share)
{
    const hce_ce_peer_t *peer = &ce->peers[lrank];
    uint64_t skip = notice->addr - notice->mem_addr;
    hce_status_t status;

    share->addr = notice->addr;
    share->len = notice->len;
    if (!peer->map_windows || notice->len == 0)
        return HCE_OK;
    if (peer->is_local) {
        share->local = (char *)(uintptr_t)notice->addr;
        return HCE_OK;
    }
    if (!is_passed(peer, notice))
        return HCE_OK;
    if (parcel->num_fds != 1 || notice->addr < notice->mem_addr ||
        skip > notice->mem_size || notice->len > notice->mem_size - skip)
        return hce_ce_fail(ce, HCE_ERR_INTERNAL,
                           "rank %d: window %u of rank %d makes no sense",
                           ce->rank, notice->window, peer->rank);
    status = hce_ce_import_get(&notice->mem, parcel->fds[0], notice->mem_size,
                               &share->import);
    if (status == HCE_OK) {
        parcel->num_fds = 0; /* taken over */
        share->local = share->import->addr + skip;
    } else if (hce_ce_settings.host_copy == HCE_CE_FORCE_MAP) {
        return hce_ce_fail(ce, status,
                           "HCE_HOST_COPY=map: rank %d cannot map window %u "
                           "of rank %d",
                           ce->rank, notice->window, peer->rank);
    } else {
        hce_log(WARN, CE, "window %u of rank %d is not mapped, but %s",
                notice->window, peer->rank, hce_ce_how_string(peer->how));
    }
    return HCE_OK;
}

static hce_status_t window_pass(hce_ce_t *ce, hce_ce_window_t *window,
                                const notice_t *notices, int fd,
                                uint64_t deadline)
{
    size_t num = (size_t)ce->num_lranks;
    hce_ce_parcel_t *parcels = calloc(2 * num, sizeof(*parcels));
    hce_ce_exchange_t exchange = {.kind = HCE_CE_LINK_WINDOW,
                                  .value = window->id,
                                  .deadline = deadline,
                                  .in = parcels};
    hce_status_t status;
    int l;

    if (parcels == NULL)
        return hce_ce_fail(ce, HCE_ERR_NO_MEMORY,
                           "rank %d has no memory to pass a window", ce->rank);
    exchange.out = parcels + num;
    for (l = 0; l < ce->num_lranks; l++) {
        exchange.in[l].is_due =
            is_passed(&ce->peers[l], &notices[ce->peers[l].rank]);
        if (is_passed(&ce->peers[l], &notices[ce->rank]))
            exchange.out[l] =
                (hce_ce_parcel_t){.is_due = true, .num_fds = 1, .fds = {fd}};
    }
    status = hce_ce_link_exchange(ce, &exchange);
    for (l = 0; l < ce->num_lranks && status == HCE_OK; l++)
        status = share_map(ce, l, &notices[ce->peers[l].rank], &exchange.in[l],
                           &window->shares[l]);
    for (l = 0; l < ce->num_lranks; l++)
        hce_ce_parcel_close(&exchange.in[l]);
    free(parcels);
    return status;
}

/* Room for one more, before the other ranks are told. */
static hce_status_t windows_reserve(hce_ce_t *ce)
{
    size_t max = ce->max_windows == 0 ? 16 : 2 * ce->max_windows;
    hce_ce_window_t **more;
    hce_status_t status = HCE_OK;

    pthread_mutex_lock(&ce->lock);
    if (ce->num_windows == ce->max_windows) {
        more = realloc(ce->windows, max * sizeof(*more));
        if (more == NULL) {
            hce_log(ERROR, CE, "no memory for %zu windows", max);
            status = HCE_ERR_NO_MEMORY;
        } else {
            ce->windows = more;
            ce->max_windows = max;
        }
    }
    pthread_mutex_unlock(&ce->lock);
    return status;
}

size_t hce_ce_window_find(const hce_ce_t *ce, uint32_t id)
{
    size_t low = 0, high = ce->num_windows, mid;

    while (low < high) {
        mid = (low + high) / 2;
        if (ce->windows[mid]->id < id)
            low = mid + 1;
        else
            high = mid;
    }
    return low < ce->num_windows && ce->windows[low]->id == id
               ? low
               : ce->num_windows;
}

/* Out of the list; NULL if it is not in there. */
static hce_ce_window_t *window_take(hce_ce_t *ce, uint32_t id)
{
    hce_ce_window_t *window = NULL;
    size_t at;

    pthread_mutex_lock(&ce->lock);
    at = hce_ce_window_find(ce, id);
    if (at < ce->num_windows) {
        window = ce->windows[at];
        ce->num_windows--;
        memmove(ce->windows + at, ce->windows + at + 1,
                (ce->num_windows - at) * sizeof(*ce->windows));
    }
    pthread_mutex_unlock(&ce->lock);
    return window;
}

/* My side of a window is complete: peers may name it from the moment they
 * know that all have it, which may be before I know. */
static hce_status_t window_complete(hce_ce_t *ce, hce_ce_window_t *window,
                                    const notice_t *notices, int fd,
                                    uint64_t deadline)
{
    hce_status_t status = window_pass(ce, window, notices, fd, deadline);

    if (status != HCE_OK)
        return status;
    pthread_mutex_lock(&ce->lock);
    ce->windows[ce->num_windows++] = window;
    pthread_mutex_unlock(&ce->lock);
    return HCE_OK;
}

/* One window among all ranks: notices, descriptors, and the outcome. */
static hce_status_t window_share(hce_ce_t *ce, hce_ce_window_t *window,
                                 const notice_t *mine, int fd,
                                 uint64_t deadline)
{
    size_t size = (size_t)hce_boot_size(ce->boot);
    notice_t *notices = calloc(size, sizeof(*notices));
    hce_status_t status;

    if (notices == NULL) {
        hce_log(ERROR, CE, "no memory for a window of %zu ranks", size);
        return HCE_ERR_NO_MEMORY;
    }
    status =
        hce_boot_allgather(ce->boot, mine, sizeof(*mine), notices, deadline);
    if (status == HCE_OK)
        status = notices_check(ce, notices);
    if (status == HCE_OK) {
        status = window_complete(ce, window, notices, fd, deadline);
        status = hce_ce_agree(ce, status, deadline, "register a window");
    }
    free(notices);
    return status;
}

hce_status_t hce_ce_window_add(hce_ce_t *ce, void *buf, size_t size,
                               uint64_t deadline, uint32_t *window_p)
{
    hce_ce_window_t *window = NULL;
    hce_ce_mem_t mem = {.fd = -1};
    notice_t notice = {0};
    hce_status_t status;

    notice.window = ++ce->last_window;
    notice.status = windows_reserve(ce);
    if (notice.status == HCE_OK)
        notice.status = window_alloc(ce, &window);
    if (notice.status == HCE_OK) {
        window->id = notice.window;
        notice_fill(ce, window, buf, size, &mem, &notice);
    }
    status = window_share(ce, window, &notice, mem.fd, deadline);
    if (status != HCE_OK) {
        if (window != NULL) {
            window_take(ce, window->id);
            window_free(ce, window);
        }
        return status;
    }
    *window_p = window->id;
    return HCE_OK;
}

void hce_ce_window_remove(hce_ce_t *ce, uint32_t id)
{
    hce_ce_window_t *window = window_take(ce, id);

    if (window != NULL)
        window_free(ce, window);
}

void hce_ce_windows_cleanup(hce_ce_t *ce)
{
    size_t i;

    for (i = 0; i < ce->num_windows; i++)
        window_free(ce, ce->windows[i]);
    free(ce->windows);
}
