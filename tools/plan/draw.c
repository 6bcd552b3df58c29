/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * hce_plan draw: an SVG picture of all ops, time to the right, ranks
 * downwards. A rank has a row for each context and direction in which it
 * puts, and as many for its copies as run at once. Lines lead from a put to
 * the rank that it reaches.
 */
#include "config.h"

#include "commands.h"
#include "schedule.h"
#include "source.h"

#include "plan/show.h"
#include "util/math.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define MAX_BOXES  100000
#define MAX_COPIES 64 /* rows for copies of a rank */
#define NUM_FLOWS  (2 * HCE_PLAN_MAX_CONTEXTS)

/* Pixels. */
#define LEFT       110
#define TOP        44
#define RIGHT      20
#define ROW        12
#define RANK_GAP   6
#define NODE_GAP   10
#define WIDTH      1000 /* of all steps, about */
#define STEP_MIN   4
#define STEP_MAX   64
#define LABEL_STEP 18 /* narrower boxes have no label */

/* Rows of a rank, counted from its top; -1: it has none. */
typedef struct band {
    int y; /* -1: not drawn */
    int num_rows;
    int flow[NUM_FLOWS];
    int *copy; /* [op]: row, of what is not a put */
} band_t;

typedef struct picture {
    FILE *out;
    const hce_plan_set_t *set;
    hce_tools_schedule_t schedule;
    band_t *bands; /* [rank] */
    uint64_t boxes;
    int step; /* pixels */
    int height;
} picture_t;

static bool is_drawn(const hce_plan_op_t *op)
{
    return op->kind != HCE_OP_SIGNAL;
}

static int flow_of(const hce_plan_lane_t *lane)
{
    return lane->direction * HCE_PLAN_MAX_CONTEXTS + lane->context;
}

/* ---- rows ---- */

typedef struct placed {
    int32_t start;
    uint32_t op;
} placed_t;

static int placed_compare(const void *a_p, const void *b_p)
{
    const placed_t *a = a_p, *b = b_p;

    if (a->start != b->start) {
        return a->start < b->start ? -1 : 1;
    }
    return (a->op > b->op) - (a->op < b->op);
}

/* Each copy is put into the first row that is free at its start; beyond
 * MAX_COPIES rows they cover each other. */
static bool place_copies(picture_t *p, int rank)
{
    const hce_plan_t *plan = p->set->plans[rank];
    int32_t free_at[MAX_COPIES] = {0}, rows = 0;
    placed_t *placed = malloc(((size_t)plan->num_ops + 1) * sizeof(*placed));
    band_t *band = &p->bands[rank];
    uint32_t i, num = 0;
    int row;

    band->copy = calloc((size_t)plan->num_ops + 1, sizeof(*band->copy));
    if (placed == NULL || band->copy == NULL) {
        free(placed);
        return false;
    }
    for (i = 0; i < plan->num_ops; i++) {
        if (plan->ops[i].kind == HCE_OP_COPY ||
            plan->ops[i].kind == HCE_OP_REDUCE) {
            placed[num++] = (placed_t){p->schedule.start[rank][i], i};
        }
    }
    qsort(placed, num, sizeof(*placed), placed_compare);
    for (i = 0; i < num; i++) {
        for (row = 0; row < MAX_COPIES - 1; row++) {
            if (free_at[row] <= placed[i].start) {
                break;
            }
        }
        free_at[row] = placed[i].start + 1;
        band->copy[placed[i].op] = band->num_rows + row;
        rows = hce_max(rows, row + 1);
    }
    band->num_rows += rows;
    free(placed);
    return true;
}

static void place_flows(const hce_plan_t *plan, band_t *band)
{
    bool used[NUM_FLOWS] = {false};
    uint32_t i;
    int flow;

    for (i = 0; i < plan->num_lanes; i++) {
        if (plan->lanes[i].kind == HCE_LANE_PROXY) {
            used[flow_of(&plan->lanes[i])] = true;
        }
    }
    for (flow = 0; flow < NUM_FLOWS; flow++) {
        band->flow[flow] = used[flow] ? band->num_rows++ : -1;
    }
}

