/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * What happens before what. Starts of a lane's ops are ordered; an op ends
 * after it has started; a wait that is met follows the first post of at least
 * its value, which follows the end of its op and of all earlier ops of that
 * lane that post to the same counter; a rank's ops start after its entry, its
 * completion follows all their ends and its own waits, its next entry follows
 * its completion. Nothing else orders anything.
 *
 * The search goes backwards from an event and is exact. A wait or an entry
 * refers to its own launch or earlier ones, so launches before that of the
 * event looked for need no visit.
 */
#include "config.h"

#include "plan/verify_priv.h"

#include "util/math.h"

#include <stdlib.h>

/* A number that counts as 0 unless it was set in this search. */
typedef struct mark {
    uint32_t search;
    uint32_t value;
} mark_t;

struct hce_verify_search {
    /* By launch, then lane, counter, rank. */
    mark_t *reached;  /* ops of a lane that have started before */
    mark_t *visited;  /* of these, how many have been looked at */
    mark_t *raised;   /* posts of a counter that have been raised before */
    mark_t *entered;  /* ranks whose entry lies before */
    mark_t *finished; /* ranks whose completion lies before */
    uint32_t *todo;   /* launch and lane with reached > visited */
    uint32_t num_todo;
    uint32_t num_lanes;
    uint32_t num_counters;
    uint32_t search;
    /* What is looked for: the end of an op, or HCE_VERIFY_NONE. */
    uint32_t goal_op;
    int goal_rank;
    int goal_launch; /* also the first one visited */
    bool found;
    enum { UNKNOWN, YES, NO } met; /* hce_verify_is_met */
};

static uint32_t mark_get(const hce_verify_search_t *s, const mark_t *mark)
{
    return mark->search == s->search ? mark->value : 0;
}

static void mark_set(const hce_verify_search_t *s, mark_t *mark,
                     uint32_t value)
{
    *mark = (mark_t){s->search, value};
}

bool hce_verify_order_create(hce_verify_t *v)
{
    hce_verify_search_t *s = calloc(1, sizeof(*s));
    size_t lanes, counters, ranks;

    if (s == NULL) {
        return hce_verify_no_memory(v);
    }
    v->search = s;
    s->num_lanes = v->lane_base[v->nranks];
    s->num_counters = v->counter_base[v->nranks];
    lanes = (size_t)HCE_VERIFY_LAUNCHES * s->num_lanes + 1;
    counters = (size_t)HCE_VERIFY_LAUNCHES * s->num_counters + 1;
    ranks = (size_t)HCE_VERIFY_LAUNCHES * v->nranks;
    s->reached = calloc(lanes, sizeof(*s->reached));
    s->visited = calloc(lanes, sizeof(*s->visited));
    s->raised = calloc(counters, sizeof(*s->raised));
    s->entered = calloc(ranks, sizeof(*s->entered));
    s->finished = calloc(ranks, sizeof(*s->finished));
    s->todo = calloc(lanes, sizeof(*s->todo));
    if (s->reached == NULL || s->visited == NULL || s->raised == NULL ||
        s->entered == NULL || s->finished == NULL || s->todo == NULL) {
        return hce_verify_no_memory(v);
    }
    return true;
}

void hce_verify_order_destroy(hce_verify_t *v)
{
    hce_verify_search_t *s = v->search;

    if (s == NULL) {
        return;
    }
    free(s->reached);
    free(s->visited);
    free(s->raised);
    free(s->entered);
    free(s->finished);
    free(s->todo);
    free(s);
    v->search = NULL;
}

/* The first num ops of a lane (numbered through) start before. */
static void reach_starts(hce_verify_search_t *s, int launch, uint32_t lane,
                         uint32_t num)
{
    uint32_t at = (uint32_t)launch * s->num_lanes + lane;
    uint32_t old = mark_get(s, &s->reached[at]);

    if (num > old) {
        if (old == mark_get(s, &s->visited[at])) {
            s->todo[s->num_todo++] = at;
        }
        mark_set(s, &s->reached[at], num);
    }
}

