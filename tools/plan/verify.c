/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * hce_plan verify: what was proved, or the first fault.
 */
#include "config.h"

#include "commands.h"
#include "source.h"

#include "core/paths.h"
#include "plan/verify.h"
#include "util/math.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#ifdef HCE_HAVE_JANSSON
#include <jansson.h>
#endif

/* What came of one path. */
typedef struct verdict {
    const char *path;
    hce_status_t status;
    bool formula; /* the traffic was compared with it */
    hce_verify_report_t report;
} verdict_t;

static bool is_proved(const verdict_t *verdict)
{
    return verdict->status == HCE_OK && verdict->report.full &&
           verdict->formula;
}

static const char *verdict_word(const verdict_t *verdict)
{
    if (verdict->status != HCE_OK) {
        return "fault";
    }
    return is_proved(verdict) ? "proved" : "partly";
}

#ifdef HCE_HAVE_JANSSON

static void verdict_json(const verdict_t *verdict, FILE *out)
{
    json_t *json = json_pack(
        "{s:s, s:s, s:b, s:b, s:I, s:s}", "path", verdict->path, "verdict",
        verdict_word(verdict), "full", (int)verdict->report.full, "formula",
        (int)verdict->formula, "ops", (json_int_t)verdict->report.ops, "text",
        verdict->report.text);

    if (json == NULL || json_dumpf(json, out, 0) != 0) {
        fputs("hce_plan: out of memory\n", stderr);
    }
    fputc('\n', out);
    json_decref(json);
}

#else

static void verdict_json(const verdict_t *verdict, FILE *out)
{
    fputs("hce_plan: --json: this build has no jansson\n", stderr);
}

#endif

/* Prints it; returns the exit status. */
static int verdict_close(const hce_tools_opts_t *opts,
                         const verdict_t *verdict, FILE *out)
{
    if (opts->json) {
        verdict_json(verdict, out);
    } else {
        fprintf(out, "%s: %s%s\n", verdict_word(verdict), verdict->report.text,
                verdict->status != HCE_OK || verdict->formula
                    ? ""
                    : "; traffic not compared with a formula, since this "
                      "build has no such path");
    }
    if (verdict->status != HCE_OK) {
        return HCE_TOOLS_EXIT_FAULT;
    }
    return is_proved(verdict) ? EXIT_SUCCESS : HCE_TOOLS_EXIT_PARTLY;
}

static int verify_path(const hce_tools_opts_t *opts,
                       const hce_plan_builder_t *builder, FILE *out)
{
    verdict_t verdict = {.path = builder->path, .formula = true};
    hce_plan_params_t params;
    int exit_status = HCE_TOOLS_EXIT_FAULT;

    hce_tools_source_params(opts, 0, builder, &params);
    if (hce_tools_source_check(builder, &params)) {
        params.rank = hce_max(opts->rank, 0);
        verdict.status =
            opts->rank >= 0
                ? hce_plan_verify_rank(builder, &params, &verdict.report)
                : hce_plan_verify_builder(builder, &params, &verdict.report);
        exit_status = verdict_close(opts, &verdict, out);
    }
    hce_layout_destroy((hce_layout_t *)params.layout);
    return exit_status;
}

/* A fault in any path outweighs what was not proved in another. */
static int worse(int a, int b)
{
    if (a == HCE_TOOLS_EXIT_FAULT || b == HCE_TOOLS_EXIT_FAULT) {
        return HCE_TOOLS_EXIT_FAULT;
    }
    return a != EXIT_SUCCESS ? a : b;
}

static int verify_all_paths(const hce_tools_opts_t *opts, FILE *out)
{
    int i, exit_status = EXIT_SUCCESS;

    for (i = 0; hce_paths[i] != NULL; i++) {
        if (hce_paths[i]->coll == opts->coll) {
            exit_status =
                worse(exit_status, verify_path(opts, hce_paths[i], out));
        }
    }
    return exit_status;
}

/* Plans from a file, in the one placement that they are for. */
static int verify_file(const hce_tools_opts_t *opts, FILE *out)
{
    verdict_t verdict = {.status = HCE_OK};
    int exit_status = HCE_TOOLS_EXIT_FAULT;
    const hce_plan_builder_t *builder;
    hce_plan_set_t set;

    if (!hce_tools_source_open(opts, HCE_TOOLS_ALL_RANKS, &set)) {
        return HCE_TOOLS_EXIT_FAULT;
    }
    if (hce_tools_source_is_whole(&set)) {
        verdict.path = set.plans[0]->path;
        builder = hce_paths_find(set.plans[0]->params.coll, verdict.path);
        verdict.formula = builder != NULL;
        verdict.status =
            hce_plan_verify(set.plans, set.num, builder, &verdict.report);
        exit_status = verdict_close(opts, &verdict, out);
    }
    hce_plan_set_cleanup(&set);
    return exit_status;
}

int hce_tools_verify(const hce_tools_opts_t *opts, FILE *out)
{
    const hce_plan_builder_t *builder;

    if (opts->from != NULL) {
        return verify_file(opts, out);
    }
    if (opts->path != NULL && strcmp(opts->path, "all") == 0) {
        return verify_all_paths(opts, out);
    }
    builder = hce_tools_source_builder(opts, opts->path == NULL ? "direct"
                                                                : opts->path);
    return builder == NULL ? HCE_TOOLS_EXIT_FAULT
                           : verify_path(opts, builder, out);
}
