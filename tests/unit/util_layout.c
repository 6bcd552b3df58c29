/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Layouts: numbering of nodes, carriers, and how users write them.
 */
#include "config.h"

#include "util/layout.h"
#include "util/math.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define SEED      20240611u
#define MAX_RANKS 64

static void assert_ints(const int *have, const int *want, int count)
{
    assert_memory_equal(have, want, (size_t)count * sizeof(int));
}

static void known_layout(void **state)
{
    static const int color[] = {7, 0, 7, 0x7fffffff, 0, 7};
    hce_layout_t *layout;

    assert_int_equal(hce_layout_create(6, color, &layout), HCE_OK);
    assert_int_equal(layout->nranks, 6);
    assert_int_equal(layout->nnodes, 3);
    assert_int_equal(layout->max_node_size, 3);
    assert_ints(layout->node, (int[]){0, 1, 0, 2, 1, 0}, 6);
    assert_ints(layout->lrank, (int[]){0, 0, 1, 0, 1, 2}, 6);
    assert_ints(layout->node_size, (int[]){3, 2, 1}, 3);
    assert_ints(layout->node_first, (int[]){0, 3, 5}, 3);
    assert_ints(layout->ranks, (int[]){0, 2, 5, 1, 4, 3}, 6);

    /* The slice of rank 5, local rank 2: on node 1 with two ranks by local
     * rank 0, on node 2 by its only rank. */
    assert_int_equal(hce_layout_carrier(layout, 0, 5, 0), 5);
    assert_int_equal(hce_layout_carrier(layout, 0, 5, 1), 1);
    assert_int_equal(hce_layout_carrier(layout, 0, 5, 2), 3);
    assert_true(hce_layout_same_node(layout, 0, 5));
    assert_false(hce_layout_same_node(layout, 0, 1));
    hce_layout_destroy(layout);
}

/* The properties that define a layout, on random colors. */
static void layout_check(const hce_layout_t *layout, const int *color, int n)
{
    int seen[MAX_RANKS] = {0}, largest = 0, sum = 0;

    for (int node = 0; node < layout->nnodes; node++) {
        assert_int_equal(layout->node_first[node], sum);
        sum += layout->node_size[node];
        largest = hce_max(largest, layout->node_size[node]);
        for (int l = 0; l < layout->node_size[node]; l++) {
            int rank = hce_layout_rank(layout, node, l);

            seen[rank]++;
            assert_int_equal(layout->node[rank], node);
            assert_int_equal(layout->lrank[rank], l);
            assert_int_equal(color[rank],
                             color[hce_layout_rank(layout, node, 0)]);
            if (l > 0) {
                assert_true(hce_layout_rank(layout, node, l - 1) < rank);
            }
        }
        if (node > 0) {
            assert_true(hce_layout_rank(layout, node - 1, 0) <
                        hce_layout_rank(layout, node, 0));
        }
    }
    assert_int_equal(sum, n);
    assert_int_equal(largest, layout->max_node_size);
    for (int a = 0; a < n; a++) {
        assert_int_equal(seen[a], 1);
        for (int b = 0; b < n; b++) {
            assert_int_equal(hce_layout_same_node(layout, a, b),
                             color[a] == color[b]);
        }
        assert_int_equal(hce_layout_carrier(layout, 0, a, layout->node[a]), a);
    }
}

static void random_layouts(void **state)
{
    uint64_t rng = SEED;

    for (int round = 0; round < 500; round++) {
        int n = 1 + (int)(hce_rand_next(&rng) % MAX_RANKS);
        int num_colors = 1 + (int)(hce_rand_next(&rng) % (unsigned)n);
        int color[MAX_RANKS];
        hce_layout_t *layout;

        for (int r = 0; r < n; r++) {
            color[r] = (int)(hce_rand_next(&rng) % (unsigned)num_colors) * 7;
        }
        assert_int_equal(hce_layout_create(n, color, &layout), HCE_OK);
        layout_check(layout, color, n);
        hce_layout_destroy(layout);
    }
}

static void wrong_layouts(void **state)
{
    hce_layout_t *const untouched = (hce_layout_t *)state;
    hce_layout_t *layout = untouched;
    const int color[] = {0, -1};

    assert_int_equal(hce_layout_create(0, color, &layout),
                     HCE_ERR_INVALID_ARG);
    assert_int_equal(hce_layout_create(-1, color, &layout),
                     HCE_ERR_INVALID_ARG);
    assert_int_equal(hce_layout_create(2, color, &layout),
                     HCE_ERR_INVALID_ARG);
    assert_ptr_equal(layout, untouched);
    hce_layout_destroy(NULL);
}

static void parse_good(void **state)
{
    static const struct {
        const char *nodes;
        hce_layout_map_t map;
        int nranks;
        int color[8];
    } cases[] = {
        {"1", HCE_LAYOUT_BLOCK, 3, {0, 0, 0}},
        {"3", HCE_LAYOUT_CYCLIC, 3, {0, 1, 2}},
        {"4", HCE_LAYOUT_BLOCK, 8, {0, 0, 1, 1, 2, 2, 3, 3}},
        {"4", HCE_LAYOUT_CYCLIC, 8, {0, 1, 2, 3, 0, 1, 2, 3}},
        {"3,1,2", HCE_LAYOUT_BLOCK, 6, {0, 0, 0, 1, 2, 2}},
        {"3,1,2", HCE_LAYOUT_CYCLIC, 6, {0, 1, 2, 0, 2, 0}},
        {"1,1", HCE_LAYOUT_BLOCK, 2, {0, 1}},
    };
    const char *why = NULL;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int color[8];

        assert_int_equal(hce_layout_parse(cases[i].nodes, cases[i].map,
                                          cases[i].nranks, color, &why),
                         HCE_OK);
        assert_ints(color, cases[i].color, cases[i].nranks);
    }
    assert_null(why);
}

static void parse_bad(void **state)
{
    static const struct {
        const char *nodes;
        int nranks;
        const char *why;
    } cases[] = {
        {"", 4, "expected a number"},
        {"x", 4, "expected a number"},
        {"0", 4, "expected a number"},
        {"-2", 4, "expected a number"},
        {"99999999999", 4, "expected a number"},
        {"5", 4, "more nodes than ranks"},
        {"3", 4, "do not divide evenly"},
        {"2,", 2, "between commas"},
        {",2", 2, "between commas"},
        {"2,,2", 4, "between commas"},
        {"2,0,2", 4, "between commas"},
        {"2,1", 4, "less than the ranks"},
        {"2,3", 4, "more than the ranks"},
        {"2147483647,2147483647", 4, "more than the ranks"},
        {"1", 0, "no ranks"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int color[8] = {9, 9, 9, 9, 9, 9, 9, 9};
        const char *why = NULL;

        assert_int_equal(hce_layout_parse(cases[i].nodes, HCE_LAYOUT_BLOCK,
                                          cases[i].nranks, color, &why),
                         HCE_ERR_INVALID_ARG);
        assert_non_null(strstr(why, cases[i].why));
        assert_ints(color, (int[]){9, 9, 9, 9, 9, 9, 9, 9}, 8);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_layout),  cmocka_unit_test(random_layouts),
        cmocka_unit_test(wrong_layouts), cmocka_unit_test(parse_good),
        cmocka_unit_test(parse_bad),
    };

    printf("seed %u\n", SEED);
    return cmocka_run_group_tests_name("util_layout", tests, NULL, NULL);
}