/* The first num posts to a counter are raised before. */
static void reach_posts(hce_verify_t *v, int launch, uint32_t counter,
                        uint32_t num)
{
    hce_verify_search_t *s = v->search;
    const hce_verify_counter_t *c = &v->counters[counter];
    const hce_verify_post_t *posts = &v->posts[c->first_post];
    mark_t *mark = &s->raised[(uint32_t)launch * s->num_counters + counter];
    uint32_t i, old = mark_get(s, mark);

    if (num <= old) {
        return;
    }
    mark_set(s, mark, num);
    if (launch == s->goal_launch) {
        for (i = old; i < num; i++) {
            s->found |= posts[i].op == s->goal_op;
        }
    }
    reach_starts(s, launch, c->lane, v->ops[posts[num - 1].op].pos + 1);
}

/* A wait of a launch is met before. */
static void reach_wait(hce_verify_t *v, int launch, int rank, uint32_t wait)
{
    uint32_t counter = v->wait_counter[v->wait_base[rank] + wait];
    int64_t value = v->plans[rank]->waits[wait].value;

    while (value <= 0 && launch > 0) {
        value += v->counters[counter].rise;
        launch--;
    }
    if (value > 0 && launch >= v->search->goal_launch) {
        reach_posts(v, launch, counter,
                    hce_verify_find_post(v, counter, value) + 1);
    }
}

static void reach_entry(hce_verify_t *v, int launch, int rank);

static void reach_completion(hce_verify_t *v, int launch, int rank)
{
    hce_verify_search_t *s = v->search;
    const hce_plan_t *plan = v->plans[rank];
    mark_t *mark;
    uint32_t i;

    if (launch < s->goal_launch) {
        return;
    }
    mark = &s->finished[launch * v->nranks + rank];
    if (mark_get(s, mark) != 0) {
        return;
    }
    mark_set(s, mark, 1);
    s->found |= s->goal_op != HCE_VERIFY_NONE && rank == s->goal_rank;
    reach_entry(v, launch, rank);
    for (i = 0; i < plan->num_lanes; i++) {
        reach_starts(s, launch, v->lane_base[rank] + i,
                     plan->lanes[i].num_ops);
    }
    for (i = 0; i < plan->num_done_wait; i++) {
        reach_wait(v, launch, rank, plan->done_wait + i);
    }
}

static void reach_entry(hce_verify_t *v, int launch, int rank)
{
    hce_verify_search_t *s = v->search;
    mark_t *mark = &s->entered[launch * v->nranks + rank];

    if (mark_get(s, mark) != 0) {
        return;
    }
    mark_set(s, mark, 1);
    s->found |= s->goal_op == HCE_VERIFY_NONE && rank == s->goal_rank &&
                launch == s->goal_launch;
    reach_completion(v, launch - 1, rank);
}

/* Ops of one lane that start before, but have not been looked at. */
static void visit_lane(hce_verify_t *v, uint32_t at)
{
    hce_verify_search_t *s = v->search;
    int launch = at / s->num_lanes;
    uint32_t lane = at % s->num_lanes;
    int rank = v->lane_rank[lane];
    uint32_t pos = mark_get(s, &s->visited[at]);
    uint32_t end = mark_get(s, &s->reached[at]), i;

    mark_set(s, &s->visited[at], end);
    reach_entry(v, launch, rank);
    for (; pos < end; pos++) {
        const hce_plan_op_t *op = hce_verify_op(
            v, hce_verify_lane_op(v, rank, lane - v->lane_base[rank], pos));

        for (i = 0; i < op->num_wait; i++) {
            reach_wait(v, launch, rank, op->wait + i);
        }
    }
}

static void search_begin(hce_verify_t *v, uint32_t goal_op, int goal_rank,
                         int goal_launch)
{
    hce_verify_search_t *s = v->search;

    s->search++;
    s->num_todo = 0;
    s->goal_op = goal_op;
    s->goal_rank = goal_rank;
    s->goal_launch = goal_launch;
    s->found = false;
}

static bool search_run(hce_verify_t *v)
{
    hce_verify_search_t *s = v->search;

    while (!s->found && s->num_todo > 0) {
        visit_lane(v, s->todo[--s->num_todo]);
    }
    return s->found;
}

