/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The word of the board that says that a rank copies nothing any more. It is
 * set once: an error of a communicator is for good.
 */
#include "config.h"

#include "core/quiet.h"

#include <stdatomic.h>

#include "core/comm.h"

static _Atomic uint64_t *quiet_word(hce_comm_h comm, int lrank)
{
    return (_Atomic uint64_t *)hce_ce_board(comm->ce, lrank) +
           HCE_ENTRY_QUIET_WORD;
}

void hce_quiet_set(hce_comm_h comm)
{
    _Atomic uint64_t *word =
        quiet_word(comm, comm->layout->lrank[comm->rank]);

    /* Release: my copies to others' memory come before it; pairs with the
     * load in hce_quiet_are_peers(). */
    if (atomic_load_explicit(word, memory_order_relaxed) == 0)
        atomic_store_explicit(word, 1, memory_order_release);
}

bool hce_quiet_are_peers(hce_comm_h comm, int *rank_p)
{
    const hce_layout_t *layout = comm->layout;
    int lrank, node = layout->node[comm->rank];

    for (lrank = 0; lrank < layout->node_size[node]; lrank++) {
        if (lrank == layout->lrank[comm->rank] ||
            atomic_load_explicit(quiet_word(comm, lrank),
                                 memory_order_acquire) != 0 ||
            hce_ce_peer_gone(comm->ce, lrank))
            continue;
        *rank_p = hce_layout_rank(layout, node, lrank);
        return false;
    }
    return true;
}
