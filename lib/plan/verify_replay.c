/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Three launches of all ranks, with no barrier between them: a rank enters
 * the next one when it has completed the one before. All copy lanes of a rank
 * are one queue in plan order, the least that a copy engine may do. An op is
 * run as soon as its waits are met; since counters only grow, if this one
 * order ends then no timing can deadlock.
 */
#include "config.h"

#include "plan/verify_priv.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define STUCK_HOPS 4 /* of a chain of waits that are told */

/* Ops that are run in order: a lane, or all copy lanes of a rank. After all
 * queues come, by rank, the completions, which wait as queues do. */
typedef struct queue {
    const uint32_t *ops; /* as the rank's plan numbers them */
    uint32_t num;
    uint32_t pos;  /* of the next op */
    uint32_t wait; /* of that op, or of the completion: those met */
    uint32_t next; /* waits for the same counter, or NONE */
    int rank;
} queue_t;

typedef struct count {
    int64_t value;
    uint32_t waiters; /* first queue, or NONE */
} count_t;

typedef struct player {
    int launch;
    uint32_t first_queue;
    uint32_t num_queues;
    uint32_t ops_left;
} player_t;

typedef struct replay {
    hce_verify_t *v;
    hce_verify_content_t *content;
    queue_t *queues;
    uint32_t num_queues; /* without the completions */
    uint32_t *copy_ops;  /* merged copy lanes, rank by rank */
    count_t *counts;
    player_t *players;
    uint32_t *ready; /* queues that may go on */
    uint32_t num_ready;
} replay_t;

static uint32_t replay_add_copies(replay_t *r, int rank, uint32_t *ops)
{
    const hce_plan_t *plan = r->v->plans[rank];
    uint32_t i, num = 0;

    for (i = 0; i < plan->num_ops; i++) {
        if (plan->lanes[plan->ops[i].lane].kind == HCE_LANE_COPY) {
            ops[num++] = i;
        }
    }
    if (num > 0) {
        r->queues[r->num_queues++] =
            (queue_t){.ops = ops, .num = num, .rank = rank};
    }
    return num;
}

static void replay_add_queues(replay_t *r)
{
    hce_verify_t *v = r->v;
    uint32_t *copy_ops = r->copy_ops;
    uint32_t i;
    int rank;

    for (rank = 0; rank < v->nranks; rank++) {
        const hce_plan_t *plan = v->plans[rank];

        r->players[rank].first_queue = r->num_queues;
        copy_ops += replay_add_copies(r, rank, copy_ops);
        for (i = 0; i < plan->num_lanes; i++) {
            if (plan->lanes[i].kind != HCE_LANE_COPY &&
                plan->lanes[i].num_ops > 0) {
                r->queues[r->num_queues++] = (queue_t){
                    .ops = &plan->lane_ops[plan->lanes[i].first],
                    .num = plan->lanes[i].num_ops,
                    .rank = rank,
                };
            }
        }
        r->players[rank].num_queues =
            r->num_queues - r->players[rank].first_queue;
    }
    for (rank = 0; rank < v->nranks; rank++) {
        r->queues[r->num_queues + rank] = (queue_t){.rank = rank};
    }
}

static bool replay_init(replay_t *r, hce_verify_t *v)
{
    /* At most a queue for each lane, and the completions. */
    size_t queues = v->lane_base[v->nranks] + (size_t)v->nranks, i;
    size_t counters = v->counter_base[v->nranks];

    *r = (replay_t){.v = v};
    r->queues = calloc(queues, sizeof(*r->queues));
    r->copy_ops = malloc((hce_verify_num_ops(v) + 1) * sizeof(uint32_t));
    r->counts = calloc(counters + 1, sizeof(*r->counts));
    r->players = calloc(v->nranks, sizeof(*r->players));
    r->ready = calloc(queues, sizeof(*r->ready));
    if (r->queues == NULL || r->copy_ops == NULL || r->counts == NULL ||
        r->players == NULL || r->ready == NULL) {
        return hce_verify_no_memory(v);
    }
    for (i = 0; i < counters; i++) {
        r->counts[i].waiters = HCE_VERIFY_NONE;
    }
    replay_add_queues(r);
    return hce_verify_content_create(v, &r->content);
}

