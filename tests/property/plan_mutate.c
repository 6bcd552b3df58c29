/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Spoils right plans at random and asks the verifier. What it accepts is then
 * run on real bytes, three launches back to back, with ops that take their
 * time, end in any order and leave half of their bytes for later: whatever
 * the timing, every output must be right. What it refuses is run as well, to
 * see that these runs can fail.
 */
#include "config.h"

#include "shapes.h"

#include "plan/verify.h"
#include "util/math.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define JOBS          1000
#define MAX_OPS       120
#define MAX_RANKS     64
#define MAX_BYTES     40 /* a rank */
#define RUNS          6  /* timings that a job is tried with */
#define LAUNCHES      3
#define LOOK_TURNS    100 /* between looks whether a run is stuck */
#define SECONDS_A_DAY 86400

typedef struct job {
    uint64_t seed;
    shape_t shape;
    hce_plan_t *plans[MAX_RANKS];
    int nranks;
} job_t;

typedef enum op_state { WAITING, STARTED, HALF, ENDED } op_state_t;

/* One rank of a run. */
typedef struct player {
    uint8_t *send;
    uint8_t *recv;
    uint8_t *scratch;
    uint8_t *states;    /* op_state_t of each op */
    uint32_t *next;     /* of each lane: ops started */
    uint32_t *slowness; /* of each lane */
    int64_t *counters;
    int launch;
    bool inside; /* between entry and completion */
} player_t;

typedef struct run {
    const job_t *job;
    player_t players[MAX_RANKS];
    uint64_t seed;
} run_t;

static uint64_t below(uint64_t *seed, uint64_t limit)
{
    return hce_rand_next(seed) % limit;
}

static uint8_t input_byte(int rank, int launch, uint64_t at)
{
    uint64_t state = ((uint64_t)rank << 40) + ((uint64_t)launch << 32) + at;

    return hce_rand_next(&state);
}

/* ---- spoiling ---- */

static hce_plan_op_t *any_op(hce_plan_t *plan, uint64_t *seed)
{
    return &plan->ops[below(seed, plan->num_ops)];
}

/* An op later in the same lane, or NULL. */
static hce_plan_op_t *later_op(hce_plan_t *plan, const hce_plan_op_t *op)
{
    const hce_plan_op_t *end = plan->ops + plan->num_ops;
    hce_plan_op_t *other = &plan->ops[op - plan->ops];

    for (other++; other < end; other++) {
        if (other->lane == op->lane) {
            return other;
        }
    }
    return NULL;
}

static bool lose_wait(hce_plan_t *plan, uint64_t *seed)
{
    hce_plan_op_t *op = any_op(plan, seed);

    if (op->num_wait == 0) {
        return false;
    }
    plan->waits[op->wait + below(seed, op->num_wait)] =
        plan->waits[op->wait + op->num_wait - 1];
    op->num_wait--;
    return true;
}

static bool weaken_wait(hce_plan_t *plan, uint64_t *seed)
{
    if (plan->num_waits == 0) {
        return false;
    }
    plan->waits[below(seed, plan->num_waits)].value--;
    return true;
}

/* A wait for something else that also comes. */
static bool change_wait(hce_plan_t *plan, uint64_t *seed)
{
    const hce_plan_rise_t *in;
    hce_plan_wait_t *wait;

    if (plan->num_waits == 0) {
        return false;
    }
    in = &plan->in[below(seed, plan->num_in)];
    wait = &plan->waits[below(seed, plan->num_waits)];
    wait->writer = in->rank;
    wait->slot = in->slot;
    wait->value = hce_min(wait->value, in->rise);
    return true;
}

static bool move_ref(hce_plan_t *plan, uint64_t *seed)
{
    hce_plan_op_t *op = any_op(plan, seed);
    hce_plan_ref_t *ref;
    uint64_t size = plan->params.len;

    if (op->num_src == 0 || op->len == 0) {
        return false;
    }
    ref = &plan->refs[op->ref + below(seed, op->num_src + op->num_dst)];
    if (ref->buf == HCE_BUF_SCRATCH) {
        size = plan->params.limits.scratch;
    } else if (ref->buf == HCE_BUF_RECV) {
        size *= plan->params.layout->nranks;
    }
    ref->offset = below(seed, size - op->len + 1);
    return true;
}

