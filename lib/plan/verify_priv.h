/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Between the verifier's files. All ranks' ops, lanes, waits, posts and
 * counters are numbered through; checks of one launch need no more than
 * these numbers, and an op of a given launch is the instance
 * launch * num_ops + op.
 *
 * A check returns false after the first fault, which is then in the report.
 */
#ifndef HCE_PLAN_VERIFY_PRIV_H
#define HCE_PLAN_VERIFY_PRIV_H

#include "plan/verify.h"

#define HCE_VERIFY_LAUNCHES  3
#define HCE_VERIFY_NONE      UINT32_MAX
#define HCE_VERIFY_NAME_SIZE 200 /* of an op or a counter */

typedef struct hce_verify_op {
    uint32_t lane; /* numbered through */
    uint32_t pos;  /* in the lane */
} hce_verify_op_t;

typedef struct hce_verify_counter {
    int32_t owner;
    int32_t writer;
    int32_t slot;
    uint32_t lane;       /* the writer's only lane that raises it */
    uint32_t first_post; /* in posts[], where they are sorted by value */
    uint32_t num_posts;
    int64_t rise;
    int64_t waited; /* greatest value that the owner waits for */
} hce_verify_counter_t;

typedef struct hce_verify_post {
    int64_t value;
    uint32_t op;
} hce_verify_post_t;

typedef struct hce_verify_search hce_verify_search_t;

typedef struct hce_verify {
    hce_plan_t *const *plans;
    const hce_layout_t *layout;
    const hce_plan_builder_t *builder;
    hce_verify_report_t *report;
    hce_status_t status;
    int nranks;
    uint64_t len;
    bool in_place;
    /* Where each rank's begin; [nranks] is their number. */
    uint32_t *op_base;
    uint32_t *lane_base;
    uint32_t *wait_base;
    uint32_t *post_base;
    uint32_t *counter_base; /* by owner */
    hce_verify_op_t *ops;
    int32_t *lane_rank;
    hce_verify_counter_t *counters;
    hce_verify_post_t *posts; /* counter by counter */
    uint32_t *wait_counter;   /* of each wait */
    uint32_t *post_counter;   /* of each post of the plans */
    uint32_t *post_index;     /* its place among those of the counter */
    hce_verify_search_t *search;
} hce_verify_t;

static inline uint32_t hce_verify_num_ops(const hce_verify_t *v)
{
    return v->op_base[v->nranks];
}

static inline int hce_verify_op_rank(const hce_verify_t *v, uint32_t op)
{
    return v->lane_rank[v->ops[op].lane];
}

static inline const hce_plan_op_t *hce_verify_op(const hce_verify_t *v,
                                                 uint32_t op)
{
    int rank = hce_verify_op_rank(v, op);

    return &v->plans[rank]->ops[op - v->op_base[rank]];
}

/* Op at a position of a lane of a rank; both as the plan numbers them. */
static inline uint32_t hce_verify_lane_op(const hce_verify_t *v, int rank,
                                          uint32_t lane, uint32_t pos)
{
    const hce_plan_t *plan = v->plans[rank];

    return v->op_base[rank] + plan->lane_ops[plan->lanes[lane].first + pos];
}

/* verify.c: numbers everything through; report and builder are set before.
 * Closed also after a failure. */
bool hce_verify_open(hce_verify_t *v, hce_plan_t *const *plans, int nranks);
void hce_verify_close(hce_verify_t *v);

/* verify_text.c. "" or what a report says besides. */
const char *hce_verify_reserve(const hce_verify_report_t *report);

