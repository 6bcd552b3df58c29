/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Where refs of the running launch are: buffers of the call, or the slot of
 * this launch in scratch memory.
 */
#include "config.h"

#include "core/run.h"

#include <assert.h>

#include "core/comm.h"

static bool is_scratch(const hce_plan_ref_t *ref)
{
    return ref->buf == HCE_BUF_SCRATCH || ref->buf == HCE_BUF_STAGE;
}

/* Into its buffer; SCRATCH and STAGE lie one behind the other. */
static uint64_t place_offset(hce_comm_h comm, const hce_plan_ref_t *ref)
{
    uint64_t slot = ref->depth > 1 ? comm->run.slot % ref->depth : 0;
    uint64_t base = ref->buf == HCE_BUF_STAGE ? comm->scratch.stage : 0;

    return base + ref->offset + slot * ref->stride;
}

static const hce_launch_buf_t *own_buf(hce_comm_h comm,
                                       const hce_plan_ref_t *ref)
{
    const hce_launch_t *launch = comm->run.launch;

    return ref->buf == HCE_BUF_SEND ? &launch->send : &launch->recv;
}

char *hce_run_place(hce_comm_h comm, const hce_plan_ref_t *ref)
{
    assert(ref->rank == comm->rank);
    return (is_scratch(ref) ? comm->scratch.addr : own_buf(comm, ref)->addr) +
           place_offset(comm, ref);
}

hce_proxy_mem_t *hce_run_place_mem(hce_comm_h comm, const hce_plan_ref_t *ref)
{
    return is_scratch(ref) ? comm->scratch.mem : own_buf(comm, ref)->mem;
}

hce_ce_dst_t hce_run_place_node(hce_comm_h comm, const hce_plan_ref_t *ref)
{
    const hce_run_peer_t *peer = &comm->run.peers[ref->rank];
    const hce_ce_target_t *target;

    if (is_scratch(ref))
        target = &comm->scratch.peers[ref->rank].target;
    else
        target = ref->buf == HCE_BUF_SEND ? &peer->send : &peer->recv;
    return (hce_ce_dst_t){target, place_offset(comm, ref)};
}

uint64_t hce_run_place_remote(hce_comm_h comm, const hce_plan_ref_t *ref,
                              hce_transport_key_t **key_p)
{
    const hce_scratch_t *scratch = &comm->scratch;

    if (is_scratch(ref)) {
        *key_p = scratch->peers[ref->rank].key;
        return scratch->notices[ref->rank].addr + place_offset(comm, ref);
    }
    *key_p = comm->run.peers[ref->rank].key;
    return comm->run.peers[ref->rank].addr + ref->offset;
}