/* Two ops of a lane trade what they move, but not what they wait for and
 * post. */
static bool trade_refs(hce_plan_t *plan, uint64_t *seed)
{
    hce_plan_op_t *a = any_op(plan, seed), *b = later_op(plan, a), swap = *a;

    if (b == NULL || a->num_src == 0 || a->num_dst != b->num_dst) {
        return false;
    }
    a->ref = b->ref;
    a->len = b->len;
    b->ref = swap.ref;
    b->len = swap.len;
    return true;
}

static bool trade_waits(hce_plan_t *plan, uint64_t *seed)
{
    hce_plan_op_t *a = any_op(plan, seed), *b = later_op(plan, a), swap = *a;

    if (b == NULL) {
        return false;
    }
    a->wait = b->wait;
    a->num_wait = b->num_wait;
    b->wait = swap.wait;
    b->num_wait = swap.num_wait;
    return true;
}

/* The post of one op comes with an earlier op that has none. */
static bool post_early(hce_plan_t *plan, uint64_t *seed)
{
    hce_plan_op_t *a = any_op(plan, seed), *b = later_op(plan, a);

    if (b == NULL || a->num_post == 0 || b->num_post != a->num_post) {
        return false;
    }
    /* a posts b's greater values, b nothing. */
    a->post = b->post;
    b->num_post = 0;
    return true;
}

static bool shorten(hce_plan_t *plan, uint64_t *seed)
{
    hce_plan_op_t *op = any_op(plan, seed);

    if (op->len == 0) {
        return false;
    }
    op->len--;
    return true;
}

static bool nothing(hce_plan_t *plan, uint64_t *seed)
{
    return true;
}

static bool (*const spoilers[])(hce_plan_t *, uint64_t *) = {
    nothing,    lose_wait,   weaken_wait, change_wait, move_ref,
    trade_refs, trade_waits, post_early,  shorten,
};
#define NUM_SPOILERS (sizeof(spoilers) / sizeof(spoilers[0]))

/* ---- running ---- */

static uint8_t *ref_bytes(run_t *run, const hce_plan_ref_t *ref, int launch)
{
    player_t *player = &run->players[ref->rank];

    switch (ref->buf) {
    case HCE_BUF_SEND:
        return player->send + ref->offset;
    case HCE_BUF_RECV:
        return player->recv + ref->offset;
    default:
        return player->scratch + ref->offset +
               launch % ref->depth * ref->stride;
    }
}

static void move_bytes(run_t *run, const hce_plan_t *plan,
                       const hce_plan_op_t *op, bool second)
{
    const hce_plan_ref_t *refs = &plan->refs[op->ref];
    uint64_t half = op->len / 2, from = second ? half : 0;
    uint64_t num = second ? op->len - half : half;
    int launch = run->players[plan->params.rank].launch, i;

    for (i = 0; i < op->num_dst; i++) {
        memmove(ref_bytes(run, &refs[op->num_src + i], launch) + from,
                ref_bytes(run, &refs[0], launch) + from, num);
    }
}

static bool is_met(run_t *run, int rank, uint32_t first, uint32_t num)
{
    const hce_plan_t *plan = run->job->plans[rank];
    const player_t *player = &run->players[rank];
    uint32_t i, j;

    for (i = first; i < first + num; i++) {
        const hce_plan_wait_t *wait = &plan->waits[i];

        for (j = 0; plan->in[j].rank != wait->writer ||
                    plan->in[j].slot != wait->slot;
             j++) {
        }
        if (player->counters[hce_plan_counter_index(
                plan->params.layout, wait->writer, wait->slot)] <
            player->launch * plan->in[j].rise + wait->value) {
            return false;
        }
    }
    return true;
}

