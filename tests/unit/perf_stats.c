/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The benchmark's comparison of statistics with the plan: what agrees passes,
 * and one count too many or too few is named.
 */
#include <config.h>

#include "../../perf/stats.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

/* Two puts and five copies, of which three are saved in place. */
static const hce_explain_t explain = {
    .width = 8,
    .puts = 2,
    .put_bytes = 12,
    .copies = 5,
    .copy_bytes = 37,
    .in_place_copies = 2,
    .in_place_copy_bytes = 17,
};

static const hce_comm_stats_t before = {
    .calls = 100,
    .puts = 7,
    .put_bytes = 1000,
    .copies = 9,
    .copy_bytes = 2000,
    .retries = 3,
};

static void assert_differs(const hce_comm_stats_t *after, uint64_t calls,
                           const char *name)
{
    hce_perf_stats_diff_t diff;
    hce_comm_stats_t plan;

    hce_perf_stats_plan(&explain, calls, false, &plan);
    assert_false(hce_perf_stats_match(&before, after, &plan, &diff));
    assert_string_equal(diff.name, name);
    assert_int_not_equal(diff.counted, diff.planned);
}

/* before and four calls as planned. */
static hce_comm_stats_t good(void)
{
    return (hce_comm_stats_t){
        .calls = 104,
        .puts = 15,
        .put_bytes = 1048,
        .copies = 29,
        .copy_bytes = 2148,
        .retries = 8, /* depend on timing */
        .progress_wakes = 2,
    };
}

static void what_is_planned_passes(void **state)
{
    hce_comm_stats_t after = good(), plan;
    hce_perf_stats_diff_t diff;

    hce_perf_stats_plan(&explain, 4, false, &plan);
    assert_true(hce_perf_stats_match(&before, &after, &plan, &diff));
}

static void the_own_slice_is_not_copied_in_place(void **state)
{
    hce_comm_stats_t after = good(), plan;
    hce_perf_stats_diff_t diff;

    hce_perf_stats_plan(&explain, 4, true, &plan);
    assert_false(hce_perf_stats_match(&before, &after, &plan, &diff));
    assert_string_equal(diff.name, "copies");
    after.copies -= 4 * 3;
    after.copy_bytes -= 4 * 20;
    assert_true(hce_perf_stats_match(&before, &after, &plan, &diff));
}

static void each_count_is_compared(void **state)
{
    hce_comm_stats_t after;

    after = good(), after.calls++;
    assert_differs(&after, 4, "calls");
    after = good(), after.puts--;
    assert_differs(&after, 4, "puts");
    after = good(), after.put_bytes++;
    assert_differs(&after, 4, "bytes put");
    after = good(), after.copies--;
    assert_differs(&after, 4, "copies");
    after = good(), after.copy_bytes++;
    assert_differs(&after, 4, "bytes copied");
    after = good(), after.kernels++;
    assert_differs(&after, 4, "kernels");
    after = good();
    assert_differs(&after, 5, "calls");
}

static void communicators_add_up(void **state)
{
    hce_comm_stats_t sum = good(), one = before;

    hce_perf_stats_add(&sum, &one);
    assert_int_equal(sum.calls, 204);
    assert_int_equal(sum.puts, 22);
    assert_int_equal(sum.put_bytes, 2048);
    assert_int_equal(sum.copies, 38);
    assert_int_equal(sum.copy_bytes, 4148);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_planned_passes),
        cmocka_unit_test(the_own_slice_is_not_copied_in_place),
        cmocka_unit_test(each_count_is_compared),
        cmocka_unit_test(communicators_add_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
