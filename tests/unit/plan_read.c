/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Plans read back from JSON: the same as they were written; every wrong value
 * refused by name; and files spoiled at random, which must be refused or be
 * safe to print, to verify and to schedule.
 *
 * usage: plan_read [SEED [ROUNDS]]
 */
#include "config.h"

#include "plan/read.h"

#include "plan_world.h"

#include "core/paths.h"
#include "plan/show.h"
#include "tools/plan/schedule.h"
#include "util/config.h"
#include "util/math.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#ifdef HCE_HAVE_JANSSON

#include <jansson.h>

#define MAX_BYTES_SPOILED 4

static uint64_t seed = 1;
static int rounds = 3000;

static char *plans_text(const world_t *w)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    int rank;

    assert_non_null(out);
    for (rank = 0; rank < w->layout->nranks; rank++) {
        fputs(rank == 0 ? "[" : ",", out);
        assert_int_equal(hce_plan_write_json(w->plans[rank], out), HCE_OK);
    }
    fputs("]", out);
    assert_int_equal(fclose(out), 0);
    return text;
}

static hce_status_t read_text(const char *text, size_t size,
                              hce_plan_set_t *set,
                              char why[HCE_PLAN_READ_WHY_SIZE])
{
    FILE *in = fmemopen((void *)text, size, "r");
    hce_status_t status;

    assert_non_null(in);
    status = hce_plan_set_read(in, set, why);
    fclose(in);
    return status;
}

/* Written, read and written again. */
static void read_back_one(const hce_plan_builder_t *builder, uint64_t len)
{
    char why[HCE_PLAN_READ_WHY_SIZE], *text, *again;
    hce_plan_set_t set;
    int rank;
    world_t w;

    world_init(&w, "2,1,3", 6, len);
    w.params.limits = (hce_plan_limits_t){64 * HCE_KIB, 64 * HCE_KIB, true,
                                             false};
    w.params.contexts = 2;
    w.params.in_place = len % 2;
    world_build(&w, builder);
    text = plans_text(&w);
    assert_int_equal(read_text(text, strlen(text), &set, why), HCE_OK);
    assert_int_equal(set.num, 6);
    for (rank = 0; rank < set.num; rank++) {
        hce_plan_destroy(w.plans[rank]);
        w.plans[rank] = set.plans[rank];
        assert_ptr_equal(set.plans[rank]->params.layout, set.layout);
    }
    again = plans_text(&w);
    assert_string_equal(text, again);
    world_assert_right(&w, builder);
    for (rank = 0; rank < set.num; rank++) {
        w.plans[rank] = NULL;
    }
    hce_plan_set_cleanup(&set);
    free(text);
    free(again);
    world_cleanup(&w);
}

static void reads_back(void **state)
{
    int i;

    for (i = 0; hce_paths[i] != NULL; i++) {
        if (hce_paths[i]->coll == HCE_COLL_ALLGATHER) {
            read_back_one(hce_paths[i], 350);
            read_back_one(hce_paths[i], 351);
            read_back_one(hce_paths[i], 0);
        }
    }
}

/* The JSON of a small job. */
static json_t *small_job(void)
{
    json_t *root;
    char *text;
    world_t w;

    world_init(&w, "2,1", 3, 150);
    world_build(&w, hce_paths_find(HCE_COLL_ALLGATHER, "direct"));
    text = plans_text(&w);
    root = json_loads(text, 0, NULL);
    assert_non_null(root);
    free(text);
    world_cleanup(&w);
    return root;
}

static hce_status_t read_json(const json_t *root, hce_plan_set_t *set,
                              char why[HCE_PLAN_READ_WHY_SIZE])
{
    char *text = json_dumps(root, 0);
    hce_status_t status;

    assert_non_null(text);
    status = read_text(text, strlen(text), set, why);
    free(text);
    return status;
}

/* "1.ops.2.src.0": what a path of keys and indices leads to. */
static json_t *walk(json_t *root, const char *path)
{
    char text[80], *next = text, *key;

    snprintf(text, sizeof(text), "%s", path);
    while (root != NULL && (key = strsep(&next, ".")) != NULL &&
           key[0] != '\0') {
        root = json_is_array(root)
                   ? json_array_get(root, (size_t)strtol(key, NULL, 10))
                   : json_object_get(root, key);
    }
    return root;
}

/* Value as JSON text, or NULL: the key is taken away. */
static void assert_refused(const char *path, const char *key,
                           const char *value, const char *what)
{
    char why[HCE_PLAN_READ_WHY_SIZE];
    json_t *root = small_job(), *object = walk(root, path);
    hce_plan_set_t set;

    assert_non_null(object);
    if (value == NULL) {
        assert_int_equal(json_object_del(object, key), 0);
    } else {
        json_t *json = json_loads(value, JSON_DECODE_ANY, NULL);

        assert_non_null(json);
        assert_int_equal(json_object_set_new(object, key, json), 0);
    }
    if (read_json(root, &set, why) != HCE_ERR_INVALID_ARG ||
        strstr(why, what) == NULL) {
        fail_msg("%s.%s = %s: '%s', expected '%s'", path, key, value, why,
                 what);
    }
    json_decref(root);
}

