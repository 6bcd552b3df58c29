/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Closed forms of cost: steps and bytes of each path, fitting them, and that
 * the built-in figures choose as the published measurements do.
 */
#include "config.h"

#include "model/cost.h"

#include "util/math.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

static hce_layout_t *layout_of(const char *nodes, int nranks)
{
    int *color = calloc((size_t)nranks, sizeof(*color));
    hce_layout_t *layout = NULL;
    const char *why;

    assert_non_null(color);
    assert_int_equal(
        hce_layout_parse(nodes, HCE_LAYOUT_BLOCK, nranks, color, &why),
        HCE_OK);
    assert_int_equal(hce_layout_create(nranks, color, &layout), HCE_OK);
    free(color);
    return layout;
}

static void assert_terms(const char *path, const char *nodes, int nranks,
                         double steps, double slices)
{
    hce_layout_t *layout = layout_of(nodes, nranks);
    hce_cost_terms_t terms;

    assert_true(hce_cost_allgather(path, layout, 1000, &terms));
    assert_true(terms.steps == steps);
    assert_true(terms.bytes == slices * 1000);
    hce_layout_destroy(layout);
}

static void closed_forms(void **state)
{
    hce_layout_t *layout = layout_of("2", 2);
    hce_cost_terms_t terms;

    assert_terms("direct", "4", 8, 1, 6);
    assert_terms("ring", "4", 8, 3, 6);
    assert_terms("ring_short", "4", 8, 2, 6);
    assert_terms("ring_short", "5", 10, 2, 8);
    assert_terms("eager", "4", 8, 1, 6);
    assert_terms("eager", "8", 8, 1, 7);
    assert_terms("eager", "9", 9, 4, 8);
    assert_terms("flat", "4", 8, 7, 7);
    /* Most comes into the smallest node. */
    assert_terms("ring", "3,1,2", 6, 2, 5);
    assert_terms("direct", "1", 6, 1, 6);
    assert_terms("ring", "1", 6, 1, 6);
    assert_false(hce_cost_allgather("tunnel", layout, 1, &terms));
    hce_layout_destroy(layout);
}

static void seconds(void **state)
{
    const hce_cost_terms_t terms = {.steps = 3, .bytes = 5e6};
    const hce_cost_figure_t figure = {.alpha_s = 1e-4, .beta_bps = 1e9};

    assert_true(fabs(hce_cost_seconds(&terms, &figure) - 5.3e-3) < 1e-12);
}

/* Samples that lie on a line are found again, whatever their sizes. */
static void fit_exact(void **state)
{
    const hce_cost_figure_t truth = {.alpha_s = 2e-4, .beta_bps = 6e7};
    hce_cost_sample_t samples[8];
    hce_cost_figure_t found;
    double error;
    int i;

    for (i = 0; i < 8; i++) {
        samples[i].terms =
            (hce_cost_terms_t){.steps = 3, .bytes = 6e3 * (1 << 2 * i)};
        samples[i].seconds = hce_cost_seconds(&samples[i].terms, &truth);
    }
    assert_true(hce_cost_fit(samples, 8, &found, &error));
    assert_true(fabs(found.alpha_s / truth.alpha_s - 1) < 1e-9);
    assert_true(fabs(found.beta_bps / truth.beta_bps - 1) < 1e-9);
    assert_true(error < 1e-9);
    /* The relative error counts: a small sample weighs as much as a large. */
    samples[0].seconds *= 1.1;
    assert_true(hce_cost_fit(samples, 8, &found, &error));
    assert_true(found.alpha_s > truth.alpha_s * 1.005);
    assert_true(error > 0.01 && error < 0.1);
}

static void fit_limits(void **state)
{
    hce_cost_sample_t samples[3] = {
        {{1, 1e6}, 1e-3},
        {{1, 2e6}, 2.2e-3},
        {{1, 4e6}, 4.6e-3},
    };
    hce_cost_figure_t found;
    double error;

    /* A line through these would begin below 0. */
    assert_true(hce_cost_fit(samples, 3, &found, &error));
    assert_true(found.alpha_s == 0 && found.beta_bps > 0);
    assert_false(hce_cost_fit(samples, 1, &found, &error));
    samples[1] = samples[0];
    assert_false(hce_cost_fit(samples, 2, &found, &error));
    /* More bytes in less time. */
    samples[1] = (hce_cost_sample_t){{1, 8e6}, 1e-4};
    assert_false(hce_cost_fit(samples, 2, &found, &error));
}

static double published(const char *path, int dirs, uint64_t output)
{
    hce_layout_t *layout = layout_of("8", 32);
    hce_cost_figure_t figure;
    hce_cost_terms_t terms;
    double time;

    assert_true(hce_cost_builtin("rdma", path, dirs, &figure));
    assert_true(hce_cost_allgather(path, layout, output / 32, &terms));
    time = hce_cost_seconds(&terms, &figure);
    hce_layout_destroy(layout);
    return time;
}

/* Published: direct is faster up to 64 MiB of output, the ring from 128 on. */
static void builtin_rdma(void **state)
{
    uint64_t size;

    for (size = HCE_KIB; size <= 16 * HCE_GIB; size *= 2) {
        double direct = published("direct", 0, size);
        double ring = published("ring", 2, size);

        if (size <= 64 * HCE_MIB) {
            assert_true(direct < ring);
        } else if (size >= 128 * HCE_MIB) {
            assert_true(ring < direct);
        }
        assert_true(published("ring_short", 2, size) <= ring);
    }
    /* 277 and 381 GB/s of bus bandwidth at 8 GiB. */
    assert_true(fabs(8 * 1.073741824 * 31 / 32 /
                         published("direct", 0, 8 * HCE_GIB) / 277 -
                     1) < 0.05);
    assert_true(fabs(8 * 1.073741824 * 31 / 32 /
                         published("ring", 2, 8 * HCE_GIB) / 381 -
                     1) < 0.05);
}

static void builtin_kinds(void **state)
{
    hce_cost_figure_t figure;

    assert_false(hce_cost_builtin("pigeon", "direct", 0, &figure));
    assert_false(hce_cost_builtin("tcp", "tunnel", 0, &figure));
    assert_true(hce_cost_builtin("none", "direct", 0, &figure));
    /* On one node rings are what direct is. */
    assert_false(hce_cost_builtin("none", "ring", 2, &figure));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(closed_forms), cmocka_unit_test(seconds),
        cmocka_unit_test(fit_exact),    cmocka_unit_test(fit_limits),
        cmocka_unit_test(builtin_rdma), cmocka_unit_test(builtin_kinds),
    };

    return cmocka_run_group_tests_name("model_cost", tests, NULL, NULL);
}
