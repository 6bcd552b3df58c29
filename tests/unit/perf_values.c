/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The benchmark's test data of reductions: what the reduction kernels make of
 * them passes, a contribution that is missing, doubled or of another call
 * does not.
 */
#include <config.h>

#include "../../perf/values.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "reduce/reduce.h"

#define RANKS 5
#define COUNT 1000
#define FIRST 17

typedef struct sums {
    hce_perf_values_t values;
    uint64_t inputs[RANKS][COUNT]; /* of up to 8 bytes an element */
    uint64_t sum[COUNT];
} sums_t;

static void make(sums_t *s, hce_datatype_t type, hce_redop_t op)
{
    int r;

    memset(s, 0, sizeof(*s));
    s->values = (hce_perf_values_t){type, op, RANKS, 1, 99};
    for (r = 0; r < RANKS; r++)
        hce_perf_values_fill(&s->values, r, FIRST, s->inputs[r], COUNT);
}

/* The sum of num inputs; the number of elements that do not pass. */
static uint64_t reduce(sums_t *s, int num, const int *ranks)
{
    const void *srcs[RANKS + 1];
    void *dst = s->sum;
    hce_reduce_kernel_t kernel;
    hce_reduce_args_t args = {.srcs = srcs, .num_srcs = num, .dsts = &dst,
                              .num_dsts = 1, .end = COUNT};
    int i;

    for (i = 0; i < num; i++)
        srcs[i] = s->inputs[ranks[i]];
    if (s->values.op == HCE_AVG)
        args.divisor = RANKS;
    assert_int_equal(hce_reduce_kernel_find(s->values.op, s->values.type,
                                            &kernel),
                     HCE_OK);
    hce_reduce_run(&kernel, &args);
    return hce_perf_values_check(&s->values, FIRST, s->sum, COUNT);
}

static void results_are_judged(void **state)
{
    static const int all[] = {0, 1, 2, 3, 4, 4};
    sums_t s;
    int type, op, is_pick;

    assert_int_equal(hce_reduce_init(), HCE_OK);
    for (type = 0; type < HCE_DATATYPE_LAST; type++) {
        for (op = 0; op < HCE_REDOP_LAST; op++) {
            is_pick = op == HCE_MIN || op == HCE_MAX;
            make(&s, (hce_datatype_t)type, (hce_redop_t)op);
            assert_int_equal(reduce(&s, RANKS, all), 0);
            assert_in_range(reduce(&s, RANKS - 1, all), 1, COUNT);
            if (!is_pick)
                assert_in_range(reduce(&s, RANKS + 1, all), 1, COUNT);
            reduce(&s, RANKS, all);
            s.values.data++;
            assert_in_range(
                hce_perf_values_check(&s.values, FIRST, s.sum, COUNT), 1,
                COUNT);
        }
    }
}

static void inputs_are_judged(void **state)
{
    sums_t s;
    int type;

    for (type = 0; type < HCE_DATATYPE_LAST; type++) {
        make(&s, (hce_datatype_t)type, HCE_SUM);
        assert_int_equal(hce_perf_values_check_input(&s.values, 2, FIRST,
                                                     s.inputs[2], COUNT),
                         0);
        ((unsigned char *)s.inputs[2])[40] ^= 1;
        assert_int_equal(hce_perf_values_check_input(&s.values, 2, FIRST,
                                                     s.inputs[2], COUNT),
                         1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_are_judged),
        cmocka_unit_test(inputs_are_judged),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