/* Both return false. The first fault stays. */
bool hce_verify_fault(hce_verify_t *v, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
bool hce_verify_no_memory(hce_verify_t *v);
const char *hce_verify_name_op(const hce_verify_t *v, uint32_t op,
                               char name[HCE_VERIFY_NAME_SIZE]);
const char *hce_verify_name_counter(const hce_verify_counter_t *counter,
                                    char name[HCE_VERIFY_NAME_SIZE]);

/* verify_shape.c: each plan for itself, and what moves between nodes. */
bool hce_verify_shape(hce_verify_t *v);
bool hce_verify_traffic(hce_verify_t *v);

/* verify_counters.c: matches waits with posts; fills counters[], posts[],
 * wait_counter[], post_counter[], post_index[]. */
bool hce_verify_counters(hce_verify_t *v);

/* Place of the first post to a counter with at least value, 1..rise. */
uint32_t hce_verify_find_post(const hce_verify_t *v, uint32_t counter,
                              int64_t value);

/* verify_order.c: what happens before what, from counters alone. Exact. */
bool hce_verify_order_create(hce_verify_t *v);
void hce_verify_order_destroy(hce_verify_t *v);
/* Has instance a ended before instance b starts? */
bool hce_verify_is_ordered(hce_verify_t *v, uint32_t a, uint32_t b);
/* In one launch: has rank entered before op starts? */
bool hce_verify_is_entered(hce_verify_t *v, int rank, uint32_t op);
/* In one launch: has op ended before rank completes? */
bool hce_verify_is_completed(hce_verify_t *v, uint32_t op, int rank);
/* In one launch: before its writer completes, an op of the counter's owner
 * has started that waits for the counter. */
bool hce_verify_is_answered(hce_verify_t *v, uint32_t counter);

/* In one launch: has every rank entered before any rank completes? Then no
 * rank is ever more than one launch ahead of another. */
bool hce_verify_is_met(hce_verify_t *v);

/* verify_window.c: others touch my buffers between my entry and my
 * completion only. */
bool hce_verify_windows(hce_verify_t *v);

/* verify_content.c: what each byte holds. */
typedef struct hce_verify_content hce_verify_content_t;
bool hce_verify_content_create(hce_verify_t *v, hce_verify_content_t **c_p);
void hce_verify_content_destroy(hce_verify_content_t *c);
/* The user fills rank's input. */
bool hce_verify_content_enter(hce_verify_content_t *c, int rank, int launch);
bool hce_verify_content_apply(hce_verify_content_t *c, uint32_t op,
                              int launch);
/* Is rank's output right? */
bool hce_verify_content_check(hce_verify_content_t *c, int rank, int launch);

/* verify_sets.c: contributions of several ranks as small numbers; 0..nranks-1
 * are single ranks. */
typedef struct hce_verify_sets hce_verify_sets_t;
hce_verify_sets_t *hce_verify_sets_create(int nranks);
void hce_verify_sets_destroy(hce_verify_sets_t *sets);
/* The number of a and b together: HCE_OK, HCE_ERR_INVALID_ARG with a rank
 * that is in both, HCE_ERR_NO_MEMORY. */
hce_status_t hce_verify_sets_join(hce_verify_sets_t *sets, uint32_t a,
                                  uint32_t b, uint32_t *joined_p,
                                  int *twice_p);

/* verify_replay.c: three launches of all ranks. */
bool hce_verify_replay(hce_verify_t *v);

/* verify_ranks.c: what can be checked rank by rank. */
bool hce_verify_ranks(hce_verify_t *v);

/* Does what an op of AllGather moves to dst belong there? It comes straight
 * from an input, or from the same place of another output. What comes through
 * scratch memory only a replay can tell: true, and the report says so. */
bool hce_verify_is_placed(hce_verify_t *v, const hce_plan_op_t *op,
                          const hce_plan_ref_t *src,
                          const hce_plan_ref_t *dst);

/* All nodes have equally many ranks, one after the other. */
bool hce_verify_is_turnable(const hce_layout_t *layout);
/* A rank's place on the next node of such a layout; -1 stays. */
int hce_verify_turn_rank(const hce_verify_t *v, int rank);
/* Is b, the plan of the rank in a's place on the next node, a turned by one
 * node? Uses layout, nranks and len of v only. */
bool hce_verify_is_turned(hce_verify_t *v, const hce_plan_t *a,
                          const hce_plan_t *b);

#endif
