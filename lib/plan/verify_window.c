/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Entry and completion are events: another rank's op may touch my input or
 * output only after my entry and before my completion of the same launch.
 * This orders the launches of a rank's buffers among each other, the user's
 * own use of them in between included. Also: whoever has been told ready has
 * seen it before the teller completes, or before itself completes where no
 * rank can be two launches ahead; so it never has more than two from one rank
 * to keep. And scratch memory is used by launches in turn: with another plan
 * in between this is right as well if no rank can be two launches ahead.
 *
 * All of it lies within one launch and is the same in each.
 */
#include "config.h"

#include "plan/verify_priv.h"

#include "plan/show.h"

#include <stdlib.h>

typedef struct windows {
    hce_verify_t *v;
    /* By rank: the last lane (numbered through, plus 1) of which it is known
     * that the rank has entered, or that its ready has been waited for. */
    uint32_t *entered;
    uint32_t *ready;
    bool *answered; /* by counter */
} windows_t;

static void window_add_waits(windows_t *w, uint32_t op_index)
{
    hce_verify_t *v = w->v;
    const hce_plan_op_t *op = hce_verify_op(v, op_index);
    int rank = hce_verify_op_rank(v, op_index), i;
    uint32_t lane = v->ops[op_index].lane;

    for (i = 0; i < op->num_wait; i++) {
        const hce_plan_wait_t *wait = &v->plans[rank]->waits[op->wait + i];

        /* Whoever posts in this launch has entered it. */
        if (wait->value >= 1) {
            w->entered[wait->writer] = lane + 1;
            if (wait->slot == HCE_SLOT_READY) {
                w->ready[wait->writer] = lane + 1;
            }
        }
    }
}

/* Does op post something that rank's completion, or an op before it, waits
 * for? */
static bool window_is_awaited(const hce_verify_t *v, uint32_t op_index,
                              int rank)
{
    const hce_plan_op_t *op = hce_verify_op(v, op_index);
    int me = hce_verify_op_rank(v, op_index), i;

    for (i = 0; i < op->num_post; i++) {
        const hce_plan_post_t *post = &v->plans[me]->posts[op->post + i];
        uint32_t counter = v->post_counter[v->post_base[me] + op->post + i];

        if (post->owner == rank &&
            post->value <= v->counters[counter].waited) {
            return true;
        }
    }
    return false;
}

static bool window_check_ref(windows_t *w, uint32_t op,
                             const hce_plan_ref_t *ref, const char *does)
{
    hce_verify_t *v = w->v;
    uint32_t lane = v->ops[op].lane;
    char name[HCE_VERIFY_NAME_SIZE];

    if (w->entered[ref->rank] != lane + 1) {
        if (!hce_verify_is_entered(v, ref->rank, op)) {
            return hce_verify_fault(
                v, "%s %s %s of rank %d, perhaps before the entry of rank %d",
                hce_verify_name_op(v, op, name), does,
                hce_plan_buf_string(ref->buf), ref->rank, ref->rank);
        }
        w->entered[ref->rank] = lane + 1;
    }
    if (!window_is_awaited(v, op, ref->rank) &&
        !hce_verify_is_completed(v, op, ref->rank)) {
        return hce_verify_fault(
            v, "%s %s %s of rank %d, perhaps after the completion of rank %d",
            hce_verify_name_op(v, op, name), does,
            hce_plan_buf_string(ref->buf), ref->rank, ref->rank);
    }
    return true;
}

static bool window_check_op(windows_t *w, uint32_t op_index)
{
    const hce_plan_op_t *op = hce_verify_op(w->v, op_index);
    int rank = hce_verify_op_rank(w->v, op_index), i;

    for (i = 0; op->len > 0 && i < op->num_src + op->num_dst; i++) {
        const hce_plan_ref_t *ref = &w->v->plans[rank]->refs[op->ref + i];

        if (ref->rank != rank &&
            (ref->buf == HCE_BUF_SEND || ref->buf == HCE_BUF_RECV) &&
            !window_check_ref(w, op_index, ref,
                              i < op->num_src ? "reads" : "writes")) {
            return false;
        }
    }
    return true;
}

