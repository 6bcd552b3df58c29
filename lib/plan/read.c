/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Reads what json.c writes. Every value is checked for its type and limits
 * before a plan is touched; then the builder helpers make the plan. Rises are
 * taken as they are written, not computed: whether they are right is for the
 * verifier to say.
 */
#include "config.h"

#include "plan/read.h"

#ifdef HCE_HAVE_JANSSON

#include "plan/read_priv.h"
#include "plan/show.h"
#include "util/math.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define JSON_VERSION 1
#define MAX_ITEMS    UINT16_MAX /* refs, waits, posts of an op */
#define MAX_LANES    (1 << 20)

static const char *kind_name(int i)
{
    return hce_plan_kind_string((hce_plan_kind_t)i);
}

static const char *buf_name(int i)
{
    return hce_plan_buf_string((hce_plan_buf_t)i);
}

static const char *lane_name(int i)
{
    return hce_plan_lane_kind_string((hce_plan_lane_kind_t)i);
}

static const char *coll_name(int i)
{
    return hce_plan_coll_string((hce_coll_t)i);
}

static const char *datatype_name(int i)
{
    return hce_datatype_string((hce_datatype_t)i);
}

static const char *redop_name(int i)
{
    return hce_redop_string((hce_redop_t)i);
}

static const hce_plan_read_names_t datatype_names = {datatype_name,
                                                     HCE_DATATYPE_LAST - 1};
static const hce_plan_read_names_t redop_names = {redop_name,
                                                  HCE_REDOP_LAST - 1};
static const hce_plan_read_names_t kind_names = {kind_name, HCE_OP_SIGNAL};
static const hce_plan_read_names_t buf_names = {buf_name, HCE_BUF_STAGE};
static const hce_plan_read_names_t lane_names = {lane_name, HCE_LANE_REDUCE};
static const hce_plan_read_names_t coll_names = {coll_name, HCE_COLL_LAST - 1};

static void reader_enter(hce_plan_reader_t *r, const char *list, size_t index)
{
    r->list = list;
    r->list_index = (int64_t)index;
    r->item = NULL;
}

static void reader_leave(hce_plan_reader_t *r)
{
    r->list = NULL;
    r->item = NULL;
}

static bool read_ref(hce_plan_reader_t *r, const json_t *json, bool is_src)
{
    static const int64_t depth_limits[2] = {1, UINT16_MAX};
    uint64_t offset, stride;
    int64_t depth;
    int buf, rank;

    if (!hce_plan_read_name(r, json, "buffer", &buf_names, &buf) ||
        !hce_plan_read_rank(r, json, "rank", 0, &rank) ||
        !hce_plan_read_bytes(r, json, "offset", &offset) ||
        !hce_plan_read_int(r, json, "depth", depth_limits, &depth) ||
        !hce_plan_read_bytes(r, json, "stride", &stride)) {
        return false;
    }
    if (is_src) {
        hce_plan_add_src(r->plan, rank, (hce_plan_buf_t)buf, offset);
    } else {
        hce_plan_add_dst(r->plan, rank, (hce_plan_buf_t)buf, offset);
    }
    hce_plan_set_slots(r->plan, (int)depth, stride);
    return true;
}

static bool read_refs(hce_plan_reader_t *r, const json_t *op, const char *key)
{
    const json_t *refs;
    size_t i;

    if (!hce_plan_read_array(r, op, key, MAX_ITEMS, &refs)) {
        return false;
    }
    r->item = key;
    for (i = 0; i < json_array_size(refs); i++) {
        r->item_index = (int64_t)i;
        if (!read_ref(r, json_array_get(refs, i), key[0] == 's')) {
            return false;
        }
    }
    r->item = NULL;
    return true;
}

/* Waits of the last op, or of the plan's end. */
static bool read_waits(hce_plan_reader_t *r, const json_t *object,
                       const char *key,
                       void (*add)(hce_plan_t *, int, int, int64_t))
{
    const json_t *waits, *json;
    int64_t value;
    int writer, slot;
    size_t i;

    if (!hce_plan_read_array(
            r, object, key,
            add == hce_plan_add_wait ? MAX_ITEMS : HCE_PLAN_MAX_OPS, &waits)) {
        return false;
    }
    r->item = key;
    for (i = 0; i < json_array_size(waits); i++) {
        r->item_index = (int64_t)i;
        json = json_array_get(waits, i);
        if (!hce_plan_read_rank(r, json, "writer", 0, &writer) ||
            !hce_plan_read_slot(r, json, &slot) ||
            !hce_plan_read_value(r, json, "value", &value)) {
            return false;
        }
        add(r->plan, writer, slot, value);
    }
    r->item = NULL;
    return true;
}

