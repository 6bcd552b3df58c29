/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The verifier's search for what happens before what, against a second
 * description of it: a graph of all starts, ends, posts, entries and
 * completions of three launches, walked forwards. Plans of small jobs, with
 * waits lost, weakened and turned into credits at random, so that most pairs
 * are ordered in roundabout ways or not at all.
 */
#include "config.h"

#include "shapes.h"

#include "plan/verify_priv.h"
#include "util/math.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MAX_OPS       60
#define JOBS          400
#define LAUNCHES      HCE_VERIFY_LAUNCHES
#define SECONDS_A_DAY 86400

/* Nodes of the graph, by launch: two for each op, one for each post, two for
 * each rank. */
typedef struct graph {
    const hce_verify_t *v;
    uint32_t num_ops;
    uint32_t num_posts;
    uint32_t num_nodes; /* of a launch */
    uint8_t *edge;      /* [from * all + to] */
    size_t all;
} graph_t;

static size_t node_start(const graph_t *g, int launch, uint32_t op)
{
    return (size_t)launch * g->num_nodes + op;
}

static size_t node_end(const graph_t *g, int launch, uint32_t op)
{
    return node_start(g, launch, op) + g->num_ops;
}

static size_t node_post(const graph_t *g, int launch, uint32_t post)
{
    return (size_t)launch * g->num_nodes + 2 * g->num_ops + post;
}

static size_t node_entry(const graph_t *g, int launch, int rank)
{
    return (size_t)launch * g->num_nodes + 2 * g->num_ops + g->num_posts +
           rank;
}

static size_t node_completion(const graph_t *g, int launch, int rank)
{
    return node_entry(g, launch, rank) + g->v->nranks;
}

static void add_edge(graph_t *g, size_t from, size_t to)
{
    g->edge[from * g->all + to] = 1;
}

static const hce_plan_rise_t *find_rise(const hce_plan_rise_t *rises,
                                        uint32_t num, int rank, int slot)
{
    uint32_t i;

    for (i = 0; i < num; i++) {
        if (rises[i].rank == rank && rises[i].slot == slot) {
            return &rises[i];
        }
    }
    abort();
}

/* The first post that satisfies a wait, found by looking at all of them in
 * all launches, comes before the event. */
static void add_wait(graph_t *g, int launch, int rank,
                     const hce_plan_wait_t *wait, size_t event)
{
    const hce_plan_t *writer = g->v->plans[wait->writer];
    int64_t rise = find_rise(g->v->plans[rank]->in, g->v->plans[rank]->num_in,
                             wait->writer, wait->slot)
                       ->rise;
    int64_t target = launch * rise + wait->value, best = INT64_MAX;
    size_t node = 0;
    uint32_t i;
    int l;

    for (l = 0; l < LAUNCHES; l++) {
        for (i = 0; i < writer->num_posts; i++) {
            int64_t value = l * rise + writer->posts[i].value;

            if (writer->posts[i].owner == rank &&
                writer->posts[i].slot == wait->slot && value >= target &&
                value < best) {
                best = value;
                node = node_post(g, l, g->v->post_base[wait->writer] + i);
            }
        }
    }
    if (target > 0) {
        add_edge(g, node, event);
    }
}

/* A post follows the ends of all ops of its lane, up to its own, that post to
 * the same counter. */
static void add_post(graph_t *g, int launch, int rank, uint32_t op,
                     uint32_t post)
{
    const hce_plan_t *plan = g->v->plans[rank];
    const hce_plan_post_t *p = &plan->posts[post];
    uint32_t i, j;

    for (i = 0; i <= op; i++) {
        for (j = 0; j < plan->ops[i].num_post; j++) {
            const hce_plan_post_t *q = &plan->posts[plan->ops[i].post + j];

            if (plan->ops[i].lane == plan->ops[op].lane &&
                q->owner == p->owner && q->slot == p->slot) {
                add_edge(g, node_end(g, launch, g->v->op_base[rank] + i),
                         node_post(g, launch, g->v->post_base[rank] + post));
            }
        }
    }
}

