/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The segment of a rank: what its node peers see of it and write to it. Head
 * with the doorbell's state, board, counters, a staging ring for each peer,
 * and its outbox, of which only those that are used ever take memory.
 */
#ifndef HCE_CE_HOST_SEGMENT_H
#define HCE_CE_HOST_SEGMENT_H

#include "ce/ce.h"
#include "ce/host/mem.h"
#include "ce/host/ring.h"
#include "util/shm.h"

#define HCE_CE_SEG_MAGIC   0x6863652d73656730ull /* "hce-seg0" */
#define HCE_CE_SEG_VERSION 2u

/* First in the segment. */
typedef struct hce_ce_seg_head {
    uint64_t magic;
    uint32_t version;
    int32_t rank;
    hce_ce_mem_id_t id;
    /* The doorbell; on one line because who rings needs both. */
    alignas(64) _Atomic(uint64_t) events; /* number of things for the owner */
    _Atomic(uint32_t) sleeping;           /* 1: write to the eventfd as well */
    alignas(64) unsigned char board[HCE_CE_BOARD_SIZE];
} hce_ce_seg_head_t;

/* What decides where things lie; the same on all ranks of the node. */
typedef struct hce_ce_seg_shape {
    int num_lranks;
    uint32_t num_counters;
} hce_ce_seg_shape_t;

/* A segment as it is mapped here; shared by the ranks of this process. */
typedef struct hce_ce_seg {
    struct hce_ce_seg *next;
    hce_shm_t shm;
    hce_ce_seg_shape_t shape;
    unsigned refs;
    int doorbell; /* eventfd of the owner's engine, a descriptor of ours */
    hce_ce_seg_head_t *head;
    hce_counter_t *counters;
    _Atomic(uint64_t) *probes; /* [num_lranks], by writer */
    hce_ce_ring_t *rings;      /* [num_lranks], by writer */
    char *ring_data;
    char *outbox; /* HCE_CE_OUTBOX_SIZE bytes that the owner fills */
} hce_ce_seg_t;

/* A new one of rank; keeps a duplicate of doorbell. */
hce_status_t hce_ce_seg_create(const hce_ce_seg_shape_t *shape, int rank,
                               int doorbell, hce_ce_seg_t **seg_p);

/* One of this process; NULL if its owner has closed it. */
hce_ce_seg_t *hce_ce_seg_get(const hce_ce_mem_id_t *id);

/* One of another process: checks that it is the segment id of rank. Takes
 * both descriptors over on success. */
typedef struct hce_ce_seg_ticket {
    hce_ce_mem_id_t id;
    int rank;
    int fd;
    int doorbell;
} hce_ce_seg_ticket_t;
hce_status_t hce_ce_seg_attach(const hce_ce_seg_ticket_t *ticket,
                               const hce_ce_seg_shape_t *shape,
                               hce_ce_seg_t **seg_p);

void hce_ce_seg_put(hce_ce_seg_t *seg);

/* The ring that writer (a local rank) fills. */
void hce_ce_seg_ring(hce_ce_seg_t *seg, int writer, hce_ce_ring_end_t *end);

/* Tells the owner that something has come: after the store that it is about.
 * Pairs with hce_ce_seg_arm(). */
void hce_ce_seg_ring_bell(hce_ce_seg_t *seg);

/* Owner: from now on the bell is heard; false if it has rung since seen. */
bool hce_ce_seg_arm(hce_ce_seg_t *seg, uint64_t seen);
void hce_ce_seg_awake(hce_ce_seg_t *seg);
uint64_t hce_ce_seg_events(const hce_ce_seg_t *seg);

#endif
