/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * alpha and beta of each variant by least squares of the relative error, over
 * all sizes, of the faster of both places.
 */
#include <config.h>

#include "calibrate.h"

#include "core/dispatch.h"
#include "core/tuning.h"
#include "model/cost.h"
#include "util/layout.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static hce_status_t fail(hce_perf_job_t *job, const char *why)
{
    return hce_perf_job_fail(job, HCE_ERR_SYSTEM, "--calibrate %s: %s",
                             job->opts->calibrate, why);
}

hce_status_t hce_perf_calibrate_probe(hce_perf_job_t *job)
{
    int fd =
        open(job->opts->calibrate, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);

    if (fd < 0)
        return fail(job, strerror(errno));
    close(fd);
    return HCE_OK;
}

#ifdef HCE_HAVE_JANSSON
#include <jansson.h>

/* What is fitted: one variant. */
typedef struct fit {
    hce_cost_figure_t figure;
    double error; /* root of the mean square, relative */
    size_t samples;
} fit_t;

static hce_layout_t *make_layout(const hce_perf_job_t *job)
{
    int color[job->attr.size], r;
    hce_layout_t *layout;

    for (r = 0; r < job->attr.size; r++)
        color[r] = job->peers[r].node;
    return hce_layout_create(job->attr.size, color, &layout) == HCE_OK
               ? layout
               : NULL;
}

/* The least time of a size: what disturbs a measurement only adds to it. */
static double least_us(const hce_perf_row_t *row)
{
    double least = 0;
    int p;

    for (p = 0; p < HCE_PERF_PLACES; p++) {
        const hce_perf_cell_t *cell = &row->cells[p];

        if (cell->is_measured && (least == 0 || cell->time_us < least))
            least = cell->time_us;
    }
    return least;
}

/* Samples of a variant, at most one a row. */
static size_t collect(const hce_perf_results_t *results, int variant,
                      const hce_layout_t *layout, hce_cost_sample_t *samples)
{
    size_t i, num = 0;

    for (i = 0; i < results->num_rows; i++) {
        const hce_perf_row_t *row = &results->rows[i];

        samples[num].seconds = least_us(row) * 1e-6;
        if (row->variant == variant && samples[num].seconds > 0 &&
            hce_cost_allgather(row->explain.path, layout,
                               row->size / (uint64_t)layout->nranks,
                               &samples[num].terms))
            num++;
    }
    return num;
}

static bool fit_variant(const hce_perf_results_t *results, int variant,
                        const hce_layout_t *layout, fit_t *fit)
{
    hce_cost_sample_t *samples =
        calloc(results->num_rows + 1, sizeof(*samples));
    bool ok = false;

    if (samples != NULL) {
        fit->samples = collect(results, variant, layout, samples);
        ok = hce_cost_fit(samples, fit->samples, &fit->figure, &fit->error);
    }
    free(samples);
    return ok;
}

/* As the dispatcher looks for it. */
static int dirs_of(const hce_call_params_t *call)
{
    if (strcmp(call->path, "ring_short") == 0)
        return 2;
    return strcmp(call->path, "ring") == 0
               ? (call->field_mask & HCE_CALL_PARAM_DIRS ? call->dirs : 2)
               : 0;
}

static json_t *pack(const hce_perf_job_t *job, const hce_call_params_t *call,
                    const fit_t *fit)
{
    return json_pack("{s:s, s:s, s:i, s:i, s:s, s:i, s:f, s:f, s:I, s:f}",
                     "collective", "allgather", "transport",
                     hce_dispatch_kind(job->comms[0]), "nodes",
                     job->attr.num_nodes, "ranks", job->attr.size, "path",
                     call->path, "dirs", dirs_of(call), "alpha_us",
                     fit->figure.alpha_s * 1e6, "beta_mbps",
                     fit->figure.beta_bps * 1e-6, "samples",
                     (json_int_t)fit->samples, "error", fit->error);
}

/* Figures of a former calibration of this network and layout go. */
static bool is_replaced(const hce_perf_job_t *job, json_t *figure)
{
    const char *coll = "", *kind = "";
    int nodes = 0, ranks = 0;

    json_unpack(figure, "{s?s, s?s, s?i, s?i}", "collective", &coll,
                "transport", &kind, "nodes", &nodes, "ranks", &ranks);
    return strcmp(coll, "allgather") == 0 &&
           strcmp(kind, hce_dispatch_kind(job->comms[0])) == 0 &&
           nodes == job->attr.num_nodes && ranks == job->attr.size;
}

/* The figures that stay; a file that is no tuning file is written anew. */
static json_t *kept_figures(const hce_perf_job_t *job)
{
    json_t *root = json_load_file(job->opts->calibrate, 0, NULL);
    json_t *old = json_object_get(root, "figures"), *kept = json_array();
    size_t i;

    for (i = 0; i < json_array_size(old); i++)
        if (!is_replaced(job, json_array_get(old, i)))
            json_array_append(kept, json_array_get(old, i));
    json_decref(root);
    return kept;
}

static void add_fits(hce_perf_job_t *job, const hce_perf_results_t *results,
                     const hce_layout_t *layout, json_t *figures)
{
    int v;

    for (v = 0; v < results->num_variants; v++) {
        const hce_perf_variant_t *variant = &results->variants[v];
        fit_t fit = {.samples = 0};

        if (!fit_variant(results, v, layout, &fit)) {
            printf("# %s: no figures from %zu measurements\n", variant->label,
                   fit.samples);
            continue;
        }
        printf("# %s: %.1f us a step, %.1f MB/s into a node, error %.1f %% "
               "of %zu measurements\n",
               variant->label, fit.figure.alpha_s * 1e6,
               fit.figure.beta_bps * 1e-6, fit.error * 100, fit.samples);
        json_array_append_new(figures, pack(job, &variant->call, &fit));
    }
}

hce_status_t hce_perf_calibrate_write(hce_perf_job_t *job,
                                      const hce_perf_results_t *results)
{
    hce_layout_t *layout = make_layout(job);
    json_t *figures, *root;
    int written;

    if (layout == NULL)
        return fail(job, "no memory");
    figures = kept_figures(job);
    printf("#\n# Calibrated for %s:\n", job->opts->calibrate);
    add_fits(job, results, layout, figures);
    hce_layout_destroy(layout);
    root = json_pack("{s:i, s:o}", "version", HCE_TUNING_VERSION, "figures",
                     figures);
    if (root == NULL)
        return fail(job, "the figures could not be put into JSON");
    written = json_dump_file(root, job->opts->calibrate, JSON_INDENT(2));
    json_decref(root);
    return written == 0 ? HCE_OK : fail(job, "could not be written");
}

#else

hce_status_t hce_perf_calibrate_write(hce_perf_job_t *job,
                                      const hce_perf_results_t *results)
{
    return fail(job, "this build is without jansson");
}

#endif