/* Ranks of a node are together, whatever their numbers. */
static bool place_ranks(picture_t *p, int only)
{
    const hce_layout_t *layout = p->set->layout;
    int y = TOP, node = -1, i, rank;

    for (i = 0; i < layout->nranks; i++) {
        band_t *band;

        rank = layout->ranks[i];
        band = &p->bands[rank];
        band->y = -1;
        if (only >= 0 && rank != only) {
            continue;
        }
        place_flows(p->set->plans[rank], band);
        if (!place_copies(p, rank)) {
            return false;
        }
        y += node >= 0 && node != layout->node[rank] ? NODE_GAP : 0;
        node = layout->node[rank];
        band->y = y;
        band->num_rows = hce_max(band->num_rows, 1);
        y += band->num_rows * ROW + RANK_GAP;
    }
    p->height = y;
    return true;
}

static uint64_t count_boxes(const hce_plan_set_t *set, int only)
{
    uint64_t num = 0;
    uint32_t i;
    int rank;

    for (rank = 0; rank < set->num; rank++) {
        for (i = 0; i < set->plans[rank]->num_ops; i++) {
            num += (only < 0 || rank == only) &&
                   is_drawn(&set->plans[rank]->ops[i]);
        }
    }
    return num;
}

/* ---- drawing ---- */

static int x_of(const picture_t *p, int32_t step)
{
    return LEFT + step * p->step;
}

static int row_of(const picture_t *p, int rank, uint32_t index)
{
    const hce_plan_t *plan = p->set->plans[rank];
    const hce_plan_op_t *op = &plan->ops[index];

    return op->kind == HCE_OP_PUT
               ? hce_max(p->bands[rank].flow[flow_of(&plan->lanes[op->lane])],
                         0)
               : p->bands[rank].copy[index];
}

static const char *class_of(const hce_plan_op_t *op,
                            const hce_plan_lane_t *lane)
{
    if (op->kind == HCE_OP_PUT) {
        return lane->direction == 0 ? "cw" : "ccw";
    }
    return op->kind == HCE_OP_COPY ? "copy" : "reduce";
}

/* Whose bytes an op moves; -1 where no output is written, or no bytes are. */
static int slice_of(const hce_plan_t *plan, const hce_plan_op_t *op)
{
    const hce_plan_ref_t *dst = &plan->refs[op->ref + op->num_src];

    if (op->num_dst == 0 || dst->buf != HCE_BUF_RECV ||
        plan->params.len == 0 || op->len == 0) {
        return -1;
    }
    return (int)hce_min(dst->offset / plan->params.len, (uint64_t)INT32_MAX);
}

/* What the pointer shows over a box. */
static void draw_title(const picture_t *p, int rank, uint32_t index)
{
    const hce_plan_t *plan = p->set->plans[rank];
    const hce_plan_op_t *op = &plan->ops[index];
    const hce_plan_lane_t *lane = &plan->lanes[op->lane];
    int slice = slice_of(plan, op), i;

    fprintf(p->out, "<title>rank %d op %u: %s, %" PRIu64 " bytes", rank, index,
            hce_plan_kind_string((hce_plan_kind_t)op->kind), op->len);
    if (slice >= 0) {
        fprintf(p->out, " of slice %d", slice);
    }
    for (i = 0; i < op->num_dst; i++) {
        fprintf(p->out, "%s %d", i == 0 ? " to" : ",",
                plan->refs[op->ref + op->num_src + i].rank);
    }
    if (op->kind == HCE_OP_PUT) {
        fprintf(p->out, "; %s, context %u",
                lane->direction == 0 ? "cw" : "ccw", lane->context);
    }
    fprintf(p->out, "; step %d</title>", p->schedule.start[rank][index]);
}

static void draw_box(const picture_t *p, int rank, uint32_t index)
{
    const hce_plan_t *plan = p->set->plans[rank];
    const hce_plan_op_t *op = &plan->ops[index];
    int x = x_of(p, p->schedule.start[rank][index]);
    int y = p->bands[rank].y + row_of(p, rank, index) * ROW;
    int slice = slice_of(plan, op);

    fprintf(p->out,
            "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%d\" "
            "height=\"%d\">",
            class_of(op, &plan->lanes[op->lane]), x, y,
            op->len > 0 ? p->step - 1 : 2, ROW - 1);
    draw_title(p, rank, index);
    fputs("</rect>\n", p->out);
    if (p->step >= LABEL_STEP && slice >= 0) {
        fprintf(p->out, "<text class=\"in\" x=\"%d\" y=\"%d\">%d</text>\n",
                x + p->step / 2, y + ROW - 3, slice);
    }
}