/* Does an op of the lane before this one, not ended, post there too? */
static bool is_held_up(const run_t *run, int rank, const hce_plan_op_t *op,
                       const hce_plan_post_t *post)
{
    const hce_plan_t *plan = run->job->plans[rank];
    const hce_plan_op_t *other;
    int i;

    for (other = plan->ops; other <= op; other++) {
        if (other->lane != op->lane ||
            run->players[rank].states[other - plan->ops] == ENDED) {
            continue;
        }
        for (i = 0; i < other->num_post; i++) {
            const hce_plan_post_t *p = &plan->posts[other->post + i];

            if (p->owner == post->owner && p->slot == post->slot) {
                return true;
            }
        }
    }
    return false;
}

/* Raises all that the ends of a lane's ops allow. */
static void raise_posts(run_t *run, int rank, uint32_t lane)
{
    const hce_plan_t *plan = run->job->plans[rank];
    const hce_plan_op_t *op;
    uint32_t j;
    int i;

    for (op = plan->ops; op < plan->ops + plan->num_ops; op++) {
        for (i = 0; op->lane == lane && i < op->num_post; i++) {
            const hce_plan_post_t *post = &plan->posts[op->post + i];
            int64_t *counter =
                &run->players[post->owner].counters[hce_plan_counter_index(
                    plan->params.layout, rank, post->slot)];
            int64_t value;

            for (j = 0; plan->out[j].rank != post->owner ||
                        plan->out[j].slot != post->slot;
                 j++) {
            }
            value =
                run->players[rank].launch * plan->out[j].rise + post->value;
            if (value > *counter && !is_held_up(run, rank, op, post)) {
                *counter = value;
            }
        }
    }
}

/* The user's part: garbage wherever nobody may look, input at entry. */
static void scribble(run_t *run, player_t *player)
{
    const hce_plan_params_t *params = &run->job->shape.params;
    uint64_t i;

    for (i = 0; i < params->len; i++) {
        player->send[i] = hce_rand_next(&run->seed);
    }
    for (i = 0; i < params->len * run->job->nranks; i++) {
        player->recv[i] = hce_rand_next(&run->seed);
    }
}

static void enter(run_t *run, int rank)
{
    player_t *player = &run->players[rank];
    const hce_plan_t *plan = run->job->plans[rank];
    uint32_t i;

    scribble(run, player);
    for (i = 0; i < plan->params.len; i++) {
        player->send[i] = input_byte(rank, player->launch, i);
    }
    memset(player->states, WAITING, plan->num_ops);
    for (i = 0; i < plan->num_lanes; i++) {
        static const uint32_t slowness[] = {1, 1, 4, 32};

        player->next[i] = 0;
        player->slowness[i] = slowness[below(&run->seed, 4)];
    }
    player->inside = true;
}

/* False: the output is wrong. */
static bool complete(run_t *run, int rank)
{
    player_t *player = &run->players[rank];
    uint64_t len = run->job->shape.params.len, i;
    int slice;

    for (slice = 0; slice < run->job->nranks; slice++) {
        for (i = 0; i < len; i++) {
            if (player->recv[slice * len + i] !=
                input_byte(slice, player->launch, i)) {
                return false;
            }
        }
    }
    scribble(run, player);
    player->launch++;
    player->inside = false;
    return true;
}

/* One thing that a lane can do now, with luck. */
static void step_lane(run_t *run, int rank, uint32_t lane)
{
    const hce_plan_t *plan = run->job->plans[rank];
    const hce_plan_lane_t *l = &plan->lanes[lane];
    player_t *player = &run->players[rank];
    uint32_t started = player->next[lane], pos, tries;

    if (started < l->num_ops && below(&run->seed, 2) == 0) {
        const hce_plan_op_t *op =
            &plan->ops[plan->lane_ops[l->first + started]];

        if (is_met(run, rank, op->wait, op->num_wait)) {
            player->states[op - plan->ops] = STARTED;
            player->next[lane]++;
            return;
        }
    }
    /* Any op in flight, with luck. */
    for (tries = 0; tries < started; tries++) {
        const hce_plan_op_t *op;

        pos = below(&run->seed, started);
        op = &plan->ops[plan->lane_ops[l->first + pos]];
        if (player->states[op - plan->ops] == ENDED) {
            continue;
        }
        if (player->states[op - plan->ops]++ == STARTED) {
            move_bytes(run, plan, op, false);
        } else {
            move_bytes(run, plan, op, true);
            raise_posts(run, rank, lane);
        }
        return;
    }
}

