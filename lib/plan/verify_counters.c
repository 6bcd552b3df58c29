/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Matches every wait with a counter and every post with the counter of its
 * owner: one lane raises a counter, its values rise, and both sides agree by
 * how much in a launch.
 */
#include "config.h"

#include "plan/verify_priv.h"

#include "util/math.h"

#include <inttypes.h>
#include <stdlib.h>

/* Counters of one rank by hce_plan_counter_index: of those it owns by
 * writer, or of those it raises by owner. */
typedef struct counter_map {
    const hce_layout_t *layout;
    uint32_t *of;
} counter_map_t;

static uint32_t *map_at(const counter_map_t *map, int peer, int slot)
{
    return &map->of[hce_plan_counter_index(map->layout, peer, slot)];
}

/* Rises are positive, sorted, and each counter is there once. */
static bool counters_check_rises(hce_verify_t *v, int rank,
                                 const hce_plan_rise_t *rises, uint32_t num)
{
    uint32_t i;

    for (i = 0; i < num; i++) {
        const hce_plan_rise_t *a = &rises[i], *before = a - 1;

        if (a->rise < 1 ||
            (i > 0 && (a->rank < before->rank || (a->rank == before->rank &&
                                                  a->slot <= before->slot)))) {
            return hce_verify_fault(
                v, "rank %d: its rises are not positive and sorted", rank);
        }
    }
    return true;
}

/* The list of an owner names its counters. */
static bool counters_declare(hce_verify_t *v, int rank)
{
    const hce_plan_t *plan = v->plans[rank];
    const hce_plan_rise_t *in;
    uint32_t i;

    if (!counters_check_rises(v, rank, plan->in, plan->num_in) ||
        !counters_check_rises(v, rank, plan->out, plan->num_out)) {
        return false;
    }
    for (i = 0; i < plan->num_in; i++) {
        in = &plan->in[i];
        v->counters[v->counter_base[rank] + i] = (hce_verify_counter_t){
            .owner = rank,
            .writer = in->rank,
            .slot = in->slot,
            .lane = HCE_VERIFY_NONE,
            .rise = in->rise,
        };
    }
    return true;
}

static uint32_t counters_find(const hce_verify_t *v, int owner, int writer,
                              int slot)
{
    uint32_t lo = v->counter_base[owner], hi = v->counter_base[owner + 1];

    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        const hce_verify_counter_t *counter = &v->counters[mid];

        if (counter->writer == writer && counter->slot == slot) {
            return mid;
        }
        if (counter->writer < writer ||
            (counter->writer == writer && counter->slot < slot)) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return HCE_VERIFY_NONE;
}

static bool counters_match_waits(hce_verify_t *v, int rank,
                                 const counter_map_t *map)
{
    const hce_plan_t *plan = v->plans[rank];
    uint32_t base = v->counter_base[rank], i, found;
    char name[HCE_VERIFY_NAME_SIZE];

    for (i = 0; i < plan->num_in; i++) {
        *map_at(map, plan->in[i].rank, plan->in[i].slot) = base + i;
    }
    for (i = 0; i < plan->num_waits; i++) {
        const hce_plan_wait_t *wait = &plan->waits[i];

        found = *map_at(map, wait->writer, wait->slot);
        if (found == HCE_VERIFY_NONE ||
            wait->value > v->counters[found].rise) {
            return hce_verify_fault(
                v, "%s: waited for to reach %" PRId64 ", its rise is less",
                hce_verify_name_counter(
                    &(hce_verify_counter_t){.owner = rank,
                                            .writer = wait->writer,
                                            .slot = wait->slot},
                    name),
                wait->value);
        }
        v->wait_counter[v->wait_base[rank] + i] = found;
        v->counters[found].waited =
            hce_max(v->counters[found].waited, wait->value);
    }
    for (i = 0; i < plan->num_in; i++) {
        *map_at(map, plan->in[i].rank, plan->in[i].slot) = HCE_VERIFY_NONE;
    }
    return true;
}

/* One post, in the order of its lane. last is the value before it. */
static bool counters_match_post(hce_verify_t *v, uint32_t op, uint32_t post,
                                const counter_map_t *map, int64_t *last)
{
    int rank = hce_verify_op_rank(v, op);
    const hce_plan_post_t *p = &v->plans[rank]->posts[post];
    char name[HCE_VERIFY_NAME_SIZE], what[HCE_VERIFY_NAME_SIZE];
    uint32_t found = *map_at(map, p->owner, p->slot);
    uint32_t lane = v->ops[op].lane;
    hce_verify_counter_t *counter;

    if (found == HCE_VERIFY_NONE) {
        return hce_verify_fault(v,
                                "%s posts to a counter of rank %d that is "
                                "not in its list of rises",
                                hce_verify_name_op(v, op, name), p->owner);
    }
    counter = &v->counters[found];
    if (counter->num_posts == 0) {
        counter->lane = lane;
        last[found] = 0;
    }
    if (counter->lane != lane) {
        return hce_verify_fault(v, "%s: two lanes, %u and %u, raise it",
                                hce_verify_name_counter(counter, what),
                                counter->lane - v->lane_base[rank],
                                lane - v->lane_base[rank]);
    }
    if (p->value <= last[found] || p->value > counter->rise) {
        return hce_verify_fault(
            v, "%s: %s makes it %" PRId64 " after %" PRId64 ", rise %" PRId64,
            hce_verify_name_counter(counter, what),
            hce_verify_name_op(v, op, name), p->value, last[found],
            counter->rise);
    }
    last[found] = p->value;
    v->post_counter[v->post_base[rank] + post] = found;
    v->post_index[v->post_base[rank] + post] = counter->num_posts++;
    return true;
}

