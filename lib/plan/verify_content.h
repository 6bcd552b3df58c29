/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * What every byte holds, between the file that follows the ops and the one
 * that judges outputs.
 */
#ifndef HCE_PLAN_VERIFY_CONTENT_H
#define HCE_PLAN_VERIFY_CONTENT_H

#include "plan/verify_area.h"
#include "plan/verify_priv.h"

typedef struct hce_verify_read {
    uint32_t reader; /* instance */
    uint32_t next;
} hce_verify_read_t;

typedef struct hce_verify_piece {
    uint64_t len;
    hce_verify_value_t value;
} hce_verify_piece_t;

struct hce_verify_content {
    hce_verify_t *v;
    /* By rank: slices of the output, then the others. */
    hce_verify_area_t *areas;
    hce_verify_sets_t *sets;
    hce_verify_read_t *reads; /* [0] is not used */
    uint32_t num_reads;
    uint32_t cap_reads;
    hce_verify_piece_t *pieces;
    uint32_t num_pieces;
    uint32_t cap_pieces;
    uint32_t instance; /* that is being applied */
    int launch;
    uint32_t full; /* the set of all ranks; of reductions only */
    /* The orders of the first output that was complete, for AllReduce. */
    hce_verify_segment_t *orders;
    uint32_t num_orders;
};

/* Areas of a rank behind those of its output. */
enum {
    HCE_VERIFY_AREA_SEND,
    HCE_VERIFY_AREA_SCRATCH,
    HCE_VERIFY_AREA_STAGE,
    HCE_VERIFY_AREA_OTHERS
};

static inline hce_verify_area_t *
hce_verify_content_area(const hce_verify_content_t *c, int rank, int index)
{
    size_t num = (size_t)c->v->nranks + HCE_VERIFY_AREA_OTHERS;

    return &c->areas[(size_t)rank * num + index];
}

static inline hce_coll_t hce_verify_coll(const hce_verify_t *v)
{
    return v->plans[0]->params.coll;
}

/* The area that has byte *at_p of a rank's output, and where. */
int hce_verify_output_index(const hce_verify_t *v, int rank, uint64_t *at_p);

#endif