/* From the start of a put to its arrival, a step later. */
static void draw_hop(const picture_t *p, int rank, uint32_t index)
{
    const hce_plan_t *plan = p->set->plans[rank];
    const hce_plan_op_t *op = &plan->ops[index];
    const hce_plan_lane_t *lane = &plan->lanes[op->lane];
    int32_t start = p->schedule.start[rank][index];
    const band_t *to;

    if (op->kind != HCE_OP_PUT || op->num_dst == 0) {
        return;
    }
    to = &p->bands[plan->refs[op->ref + op->num_src].rank];
    if (to->y < 0) {
        return;
    }
    fprintf(p->out,
            "<line class=\"h%s\" x1=\"%d\" y1=\"%d\" x2=\"%d\" "
            "y2=\"%d\"/>\n",
            class_of(op, lane), x_of(p, start),
            p->bands[rank].y + row_of(p, rank, index) * ROW + ROW / 2,
            x_of(p, start + hce_tools_op_steps(op)),
            to->y + hce_max(to->flow[flow_of(lane)], 0) * ROW + ROW / 2);
}

static void draw_ops(const picture_t *p,
                     void (*draw)(const picture_t *, int, uint32_t))
{
    uint32_t i;
    int rank;

    for (rank = 0; rank < p->set->num; rank++) {
        for (i = 0; i < p->set->plans[rank]->num_ops; i++) {
            if (p->bands[rank].y >= 0 &&
                is_drawn(&p->set->plans[rank]->ops[i])) {
                draw(p, rank, i);
            }
        }
    }
}

static void draw_head(const picture_t *p)
{
    const hce_plan_params_t *params = &p->set->plans[0]->params;
    int width = hce_max(x_of(p, p->schedule.steps) + RIGHT, 860);

    fprintf(p->out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" "
            "height=\"%d\" font-family=\"sans-serif\" font-size=\"10\">\n"
            "<style>.cw{fill:#2f6fb5}.ccw{fill:#d9822b}.copy{fill:#7a9e5c}"
            ".reduce{fill:#8a5aa8}.hcw{stroke:#2f6fb5}.hccw{stroke:#d9822b}"
            "line{stroke-opacity:.5}.grid{stroke:#ddd}.end{stroke:#000;"
            "stroke-width:2;stroke-opacity:1}.in{fill:#fff;font-size:8px;"
            "text-anchor:middle}</style>\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
            width, p->height + RANK_GAP);
    fprintf(p->out,
            "<text x=\"8\" y=\"14\" font-size=\"12\">%s %s, %d ranks on %d "
            "node%s, %" PRIu64 " bytes a rank in chunks of %" PRIu64
            ", contexts %d: %d steps, one a chunk</text>\n",
            hce_plan_coll_string(params->coll), p->set->plans[0]->path,
            params->layout->nranks, params->layout->nnodes,
            params->layout->nnodes == 1 ? "" : "s", params->len,
            hce_plan_chunk_width(params->len, params->width), params->contexts,
            p->schedule.steps);
}

static void draw_legend(const picture_t *p)
{
    static const struct {
        const char *name, *text;
    } items[] = {
        {"cw", "put cw"},
        {"ccw", "put ccw"},
        {"copy", "copy in the node"},
        {"reduce", "reduce"},
    };
    size_t i;

    for (i = 0; i < sizeof(items) / sizeof(items[0]); i++) {
        int x = LEFT + (int)i * 110;

        fprintf(p->out,
                "<rect class=\"%s\" x=\"%d\" y=\"21\" width=\"10\" "
                "height=\"10\"/><text x=\"%d\" y=\"30\">%s</text>\n",
                items[i].name, x, x + 14, items[i].text);
    }
    fprintf(p->out,
            "<text x=\"%d\" y=\"30\">| complete; numbers: whose "
            "slice</text>\n",
            LEFT + (int)i * 110);
}

