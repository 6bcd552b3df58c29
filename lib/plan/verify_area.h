/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * A buffer of the verifier, or a slice of one: sorted segments that cover it,
 * each with what its bytes hold and who has touched them.
 */
#ifndef HCE_PLAN_VERIFY_AREA_H
#define HCE_PLAN_VERIFY_AREA_H

#include <stdbool.h>
#include <stdint.h>

/* What some bytes hold. */
typedef struct hce_verify_value {
    uint64_t offset; /* of the first of them in the inputs */
    uint64_t order;  /* in which contributions were added: equal numbers are
                        equal orders */
    uint32_t set;    /* HCE_VERIFY_NONE: nothing yet */
    uint32_t launch;
} hce_verify_value_t;

typedef struct hce_verify_segment {
    uint64_t start; /* ends where the next one starts */
    hce_verify_value_t value;
    uint32_t writer;  /* instance, or HCE_VERIFY_NONE: the user, or nobody */
    uint32_t readers; /* newest first, in reads[]; 0 ends the list */
} hce_verify_segment_t;

/* A buffer, or a slice of an output. */
typedef struct hce_verify_area {
    hce_verify_segment_t *segments;
    uint32_t num;
    uint32_t cap;
    uint32_t hint; /* found last */
    uint64_t len;
} hce_verify_area_t;

/* One segment without an owner, or false: no memory. */
bool hce_verify_area_init(hce_verify_area_t *area, uint64_t len);
void hce_verify_area_cleanup(hce_verify_area_t *area);

/* Index of the segment that starts at a byte, split off where there is none;
 * num at the end; HCE_VERIFY_NONE without memory. */
uint32_t hce_verify_area_cut(hce_verify_area_t *area, uint64_t at);

/* Makes num segments at index out of old ones; their contents are undefined.
 * The segments behind them move. False: no memory. */
bool hce_verify_area_resize(hce_verify_area_t *area, uint32_t index,
                            uint32_t old, uint32_t num);

static inline uint64_t hce_verify_area_end(const hce_verify_area_t *area,
                                           uint32_t index)
{
    return index + 1 == area->num ? area->len
                                  : area->segments[index + 1].start;
}

#endif
