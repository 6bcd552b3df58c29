/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Verifies the plans of random jobs: even, uneven and scattered nodes, any
 * number of bytes, contexts and chunks. Fixed seeds come first, then the
 * day's. A failure prints what repeats it.
 */
#include "config.h"

#include "shapes.h"

#include "plan/verify.h"
#include "util/clock.h"

#include <argp.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define MAX_OPS       20000 /* of a whole job in one launch */
#define OLD_SHAPES    20    /* from each old place */
#define SECONDS_A_DAY 86400

/* Tried on every day: where a defect was found joins them. */
static const struct {
    uint64_t seed, first;
} old[] = {
    {1, 0},
    {20788, 1006839}, /* more slots than there was scratch memory for */
};

typedef struct options {
    uint64_t shapes;
    uint64_t first;
    uint64_t seed;
    bool given;
} options_t;

typedef struct tally {
    uint64_t shapes;
    uint64_t ops; /* of all ranks, out of place and in place */
    uint64_t largest;
} tally_t;

static error_t parse(int key, char *arg, struct argp_state *state)
{
    options_t *options = state->input;

    switch (key) {
    case 'n':
        options->shapes = strtoull(arg, NULL, 0);
        return 0;
    case 'f':
        options->first = strtoull(arg, NULL, 0);
        return 0;
    case 's':
        options->seed = strtoull(arg, NULL, 0);
        options->given = true;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static bool verify_one(uint64_t seed, uint64_t index, tally_t *tally)
{
    hce_verify_report_t report;
    hce_status_t status;
    shape_t shape;

    shape_draw(seed, index, MAX_OPS, &shape);
    status = hce_plan_verify_builder(shape.builder, &shape.params, &report);
    if (status == HCE_OK && (!report.full || report.ops > 2 * MAX_OPS)) {
        status = HCE_ERR_INTERNAL;
    }
    if (status != HCE_OK) {
        printf("FAILED: --seed %" PRIu64 " --first %" PRIu64 " --shapes 1: "
               "%s\n",
               seed, index, report.text);
        shape_print(&shape);
    }
    tally->shapes++;
    tally->ops += report.ops;
    if (report.ops / 2 > tally->largest) {
        tally->largest = report.ops / 2;
    }
    shape_free(&shape);
    return status == HCE_OK;
}

static bool verify_seed(uint64_t seed, uint64_t first, uint64_t num,
                        tally_t *tally)
{
    uint64_t i;

    for (i = 0; i < num; i++) {
        if (!verify_one(seed, first + i, tally)) {
            return false;
        }
    }
    return true;
}

int main(int argc, char **argv)
{
    static const struct argp_option args[] = {
        {"shapes", 'n', "N", 0, "How many (default 600)", 0},
        {"first", 'f', "I", 0, "Number of the first one (default 0)", 0},
        {"seed", 's', "S", 0, "Instead of the day's; skips the old ones", 0},
        {0}};
    static const struct argp argp = {
        args, parse, NULL, "Verify the plans of random jobs.",
        NULL, NULL,  NULL};
    options_t options = {.shapes = 600};
    uint64_t start = hce_clock_ns();
    tally_t tally = {0, 0, 0};
    bool ok = true;
    size_t i;

    options.seed = time(NULL) / SECONDS_A_DAY;
    if (argp_parse(&argp, argc, argv, 0, NULL, &options) != 0) {
        return EXIT_FAILURE;
    }
    for (i = 0;
         !options.given && ok && i < sizeof(old) / sizeof(old[0]);
         i++) {
        printf("seed %" PRIu64 ", %d shapes from %" PRIu64 "\n", old[i].seed,
               OLD_SHAPES, old[i].first);
        ok = verify_seed(old[i].seed, old[i].first, OLD_SHAPES, &tally);
    }
    printf("seed %" PRIu64 ", %" PRIu64 " shapes\n", options.seed,
           options.shapes);
    fflush(stdout);
    ok =
        ok && verify_seed(options.seed, options.first, options.shapes, &tally);
    printf("%" PRIu64 " shapes, %" PRIu64 " ops verified, at most %" PRIu64
           " in a job, %.1f s\n",
           tally.shapes, tally.ops, tally.largest,
           (hce_clock_ns() - start) / 1e9);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
