/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Buffers: how their owner describes them to peers, and how a peer finds the
 * way to them. What a peer says is checked.
 */
#include <config.h>

#include "ce/host/host.h"

#include "util/log.h"

static bool is_covered(const hce_ce_share_t *share, uint64_t addr,
                       uint64_t len)
{
    return addr >= share->addr && addr - share->addr <= share->len &&
           len <= share->len - (addr - share->addr);
}

void hce_ce_describe(hce_ce_t *ce, const void *addr, size_t len,
                     hce_ce_buf_t *buf_p)
{
    hce_ce_window_t *window;
    size_t i;

    *buf_p = (hce_ce_buf_t){.addr = (uint64_t)(uintptr_t)addr, .len = len};
    pthread_mutex_lock(&ce->lock);
    for (i = 0; i < ce->num_windows; i++) {
        window = ce->windows[i];
        if (!is_covered(&window->shares[ce->lrank], buf_p->addr, len))
            continue;
        buf_p->window = window->id;
        if (window->mem != 0)
            break; /* peers can map this one */
    }
    pthread_mutex_unlock(&ce->lock);
}

/* Why the window does not do, or NULL and where buf is here, if anywhere. */
static const char *window_reach(hce_ce_t *ce, int lrank,
                                const hce_ce_buf_t *buf, char **local_p)
{
    const hce_ce_share_t *share;
    const char *why = NULL;
    size_t at;

    pthread_mutex_lock(&ce->lock);
    at = hce_ce_window_find(ce, buf->window);
    if (at == ce->num_windows) {
        why = "is not registered here";
    } else {
        share = &ce->windows[at]->shares[lrank];
        if (!is_covered(share, buf->addr, buf->len))
            why = "does not cover it";
        else if (share->local != NULL)
            *local_p = share->local + (buf->addr - share->addr);
    }
    pthread_mutex_unlock(&ce->lock);
    return why;
}

hce_status_t hce_ce_reach(hce_ce_t *ce, int lrank, const hce_ce_buf_t *buf,
                          hce_ce_target_t *target_p)
{
    const hce_ce_peer_t *peer = &ce->peers[lrank];
    const char *why;
    char *local = NULL;

    if (buf->window != 0) {
        why = window_reach(ce, lrank, buf, &local);
        if (why != NULL) {
            hce_log(ERROR, CE, "buffer of %llu bytes of rank %d: window %u %s",
                    (unsigned long long)buf->len, peer->rank, buf->window,
                    why);
            return HCE_ERR_INVALID_ARG;
        }
    }
    if (local == NULL && peer->how == HCE_CE_MAP)
        local = (char *)(uintptr_t)buf->addr;
    *target_p =
        (hce_ce_target_t){.local = local,
                          .remote = buf->addr,
                          .len = buf->len,
                          .lrank = lrank,
                          .how = local != NULL ? HCE_CE_MAP : peer->how};
    return HCE_OK;
}
