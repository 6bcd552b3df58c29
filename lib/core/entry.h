/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Entry: what a rank tells those who will write into its buffers when it
 * enters a call, and the check that all make the same call. Node peers read
 * it on the board, others get it as a message; both have two slots, by the
 * parity of the call's number. A wire format: docs/WIRE.md.
 */
#ifndef HCE_CORE_ENTRY_H
#define HCE_CORE_ENTRY_H

#include <assert.h>
#include <hce/hce.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "ce/ce.h"
#include "rma_proxy/transport.h"

#define HCE_ENTRY_VERSION 2

/* What must be the same on all ranks of a call. */
typedef struct hce_entry_call {
    uint64_t number; /* of the call on this communicator, from 1 */
    uint64_t len;    /* bytes a rank */
    uint64_t width;  /* bytes of a chunk */
    int32_t coll;
    int32_t datatype;
    int32_t op;
    int32_t root;
    uint8_t contexts;
    uint8_t dirs;
    uint16_t carriers;
    char path[12];
} hce_entry_call_t;

/* What every peer reads of it is one cache line. */
typedef struct hce_entry {
    uint32_t version; /* HCE_ENTRY_VERSION */
    uint32_t key_len; /* bytes used of key */
    hce_entry_call_t call;
    hce_ce_buf_t send; /* zeros here and below, if no one else needs them */
    hce_ce_buf_t recv;
    uint8_t key[HCE_TRANSPORT_MAX_KEY]; /* of recv */
} hce_entry_t;

/* What a parcel brings of it: up to and with call. */
#define HCE_ENTRY_CALL_SIZE offsetof(hce_entry_t, send)

static_assert(sizeof(hce_entry_call_t) == 56, "wire format");
static_assert(sizeof(hce_entry_t) == 272, "wire format");
#define HCE_ENTRY_STRIDE 320 /* on the board; whole cache lines */
/* The board's last words are those of hce_quiet_set and of
 * hce_scratch_complete. */
#define HCE_ENTRY_QUIET_WORD (HCE_CE_BOARD_SIZE / sizeof(uint64_t) - 2)
static_assert(2 * HCE_ENTRY_STRIDE <= HCE_ENTRY_QUIET_WORD * sizeof(uint64_t),
              "board");
static_assert(HCE_ENTRY_STRIDE >= sizeof(hce_entry_t), "board");
static_assert(sizeof(hce_entry_t) <= HCE_TRANSPORT_MAX_MESSAGE, "mail");

/* "allgather call 17 (4096 bytes of float a rank, direct, ...)" */
void hce_entry_describe(const hce_entry_call_t *call, char *buf, size_t size);

/* Owner: shows entry to node peers; before the posts that announce it. */
void hce_entry_publish(hce_comm_h comm, const hce_entry_t *entry);

/* Owner: peer's entry for call number, after its READY was seen and until
 * mine is complete. */
const hce_entry_t *hce_entry_of(hce_comm_h comm, int peer, uint64_t number);

/* Is peer's entry well-formed, and for the same call as mine? Raises the
 * error that prints both, where not. */
hce_status_t hce_entry_check(hce_comm_h comm, const hce_entry_t *mine,
                             int peer, const hce_entry_t *theirs);

#endif