static bool read_posts(hce_plan_reader_t *r, const json_t *op)
{
    const json_t *posts, *json;
    int64_t value;
    int owner, slot;
    size_t i;

    if (!hce_plan_read_array(r, op, "post", MAX_ITEMS, &posts)) {
        return false;
    }
    r->item = "post";
    for (i = 0; i < json_array_size(posts); i++) {
        r->item_index = (int64_t)i;
        json = json_array_get(posts, i);
        if (!hce_plan_read_rank(r, json, "owner", 0, &owner) ||
            !hce_plan_read_slot(r, json, &slot) ||
            !hce_plan_read_value(r, json, "value", &value)) {
            return false;
        }
        hce_plan_add_post(r->plan, owner, slot, value);
    }
    r->item = NULL;
    return true;
}

static bool read_lanes(hce_plan_reader_t *r, const json_t *root)
{
    static const int64_t contexts[2] = {0, HCE_PLAN_MAX_CONTEXTS - 1};
    static const int64_t directions[2] = {0, 1};
    const json_t *lanes, *json;
    int64_t context, direction;
    int kind, peer;
    size_t i;

    if (!hce_plan_read_array(r, root, "lanes", MAX_LANES, &lanes)) {
        return false;
    }
    for (i = 0; i < json_array_size(lanes); i++) {
        reader_enter(r, "lanes", i);
        json = json_array_get(lanes, i);
        if (!hce_plan_read_name(r, json, "kind", &lane_names, &kind) ||
            !hce_plan_read_rank(r, json, "peer", -1, &peer) ||
            !hce_plan_read_int(r, json, "context", contexts, &context) ||
            !hce_plan_read_int(r, json, "direction", directions, &direction)) {
            return false;
        }
        hce_plan_add_lane(r->plan, (hce_plan_lane_kind_t)kind, peer,
                          (int)context, (int)direction);
    }
    reader_leave(r);
    return true;
}

static bool read_ops(hce_plan_reader_t *r, const json_t *root)
{
    int64_t lanes[2] = {0, (int64_t)r->plan->num_lanes - 1}, lane;
    const json_t *ops, *json;
    uint64_t len;
    size_t i;
    int kind;

    if (!hce_plan_read_array(r, root, "ops", HCE_PLAN_MAX_OPS, &ops)) {
        return false;
    }
    for (i = 0; i < json_array_size(ops); i++) {
        reader_enter(r, "ops", i);
        json = json_array_get(ops, i);
        if (!hce_plan_read_name(r, json, "kind", &kind_names, &kind) ||
            !hce_plan_read_int(r, json, "lane", lanes, &lane) ||
            !hce_plan_read_bytes(r, json, "bytes", &len)) {
            return false;
        }
        hce_plan_add_op(r->plan, (hce_plan_kind_t)kind, (uint32_t)lane, len);
        if (json_is_true(json_object_get(json, "last"))) {
            hce_plan_set_last(r->plan);
        }
        if (!read_refs(r, json, "src") || !read_refs(r, json, "dst") ||
            !read_waits(r, json, "wait", hce_plan_add_wait) ||
            !read_posts(r, json)) {
            return false;
        }
    }
    reader_leave(r);
    return true;
}

/* In place of what hce_plan_finish computed. */
static bool read_rises(hce_plan_reader_t *r, const json_t *root,
                       const char *key, const char *who,
                       hce_plan_rise_t **rises_p)
{
    const json_t *array, *json;
    hce_plan_rise_t *rises;
    int rank, slot;
    size_t i;

    if (!hce_plan_read_array(r, root, key, HCE_PLAN_MAX_OPS, &array)) {
        return false;
    }
    rises = calloc(json_array_size(array) + 1, sizeof(*rises));
    if (rises == NULL) {
        r->status = HCE_ERR_NO_MEMORY;
        return false;
    }
    free(*rises_p);
    *rises_p = rises;
    for (i = 0; i < json_array_size(array); i++) {
        reader_enter(r, key, i);
        json = json_array_get(array, i);
        if (!hce_plan_read_rank(r, json, who, 0, &rank) ||
            !hce_plan_read_slot(r, json, &slot) ||
            !hce_plan_read_value(r, json, "rise", &rises[i].rise)) {
            return false;
        }
        rises[i].rank = rank;
        rises[i].slot = slot;
    }
    reader_leave(r);
    return true;
}

/* ---- a plan ---- */