/* A line a step, or every so many. */
static void draw_grid(const picture_t *p)
{
    int32_t every = 1, step;

    while (every * p->step < 32) {
        every *= every % 3 == 0 ? 2 : 5;
    }
    for (step = 0; step <= p->schedule.steps; step += every) {
        fprintf(p->out,
                "<line class=\"grid\" x1=\"%d\" y1=\"%d\" x2=\"%d\" "
                "y2=\"%d\"/><text x=\"%d\" y=\"%d\">%d</text>\n",
                x_of(p, step), TOP, x_of(p, step), p->height, x_of(p, step),
                TOP - 2, step);
    }
}

static void draw_ranks(const picture_t *p)
{
    const hce_layout_t *layout = p->set->layout;
    int rank;

    for (rank = 0; rank < p->set->num; rank++) {
        const band_t *band = &p->bands[rank];
        int bottom = band->y + band->num_rows * ROW;

        if (band->y < 0) {
            continue;
        }
        fprintf(p->out, "<text x=\"8\" y=\"%d\">node %d rank %d</text>\n",
                band->y + ROW - 3, layout->node[rank], rank);
        if (p->schedule.completed[rank] != HCE_TOOLS_NEVER) {
            int x = x_of(p, p->schedule.completed[rank]);

            fprintf(p->out,
                    "<line class=\"end\" x1=\"%d\" y1=\"%d\" x2=\"%d\" "
                    "y2=\"%d\"><title>rank %d completes at step "
                    "%d</title></line>\n",
                    x, band->y, x, bottom, rank, p->schedule.completed[rank]);
        }
    }
}

static void draw_all(picture_t *p)
{
    int steps = hce_max(p->schedule.steps, 1);

    p->step = hce_min(hce_max(WIDTH / steps, STEP_MIN), STEP_MAX);
    draw_head(p);
    draw_legend(p);
    draw_grid(p);
    draw_ops(p, draw_box);
    draw_ops(p, draw_hop);
    draw_ranks(p);
    fputs("</svg>\n", p->out);
}

/* ---- the command ---- */

static bool draw_set(picture_t *p, const hce_tools_opts_t *opts)
{
    const hce_plan_set_t *set = p->set;

    p->boxes = count_boxes(set, opts->rank);
    if (p->boxes > MAX_BOXES) {
        fprintf(stderr,
                "hce_plan: %" PRIu64 " ops are too many to draw: expected at "
                "most %d; draw fewer ranks, fewer bytes, wider chunks, or one "
                "--rank\n",
                p->boxes, MAX_BOXES);
        return false;
    }
    p->bands = calloc((size_t)set->num, sizeof(*p->bands));
    if (p->bands == NULL ||
        !hce_tools_schedule_create(set, opts->late_rank, opts->late_steps,
                                   &p->schedule)) {
        fputs("hce_plan: out of memory\n", stderr);
        return false;
    }
    if (p->schedule.num_never > 0) {
        fprintf(stderr,
                "hce_plan: %" PRIu64 " ops can never start, the first is op "
                "%u of rank %d\n",
                p->schedule.num_never, p->schedule.stuck_op,
                p->schedule.stuck_rank);
        return false;
    }
    if (!place_ranks(p, opts->rank)) {
        fputs("hce_plan: out of memory\n", stderr);
        return false;
    }
    draw_all(p);
    return true;
}

int hce_tools_draw(const hce_tools_opts_t *opts, FILE *out)
{
    picture_t p = {.out = out};
    hce_plan_set_t set;
    bool ok = false;
    int rank;

    if (!hce_tools_source_open(opts, HCE_TOOLS_ALL_RANKS, &set)) {
        return HCE_TOOLS_EXIT_FAULT;
    }
    p.set = &set;
    if (hce_tools_source_is_whole(&set) &&
        hce_tools_source_has_rank(&set, "--rank", opts->rank) &&
        hce_tools_source_has_rank(&set, "--late", opts->late_rank)) {
        ok = draw_set(&p, opts);
    }
    hce_tools_schedule_destroy(&set, &p.schedule);
    for (rank = 0; p.bands != NULL && rank < set.num; rank++) {
        free(p.bands[rank].copy);
    }
    free(p.bands);
    hce_plan_set_cleanup(&set);
    return ok ? EXIT_SUCCESS : HCE_TOOLS_EXIT_FAULT;
}