static bool has_ended(const run_t *run, int rank)
{
    const player_t *player = &run->players[rank];
    uint32_t i;

    for (i = 0; i < run->job->plans[rank]->num_ops; i++) {
        if (player->states[i] != ENDED) {
            return false;
        }
    }
    return true;
}

typedef enum outcome { RIGHT, WRONG, STUCK } outcome_t;

static bool may_complete(run_t *run, int rank)
{
    const hce_plan_t *plan = run->job->plans[rank];

    return has_ended(run, rank) &&
           is_met(run, rank, plan->done_wait, plan->num_done_wait);
}

/* A turn of one rank. False: its output is wrong. */
static bool step_rank(run_t *run, int rank)
{
    player_t *player = &run->players[rank];
    uint32_t lane;

    if (!player->inside) {
        if (player->launch < LAUNCHES) {
            enter(run, rank);
        }
        return true;
    }
    for (lane = 0; lane < run->job->plans[rank]->num_lanes; lane++) {
        if (below(&run->seed, player->slowness[lane]) == 0) {
            step_lane(run, rank, lane);
        }
    }
    return may_complete(run, rank) ? complete(run, rank) : true;
}

/* Could this rank ever do something as things are? */
static bool may_move(run_t *run, int rank)
{
    const hce_plan_t *plan = run->job->plans[rank];
    const player_t *player = &run->players[rank];
    uint32_t i;

    if (!player->inside) {
        return player->launch < LAUNCHES;
    }
    for (i = 0; i < plan->num_ops; i++) {
        if (player->states[i] == STARTED || player->states[i] == HALF) {
            return true;
        }
    }
    for (i = 0; i < plan->num_lanes; i++) {
        const hce_plan_lane_t *lane = &plan->lanes[i];
        const hce_plan_op_t *op;

        if (player->next[i] < lane->num_ops) {
            op = &plan->ops[plan->lane_ops[lane->first + player->next[i]]];
            if (is_met(run, rank, op->wait, op->num_wait)) {
                return true;
            }
        }
    }
    return may_complete(run, rank);
}

/* Until all have completed, or nothing can happen any more. */
static outcome_t run_all(run_t *run)
{
    int rank, left, turn;
    bool moves = true;

    for (turn = 1; moves; turn++) {
        left = 0;
        moves = turn % LOOK_TURNS != 0;
        for (rank = 0; rank < run->job->nranks; rank++) {
            if (below(&run->seed, 3) != 0 && !step_rank(run, rank)) {
                return WRONG;
            }
            left += run->players[rank].launch < LAUNCHES;
        }
        for (rank = 0; !moves && rank < run->job->nranks; rank++) {
            moves = may_move(run, rank);
        }
        if (left == 0) {
            return RIGHT;
        }
    }
    return STUCK;
}

static outcome_t run_once(const job_t *job, uint64_t seed)
{
    const hce_plan_params_t *params = &job->shape.params;
    uint32_t num = hce_plan_num_counters(job->shape.layout);
    run_t *run = calloc(1, sizeof(*run));
    outcome_t outcome;
    int rank;

    run->job = job;
    run->seed = seed;
    for (rank = 0; rank < job->nranks; rank++) {
        player_t *player = &run->players[rank];

        player->recv = malloc(params->len * job->nranks + 1);
        player->send = params->in_place ? player->recv + rank * params->len
                                        : malloc(params->len + 1);
        player->scratch =
            calloc(HCE_PLAN_SLOTS, params->limits.scratch + 1);
        player->states = calloc(job->plans[rank]->num_ops + 1, 1);
        player->next =
            calloc(job->plans[rank]->num_lanes + 1, sizeof(uint32_t));
        player->slowness =
            calloc(job->plans[rank]->num_lanes + 1, sizeof(uint32_t));
        player->counters = calloc(num, sizeof(int64_t));
        scribble(run, player);
    }
    outcome = run_all(run);
    for (rank = 0; rank < job->nranks; rank++) {
        player_t *player = &run->players[rank];

        if (!params->in_place) {
            free(player->send);
        }
        free(player->recv);
        free(player->scratch);
        free(player->states);
        free(player->next);
        free(player->slowness);
        free(player->counters);
    }
    free(run);
    return outcome;
}