static void replay_cleanup(replay_t *r)
{
    hce_verify_content_destroy(r->content);
    free(r->queues);
    free(r->copy_ops);
    free(r->counts);
    free(r->players);
    free(r->ready);
}

/* What a queue would run now: an op, or NULL for a completion. */
static const hce_plan_op_t *queue_op(const replay_t *r, const queue_t *q)
{
    return q->num == 0 ? NULL : &r->v->plans[q->rank]->ops[q->ops[q->pos]];
}

/* Its waits: the range of them in the plan. */
static uint32_t queue_waits(const replay_t *r, const queue_t *q,
                            uint32_t *num_p)
{
    const hce_plan_op_t *op = queue_op(r, q);

    if (op == NULL) {
        *num_p = r->v->plans[q->rank]->num_done_wait;
        return r->v->plans[q->rank]->done_wait;
    }
    *num_p = op->num_wait;
    return op->wait;
}

/* The value that a queue's next wait needs. */
static int64_t queue_target(const replay_t *r, const queue_t *q,
                            uint32_t *counter_p)
{
    const hce_verify_t *v = r->v;
    uint32_t num, wait = queue_waits(r, q, &num) + q->wait;

    *counter_p = v->wait_counter[v->wait_base[q->rank] + wait];
    return r->players[q->rank].launch * v->counters[*counter_p].rise +
           v->plans[q->rank]->waits[wait].value;
}

/* True when all waits are met; else the queue waits for the first other. */
static bool replay_wait(replay_t *r, uint32_t index)
{
    queue_t *q = &r->queues[index];
    uint32_t num, counter;

    queue_waits(r, q, &num);
    for (; q->wait < num; q->wait++) {
        if (queue_target(r, q, &counter) > r->counts[counter].value) {
            q->next = r->counts[counter].waiters;
            r->counts[counter].waiters = index;
            return false;
        }
    }
    return true;
}

static void replay_raise(replay_t *r, uint32_t counter, int64_t value)
{
    count_t *count = &r->counts[counter];
    uint32_t index = count->waiters, next, same;

    count->value = value;
    count->waiters = HCE_VERIFY_NONE;
    for (; index != HCE_VERIFY_NONE; index = next) {
        queue_t *q = &r->queues[index];

        next = q->next;
        if (queue_target(r, q, &same) <= value) {
            r->ready[r->num_ready++] = index;
        } else {
            q->next = count->waiters;
            count->waiters = index;
        }
    }
}

static bool replay_run_op(replay_t *r, const queue_t *q)
{
    hce_verify_t *v = r->v;
    const hce_plan_op_t *op = queue_op(r, q);
    int launch = r->players[q->rank].launch;
    uint32_t i, counter;

    if (!hce_verify_content_apply(
            r->content, v->op_base[q->rank] + q->ops[q->pos], launch)) {
        return false;
    }
    for (i = 0; i < op->num_post; i++) {
        counter = v->post_counter[v->post_base[q->rank] + op->post + i];
        replay_raise(r, counter,
                     launch * v->counters[counter].rise +
                         v->plans[q->rank]->posts[op->post + i].value);
    }
    return true;
}

/* A rank enters its present launch. */
static bool replay_enter(replay_t *r, int rank)
{
    player_t *player = &r->players[rank];
    uint32_t i;

    player->ops_left = r->v->plans[rank]->num_ops;
    for (i = 0; i < player->num_queues; i++) {
        r->queues[player->first_queue + i].pos = 0;
        r->queues[player->first_queue + i].wait = 0;
        r->ready[r->num_ready++] = player->first_queue + i;
    }
    r->queues[r->num_queues + rank].wait = 0;
    if (player->ops_left == 0) {
        r->ready[r->num_ready++] = r->num_queues + rank;
    }
    return hce_verify_content_enter(r->content, rank, player->launch);
}

static bool replay_complete(replay_t *r, uint32_t index)
{
    int rank = index - r->num_queues;

    if (!replay_wait(r, index)) {
        return true;
    }
    if (!hce_verify_content_check(r->content, rank, r->players[rank].launch)) {
        return false;
    }
    if (++r->players[rank].launch == HCE_VERIFY_LAUNCHES) {
        return true;
    }
    return replay_enter(r, rank);
}

