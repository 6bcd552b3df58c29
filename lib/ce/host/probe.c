/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * How each peer is reached: process_vm_writev, where it is wanted, is tried
 * out at open with a value that is written and looked at, not inferred from
 * permissions.
 */
#include <config.h>

#include "ce/host/host.h"

#include "ce/host/settings.h"
#include "util/log.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

/* Writes a random number to a word of the peer's segment by its address over
 * there, and reads it through the mapping here. NULL, or why it cannot be. */
static const char *vm_probe(hce_ce_t *ce, hce_ce_peer_t *peer)
{
    _Atomic uint64_t *word = &peer->seg->probes[ce->lrank];
    uint64_t offset = (uint64_t)((char *)word - (char *)peer->seg->head);
    uint64_t value = 0;
    int error;

    if (peer->pid <= 0)
        return "it is in another pid namespace";
    if (!peer->is_local && peer->pidfd < 0)
        return "no pidfd, and its pid might be used again";
    if (getrandom(&value, sizeof(value), 0) != sizeof(value))
        return "no random numbers";
    value |= 1; /* the word is 0 now */
    error = hce_ce_vm_write(peer->pid, peer->seg_addr + offset,
                            (const char *)&value, sizeof(value));
    if (error != 0)
        return strerror(error);
    /* The system call orders it. */
    if (atomic_load(word) != value)
        return "what was written did not arrive";
    return NULL;
}

static void probe_log(const hce_ce_peer_t *peer, const char *why)
{
    char reason[HCE_CE_REASON_LEN] = "";

    if (why != NULL)
        snprintf(reason, sizeof(reason), " (process_vm_writev: %s)", why);
    hce_log(INFO, CE, "rank %d: windows %s, other memory %s%s", peer->rank,
            peer->map_windows ? "map" : hce_ce_how_string(peer->how),
            hce_ce_how_string(peer->how), reason);
}

hce_status_t hce_ce_probe_peer(hce_ce_t *ce, int lrank)
{
    hce_ce_peer_t *peer = &ce->peers[lrank];
    int force = hce_ce_settings.host_copy;
    const char *why = NULL;

    peer->map_windows =
        force == HCE_CE_FORCE_AUTO || force == HCE_CE_FORCE_MAP;
    if (lrank == ce->lrank || (peer->is_local && peer->map_windows)) {
        peer->map_windows = true;
        peer->how = HCE_CE_MAP;
        return HCE_OK;
    }
    /* On two cores with 2 to 4 ranks the outbox moved memory that nobody can
     * map 1.2 to 2.5 times as fast as process_vm_writev, from 1 KB to 16 MB:
     * the kernel looks up and pins every page. */
    peer->how = HCE_CE_STAGED;
    if (force != HCE_CE_FORCE_STAGED)
        why = vm_probe(ce, peer);
    peer->can_vm = force != HCE_CE_FORCE_STAGED && why == NULL;
    if (peer->can_vm && force != HCE_CE_FORCE_AUTO)
        peer->how = HCE_CE_VM;
    if (force == HCE_CE_FORCE_VM && why != NULL)
        return hce_ce_fail(ce, HCE_ERR_UNSUPPORTED,
                           "HCE_HOST_COPY=vm: rank %d cannot write to rank "
                           "%d by process_vm_writev: %s",
                           ce->rank, peer->rank, why);
    if (peer->how == HCE_CE_STAGED)
        hce_ce_ring_use(&peer->tx);
    probe_log(peer, why);
    return HCE_OK;
}

const char *hce_ce_how_string(hce_ce_how_t how)
{
    switch (how) {
    case HCE_CE_MAP:
        return "map";
    case HCE_CE_VM:
        return "vm";
    case HCE_CE_STAGED:
        return "staged";
    }
    return "unknown";
}

hce_ce_how_t hce_ce_peer_how(const hce_ce_t *ce, int lrank)
{
    return ce->peers[lrank].how;
}