/* ---- jobs ---- */

static void job_draw(job_t *job, uint64_t seed, uint64_t index, size_t *which)
{
    hce_plan_params_t *params = &job->shape.params;
    int rank;

    job->seed = seed ^ (index << 32);
    shape_draw(seed, index, MAX_OPS, &job->shape);
    job->nranks = job->shape.layout->nranks;
    params->len = below(&job->seed, MAX_BYTES);
    params->width = params->len / (1 + below(&job->seed, 4)) + 1;
    params->in_place = below(&job->seed, 2);
    params->limits.scratch = MAX_BYTES * job->nranks;
    for (rank = 0; rank < job->nranks; rank++) {
        params->rank = rank;
        if (job->shape.builder->build(params, &job->plans[rank]) != HCE_OK) {
            abort();
        }
    }
    do {
        hce_plan_t *plan = job->plans[below(&job->seed, job->nranks)];

        *which = below(&job->seed, NUM_SPOILERS);
        if (plan->num_ops == 0) {
            *which = 0;
        }
        if (spoilers[*which](plan, &job->seed)) {
            return;
        }
    } while (true);
}

static void job_free(job_t *job)
{
    int rank;

    for (rank = 0; rank < job->nranks; rank++) {
        hce_plan_destroy(job->plans[rank]);
    }
    shape_free(&job->shape);
}

typedef struct tally {
    uint64_t accepted;
    uint64_t refused;
    uint64_t failed; /* of the refused ones, in a run */
} tally_t;

static bool try_job(uint64_t seed, uint64_t index, tally_t *tally)
{
    hce_verify_report_t report;
    outcome_t outcome = RIGHT;
    bool accepted, ok = true;
    size_t which;
    job_t job;
    int i;

    job_draw(&job, seed, index, &which);
    accepted = hce_plan_verify(job.plans, job.nranks, NULL, &report) == HCE_OK;
    /* Plans that are refused for their form cannot all be run. */
    for (i = 0; outcome == RIGHT && i < RUNS &&
                (accepted || strstr(report.text, "does not wait") != NULL ||
                 strstr(report.text, "perhaps") != NULL ||
                 strstr(report.text, "hold byte") != NULL ||
                 strstr(report.text, "never written") != NULL ||
                 strstr(report.text, "deadlock") != NULL);
         i++) {
        outcome = run_once(&job, hce_rand_next(&job.seed));
    }
    if (accepted && outcome != RIGHT) {
        printf("FAILED: seed %" PRIu64 ", job %" PRIu64 ", change %zu: the "
               "verifier accepts a plan whose run is %s\n",
               seed, index, which, outcome == WRONG ? "wrong" : "stuck");
        ok = false;
    }
    if (!accepted && which == 0) {
        printf("FAILED: seed %" PRIu64 ", job %" PRIu64 ": %s\n", seed, index,
               report.text);
        ok = false;
    }
    if (!ok) {
        shape_print(&job.shape);
    }
    tally->accepted += accepted;
    tally->refused += !accepted;
    tally->failed += !accepted && outcome != RIGHT;
    job_free(&job);
    return ok;
}

int main(int argc, char **argv)
{
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0)
                             : (uint64_t)time(NULL) / SECONDS_A_DAY;
    tally_t tally = {0, 0, 0};
    uint64_t i;

    printf("seed %" PRIu64 "\n", seed);
    fflush(stdout);
    for (i = 0; i < JOBS; i++) {
        if (!try_job(seed, i, &tally)) {
            return EXIT_FAILURE;
        }
    }
    printf("%" PRIu64 " accepted, all of them right in %d runs each; %" PRIu64
           " refused, %" PRIu64 " of them fail in a run\n",
           tally.accepted, RUNS, tally.refused, tally.failed);
    return tally.accepted > JOBS / 10 && tally.failed > JOBS / 10
               ? EXIT_SUCCESS
               : EXIT_FAILURE;
}