static void add_op(graph_t *g, int launch, int rank, uint32_t op)
{
    const hce_plan_t *plan = g->v->plans[rank];
    const hce_plan_op_t *o = &plan->ops[op];
    size_t start = node_start(g, launch, g->v->op_base[rank] + op);
    size_t end = node_end(g, launch, g->v->op_base[rank] + op);
    uint32_t i;

    add_edge(g, node_entry(g, launch, rank), start);
    add_edge(g, start, end);
    add_edge(g, end, node_completion(g, launch, rank));
    for (i = 0; i < op; i++) {
        if (plan->ops[i].lane == o->lane) {
            add_edge(g, node_start(g, launch, g->v->op_base[rank] + i), start);
        }
    }
    for (i = 0; i < o->num_wait; i++) {
        add_wait(g, launch, rank, &plan->waits[o->wait + i], start);
    }
    for (i = 0; i < o->num_post; i++) {
        add_post(g, launch, rank, op, o->post + i);
    }
}

static void add_rank(graph_t *g, int launch, int rank)
{
    const hce_plan_t *plan = g->v->plans[rank];
    size_t completion = node_completion(g, launch, rank);
    uint32_t i;

    add_edge(g, node_entry(g, launch, rank), completion);
    if (launch + 1 < LAUNCHES) {
        add_edge(g, completion, node_entry(g, launch + 1, rank));
    }
    for (i = 0; i < plan->num_ops; i++) {
        add_op(g, launch, rank, i);
    }
    for (i = 0; i < plan->num_done_wait; i++) {
        add_wait(g, launch, rank, &plan->waits[plan->done_wait + i],
                 completion);
    }
}

static void graph_init(graph_t *g, const hce_verify_t *v)
{
    int launch, rank;

    g->v = v;
    g->num_ops = v->op_base[v->nranks];
    g->num_posts = v->post_base[v->nranks];
    g->num_nodes = 2 * g->num_ops + g->num_posts + 2 * v->nranks;
    g->all = (size_t)LAUNCHES * g->num_nodes;
    g->edge = calloc(g->all, g->all);
    if (g->edge == NULL) {
        abort();
    }
    for (launch = 0; launch < LAUNCHES; launch++) {
        for (rank = 0; rank < v->nranks; rank++) {
            add_rank(g, launch, rank);
        }
    }
}

/* Everything that comes after a node. */
static void graph_walk(const graph_t *g, size_t from, uint8_t *after,
                       size_t *stack)
{
    size_t num = 0, to;

    memset(after, 0, g->all);
    stack[num++] = from;
    while (num > 0) {
        const uint8_t *edge = &g->edge[stack[--num] * g->all];

        for (to = 0; to < g->all; to++) {
            if (edge[to] && !after[to]) {
                after[to] = 1;
                stack[num++] = to;
            }
        }
    }
}

typedef struct counts {
    uint64_t pairs;
    uint64_t ordered;
} counts_t;

/* All that the search can be asked about the end of one op instance. */
static bool compare_end(hce_verify_t *v, const graph_t *g, int launch,
                        uint32_t op, const uint8_t *after, counts_t *counts)
{
    uint32_t other, num = g->num_ops;
    int l, rank;
    bool have, want;

    for (l = 0; l < LAUNCHES; l++) {
        for (other = 0; other < num; other++) {
            want = after[node_start(g, l, other)];
            have =
                hce_verify_is_ordered(v, launch * num + op, l * num + other);
            counts->pairs++;
            counts->ordered += want;
            if (have != want) {
                printf("FAILED: end of op %u in launch %d before start of op "
                       "%u in launch %d: %d, should be %d\n",
                       op, launch, other, l, have, want);
                return false;
            }
        }
    }
    for (rank = 0; launch == 0 && rank < v->nranks; rank++) {
        want = after[node_completion(g, 0, rank)];
        have = hce_verify_is_completed(v, op, rank);
        if (have != want) {
            printf("FAILED: end of op %u before completion of rank %d: %d, "
                   "should be %d\n",
                   op, rank, have, want);
            return false;
        }
    }
    return true;
}

