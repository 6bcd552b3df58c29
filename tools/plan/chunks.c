/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * hce_plan chunks: how the slice of a rank is cut, read off the puts that
 * first send it to another node: by the rule for whole slices, and by the
 * path's own.
 */
#include "config.h"

#include "commands.h"
#include "source.h"

#include "core/paths.h"
#include "util/math.h"

#include <inttypes.h>
#include <stdlib.h>
#ifdef HCE_HAVE_JANSSON
#include <jansson.h>
#endif

/* Of one direction, clockwise or not. */
typedef struct half {
    uint64_t bytes;
    uint64_t width; /* the widest chunk */
    uint32_t chunks;
} half_t;

typedef struct row {
    uint64_t per_rank;
    half_t whole[2]; /* widths by the rule for whole slices */
    half_t own[2];   /* by the path's rule, or as wanted */
} row_t;

/* Puts out of the input go to the slice's first stop; of several peers in a
 * direction the first one counts. */
static void measure(const hce_plan_t *plan, half_t halves[2])
{
    int peer[2] = {-1, -1};
    uint32_t i;

    halves[0] = halves[1] = (half_t){0};
    for (i = 0; i < plan->num_ops; i++) {
        const hce_plan_op_t *op = &plan->ops[i];
        const hce_plan_lane_t *lane = &plan->lanes[op->lane];
        half_t *half = &halves[lane->direction];

        if (op->kind != HCE_OP_PUT ||
            plan->refs[op->ref].buf != HCE_BUF_SEND) {
            continue;
        }
        if (peer[lane->direction] < 0) {
            peer[lane->direction] = lane->peer;
        }
        if (lane->peer == peer[lane->direction]) {
            half->bytes += op->len;
            half->width = hce_max(half->width, op->len);
            half->chunks++;
        }
    }
}

static bool measure_built(const hce_plan_builder_t *builder,
                          const hce_plan_params_t *params, half_t halves[2])
{
    hce_plan_t *plan;
    hce_status_t status;

    if (!hce_tools_source_check(builder, params)) {
        return false;
    }
    status = builder->build(params, &plan);
    if (status != HCE_OK) {
        fprintf(stderr, "hce_plan: path %s cannot be built: %s\n",
                builder->path, hce_status_string(status));
        return false;
    }
    measure(plan, halves);
    hce_plan_destroy(plan);
    return true;
}

static bool make_row(const hce_tools_opts_t *opts, int size,
                     const hce_plan_builder_t *builder, row_t *row)
{
    hce_plan_params_t params;
    bool ok;

    hce_tools_source_params(opts, size, builder, &params);
    params.rank = opts->rank < 0 ? 0 : opts->rank;
    row->per_rank = params.len;
    ok = measure_built(builder, &params, row->own);
    params.width = hce_plan_chunk_width(
        params.len, hce_paths_width_whole(params.len, params.contexts));
    ok = ok && measure_built(builder, &params, row->whole);
    hce_layout_destroy((hce_layout_t *)params.layout);
    return ok;
}

/* The greater of both directions. */
static uint64_t widest(const half_t halves[2])
{
    return hce_max(halves[0].width, halves[1].width);
}

static uint32_t most_chunks(const half_t halves[2])
{
    return hce_max(halves[0].chunks, halves[1].chunks);
}

static void print_row(const row_t *row, FILE *out)
{
    fprintf(out, "%.10g\t%.10g\t%.10g\t%.10g\t%.10g\t%u\t%u\n",
            (double)row->per_rank / HCE_MIB,
            (double)row->own[0].bytes / HCE_MIB,
            (double)row->own[1].bytes / HCE_MIB,
            (double)widest(row->whole) / HCE_MIB,
            (double)widest(row->own) / HCE_MIB, most_chunks(row->whole),
            most_chunks(row->own));
}

static void print_head(const hce_tools_opts_t *opts,
                       const hce_plan_builder_t *builder, FILE *out)
{
    fprintf(out,
            "# Path %s, %d ranks, --nodes %s, contexts %d; sizes in MiB. "
            "legacy: by the rule for whole slices, for comparison.\n"
            "per_rank\tcw\tccw\tlegacy_width\t%s_width\t"
            "legacy_chunks_per_half\t%s_chunks_per_half\n",
            builder->path, opts->ranks, opts->nodes, opts->contexts,
            builder->path, builder->path);
}

#ifdef HCE_HAVE_JANSSON

static bool write_rows(const hce_plan_builder_t *builder, const row_t *rows,
                       int num, FILE *out)
{
    json_t *list = json_array(), *item;
    bool ok = list != NULL;
    int i;

    for (i = 0; i < num; i++) {
        const row_t *row = &rows[i];

        item =
            json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "path",
                      builder->path, "per_rank", (json_int_t)row->per_rank,
                      "cw", (json_int_t)row->own[0].bytes, "ccw",
                      (json_int_t)row->own[1].bytes, "legacy_width",
                      (json_int_t)widest(row->whole), "width",
                      (json_int_t)widest(row->own), "legacy_chunks_per_half",
                      (json_int_t)most_chunks(row->whole), "chunks_per_half",
                      (json_int_t)most_chunks(row->own));
        ok = json_array_append_new(list, item) == 0 && ok;
    }
    ok = ok && json_dumpf(list, out, JSON_INDENT(1)) == 0;
    json_decref(list);
    fputc('\n', out);
    if (!ok) {
        fputs("hce_plan: --json: out of memory, or cannot write\n", stderr);
    }
    return ok;
}

#else

static bool write_rows(const hce_plan_builder_t *builder, const row_t *rows,
                       int num, FILE *out)
{
    fputs("hce_plan: --json: this build has no jansson\n", stderr);
    return false;
}

#endif

int hce_tools_chunks(const hce_tools_opts_t *opts, FILE *out)
{
    const hce_plan_builder_t *builder = hce_tools_source_builder(
        opts, opts->path == NULL ? "ring" : opts->path);
    row_t rows[HCE_TOOLS_MAX_SIZES];
    int i;

    if (builder == NULL) {
        return HCE_TOOLS_EXIT_FAULT;
    }
    for (i = 0; i < opts->num_sizes; i++) {
        if (!make_row(opts, i, builder, &rows[i])) {
            return HCE_TOOLS_EXIT_FAULT;
        }
    }
    if (opts->json) {
        return write_rows(builder, rows, i, out) ? EXIT_SUCCESS
                                                 : HCE_TOOLS_EXIT_FAULT;
    }
    print_head(opts, builder, out);
    for (i = 0; i < opts->num_sizes; i++) {
        print_row(&rows[i], out);
    }
    return EXIT_SUCCESS;
}
