/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The benchmark's test data: what was filled passes, and each kind of wrong
 * data that a collective can leave is counted.
 */
#include <config.h>

#include "../../perf/pattern.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#define LEN 40000u /* several of the checker's blocks and a rest */

typedef struct fixture {
    unsigned char *buf; /* LEN bytes */
    uint64_t key;
} fixture_t;

static fixture_t make(void)
{
    fixture_t made = {malloc(LEN), hce_perf_pattern_key(3, 1, 17)};

    assert_non_null(made.buf);
    hce_perf_pattern_fill(made.key, made.buf, LEN);
    return made;
}

static void right_data_passes(void **state)
{
    unsigned char *buf = malloc(LEN + 8);
    uint64_t key = hce_perf_pattern_key(0, 0, 0);
    size_t len, shift;

    assert_non_null(buf);
    for (shift = 0; shift < 8; shift++) {
        for (len = 0; len < 70; len++) {
            hce_perf_pattern_fill(key, buf + shift, len);
            assert_int_equal(hce_perf_pattern_check(key, buf + shift, len, 1),
                             0);
        }
        hce_perf_pattern_fill(key, buf + shift, LEN);
        assert_int_equal(hce_perf_pattern_check(key, buf + shift, LEN, 8), 0);
    }
    free(buf);
}

static void nothing_is_written_beyond_the_end(void **state)
{
    unsigned char buf[80];
    size_t len, i;

    for (len = 0; len < 64; len++) {
        memset(buf, 0x5a, sizeof(buf));
        hce_perf_pattern_fill(hce_perf_pattern_key(1, 0, len), buf, len);
        for (i = len; i < sizeof(buf); i++)
            assert_int_equal(buf[i], 0x5a);
    }
}

static void each_flipped_bit_is_one_wrong_element(void **state)
{
    static const size_t elt_sizes[] = {1, 2, 4, 8};
    static const size_t places[] = {0, 1, 8191, 8192, 20001, LEN - 1};
    fixture_t made = make();
    size_t e, p;

    for (e = 0; e < sizeof(elt_sizes) / sizeof(elt_sizes[0]); e++) {
        for (p = 0; p < sizeof(places) / sizeof(places[0]); p++) {
            made.buf[places[p]] ^= 1;
            assert_int_equal(
                hce_perf_pattern_check(made.key, made.buf, LEN, elt_sizes[e]),
                1);
            made.buf[places[p]] ^= 1;
        }
    }
    free(made.buf);
}

/* At least nine bytes of ten: chance may make one equal. */
static void assert_mostly_wrong(uint64_t key, const void *buf, size_t len)
{
    assert_true(hce_perf_pattern_check(key, buf, len, 1) > len - len / 10);
}

static void other_ranks_calls_and_communicators_differ(void **state)
{
    fixture_t made = make();

    assert_mostly_wrong(hce_perf_pattern_key(4, 1, 17), made.buf, LEN);
    assert_mostly_wrong(hce_perf_pattern_key(3, 2, 17), made.buf, LEN);
    assert_mostly_wrong(hce_perf_pattern_key(3, 1, 18), made.buf, LEN);
    assert_mostly_wrong(hce_perf_pattern_key(1, 3, 17), made.buf, LEN);
    free(made.buf);
}

static void misplaced_data_differ(void **state)
{
    static const size_t shifts[] = {1, 4, 8, 64, 4096, 8192};
    fixture_t made = make();
    size_t i;

    for (i = 0; i < sizeof(shifts) / sizeof(shifts[0]); i++) {
        hce_perf_pattern_fill(made.key, made.buf, LEN);
        memmove(made.buf, made.buf + shifts[i], LEN - shifts[i]);
        assert_mostly_wrong(made.key, made.buf, LEN - shifts[i]);
    }
    free(made.buf);
}

static void missing_data_are_counted_exactly(void **state)
{
    fixture_t made = make();

    /* No word of the pattern is 0 here: the seed is fixed. */
    memset(made.buf + 8000, 0, 800);
    assert_int_equal(hce_perf_pattern_check(made.key, made.buf, LEN, 8), 100);
    free(made.buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(right_data_passes),
        cmocka_unit_test(nothing_is_written_beyond_the_end),
        cmocka_unit_test(each_flipped_bit_is_one_wrong_element),
        cmocka_unit_test(other_ranks_calls_and_communicators_differ),
        cmocka_unit_test(misplaced_data_differ),
        cmocka_unit_test(missing_data_are_counted_exactly),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
