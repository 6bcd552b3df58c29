/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Entries: shown, read and compared.
 */
#include "config.h"

#include "core/entry.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/comm.h"
#include "core/dispatch.h"

static const char *datatype_name(int32_t datatype)
{
    const char *name = hce_datatype_string((hce_datatype_t)datatype);

    return name == NULL ? "an unknown type" : name;
}

void hce_entry_describe(const hce_entry_call_t *call, char *buf, size_t size)
{
    snprintf(buf, size,
             "%s call %" PRIu64 " (%" PRIu64 " bytes of %s a rank, root %d, "
             "path %.*s, %d contexts, %d directions, %d carriers, chunks of "
             "%" PRIu64 ")",
             hce_dispatch_coll_name((hce_coll_t)call->coll), call->number,
             call->len, datatype_name(call->datatype), call->root,
             (int)sizeof(call->path), call->path, call->contexts,
             call->dirs, call->carriers, call->width);
}

static hce_entry_t *board_slot(hce_comm_h comm, int lrank, uint64_t number)
{
    char *board = hce_ce_board(comm->ce, lrank);

    return (hce_entry_t *)(board + number % 2 * HCE_ENTRY_STRIDE);
}

void hce_entry_publish(hce_comm_h comm, const hce_entry_t *entry)
{
    int lrank = comm->layout->lrank[comm->rank];

    memcpy(board_slot(comm, lrank, entry->call.number), entry,
           offsetof(hce_entry_t, key) + entry->key_len);
}

const hce_entry_t *hce_entry_of(hce_comm_h comm, int peer, uint64_t number)
{
    const hce_layout_t *layout = comm->layout;

    if (hce_layout_same_node(layout, comm->rank, peer))
        return board_slot(comm, layout->lrank[peer], number);
    return hce_proxy_mail(comm->proxy, peer, (int)(number % 2));
}

hce_status_t hce_entry_check(hce_comm_h comm, const hce_entry_t *mine,
                             int peer, const hce_entry_t *theirs)
{
    char here[192], there[192];

    if (theirs->version != HCE_ENTRY_VERSION ||
        theirs->key_len > sizeof(theirs->key)) {
        hce_fault_raise(comm, HCE_ERR_VERSION, peer,
                        "rank %d sent an entry of version %u with a key of "
                        "%u bytes, rank %d expects version %d and at most "
                        "%zu bytes",
                        peer, theirs->version, theirs->key_len, comm->rank,
                        HCE_ENTRY_VERSION, sizeof(theirs->key));
        return HCE_ERR_VERSION;
    }
    if (memcmp(&mine->call, &theirs->call, sizeof(mine->call)) == 0)
        return HCE_OK;
    hce_entry_describe(&mine->call, here, sizeof(here));
    hce_entry_describe(&theirs->call, there, sizeof(there));
    hce_fault_raise(comm, HCE_ERR_MISMATCH, peer,
                    "different calls: rank %d makes %s, rank %d makes %s",
                    comm->rank, here, peer, there);
    return HCE_ERR_MISMATCH;
}