static bool counters_match_posts(hce_verify_t *v, int rank,
                                 const counter_map_t *map, int64_t *last)
{
    const hce_plan_t *plan = v->plans[rank];
    uint32_t lane, pos, i;

    for (lane = 0; lane < plan->num_lanes; lane++) {
        for (pos = 0; pos < plan->lanes[lane].num_ops; pos++) {
            uint32_t op = hce_verify_lane_op(v, rank, lane, pos);
            const hce_plan_op_t *o = &plan->ops[op - v->op_base[rank]];

            for (i = 0; i < o->num_post; i++) {
                if (!counters_match_post(v, op, o->post + i, map, last)) {
                    return false;
                }
            }
        }
    }
    return true;
}

/* Both sides' lists agree, and with what is really posted. */
static bool counters_match_rises(hce_verify_t *v, int rank,
                                 const counter_map_t *map, int64_t *last)
{
    const hce_plan_t *plan = v->plans[rank];
    char name[HCE_VERIFY_NAME_SIZE];
    bool ok = true;
    uint32_t i, found;

    for (i = 0; ok && i < plan->num_out; i++) {
        const hce_plan_rise_t *out = &plan->out[i];

        found = counters_find(v, out->rank, rank, out->slot);
        if (found == HCE_VERIFY_NONE || v->counters[found].rise != out->rise) {
            return hce_verify_fault(
                v,
                "%s: rises by %" PRId64 " for its writer, by %" PRId64
                " for its owner",
                hce_verify_name_counter(
                    &(hce_verify_counter_t){
                        .owner = out->rank, .writer = rank, .slot = out->slot},
                    name),
                out->rise,
                found == HCE_VERIFY_NONE ? 0 : v->counters[found].rise);
        }
        *map_at(map, out->rank, out->slot) = found;
    }
    ok = counters_match_posts(v, rank, map, last);
    for (i = 0; i < plan->num_out; i++) {
        uint32_t *at = map_at(map, plan->out[i].rank, plan->out[i].slot);

        if (ok && (v->counters[*at].num_posts == 0 ||
                   last[*at] != plan->out[i].rise)) {
            ok = hce_verify_fault(
                v, "%s: its rise is %" PRId64 " but no op posts that",
                hce_verify_name_counter(&v->counters[*at], name),
                plan->out[i].rise);
        }
        *at = HCE_VERIFY_NONE;
    }
    return ok;
}

/* Counters have posts: where each one's begin, and what they are. */
static bool counters_sort_posts(hce_verify_t *v)
{
    uint32_t num = v->counter_base[v->nranks], i, at = 0, op;
    char name[HCE_VERIFY_NAME_SIZE];

    for (i = 0; i < num; i++) {
        hce_verify_counter_t *counter = &v->counters[i];

        if (counter->num_posts == 0) {
            return hce_verify_fault(
                v,
                "%s: its owner counts on a rise by %" PRId64
                ", nobody posts to it",
                hce_verify_name_counter(counter, name), counter->rise);
        }
        counter->first_post = at;
        at += counter->num_posts;
    }
    for (op = 0; op < hce_verify_num_ops(v); op++) {
        int rank = hce_verify_op_rank(v, op);
        const hce_plan_op_t *o = hce_verify_op(v, op);

        for (i = 0; i < o->num_post; i++) {
            uint32_t post = v->post_base[rank] + o->post + i;

            v->posts[v->counters[v->post_counter[post]].first_post +
                     v->post_index[post]] = (hce_verify_post_t){
                v->plans[rank]->posts[o->post + i].value, op};
        }
    }
    return true;
}

bool hce_verify_counters(hce_verify_t *v)
{
    uint32_t num = hce_plan_num_counters(v->layout), i;
    counter_map_t map = {v->layout, malloc(num * sizeof(*map.of))};
    int64_t *last = malloc((v->counter_base[v->nranks] + 1) * sizeof(*last));
    bool ok = map.of != NULL && last != NULL ? true : hce_verify_no_memory(v);
    int rank;

    for (i = 0; ok && i < num; i++) {
        map.of[i] = HCE_VERIFY_NONE;
    }
    for (rank = 0; ok && rank < v->nranks; rank++) {
        ok = counters_declare(v, rank) && counters_match_waits(v, rank, &map);
    }
    for (rank = 0; ok && rank < v->nranks; rank++) {
        ok = counters_match_rises(v, rank, &map, last);
    }
    ok = ok && counters_sort_posts(v);
    free(map.of);
    free(last);
    return ok;
}

uint32_t hce_verify_find_post(const hce_verify_t *v, uint32_t index,
                              int64_t value)
{
    const hce_verify_counter_t *counter = &v->counters[index];
    const hce_verify_post_t *posts = &v->posts[counter->first_post];
    uint32_t lo = 0, hi = counter->num_posts - 1;

    /* Most counters count 1, 2, 3. */
    if (value <= (int64_t)counter->num_posts &&
        posts[value - 1].value == value) {
        return (uint32_t)value - 1;
    }
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;

        if (posts[mid].value >= value) {
            hi = mid;
        } else {
            lo = mid + 1;
        }
    }
    return lo;
}
