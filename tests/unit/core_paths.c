/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The table of paths, and the widths that rules give: every row of the
 * published geometry of ring chunks, and its edges.
 */
#include "config.h"

#include "core/paths.h"

#include "util/math.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#define CONTEXTS 4

static void published_widths(void **state)
{
    /* MiB: a rank, width of whole slices, width in the ring. */
    static const struct {
        uint64_t len, whole, ring;
    } rows[] = {
        {64, 16, 16},  {128, 32, 16},  {256, 64, 32},
        {512, 64, 64}, {1024, 64, 64},
    };
    size_t i;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t len = rows[i].len * HCE_MIB;

        assert_int_equal(hce_paths_width_whole(len, CONTEXTS),
                         rows[i].whole * HCE_MIB);
        assert_int_equal(hce_paths_width("direct", len, CONTEXTS),
                         rows[i].whole * HCE_MIB);
        assert_int_equal(hce_paths_width("ring", len, CONTEXTS),
                         rows[i].ring * HCE_MIB);
    }
}

static void widths_at_edges(void **state)
{
    const uint64_t limit = 128 * HCE_MIB;

    assert_int_equal(hce_paths_width_whole(0, 1), 8 * HCE_KIB);
    assert_int_equal(hce_paths_width_whole(1, 16), 8 * HCE_KIB);
    assert_int_equal(hce_paths_width_whole(8 * HCE_KIB + 1, 1), 16 * HCE_KIB);
    assert_int_equal(hce_paths_width_whole(UINT64_MAX, 1), 64 * HCE_MIB);
    assert_int_equal(hce_paths_width_half(0, 1), 8 * HCE_MIB);
    assert_int_equal(hce_paths_width_half(UINT64_MAX, 1), 64 * HCE_MIB);
    assert_int_equal(hce_paths_width_half(limit + 1024, 4),
                     16 * HCE_MIB + 8 * HCE_KIB);
    /* Just below either limit of the rule for halves. */
    assert_int_equal(hce_paths_width("ring", limit - 1, 4), 32 * HCE_MIB);
    assert_int_equal(hce_paths_width("ring", limit, 3),
                     hce_paths_width_whole(limit, 3));
    assert_int_equal(hce_paths_width_auto("ring", limit, 4), HCE_MIB);
    assert_int_equal(hce_paths_width_auto("direct", 1, 1), 8 * HCE_KIB);
}

static void paths_by_name(void **state)
{
    char names[HCE_PATHS_NAMES_SIZE];
    int i, j;

    for (i = 0; hce_paths[i] != NULL; i++) {
        assert_ptr_equal(
            hce_paths_find(hce_paths[i]->coll, hce_paths[i]->path),
            hce_paths[i]);
        hce_paths_names(hce_paths[i]->coll, names);
        assert_non_null(strstr(names, hce_paths[i]->path));
        for (j = 0; j < i; j++) {
            assert_false(hce_paths[i]->coll == hce_paths[j]->coll &&
                         strcmp(hce_paths[i]->path, hce_paths[j]->path) == 0);
        }
    }
    assert_true(i > 0);
    assert_null(hce_paths_find(HCE_COLL_ALLGATHER, "Direct"));
    assert_null(hce_paths_find(HCE_COLL_LAST, "direct"));
    assert_string_equal(hce_paths_names(HCE_COLL_LAST, names), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_widths),
        cmocka_unit_test(widths_at_edges),
        cmocka_unit_test(paths_by_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