static void wrong_heads(void **state)
{
    assert_refused("0", "version", "2", "plan 0: \"version\": expected");
    assert_refused("0", "version", NULL, "\"version\"");
    assert_refused("0", "path", "\"\"", "\"path\": expected 1 to 15");
    assert_refused("0", "path", "\"a<b\"", "\"path\"");
    assert_refused("0", "path", "\"sixteen_letters_\"", "\"path\"");
    assert_refused("0", "params", "[]", "\"ranks\": expected");
    assert_refused("0.params", "ranks", "0", "from 1 to 16384");
    assert_refused("0.params", "ranks", "4", "expected 4 nodes");
    assert_refused("0.params", "node_of_rank", "[0,2,1]",
                   "node_of_rank[1]: expected a whole number from 0 to 1");
    assert_refused("1.params", "node_of_rank", "[0,1,1]",
                   "plan 1: its layout is not that of plan 0");
    assert_refused("0.params", "collective", "\"all\"",
                   "expected one of all_gather");
    assert_refused("0.params", "rank", "3", "from 0 to 2");
    assert_refused("0.params", "rank", "1.0", "\"rank\"");
    assert_refused("0.params", "bytes", "-1", "\"bytes\"");
    assert_refused("0.params", "bytes", "9223372036854775807", "\"bytes\"");
    assert_refused("0.params", "width", "0", "\"width\"");
    assert_refused("0.params", "bytes", "25601", "at most 256 chunks");
    assert_refused("0.params", "contexts", "17", "from 1 to 16");
    assert_refused("0.params", "dirs", "3", "from 0 to 2");
    assert_refused("0.params", "carriers", "-1", "\"carriers\"");
    assert_refused("0.params", "limits", NULL, "\"scratch\"");
    assert_refused("0.params.limits", "parcel", "-1", "\"parcel\"");
    assert_refused("0.params.limits", "reads", "1", "true or false");
    assert_refused("0.params.limits", "pulls", "1", "true or false");
    assert_refused("0.params", "in_place", "0", "expected true or false");
    assert_refused("0", "scratch_bytes", NULL, "\"scratch_bytes\"");
}

static void wrong_ops(void **state)
{
    assert_refused("0", "lanes", "{}", "\"lanes\": expected a list");
    assert_refused("2.lanes.1", "kind", "\"road\"",
                   "plan 2: lanes[1]: \"kind\": expected one of entry, proxy");
    assert_refused("0.lanes.0", "peer", "-2", "\"peer\"");
    assert_refused("0.lanes.0", "context", "16", "from 0 to 15");
    assert_refused("0.lanes.0", "direction", "2", "from 0 to 1");
    assert_refused("0", "ops", NULL, "\"ops\"");
    assert_refused("0.ops.2", "kind", "3", "ops[2]: \"kind\"");
    assert_refused("0.ops.2", "lane", "4", "from 0 to 3");
    assert_refused("0", "lanes", "[]", "ops[0]: \"lane\"");
    assert_refused("1.ops.3", "bytes", "1e9",
                   "plan 1: ops[3]: \"bytes\": expected a whole number");
    assert_refused("0.ops.2.src.0", "buffer", "\"sendd\"",
                   "ops[2]: src[0]: \"buffer\": expected one of send, recv");
    assert_refused("0.ops.4.dst.1", "rank", "3", "ops[4]: dst[1]: \"rank\"");
    assert_refused("0.ops.2.src.0", "depth", "0", "from 1 to 65535");
    assert_refused("0.ops.2.src.0", "stride", "-1", "\"stride\"");
    assert_refused("0.ops.2.wait.0", "slot", "39", "from 0 to 38");
    assert_refused("0.ops.2.wait.0", "writer", "\"2\"", "wait[0]");
    assert_refused("0.ops.2.post.0", "value", "99999999999999",
                   "post[0]: \"value\"");
    assert_refused("0.ops.2", "post", "7", "\"post\": expected a list");
    assert_refused("0", "done", "[7]", "done[0]: \"writer\"");
    assert_refused("0.in.0", "rise", "null", "in[0]: \"rise\"");
    assert_refused("0.out.1", "owner", "3", "out[1]: \"owner\"");
}

static void wrong_texts(void **state)
{
    static const struct {
        const char *text, *what;
    } cases[] = {
        {" ", "not JSON: line 1"},
        {"[", "not JSON"},
        {"[]", "expected 1 to 16384 plans"},
        {"[1]", "plan 0: \"version\""},
        {"{}", "plan 0: \"version\""},
        {"{\"version\": 1, \"version\": 1}", "duplicate"},
    };
    char why[HCE_PLAN_READ_WHY_SIZE];
    hce_plan_set_t set;
    size_t i;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(
            read_text(cases[i].text, strlen(cases[i].text), &set, why),
            HCE_ERR_INVALID_ARG);
        assert_non_null(strstr(why, cases[i].what));
    }
}

/* ---- at random ---- */

