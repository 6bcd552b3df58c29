/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The dispatcher's candidates: their geometry, which is cheapest, by which
 * figures; and tuning files, good and bad.
 */
#include "config.h"

#include "core/candidate.h"
#include "core/paths.h"
#include "core/tuning.h"
#include "core/values.h"
#include "util/math.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#define CONTEXTS 4

static hce_layout_t *layout;

static int open_layout(void **state)
{
    static const int color[] = {0, 0, 1, 1, 2, 2, 3, 3};

    hce_core_values = (hce_core_values_t){
        .carriers = HCE_CORE_CARRIERS_AUTO,
        .width = HCE_CORE_WIDTH_RULE,
        .multi_ctx_threshold = 4 * HCE_MIB,
    };
    return hce_layout_create(8, color, &layout) == HCE_OK ? 0 : -1;
}

static int close_layout(void **state)
{
    hce_layout_destroy(layout);
    hce_tuning_unload();
    return 0;
}

typedef struct answer {
    hce_candidate_t list[HCE_CANDIDATES_MAX];
    unsigned num;
    const hce_candidate_t *best; /* NULL: none */
} answer_t;

static void ask(const char *kind, uint64_t len, const char *path,
                const hce_call_params_t *params, answer_t *answer)
{
    static const hce_call_params_t none;
    hce_candidate_call_t call = {
        .layout = layout,
        .kind = kind,
        .params = params != NULL ? params : &none,
        .len = len,
        .coll = HCE_COLL_ALLGATHER,
        .contexts = CONTEXTS,
    };
    int best;

    answer->num = hce_candidates_list(&call, answer->list);
    best = hce_candidates_best(&call, answer->list, answer->num, path);
    answer->best = best < 0 ? NULL : &answer->list[best];
}

static const hce_candidate_t *find(const answer_t *answer, const char *path,
                                   int dirs)
{
    unsigned i;

    for (i = 0; i < answer->num; i++) {
        if (strcmp(answer->list[i].builder->path, path) == 0 &&
            (dirs == 0 || answer->list[i].params.dirs == dirs)) {
            return &answer->list[i];
        }
    }
    return NULL;
}

static void geometry(void **state)
{
    answer_t a;

    ask("rdma", 4 * HCE_MIB - 1, NULL, NULL, &a);
    assert_int_equal(find(&a, "direct", 0)->params.contexts, 1);
    ask("rdma", 4 * HCE_MIB, NULL, NULL, &a);
    assert_int_equal(find(&a, "direct", 0)->params.contexts, CONTEXTS);
    assert_int_equal(find(&a, "direct", 0)->params.width, HCE_MIB);
    /* Half-aware for the ring alone. */
    ask("rdma", 128 * HCE_MIB, NULL, NULL, &a);
    assert_int_equal(find(&a, "direct", 0)->params.width, 32 * HCE_MIB);
    assert_int_equal(find(&a, "ring", 2)->params.width, 16 * HCE_MIB);
    assert_int_equal(find(&a, "ring_short", 2)->params.width, 32 * HCE_MIB);
    assert_int_equal(find(&a, "ring", 2)->params.carriers, 0);
    ask("tcp", 128 * HCE_MIB, NULL, NULL, &a);
    assert_int_equal(find(&a, "ring", 2)->params.carriers, 1);
    assert_int_equal(find(&a, "ring", 1)->params.carriers, 2);
    assert_int_equal(find(&a, "direct", 0)->params.carriers, 1);
    hce_core_values.carriers = HCE_CORE_CARRIERS_RAILS;
    ask("tcp", 128 * HCE_MIB, NULL, NULL, &a);
    assert_int_equal(find(&a, "ring", 2)->params.carriers, 0);
    hce_core_values.width = 100 * HCE_KIB;
    ask("tcp", 8 * HCE_MIB, NULL, NULL, &a);
    assert_int_equal(find(&a, "ring", 2)->params.width, 104 * HCE_KIB);
}

static void call_wins(void **state)
{
    const hce_call_params_t params = {
        .field_mask = HCE_CALL_PARAM_CONTEXTS | HCE_CALL_PARAM_WIDTH |
                      HCE_CALL_PARAM_DIRS | HCE_CALL_PARAM_CARRIERS,
        .contexts = 2,
        .width = 12345,
        .dirs = 1,
        .carriers = 2,
    };
    answer_t a;

    hce_core_values.ring_dirs = 2;
    hce_core_values.carriers = 1;
    ask("rdma", HCE_MIB, "ring", &params, &a);
    assert_int_equal(a.best->params.contexts, 2);
    assert_int_equal(a.best->params.width, 12345);
    assert_int_equal(a.best->params.dirs, 1);
    assert_int_equal(a.best->params.carriers, 2);
    assert_null(find(&a, "ring", 2));
    assert_non_null(find(&a, "ring_short", 0)->refusal);
    ask("rdma", HCE_MIB, "ring_short", &params, &a);
    assert_null(a.best);
}

