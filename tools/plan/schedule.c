/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Steps of time, one after the other: ops that ended raise their counters,
 * which wakes the lanes that wait for them; then every resource that is free
 * starts the op that comes first in plan order, of those that may start.
 */
#include "config.h"

#include "schedule.h"

#include "util/math.h"

#include <stdlib.h>
#include <string.h>

#define NONE      UINT32_MAX
#define NUM_FLOWS (2 * HCE_PLAN_MAX_CONTEXTS)

/* A lane; behind all lanes come the completions of the ranks, which wait for
 * what is in their done lists and run nothing. */
typedef struct queue {
    int rank;
    uint32_t lane; /* NONE: a completion */
    uint32_t pos;  /* of the next op */
    uint32_t met;  /* waits of that op that are met */
    uint32_t resource;
    uint32_t sibling; /* next queue of the resource */
    uint32_t waiting; /* next queue that waits for the same counter */
    bool blocked;     /* it is in such a list */
} queue_t;

typedef struct resource {
    uint32_t first; /* queue */
    int32_t free_at;
    bool listed; /* in todo[] */
} resource_t;

typedef struct counter {
    uint64_t key;
    int64_t value;
    uint32_t waiting; /* first queue */
} counter_t;

typedef struct sim {
    const hce_plan_set_t *set;
    hce_tools_schedule_t *out;
    queue_t *queues;
    uint32_t num_queues;
    resource_t *resources;
    uint32_t num_resources;
    counter_t *counters; /* sorted by key; those that are waited for */
    uint32_t num_counters;
    uint32_t *todo; /* a ring of resources to look at */
    uint32_t todo_first, num_todo;
    uint32_t *running; /* queues whose last op ends at the next step */
    uint32_t num_running;
    bool *entered; /* [rank] */
    int32_t now;
} sim_t;

static uint64_t make_key(int owner, int writer, int slot)
{
    _Static_assert(HCE_PLAN_READ_MAX_RANKS <= 1 << 14, "three fields fit");
    return (uint64_t)owner << 32 | (uint64_t)writer << 16 | (uint64_t)slot;
}

static int key_compare(const void *a_p, const void *b_p)
{
    const counter_t *a = a_p, *b = b_p;

    return (a->key > b->key) - (a->key < b->key);
}

static counter_t *find_counter(const sim_t *s, int owner, int writer, int slot)
{
    counter_t key = {.key = make_key(owner, writer, slot)};

    return s->num_counters == 0 ? NULL
                                : bsearch(&key, s->counters, s->num_counters,
                                          sizeof(key), key_compare);
}

/* ---- setting up ---- */

static bool sim_alloc(sim_t *s)
{
    size_t lanes = 0, waits = 0, ranks = (size_t)s->set->num;
    int i;

    for (i = 0; i < s->set->num; i++) {
        lanes += s->set->plans[i]->num_lanes;
        waits += s->set->plans[i]->num_waits;
    }
    if (lanes + ranks >= NONE || waits >= NONE) {
        return false;
    }
    s->queues = calloc(lanes + ranks, sizeof(*s->queues));
    s->resources = calloc(lanes + ranks, sizeof(*s->resources));
    s->todo = calloc(lanes + ranks, sizeof(*s->todo));
    s->running = calloc(lanes + ranks, sizeof(*s->running));
    s->counters = calloc(waits + 1, sizeof(*s->counters));
    s->entered = calloc(ranks, sizeof(*s->entered));
    s->out->start = calloc(ranks, sizeof(*s->out->start));
    s->out->completed = calloc(ranks, sizeof(*s->out->completed));
    return s->queues != NULL && s->resources != NULL && s->todo != NULL &&
           s->running != NULL && s->counters != NULL && s->entered != NULL &&
           s->out->start != NULL && s->out->completed != NULL;
}

static void sim_free(sim_t *s)
{
    free(s->queues);
    free(s->resources);
    free(s->todo);
    free(s->running);
    free(s->counters);
    free(s->entered);
}

static void add_counters(sim_t *s)
{
    uint32_t i, num = 0;
    int rank;

    for (rank = 0; rank < s->set->num; rank++) {
        const hce_plan_t *plan = s->set->plans[rank];

        for (i = 0; i < plan->num_waits; i++) {
            s->counters[num++] = (counter_t){
                .key =
                    make_key(rank, plan->waits[i].writer, plan->waits[i].slot),
                .waiting = NONE,
            };
        }
    }
    qsort(s->counters, num, sizeof(*s->counters), key_compare);
    for (i = 0; i < num; i++) {
        if (i == 0 ||
            s->counters[i].key != s->counters[s->num_counters - 1].key) {
            s->counters[s->num_counters++] = s->counters[i];
        }
    }
}