static uint64_t below(uint64_t limit)
{
    return hce_rand_next(&seed) % limit;
}

static json_t *any_value(void)
{
    static const char *const values[] = {
        "0",           "1",          "2",
        "3",           "-1",         "33",
        "100",         "null",       "281474976710656",
        "[]",          "{}",         "1.5",
        "\"recv\"",    "\"put\"",    "true",
        "\"reduce\"",  "5",          "50",
        "\"scratch\"", "\"signal\"", "7"};

    return json_loads(values[below(sizeof(values) / sizeof(values[0]))],
                      JSON_DECODE_ANY, NULL);
}

/* A key of an object far down gets another value. */
static void spoil_below(json_t *json)
{
    for (;;) {
        size_t size = json_is_array(json) ? json_array_size(json)
                                          : json_object_size(json);
        size_t pick;
        json_t *next;
        void *at;

        if (size == 0) {
            return;
        }
        pick = below(size);
        if (json_is_array(json)) {
            next = json_array_get(json, pick);
            if (below(20) == 0) {
                json_array_remove(json, pick);
                return;
            }
            if (below(20) == 0) {
                json_array_insert_new(json, below(size), json_deep_copy(next));
                return;
            }
        } else {
            at = json_object_iter(json);
            while (pick-- > 0) {
                at = json_object_iter_next(json, at);
            }
            next = json_object_iter_value(at);
            if (!(json_is_array(next) || json_is_object(next)) ||
                below(20) == 0) {
                json_object_iter_set_new(json, at, any_value());
                return;
            }
        }
        if (!json_is_array(next) && !json_is_object(next)) {
            return;
        }
        json = next;
    }
}

/* Nothing that was read may hurt, right or wrong. */
static bool use(const hce_plan_set_t *set)
{
    hce_verify_report_t report;
    hce_tools_schedule_t schedule;
    FILE *out = fopen("/dev/null", "we");
    bool whole = set->num == set->layout->nranks, right = false;
    int i;

    assert_non_null(out);
    for (i = 0; i < set->num; i++) {
        hce_plan_print(set->plans[i], out);
        assert_int_equal(hce_plan_write_json(set->plans[i], out), HCE_OK);
    }
    fclose(out);
    if (whole) {
        right = hce_plan_verify(
                    set->plans, set->num,
                    hce_paths_find(HCE_COLL_ALLGATHER, set->plans[0]->path),
                    &report) == HCE_OK;
        assert_true(report.text[0] != '\0');
        assert_true(hce_tools_schedule_create(set, -1, 0, &schedule));
        assert_true(!right || schedule.num_never == 0);
        hce_tools_schedule_destroy(set, &schedule);
    }
    return right;
}

static void spoiled_values(void **state)
{
    int counts[3] = {0}, i;
    json_t *good = small_job();

    printf("seed %" PRIu64 ", %d rounds\n", seed, rounds);
    for (i = 0; i < rounds; i++) {
        char why[HCE_PLAN_READ_WHY_SIZE];
        json_t *root = json_deep_copy(good);
        hce_plan_set_t set;
        int spoils = (int)below(3);

        while (spoils-- > 0) {
            spoil_below(root);
        }
        if (read_json(root, &set, why) != HCE_OK) {
            assert_true(why[0] != '\0');
            counts[0]++;
        } else {
            counts[use(&set) ? 2 : 1]++;
            hce_plan_set_cleanup(&set);
        }
        json_decref(root);
    }
    printf("%d refused, %d wrong, %d right\n", counts[0], counts[1],
           counts[2]);
    /* Else the test would show nothing. */
    assert_true(counts[0] > 0 && counts[1] > 0 && counts[2] > 0);
    json_decref(good);
}

static void spoiled_bytes(void **state)
{
    json_t *root = small_job();
    char *good = json_dumps(root, JSON_COMPACT), *text;
    size_t size = strlen(good);
    int i, j;

    text = malloc(size);
    assert_non_null(text);
    for (i = 0; i < rounds; i++) {
        char why[HCE_PLAN_READ_WHY_SIZE];
        hce_plan_set_t set;

        memcpy(text, good, size);
        for (j = (int)below(MAX_BYTES_SPOILED); j >= 0; j--) {
            text[below(size)] =
                (char)(below(3) == 0 ? below(256) : '0' + below(10));
        }
        if (read_text(text, below(8) == 0 ? 1 + below(size) : size, &set,
                      why) == HCE_OK) {
            use(&set);
            hce_plan_set_cleanup(&set);
        } else {
            assert_true(why[0] != '\0');
        }
    }
    free(text);
    free(good);
    json_decref(root);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_back),     cmocka_unit_test(wrong_heads),
        cmocka_unit_test(wrong_ops),      cmocka_unit_test(wrong_texts),
        cmocka_unit_test(spoiled_values), cmocka_unit_test(spoiled_bytes),
    };

    if (argc > 1) {
        seed = strtoull(argv[1], NULL, 10);
    }
    if (argc > 2) {
        rounds = (int)strtol(argv[2], NULL, 10);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    puts("this build has no jansson");
    return 77;
}

#endif
