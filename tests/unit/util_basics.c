/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Small things: statuses, version, datatypes, counters, integer helpers,
 * clock, and the architecture's two instructions.
 */
#include "config.h"

#include "util/arch.h"
#include "util/clock.h"
#include "util/counter.h"
#include "util/datatype.h"
#include "util/math.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static void statuses_have_texts(void **state)
{
    for (int a = HCE_INPROGRESS; a >= HCE_ERR_INTERNAL; a--) {
        const char *text = hce_status_string((hce_status_t)a);

        assert_non_null(text);
        assert_string_not_equal(text, "unknown status");
        for (int b = a - 1; b >= HCE_ERR_INTERNAL; b--) {
            assert_string_not_equal(text, hce_status_string((hce_status_t)b));
        }
    }
    assert_string_equal(hce_status_string((hce_status_t)2), "unknown status");
    assert_string_equal(
        hce_status_string((hce_status_t)(HCE_ERR_INTERNAL - 1)),
        "unknown status");
}

/* The header, the package and VERSION must not drift apart. */
static void version_is_the_packages(void **state)
{
    int major = -1, minor = -1, patch = -1;
    char text[64];

    hce_get_version(&major, &minor, &patch);
    snprintf(text, sizeof(text), "%d.%d.%d", major, minor, patch);
    assert_string_equal(text, PACKAGE_VERSION);
    hce_get_version(NULL, NULL, NULL);
}

static void datatypes_are_found(void **state)
{
    static const size_t sizes[HCE_DATATYPE_LAST] = {1, 1, 4, 4, 8, 8,
                                                    2, 4, 8, 2, 1, 1};
    hce_datatype_t found = HCE_DATATYPE_LAST;

    for (int i = 0; i < HCE_DATATYPE_LAST; i++) {
        hce_datatype_t datatype = (hce_datatype_t)i;

        assert_int_equal(hce_datatype_size(datatype), sizes[i]);
        assert_int_equal(
            hce_datatype_find(hce_datatype_string(datatype), &found), HCE_OK);
        assert_int_equal(found, datatype);
    }
    assert_string_equal(hce_datatype_string(HCE_FLOAT32), "float");
    assert_string_equal(hce_datatype_string(HCE_INT8), "int8");
}

static void redops_are_found(void **state)
{
    hce_redop_t found = HCE_REDOP_LAST;

    for (int i = 0; i < HCE_REDOP_LAST; i++) {
        hce_redop_t op = (hce_redop_t)i;

        assert_int_equal(hce_redop_find(hce_redop_string(op), &found), HCE_OK);
        assert_int_equal(found, op);
    }
    assert_int_equal(hce_redop_find("su", &found), HCE_ERR_INVALID_ARG);
    assert_int_equal(found, HCE_AVG);
    assert_null(hce_redop_string(HCE_REDOP_LAST));
    assert_null(hce_redop_string((hce_redop_t)-1));
}

static void datatypes_unknown(void **state)
{
    hce_datatype_t found = HCE_INT64;

    assert_int_equal(hce_datatype_find("", &found), HCE_ERR_INVALID_ARG);
    assert_int_equal(hce_datatype_find("floa", &found), HCE_ERR_INVALID_ARG);
    assert_int_equal(hce_datatype_find("float ", &found), HCE_ERR_INVALID_ARG);
    assert_int_equal(found, HCE_INT64);
    assert_null(hce_datatype_string(HCE_DATATYPE_LAST));
    assert_null(hce_datatype_string((hce_datatype_t)-1));
    assert_int_equal(hce_datatype_size(HCE_DATATYPE_LAST), 0);
    assert_int_equal(hce_datatype_size((hce_datatype_t)-1), 0);
}

static void counters_compare_cyclically(void **state)
{
    hce_counter_t counter = {0};

    hce_counter_post(&counter, 5);
    assert_int_equal(hce_counter_read(&counter), 5);
    assert_true(hce_counter_geq(5, 5));
    assert_true(hce_counter_geq(6, 5));
    assert_false(hce_counter_geq(4, 5));
    assert_true(hce_counter_geq(0, (uint64_t)-3)); /* a post of before */
    assert_false(hce_counter_geq((uint64_t)-3, 0));
    assert_true(hce_counter_geq(HCE_COUNTER_RELEASE, 0));
    assert_true(hce_counter_geq(HCE_COUNTER_RELEASE, 1ull << 62));
}

static void integers(void **state)
{
    assert_int_equal(hce_div_up(0, 4), 0);
    assert_int_equal(hce_div_up(1, 4), 1);
    assert_int_equal(hce_div_up(8, 4), 2);
    assert_true(hce_div_up(UINT64_MAX, 2) == 1ull << 63);
    assert_int_equal(hce_round_up(7, 3), 9);
    assert_int_equal(hce_round_up(9, 3), 9);
    assert_int_equal(hce_min(3, 4), 3);
    assert_int_equal(hce_max(3, 4), 4);
}

/* The first numbers of the published generator for the seed 1234567. */
static void random_is_splitmix64(void **state)
{
    uint64_t rng = 1234567;

    assert_true(hce_rand_next(&rng) == 6457827717110365317ull);
    assert_true(hce_rand_next(&rng) == 3203168211198807973ull);
    assert_true(hce_rand_next(&rng) == 9817491932198370423ull);
}

static void clock_only_grows(void **state)
{
    uint64_t before = hce_clock_ns();
    uint64_t deadline = hce_clock_deadline(HCE_NS_PER_SEC);
    uint64_t after = hce_clock_ns();

    assert_true(before <= after);
    assert_true(deadline >= before + HCE_NS_PER_SEC);
    assert_true(deadline <= after + HCE_NS_PER_SEC);
    assert_true(hce_clock_deadline(0) == HCE_TIME_NEVER);
}

/* That they are instructions this processor has. */
static void arch_runs(void **state)
{
    hce_arch_pause();
    hce_arch_store_fence();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statuses_have_texts),
        cmocka_unit_test(version_is_the_packages),
        cmocka_unit_test(datatypes_are_found),
        cmocka_unit_test(datatypes_unknown),
        cmocka_unit_test(redops_are_found),
        cmocka_unit_test(counters_compare_cyclically),
        cmocka_unit_test(integers),
        cmocka_unit_test(random_is_splitmix64),
        cmocka_unit_test(clock_only_grows),
        cmocka_unit_test(arch_runs),
    };

    return cmocka_run_group_tests_name("util_basics", tests, NULL, NULL);
}