static void add_queue(sim_t *s, int rank, uint32_t lane, uint32_t resource)
{
    if (resource == s->num_resources) {
        s->resources[s->num_resources++] = (resource_t){.first = NONE};
    }
    s->queues[s->num_queues] = (queue_t){
        .rank = rank,
        .lane = lane,
        .resource = resource,
        .sibling = s->resources[resource].first,
        .waiting = NONE,
    };
    s->resources[resource].first = s->num_queues++;
}

/* Proxy lanes of a context and direction share what sends. */
static void add_queues(sim_t *s, int rank)
{
    const hce_plan_t *plan = s->set->plans[rank];
    uint32_t flow[NUM_FLOWS], i, *at;

    for (i = 0; i < NUM_FLOWS; i++) {
        flow[i] = NONE;
    }
    for (i = 0; i < plan->num_lanes; i++) {
        const hce_plan_lane_t *lane = &plan->lanes[i];

        if (lane->kind != HCE_LANE_PROXY) {
            add_queue(s, rank, i, s->num_resources);
            continue;
        }
        at = &flow[lane->direction * HCE_PLAN_MAX_CONTEXTS + lane->context];
        if (*at == NONE) {
            *at = s->num_resources;
        }
        add_queue(s, rank, i, *at);
    }
    add_queue(s, rank, NONE, s->num_resources);
}

static bool add_starts(sim_t *s, int rank)
{
    const hce_plan_t *plan = s->set->plans[rank];
    int32_t *start = malloc(((size_t)plan->num_ops + 1) * sizeof(*start));
    uint32_t i;

    s->out->start[rank] = start;
    for (i = 0; start != NULL && i < plan->num_ops; i++) {
        start[i] = HCE_TOOLS_NEVER;
    }
    s->out->completed[rank] = HCE_TOOLS_NEVER;
    return start != NULL;
}

/* ---- running ---- */

static void list_resource(sim_t *s, uint32_t index)
{
    resource_t *resource = &s->resources[index];

    if (!resource->listed) {
        resource->listed = true;
        s->todo[(s->todo_first + s->num_todo++) % s->num_resources] = index;
    }
}

static void enter(sim_t *s, int rank)
{
    uint32_t i;

    s->entered[rank] = true;
    for (i = 0; i < s->num_queues; i++) {
        if (s->queues[i].rank == rank) {
            list_resource(s, s->queues[i].resource);
        }
    }
}

static void raise_counters(sim_t *s, int rank, const hce_plan_op_t *op)
{
    const hce_plan_post_t *post = &s->set->plans[rank]->posts[op->post];
    counter_t *counter;
    uint32_t next;
    int i;

    for (i = 0; i < op->num_post; i++) {
        counter = find_counter(s, post[i].owner, rank, post[i].slot);
        if (counter == NULL || counter->value >= post[i].value) {
            continue;
        }
        counter->value = post[i].value;
        for (; counter->waiting != NONE; counter->waiting = next) {
            queue_t *queue = &s->queues[counter->waiting];

            next = queue->waiting;
            queue->blocked = false;
            list_resource(s, queue->resource);
        }
    }
}

static const hce_plan_op_t *next_op(const sim_t *s, const queue_t *queue)
{
    const hce_plan_t *plan = s->set->plans[queue->rank];
    const hce_plan_lane_t *lane = &plan->lanes[queue->lane];

    return &plan->ops[plan->lane_ops[lane->first + queue->pos]];
}

/* All waits of the next op are met; else the queue is put with the others
 * that wait for the same counter. */
static bool may_start(sim_t *s, queue_t *queue)
{
    const hce_plan_t *plan = s->set->plans[queue->rank];
    bool completes = queue->lane == NONE;
    uint32_t first = plan->done_wait, num = plan->num_done_wait;
    counter_t *counter;

    if (queue->blocked) {
        return false;
    }
    if (!completes) {
        if (queue->pos == plan->lanes[queue->lane].num_ops) {
            return false;
        }
        first = next_op(s, queue)->wait;
        num = next_op(s, queue)->num_wait;
    }
    for (; queue->met < num; queue->met++) {
        const hce_plan_wait_t *wait = &plan->waits[first + queue->met];

        counter = find_counter(s, queue->rank, wait->writer, wait->slot);
        if (counter->value < wait->value) {
            queue->blocked = true;
            queue->waiting = counter->waiting;
            counter->waiting = (uint32_t)(queue - s->queues);
            return false;
        }
    }
    return true;
}

