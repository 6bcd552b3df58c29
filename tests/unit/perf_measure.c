/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The benchmark's median, and that its counters count: CPU time that is used
 * here is seen.
 */
#include <config.h>

#include "../../perf/measure.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static void test_median(void **state)
{
    double one[] = {7}, two[] = {4, 1}, odd[] = {9, 1, 5, 1e9, -3};
    double even[] = {4, 100, 1, 2};

    assert_float_equal(hce_perf_measure_median(one, 1), 7, 0);
    assert_float_equal(hce_perf_measure_median(two, 2), 2.5, 0);
    assert_float_equal(hce_perf_measure_median(odd, 5), 5, 0);
    assert_float_equal(hce_perf_measure_median(even, 4), 3, 0);
}

/* Ends when the clock has moved, which is what is to be shown. */
static void test_cpu(void **state)
{
    double start = hce_perf_measure_cpu();
    atomic_uint work = 0;

    while (hce_perf_measure_cpu() < start + 0.01)
        atomic_fetch_add_explicit(&work, 1, memory_order_relaxed);
    assert_true(atomic_load_explicit(&work, memory_order_relaxed) > 0);
}

static void test_net(void **state)
{
    hce_perf_net_t before = {UINT64_MAX, UINT64_MAX}, after;

    hce_perf_measure_net(&before);
    hce_perf_measure_net(&after);
    assert_true(after.received >= before.received);
    assert_true(after.sent >= before.sent);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_median),
        cmocka_unit_test(test_cpu),
        cmocka_unit_test(test_net),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