/* From one rank's completion to all entries. */
static bool is_met_by(hce_verify_t *v, int rank)
{
    int other;

    search_begin(v, HCE_VERIFY_NONE, -1, 0);
    reach_completion(v, 0, rank);
    search_run(v);
    for (other = 0; other < v->nranks; other++) {
        if (mark_get(v->search, &v->search->entered[other]) == 0) {
            return false;
        }
    }
    return true;
}

bool hce_verify_is_met(hce_verify_t *v)
{
    hce_verify_search_t *s = v->search;
    int rank;

    if (s->met == UNKNOWN) {
        s->met = YES;
        for (rank = 0; s->met == YES && rank < v->nranks; rank++) {
            s->met = is_met_by(v, rank) ? YES : NO;
        }
    }
    return s->met == YES;
}

/* The usual proof, without a search: one of b's own waits is for a post that
 * a's end must precede. */
static bool is_awaited(const hce_verify_t *v, uint32_t a, uint32_t b)
{
    int rank_a = hce_verify_op_rank(v, a), rank_b = hce_verify_op_rank(v, b);
    const hce_plan_op_t *op_a = hce_verify_op(v, a);
    const hce_plan_op_t *op_b = hce_verify_op(v, b);
    const uint32_t *post = &v->post_counter[v->post_base[rank_a] + op_a->post];
    uint32_t i, j;

    for (i = 0; i < op_b->num_wait; i++) {
        uint32_t counter =
            v->wait_counter[v->wait_base[rank_b] + op_b->wait + i];
        int64_t value = v->plans[rank_b]->waits[op_b->wait + i].value;

        for (j = 0; j < op_a->num_post; j++) {
            if (post[j] == counter &&
                v->plans[rank_a]->posts[op_a->post + j].value <= value) {
                return true;
            }
        }
    }
    return false;
}

bool hce_verify_is_ordered(hce_verify_t *v, uint32_t a, uint32_t b)
{
    uint32_t num = hce_verify_num_ops(v);
    int launch_a = a / num, launch_b = b / num;
    int rank_a, rank_b;

    a %= num;
    b %= num;
    rank_a = hce_verify_op_rank(v, a);
    rank_b = hce_verify_op_rank(v, b);
    if (launch_a != launch_b) {
        if (launch_a > launch_b || rank_a == rank_b) {
            return launch_a < launch_b;
        }
    } else if (is_awaited(v, a, b)) {
        return true;
    }
    /* b's entry follows all entries of the launch between. */
    if (launch_b - launch_a >= 2 && hce_verify_is_met(v)) {
        return true;
    }
    search_begin(v, a, rank_a, launch_a);
    reach_starts(v->search, launch_b, v->ops[b].lane, v->ops[b].pos + 1);
    return search_run(v);
}

bool hce_verify_is_entered(hce_verify_t *v, int rank, uint32_t op)
{
    search_begin(v, HCE_VERIFY_NONE, rank, 0);
    reach_starts(v->search, 0, v->ops[op].lane, v->ops[op].pos + 1);
    return search_run(v);
}

bool hce_verify_is_completed(hce_verify_t *v, uint32_t op, int rank)
{
    search_begin(v, op, hce_verify_op_rank(v, op), 0);
    reach_completion(v, 0, rank);
    return search_run(v);
}

bool hce_verify_is_answered(hce_verify_t *v, uint32_t counter)
{
    const hce_verify_counter_t *c = &v->counters[counter];
    const hce_plan_t *plan = v->plans[c->owner];
    uint32_t lane, pos, end, i;

    /* No goal: visit everything before the completion. */
    search_begin(v, HCE_VERIFY_NONE, -1, 0);
    reach_completion(v, 0, c->writer);
    search_run(v);
    for (lane = 0; lane < plan->num_lanes; lane++) {
        end = mark_get(v->search,
                       &v->search->reached[v->lane_base[c->owner] + lane]);
        for (pos = 0; pos < end; pos++) {
            const hce_plan_op_t *op =
                hce_verify_op(v, hce_verify_lane_op(v, c->owner, lane, pos));

            for (i = 0; i < op->num_wait; i++) {
                uint32_t wait = v->wait_base[c->owner] + op->wait + i;

                if (v->wait_counter[wait] == counter &&
                    plan->waits[op->wait + i].value >= 1) {
                    return true;
                }
            }
        }
    }
    return false;
}