/* Of the queues of a resource, the one whose op comes first in the plan. */
static queue_t *first_queue(sim_t *s, const resource_t *resource)
{
    queue_t *best = NULL;
    uint32_t i;

    for (i = resource->first; i != NONE; i = s->queues[i].sibling) {
        queue_t *queue = &s->queues[i];

        if (may_start(s, queue) &&
            (best == NULL || next_op(s, queue) < next_op(s, best))) {
            best = queue;
        }
    }
    return best;
}

/* Starts what can start; what takes no time ends at once. */
static void run_resource(sim_t *s, resource_t *resource)
{
    const hce_plan_op_t *op;
    queue_t *queue;

    while (resource->free_at <= s->now) {
        queue = first_queue(s, resource);
        if (queue == NULL) {
            return;
        }
        if (queue->lane == NONE) {
            s->out->completed[queue->rank] = s->now;
            resource->first = NONE;
            return;
        }
        op = next_op(s, queue);
        s->out->start[queue->rank][op - s->set->plans[queue->rank]->ops] =
            s->now;
        queue->met = 0;
        queue->pos++;
        if (hce_tools_op_steps(op) == 0) {
            raise_counters(s, queue->rank, op);
        } else {
            resource->free_at = s->now + 1;
            s->running[s->num_running++] = (uint32_t)(queue - s->queues);
        }
    }
}

static void end_ops(sim_t *s)
{
    uint32_t i, num = s->num_running;

    s->num_running = 0;
    for (i = 0; i < num; i++) {
        queue_t *queue = &s->queues[s->running[i]];

        queue->pos--;
        raise_counters(s, queue->rank, next_op(s, queue));
        queue->pos++;
        list_resource(s, queue->resource);
    }
}

static void run(sim_t *s, int late_rank, int late_steps)
{
    int rank;

    for (rank = 0; rank < s->set->num; rank++) {
        if (rank != late_rank || late_steps == 0) {
            enter(s, rank);
        }
    }
    for (;;) {
        while (s->num_todo > 0) {
            resource_t *resource = &s->resources[s->todo[s->todo_first]];

            s->todo_first = (s->todo_first + 1) % s->num_resources;
            s->num_todo--;
            resource->listed = false;
            if (resource->first != NONE &&
                s->entered[s->queues[resource->first].rank]) {
                run_resource(s, resource);
            }
        }
        if (s->num_running == 0 && (late_rank < 0 || s->now >= late_steps)) {
            break;
        }
        /* With nothing to do but wait for the late rank, go there. */
        s->now = s->num_running > 0 ? s->now + 1 : late_steps;
        end_ops(s);
        if (s->now == late_steps && late_rank >= 0) {
            enter(s, late_rank);
        }
    }
    s->out->steps = s->now;
}

/* A rank completes after its own ops, too. Counts what never ran. */
static void finish(sim_t *s)
{
    uint32_t i;
    int rank;

    for (rank = 0; rank < s->set->num; rank++) {
        const hce_plan_t *plan = s->set->plans[rank];
        int32_t *completed = &s->out->completed[rank];

        for (i = 0; i < plan->num_ops; i++) {
            int32_t start = s->out->start[rank][i];

            if (start == HCE_TOOLS_NEVER) {
                if (s->out->num_never++ == 0) {
                    s->out->stuck_rank = rank;
                    s->out->stuck_op = i;
                }
                *completed = HCE_TOOLS_NEVER;
            } else if (*completed != HCE_TOOLS_NEVER) {
                *completed = hce_max(
                    *completed, start + hce_tools_op_steps(&plan->ops[i]));
            }
        }
    }
}

bool hce_tools_schedule_create(const hce_plan_set_t *set, int late_rank,
                               int late_steps, hce_tools_schedule_t *s_p)
{
    hce_tools_schedule_t out = {0};
    sim_t s = {.set = set, .out = &out};
    bool ok = sim_alloc(&s);
    int rank;

    for (rank = 0; ok && rank < set->num; rank++) {
        add_queues(&s, rank);
        ok = add_starts(&s, rank);
    }
    if (ok) {
        add_counters(&s);
        run(&s, late_rank, late_steps);
        finish(&s);
        *s_p = out;
    } else {
        hce_tools_schedule_destroy(set, &out);
    }
    sim_free(&s);
    return ok;
}

void hce_tools_schedule_destroy(const hce_plan_set_t *set,
                                hce_tools_schedule_t *s)
{
    int rank;

    for (rank = 0; s->start != NULL && rank < set->num; rank++) {
        free(s->start[rank]);
    }
    free(s->start);
    free(s->completed);
    memset(s, 0, sizeof(*s));
}