static bool compare_entry(hce_verify_t *v, const graph_t *g, int rank,
                          const uint8_t *after)
{
    uint32_t op;

    for (op = 0; op < g->num_ops; op++) {
        bool want = after[node_start(g, 0, op)];

        if (hce_verify_is_entered(v, rank, op) != want) {
            printf("FAILED: entry of rank %d before start of op %u: should be "
                   "%d\n",
                   rank, op, want);
            return false;
        }
    }
    return true;
}

static bool compare(hce_verify_t *v, counts_t *counts)
{
    size_t *stack;
    uint8_t *after;
    graph_t g;
    uint32_t op;
    bool ok = true;
    int i;

    graph_init(&g, v);
    after = malloc(g.all);
    stack = malloc((g.all + 1) * sizeof(*stack));
    if (after == NULL || stack == NULL) {
        abort();
    }
    for (i = 0; ok && i < LAUNCHES; i++) {
        for (op = 0; ok && op < g.num_ops; op++) {
            graph_walk(&g, node_end(&g, i, op), after, stack);
            ok = compare_end(v, &g, i, op, after, counts);
        }
    }
    for (i = 0; ok && i < v->nranks; i++) {
        graph_walk(&g, node_entry(&g, 0, i), after, stack);
        ok = compare_entry(v, &g, i, after);
    }
    free(stack);
    free(after);
    free(g.edge);
    return ok;
}

/* Loses some waits, weakens others down into the launch before. */
static void spoil(hce_plan_t *plan, uint64_t *seed)
{
    uint32_t i;

    for (i = 0; i < plan->num_waits; i++) {
        switch (hce_rand_next(seed) % 8) {
        case 0:
            plan->waits[i].value = 1;
            break;
        case 1:
            plan->waits[i].value -= hce_rand_next(seed) % 4;
            break;
        case 2:
            plan->waits[i].value = -INT32_MAX;
            break;
        default:
            break;
        }
    }
}

static bool run_job(uint64_t seed, uint64_t index, counts_t *counts)
{
    hce_verify_report_t report;
    hce_verify_t v = {.report = &report};
    hce_plan_t *plans[64];
    uint64_t state = seed ^ (index << 32);
    shape_t shape;
    bool ok;
    int rank;

    shape_draw(seed, index, MAX_OPS, &shape);
    for (rank = 0; rank < shape.layout->nranks; rank++) {
        shape.params.rank = rank;
        if (shape.builder->build(&shape.params, &plans[rank]) != HCE_OK) {
            abort();
        }
        spoil(plans[rank], &state);
    }
    ok = hce_verify_open(&v, plans, shape.layout->nranks) &&
         hce_verify_shape(&v) && hce_verify_counters(&v) &&
         hce_verify_order_create(&v);
    if (!ok) {
        printf("FAILED: %s\n", report.text);
    }
    ok = ok && compare(&v, counts);
    if (!ok) {
        printf("seed %" PRIu64 ", job %" PRIu64 ": ", seed, index);
        shape_print(&shape);
    }
    hce_verify_close(&v);
    for (rank = 0; rank < shape.layout->nranks; rank++) {
        hce_plan_destroy(plans[rank]);
    }
    shape_free(&shape);
    return ok;
}

int main(int argc, char **argv)
{
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0)
                             : (uint64_t)time(NULL) / SECONDS_A_DAY;
    counts_t counts = {0, 0};
    uint64_t i;

    printf("seed %" PRIu64 "\n", seed);
    fflush(stdout);
    for (i = 0; i < JOBS; i++) {
        if (!run_job(seed, i, &counts)) {
            return EXIT_FAILURE;
        }
    }
    printf("%d jobs, %" PRIu64 " pairs compared, %" PRIu64
           " of them ordered\n",
           JOBS, counts.pairs, counts.ordered);
    return counts.ordered > 0 && counts.ordered < counts.pairs ? EXIT_SUCCESS
                                                               : EXIT_FAILURE;
}