static void directions(void **state)
{
    answer_t a;

    ask("rdma", HCE_MIB, NULL, NULL, &a);
    assert_non_null(find(&a, "ring", 1));
    assert_non_null(find(&a, "ring", 2));
    hce_core_values.ring_dirs = 2;
    ask("rdma", HCE_MIB, NULL, NULL, &a);
    assert_null(find(&a, "ring", 1));
    hce_core_values.ring_dirs = 0;
    /* Both directions through one port: one is better, with RDMA two are. */
    ask("tcp", 16 * HCE_MIB, "ring", NULL, &a);
    assert_int_equal(a.best->params.dirs, 1);
    ask("rdma", 16 * HCE_MIB, "ring", NULL, &a);
    assert_int_equal(a.best->params.dirs, 2);
}

static void automatic(void **state)
{
    uint64_t len;
    unsigned i;
    answer_t a;

    for (len = 1; len <= HCE_GIB; len *= 8) {
        ask("rdma", len, NULL, NULL, &a);
        for (i = 0; i < a.num; i++) {
            assert_true(a.list[i].refusal != NULL ||
                        a.list[i].seconds < 0 ||
                        a.best->seconds <= a.list[i].seconds);
        }
    }
    /* Nothing known of this network: the first that can run. */
    ask("pigeon", 1, NULL, NULL, &a);
    assert_string_equal(a.best->builder->path, "direct");
    assert_true(a.best->seconds < 0);
}

static char file[64];

static void write_file(const char *text)
{
    int fd;

    strcpy(file, "/tmp/hce_tuning.XXXXXX");
    fd = mkstemp(file);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

static hce_status_t load(const char *text)
{
    hce_status_t status;

    write_file(text);
    status = hce_tuning_load(file);
    unlink(file);
    return status;
}

#define FIGURE(_nodes, _ranks, _path, _dirs, _alpha, _beta)                   \
    "{\"collective\": \"allgather\", \"transport\": \"tcp\", \"nodes\": "     \
    _nodes ", \"ranks\": " _ranks ", \"path\": \"" _path "\", \"dirs\": "     \
    _dirs ", \"alpha_us\": " _alpha ", \"beta_mbps\": " _beta "}"

static void tuned(void **state)
{
    hce_cost_figure_t figure;
    uint64_t digest;
    answer_t a;

#ifndef HCE_HAVE_JANSSON
    skip();
#endif
    assert_int_equal(
        load("{\"version\": 1, \"figures\": ["
             FIGURE("4", "8", "flat", "0", "1", "100") ","
             FIGURE("64", "512", "flat", "0", "9", "1.5") ","
             FIGURE("4", "8", "ring", "1", "50.5", "200") "]}"),
        HCE_OK);
    digest = hce_tuning_digest();
    assert_true(digest != 0);
    assert_string_equal(hce_tuning_origin("tcp"), "tuning file");
    assert_string_equal(hce_tuning_origin("rdma"), "built-in figures");
    ask("tcp", 1, NULL, NULL, &a);
    assert_string_equal(a.best->builder->path, "flat");
    assert_true(find(&a, "direct", 0)->seconds < 0); /* not in the file */
    ask("tcp", 16 * HCE_MIB, NULL, NULL, &a);
    assert_string_equal(a.best->builder->path, "ring");
    assert_int_equal(a.best->params.dirs, 1);
    /* Of several layouts, the one most like this one counts. */
    assert_true(hce_tuning_find("tcp", layout, "flat", 0, &figure));
    assert_true(figure.alpha_s == 1e-6 && figure.beta_bps == 100e6);
    assert_false(hce_tuning_find("tcp", layout, "ring", 2, &figure));
    assert_int_equal(load("{\"version\": 1, \"figures\": []}"), HCE_OK);
    assert_true(hce_tuning_digest() != digest);
    assert_string_equal(hce_tuning_origin("tcp"), "built-in figures");
}

static void bad_files(void **state)
{
    static const char *const texts[] = {
        "",
        "{",
        "[]",
        "{\"version\": 2, \"figures\": []}",
        "{\"version\": 1}",
        "{\"version\": 1, \"figures\": [{}]}",
        "{\"version\": 1, \"figures\": [7]}",
        "{\"version\": 1, \"figures\": ["
        FIGURE("4", "8", "a_name_that_is_too_long", "0", "1", "1") "]}",
        "{\"version\": 1, \"figures\": ["
        FIGURE("4", "3", "flat", "0", "1", "1") "]}",
        "{\"version\": 1, \"figures\": ["
        FIGURE("4", "8", "flat", "3", "1", "1") "]}",
        "{\"version\": 1, \"figures\": ["
        FIGURE("4", "8", "flat", "0", "-1", "1") "]}",
        "{\"version\": 1, \"figures\": ["
        FIGURE("4", "8", "flat", "0", "1", "0") "]}",
    };
    size_t i;

    for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        assert_int_equal(load(texts[i]), HCE_ERR_CONFIG);
        assert_int_equal(hce_tuning_digest(), 0);
    }
    assert_int_equal(hce_tuning_load("/nonexistent/file"), HCE_ERR_CONFIG);
}

#define TEST(_name)                                                           \
    cmocka_unit_test_setup_teardown(_name, open_layout, close_layout)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(geometry),  TEST(call_wins), TEST(directions),
        TEST(automatic), TEST(tuned),     TEST(bad_files),
    };

    return cmocka_run_group_tests_name("core_candidate", tests, NULL, NULL);
}
