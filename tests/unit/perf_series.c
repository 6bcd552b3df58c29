/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The benchmark's sizes: what follows what, how many there are, and how a
 * size becomes a count.
 */
#include <config.h>

#include "../../perf/series.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

static hce_perf_opts_t sizes(uint64_t min, uint64_t max, uint64_t step,
                             int factor)
{
    return (hce_perf_opts_t){
        .min_bytes = min,
        .max_bytes = max,
        .step_bytes = step,
        .step_factor = factor,
        .types = {HCE_FLOAT32},
        .num_types = 1,
    };
}

/* Walks the series; checks that its announced length and end are true. */
static void assert_series(hce_perf_opts_t opts, const uint64_t *want,
                          size_t num)
{
    uint64_t size = opts.min_bytes, last = 0;
    size_t i;

    for (i = 0; i < num; i++) {
        assert_int_equal(size, want[i]);
        assert_int_equal(hce_perf_series_next(&opts, &size), i + 1 < num);
    }
    assert_int_equal(hce_perf_series_len(&opts, &last), num);
    assert_int_equal(last, want[num - 1]);
}

#define ASSERT_SERIES(_opts, ...)                                             \
    do {                                                                      \
        const uint64_t want[] = {__VA_ARGS__};                                \
        assert_series(_opts, want, sizeof(want) / sizeof(want[0]));           \
    } while (0)

static void steps_are_added(void **state)
{
    ASSERT_SERIES(sizes(8, 20, 4, 1), 8, 12, 16, 20);
    ASSERT_SERIES(sizes(8, 21, 4, 1), 8, 12, 16, 20);
    ASSERT_SERIES(sizes(0, 3, 1, 1), 0, 1, 2, 3);
    ASSERT_SERIES(sizes(5, 5, 0, 1), 5);
    ASSERT_SERIES(sizes(5, 5, 7, 1), 5);
}

static void a_factor_multiplies(void **state)
{
    ASSERT_SERIES(sizes(8, 64, 4, 2), 8, 16, 32, 64);
    ASSERT_SERIES(sizes(8, 63, 4, 2), 8, 16, 32);
    ASSERT_SERIES(sizes(3, 100, 4, 5), 3, 15, 75);
    /* 0 times anything: the series would never end. */
    ASSERT_SERIES(sizes(0, 4, 4, 2), 0, 1, 2, 4);
    ASSERT_SERIES(sizes(0, 0, 4, 2), 0);
}

static void nothing_wraps_near_the_greatest_number(void **state)
{
    ASSERT_SERIES(sizes(UINT64_MAX - 1, UINT64_MAX, 1, 1), UINT64_MAX - 1,
                  UINT64_MAX);
    ASSERT_SERIES(sizes(UINT64_MAX - 1, UINT64_MAX, 2, 1), UINT64_MAX - 1);
    ASSERT_SERIES(sizes(1ull << 62, UINT64_MAX, 1, 2), 1ull << 62, 1ull << 63);
}

static void counts_are_whole_elements(void **state)
{
    hce_perf_opts_t opts = sizes(0, 0, 1, 1);

    assert_int_equal(hce_perf_series_count(&opts, 4097, HCE_INT8, 3), 1365);
    assert_int_equal(hce_perf_series_count(&opts, 4097, HCE_FLOAT32, 3), 341);
    assert_int_equal(hce_perf_series_count(&opts, 11, HCE_FLOAT32, 3), 0);
    assert_int_equal(hce_perf_series_count(&opts, 12, HCE_FLOAT32, 3), 1);
    opts.per_rank = true;
    assert_int_equal(hce_perf_series_count(&opts, 4097, HCE_INT8, 3), 4097);
    assert_int_equal(hce_perf_series_count(&opts, 4097, HCE_FLOAT64, 3), 512);
}

static void the_largest_contribution_is_of_the_last_size(void **state)
{
    hce_perf_opts_t opts = sizes(8, 127, 1, 2); /* ends at 64 */

    assert_int_equal(hce_perf_series_max(&opts, 3), 20);
    opts.types[1] = HCE_INT8; /* 64 / 3 = 21 bytes, more than 5 floats */
    opts.num_types = 2;
    assert_int_equal(hce_perf_series_max(&opts, 3), 21);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_are_added),
        cmocka_unit_test(a_factor_multiplies),
        cmocka_unit_test(nothing_wraps_near_the_greatest_number),
        cmocka_unit_test(counts_are_whole_elements),
        cmocka_unit_test(the_largest_contribution_is_of_the_last_size),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