static bool replay_run(replay_t *r, uint32_t index)
{
    queue_t *q = &r->queues[index];

    while (q->pos < q->num && replay_wait(r, index)) {
        if (!replay_run_op(r, q)) {
            return false;
        }
        q->pos++;
        q->wait = 0;
        if (--r->players[q->rank].ops_left == 0) {
            r->ready[r->num_ready++] = r->num_queues + q->rank;
        }
    }
    return true;
}

/* What holds a rank up: a queue that has not ended, else its completion. */
static uint32_t replay_stuck(const replay_t *r, int rank)
{
    const player_t *player = &r->players[rank];
    uint32_t i;

    for (i = 0; i < player->num_queues; i++) {
        const queue_t *q = &r->queues[player->first_queue + i];

        if (q->pos < q->num) {
            return player->first_queue + i;
        }
    }
    return r->num_queues + rank;
}

/* What must go on for a counter to rise: the queue of the lane that raises
 * it, and when that has ended whatever holds its rank up. */
static uint32_t replay_blocker(const replay_t *r, uint32_t counter)
{
    const hce_verify_t *v = r->v;
    int rank = v->counters[counter].writer;
    const hce_plan_t *plan = v->plans[rank];
    uint32_t lane = v->counters[counter].lane - v->lane_base[rank], first, i;
    bool copy = plan->lanes[lane].kind == HCE_LANE_COPY;

    for (i = 0; i < r->players[rank].num_queues; i++) {
        const queue_t *q = &r->queues[r->players[rank].first_queue + i];

        first = plan->ops[q->ops[0]].lane;
        if (q->pos < q->num &&
            (first == lane ||
             (copy && plan->lanes[first].kind == HCE_LANE_COPY))) {
            return r->players[rank].first_queue + i;
        }
    }
    return replay_stuck(r, rank);
}

static int replay_describe(const replay_t *r, uint32_t index, char *text,
                           size_t size)
{
    const queue_t *q = &r->queues[index];
    char name[HCE_VERIFY_NAME_SIZE], what[HCE_VERIFY_NAME_SIZE];
    uint32_t counter;
    int64_t target = queue_target(r, q, &counter);

    if (queue_op(r, q) == NULL) {
        snprintf(name, sizeof(name), "completion of rank %d", q->rank);
    } else {
        hce_verify_name_op(r->v, r->v->op_base[q->rank] + q->ops[q->pos],
                           name);
    }
    return snprintf(text, size,
                    "%s waits in launch %d for %s to reach "
                    "%" PRId64 " (is %" PRId64 "); ",
                    name, r->players[q->rank].launch,
                    hce_verify_name_counter(&r->v->counters[counter], what),
                    target, r->counts[counter].value);
}

/* Follows who waits for whom, until it comes round or there is no room. */
static bool replay_fault_stuck(replay_t *r, int rank)
{
    char text[sizeof(r->v->report->text)];
    uint32_t told[STUCK_HOPS], counter, hops, i;
    uint32_t index = replay_stuck(r, rank);
    size_t len = 0;

    for (hops = 0; hops < STUCK_HOPS && len < sizeof(text); hops++) {
        told[hops] = index;
        len += replay_describe(r, index, text + len, sizeof(text) - len);
        queue_target(r, &r->queues[index], &counter);
        index = replay_blocker(r, counter);
        for (i = 0; i <= hops; i++) {
            if (told[i] == index) {
                return hce_verify_fault(r->v, "deadlock: %sa cycle", text);
            }
        }
    }
    return hce_verify_fault(r->v, "deadlock: %s", text);
}

static bool replay_all(replay_t *r)
{
    uint32_t index;
    int rank;

    for (rank = 0; rank < r->v->nranks; rank++) {
        if (!replay_enter(r, rank)) {
            return false;
        }
    }
    while (r->num_ready > 0) {
        index = r->ready[--r->num_ready];
        if (index >= r->num_queues ? !replay_complete(r, index)
                                   : !replay_run(r, index)) {
            return false;
        }
    }
    for (rank = 0; rank < r->v->nranks; rank++) {
        if (r->players[rank].launch < HCE_VERIFY_LAUNCHES) {
            return replay_fault_stuck(r, rank);
        }
    }
    return true;
}

bool hce_verify_replay(hce_verify_t *v)
{
    replay_t r;
    bool ok = replay_init(&r, v) && replay_all(&r);

    replay_cleanup(&r);
    return ok;
}