static bool read_layout(hce_plan_reader_t *r, const json_t *params, int *color)
{
    const json_t *nodes;
    int64_t limits[2] = {0, 0};
    size_t i;

    if (!hce_plan_read_array(r, params, "node_of_rank",
                             HCE_PLAN_READ_MAX_RANKS, &nodes)) {
        return false;
    }
    for (i = 0; i < json_array_size(nodes); i++) {
        const json_t *node = json_array_get(nodes, i);
        int64_t value = json_integer_value(node);

        /* Nodes are numbered by their lowest ranks. */
        if (!json_is_integer(node) || value < 0 || value > limits[1]) {
            return hce_plan_read_fail(
                r,
                "node_of_rank[%zu]: expected a whole number "
                "from 0 to %" PRId64
                ", nodes being numbered by their lowest ranks",
                i, limits[1]);
        }
        color[i] = (int)value;
        limits[1] = hce_max(limits[1], value + 1);
    }
    return true;
}

/* The first plan's layout is that of all; the others are compared with it. */
static bool read_ranks(hce_plan_reader_t *r, const json_t *params,
                       hce_plan_set_t *set)
{
    static const int64_t limits[2] = {1, HCE_PLAN_READ_MAX_RANKS};
    int *color = calloc(HCE_PLAN_READ_MAX_RANKS, sizeof(*color));
    int64_t nranks;
    bool ok;

    if (color == NULL) {
        r->status = HCE_ERR_NO_MEMORY;
        return false;
    }
    ok = hce_plan_read_int(r, params, "ranks", limits, &nranks) &&
         read_layout(r, params, color);
    if (ok && (int64_t)json_array_size(
                  json_object_get(params, "node_of_rank")) != nranks) {
        ok = hce_plan_read_fail(r, "node_of_rank: expected %" PRId64 " nodes",
                                nranks);
    }
    if (ok && set->layout == NULL) {
        r->status = hce_layout_create((int)nranks, color, &set->layout);
        ok = r->status == HCE_OK;
    } else if (ok && (nranks != set->layout->nranks ||
                      memcmp(color, set->layout->node,
                             (size_t)nranks * sizeof(*color)) != 0)) {
        ok = hce_plan_read_fail(r, "its layout is not that of plan 0");
    }
    free(color);
    r->layout = set->layout;
    return ok;
}

static bool read_limits(hce_plan_reader_t *r, const json_t *params,
                        hce_plan_limits_t *limits_p)
{
    const json_t *limits = json_object_get(params, "limits");

    return hce_plan_read_bytes(r, limits, "scratch", &limits_p->scratch) &&
           hce_plan_read_bytes(r, limits, "parcel", &limits_p->parcel) &&
           hce_plan_read_bool(r, limits, "reads", &limits_p->reads) &&
           hce_plan_read_bool(r, limits, "pulls", &limits_p->pulls);
}

static bool read_params(hce_plan_reader_t *r, const json_t *root,
                        hce_plan_set_t *set, hce_plan_params_t *params_p)
{
    static const int64_t carriers_limits[2] = {0, HCE_PLAN_READ_MAX_RANKS};
    static const int64_t contexts_limits[2] = {1, HCE_PLAN_MAX_CONTEXTS};
    static const int64_t dirs_limits[2] = {0, 2};
    static const int64_t width_limits[2] = {1, HCE_PLAN_READ_MAX_BYTES};
    const json_t *params = json_object_get(root, "params");
    int64_t width, contexts, carriers, dirs;
    int coll, datatype, op;

    if (!read_ranks(r, params, set) ||
        !hce_plan_read_name(r, params, "collective", &coll_names, &coll) ||
        !hce_plan_read_name(r, params, "datatype", &datatype_names,
                            &datatype) ||
        !hce_plan_read_name(r, params, "op", &redop_names, &op) ||
        !hce_plan_read_rank(r, params, "rank", 0, &params_p->rank) ||
        !hce_plan_read_rank(r, params, "root", 0, &params_p->root) ||
        !hce_plan_read_bytes(r, params, "bytes", &params_p->len) ||
        !hce_plan_read_int(r, params, "width", width_limits, &width) ||
        !hce_plan_read_int(r, params, "contexts", contexts_limits,
                           &contexts) ||
        !hce_plan_read_int(r, params, "carriers", carriers_limits,
                           &carriers) ||
        !hce_plan_read_int(r, params, "dirs", dirs_limits, &dirs) ||
        !read_limits(r, params, &params_p->limits) ||
        !hce_plan_read_bool(r, params, "in_place", &params_p->in_place)) {
        return false;
    }
    params_p->layout = set->layout;
    params_p->coll = (hce_coll_t)coll;
    params_p->datatype = (hce_datatype_t)datatype;
    params_p->op = (hce_redop_t)op;
    params_p->contexts = (int)contexts;
    params_p->carriers = (int)carriers;
    params_p->dirs = (int)dirs;
    params_p->width = (uint64_t)width;
    if (hce_plan_chunk_width(params_p->len, params_p->width) !=
        params_p->width) {
        return hce_plan_read_fail(r, "\"width\": expected at most %d chunks",
                                  HCE_PLAN_MAX_CHUNKS);
    }
    return true;
}