/* The usual answer to a ready: an op of the lane that waits for it, or a
 * later one, posts what the ready rank waits for. */
static void window_mark_answers(windows_t *w, uint32_t op_index,
                                const uint32_t *ready_counter)
{
    hce_verify_t *v = w->v;
    const hce_plan_op_t *op = hce_verify_op(v, op_index);
    int rank = hce_verify_op_rank(v, op_index), i;

    for (i = 0; i < op->num_post; i++) {
        int owner = v->plans[rank]->posts[op->post + i].owner;

        if (w->ready[owner] == v->ops[op_index].lane + 1 &&
            window_is_awaited(v, op_index, owner)) {
            w->answered[ready_counter[owner]] = true;
        }
    }
}

static bool windows_check_rank(windows_t *w, int rank, uint32_t *ready_counter)
{
    hce_verify_t *v = w->v;
    const hce_plan_t *plan = v->plans[rank];
    uint32_t i, pos, op;

    for (i = v->counter_base[rank]; i < v->counter_base[rank + 1]; i++) {
        if (v->counters[i].slot == HCE_SLOT_READY) {
            ready_counter[v->counters[i].writer] = i;
        }
    }
    for (i = 0; i < plan->num_lanes; i++) {
        for (pos = 0; pos < plan->lanes[i].num_ops; pos++) {
            op = hce_verify_lane_op(v, rank, i, pos);
            window_add_waits(w, op);
            if (!window_check_op(w, op)) {
                return false;
            }
            window_mark_answers(w, op, ready_counter);
        }
    }
    return true;
}

/* Does its owner see a ready before it completes, so that the teller, who is
 * at most one launch ahead, has not yet told of the launch after that? */
static bool window_is_kept(hce_verify_t *v,
                           const hce_verify_counter_t *counter)
{
    return counter->waited >= 1 && hce_verify_is_met(v);
}

static bool windows_check_answers(windows_t *w)
{
    hce_verify_t *v = w->v;
    uint32_t i;

    for (i = 0; i < v->counter_base[v->nranks]; i++) {
        const hce_verify_counter_t *counter = &v->counters[i];

        if (counter->slot == HCE_SLOT_READY && !w->answered[i] &&
            !window_is_kept(v, counter) && !hce_verify_is_answered(v, i)) {
            return hce_verify_fault(
                v,
                "rank %d may complete before rank %d has seen its ready: "
                "nothing that its completion waits for follows it",
                counter->writer, counter->owner);
        }
    }
    return true;
}

/* What made by hand is free to count its own slots. */
static bool windows_check_scratch(windows_t *w)
{
    hce_verify_t *v = w->v;

    if (v->builder == NULL || v->plans[0]->scratch_len == 0) {
        return true;
    }
    if (hce_verify_is_met(v)) {
        return true;
    }
    return hce_verify_fault(v, "a rank may complete before all have entered: "
                               "its scratch memory is not safe from the "
                               "launch after the next");
}

bool hce_verify_windows(hce_verify_t *v)
{
    windows_t w = {
        .v = v,
        .entered = calloc(v->nranks, sizeof(*w.entered)),
        .ready = calloc(v->nranks, sizeof(*w.ready)),
        .answered =
            calloc(v->counter_base[v->nranks] + 1, sizeof(*w.answered)),
    };
    uint32_t *ready_counter = calloc(v->nranks, sizeof(*ready_counter));
    bool ok = true;
    int rank;

    if (w.entered == NULL || w.ready == NULL || w.answered == NULL ||
        ready_counter == NULL) {
        ok = hce_verify_no_memory(v);
    }
    for (rank = 0; ok && rank < v->nranks; rank++) {
        ok = windows_check_rank(&w, rank, ready_counter);
    }
    ok = ok && windows_check_answers(&w) && windows_check_scratch(&w);
    free(w.entered);
    free(w.ready);
    free(w.answered);
    free(ready_counter);
    return ok;
}
