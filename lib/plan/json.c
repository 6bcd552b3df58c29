/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * One rank's plan as JSON, with everything that is needed to verify it again
 * without this library. docs/PLAN.md describes the format.
 */
#include "config.h"

#include "plan/show.h"

#include "util/log.h"

#ifdef HCE_HAVE_JANSSON

#include <jansson.h>

#define JSON_VERSION 1

/* A NULL for "o" makes json_pack fail, and appending NULL fails as well: what
 * one function could not make fails all those above it. */

static json_t *json_layout(const hce_layout_t *layout)
{
    json_t *nodes = json_array();
    int i;

    for (i = 0; i < layout->nranks; i++) {
        if (json_array_append_new(nodes, json_integer(layout->node[i]))) {
            json_decref(nodes);
            return NULL;
        }
    }
    return nodes;
}

/* What the builder knew of the device and the network. */
static json_t *json_limits(const hce_plan_limits_t *limits)
{
    return json_pack("{s:I, s:I, s:b, s:b}", "scratch",
                     (json_int_t)limits->scratch, "parcel",
                     (json_int_t)limits->parcel, "reads", (int)limits->reads,
                     "pulls", (int)limits->pulls);
}

static json_t *json_params(const hce_plan_params_t *params)
{
    return json_pack(
        "{s:s, s:s, s:s, s:i, s:i, s:o, s:o, s:i, s:I, s:I, s:i, s:i, s:i, "
        "s:b}",
        "collective", hce_plan_coll_string(params->coll), "datatype",
        hce_datatype_string(params->datatype), "op",
        hce_redop_string(params->op), "rank", params->rank,
        "ranks", params->layout->nranks, "node_of_rank",
        json_layout(params->layout), "limits", json_limits(&params->limits),
        "root", params->root, "bytes", (json_int_t)params->len, "width",
        (json_int_t)hce_plan_chunk_width(params->len, params->width),
        "contexts", params->contexts, "carriers", params->carriers, "dirs",
        params->dirs, "in_place", params->in_place);
}

static json_t *json_lanes(const hce_plan_t *plan)
{
    json_t *lanes = json_array(), *item;
    uint32_t i;

    for (i = 0; i < plan->num_lanes; i++) {
        const hce_plan_lane_t *lane = &plan->lanes[i];

        item = json_pack("{s:s, s:i, s:i, s:i}", "kind",
                         hce_plan_lane_kind_string(lane->kind), "peer",
                         lane->peer, "context", lane->context, "direction",
                         lane->direction);
        if (json_array_append_new(lanes, item) != 0) {
            json_decref(lanes);
            return NULL;
        }
    }
    return lanes;
}

static json_t *json_refs(const hce_plan_t *plan, uint32_t first, int num)
{
    json_t *refs = json_array(), *item;
    int i;

    for (i = 0; i < num; i++) {
        const hce_plan_ref_t *ref = &plan->refs[first + i];

        item = json_pack("{s:s, s:i, s:I, s:i, s:I}", "buffer",
                         hce_plan_buf_string(ref->buf), "rank", ref->rank,
                         "offset", (json_int_t)ref->offset, "depth",
                         ref->depth, "stride", (json_int_t)ref->stride);
        if (json_array_append_new(refs, item) != 0) {
            json_decref(refs);
            return NULL;
        }
    }
    return refs;
}

static json_t *json_waits(const hce_plan_wait_t *waits, uint32_t num)
{
    json_t *array = json_array(), *item;
    uint32_t i;

    for (i = 0; i < num; i++) {
        item = json_pack("{s:i, s:i, s:I}", "writer", waits[i].writer, "slot",
                         waits[i].slot, "value", (json_int_t)waits[i].value);
        if (json_array_append_new(array, item) != 0) {
            json_decref(array);
            return NULL;
        }
    }
    return array;
}

static json_t *json_posts(const hce_plan_post_t *posts, uint32_t num)
{
    json_t *array = json_array(), *item;
    uint32_t i;

    for (i = 0; i < num; i++) {
        item = json_pack("{s:i, s:i, s:I}", "owner", posts[i].owner, "slot",
                         posts[i].slot, "value", (json_int_t)posts[i].value);
        if (json_array_append_new(array, item) != 0) {
            json_decref(array);
            return NULL;
        }
    }
    return array;
}

static json_t *json_ops(const hce_plan_t *plan)
{
    json_t *ops = json_array(), *item;
    uint32_t i;

    for (i = 0; i < plan->num_ops; i++) {
        const hce_plan_op_t *op = &plan->ops[i];

        item = json_pack(
            "{s:s, s:I, s:I, s:o, s:o, s:o, s:o}", "kind",
            hce_plan_kind_string(op->kind), "lane", (json_int_t)op->lane,
            "bytes", (json_int_t)op->len, "src",
            json_refs(plan, op->ref, op->num_src), "dst",
            json_refs(plan, op->ref + op->num_src, op->num_dst), "wait",
            json_waits(&plan->waits[op->wait], op->num_wait), "post",
            json_posts(&plan->posts[op->post], op->num_post));
        if (op->is_last) {
            json_object_set_new(item, "last", json_true());
        }
        if (json_array_append_new(ops, item) != 0) {
            json_decref(ops);
            return NULL;
        }
    }
    return ops;
}

static json_t *json_rises(const hce_plan_rise_t *rises, uint32_t num,
                          const char *who)
{
    json_t *array = json_array(), *item;
    uint32_t i;

    for (i = 0; i < num; i++) {
        item = json_pack("{s:i, s:i, s:I}", who, rises[i].rank, "slot",
                         rises[i].slot, "rise", (json_int_t)rises[i].rise);
        if (json_array_append_new(array, item) != 0) {
            json_decref(array);
            return NULL;
        }
    }
    return array;
}

hce_status_t hce_plan_write_json(const hce_plan_t *plan, FILE *out)
{
    json_t *root;
    int failed;

    root = json_pack(
        "{s:i, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:I}", "version",
        JSON_VERSION, "path", plan->path, "params", json_params(&plan->params),
        "lanes", json_lanes(plan), "ops", json_ops(plan), "done",
        json_waits(&plan->waits[plan->done_wait], plan->num_done_wait), "in",
        json_rises(plan->in, plan->num_in, "writer"), "out",
        json_rises(plan->out, plan->num_out, "owner"), "scratch_bytes",
        (json_int_t)plan->scratch_len, "stage_bytes",
        (json_int_t)plan->stage_len);
    if (root == NULL) {
        hce_log(ERROR, PLAN, "JSON of plan '%s' of rank %d: out of memory",
                plan->path, plan->params.rank);
        return HCE_ERR_NO_MEMORY;
    }
    failed =
        json_dumpf(root, out, JSON_INDENT(1)) != 0 || fputc('\n', out) == EOF;
    json_decref(root);
    if (failed) {
        hce_log(ERROR, PLAN, "JSON of plan '%s' of rank %d: cannot write: %m",
                plan->path, plan->params.rank);
        return HCE_ERR_SYSTEM;
    }
    return HCE_OK;
}

#else

hce_status_t hce_plan_write_json(const hce_plan_t *plan, FILE *out)
{
    hce_log(ERROR, PLAN, "JSON of plan '%s': this build has no jansson",
            plan->path);
    return HCE_ERR_UNSUPPORTED;
}

#endif