static bool read_head(hce_plan_reader_t *r, const json_t *root,
                      const char **path_p)
{
    static const int64_t version_limits[2] = {JSON_VERSION, JSON_VERSION};
    const char *path = json_string_value(json_object_get(root, "path"));
    size_t max = sizeof(((hce_plan_t *)NULL)->path) - 1, len;
    int64_t version;

    if (!hce_plan_read_int(r, root, "version", version_limits, &version)) {
        return false;
    }
    len = path == NULL ? 0 : strlen(path);
    if (len < 1 || len > max ||
        strspn(path, "abcdefghijklmnopqrstuvwxyz0123456789_") != len) {
        return hce_plan_read_fail(r,
                                  "\"path\": expected 1 to %zu small letters, "
                                  "digits or _",
                                  max);
    }
    *path_p = path;
    return true;
}

/* hce_plan_finish destroys a plan that failed. */
static bool finish(hce_plan_reader_t *r)
{
    hce_status_t status = hce_plan_finish(r->plan);

    if (status != HCE_OK) {
        r->plan = NULL;
        r->status = status;
    }
    return status == HCE_OK;
}

static bool read_plan(hce_plan_reader_t *r, const json_t *root,
                      hce_plan_set_t *set)
{
    hce_plan_params_t params = {0};
    const char *path = NULL;

    if (!read_head(r, root, &path) || !read_params(r, root, set, &params)) {
        return false;
    }
    r->status = hce_plan_create(&params, path, &r->plan);
    if (r->status != HCE_OK) {
        r->plan = NULL;
        return false;
    }
    if (!hce_plan_read_bytes(r, root, "scratch_bytes",
                             &r->plan->scratch_len) ||
        !hce_plan_read_bytes(r, root, "stage_bytes", &r->plan->stage_len) ||
        !read_lanes(r, root) || !read_ops(r, root) ||
        !read_waits(r, root, "done", hce_plan_add_done_wait) || !finish(r) ||
        !read_rises(r, root, "in", "writer", &r->plan->in) ||
        !read_rises(r, root, "out", "owner", &r->plan->out)) {
        hce_plan_destroy(r->plan);
        return false;
    }
    r->plan->num_in = json_array_size(json_object_get(root, "in"));
    r->plan->num_out = json_array_size(json_object_get(root, "out"));
    set->plans[set->num++] = r->plan;
    return true;
}

static bool read_list(hce_plan_reader_t *r, json_t *root, hce_plan_set_t *set)
{
    size_t num = json_is_array(root) ? json_array_size(root) : 1, i;
    bool ok = true;

    if (num < 1 || num > HCE_PLAN_READ_MAX_RANKS) {
        return hce_plan_read_fail(r, "expected 1 to %d plans",
                                  HCE_PLAN_READ_MAX_RANKS);
    }
    set->plans = calloc(num, sizeof(*set->plans));
    if (set->plans == NULL) {
        r->status = HCE_ERR_NO_MEMORY;
        return false;
    }
    for (i = 0; ok && i < num; i++) {
        r->plan_index = (int64_t)i;
        ok = read_plan(r, json_is_array(root) ? json_array_get(root, i) : root,
                       set);
    }
    return ok;
}

hce_status_t hce_plan_set_read(FILE *in, hce_plan_set_t *set_p,
                               char why[HCE_PLAN_READ_WHY_SIZE])
{
    hce_plan_reader_t r = {.why = why, .plan_index = HCE_PLAN_READ_NO_INDEX};
    hce_plan_set_t set = {NULL, NULL, 0};
    json_error_t error;
    json_t *root = json_loadf(in, JSON_REJECT_DUPLICATES, &error);

    why[0] = '\0';
    if (root == NULL) {
        snprintf(why, HCE_PLAN_READ_WHY_SIZE,
                 "not JSON: line %d, column %d: %s", error.line, error.column,
                 error.text);
        return HCE_ERR_INVALID_ARG;
    }
    if (!read_list(&r, root, &set)) {
        hce_plan_set_cleanup(&set);
        if (why[0] == '\0') {
            snprintf(why, HCE_PLAN_READ_WHY_SIZE, "%s",
                     hce_status_string(r.status));
        }
    } else {
        *set_p = set;
    }
    json_decref(root);
    return r.status;
}

#endif
