/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The kernels of every variant against a reference, bit for bit: special
 * values, odd lengths and places, many sources and destinations, partial
 * results. Sums are also within the bound of docs/REDUCE.md. Planted faults
 * show that the comparison finds what it is for.
 */
#include <config.h>

#include "reduce/variant.h"
#include "reduce_ref.h"
#include "util/math.h"

#include <fenv.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SRCS_MAX 9
#define DSTS_MAX 5
#define GUARD    128
#define MEM_LEN  ((8u << 20) + 2 * GUARD)
#define ROUNDS   60
#define SEED     20261202

static unsigned char *src_mem[SRCS_MAX], *dst_mem[DSTS_MAX], *want_mem;
static uint64_t seed = SEED;

/* A pass and what it is run with. */
typedef struct pass {
    const void *srcs[SRCS_MAX];
    void *dsts[DSTS_MAX];
    hce_reduce_args_t args;
    hce_redop_t op;
    hce_datatype_t type;
} pass_t;

static int memory_create(void **state)
{
    int i;

    for (i = 0; i < SRCS_MAX; i++)
        src_mem[i] = aligned_alloc(64, MEM_LEN);
    for (i = 0; i < DSTS_MAX; i++)
        dst_mem[i] = aligned_alloc(64, MEM_LEN);
    want_mem = malloc(MEM_LEN);
    return 0;
}

static int memory_destroy(void **state)
{
    int i;

    for (i = 0; i < SRCS_MAX; i++)
        free(src_mem[i]);
    for (i = 0; i < DSTS_MAX; i++)
        free(dst_mem[i]);
    free(want_mem);
    return 0;
}

static void pass_init(pass_t *pass, hce_redop_t op, hce_datatype_t type,
                      int num_srcs)
{
    int i;

    memset(pass, 0, sizeof(*pass));
    pass->op = op;
    pass->type = type;
    for (i = 0; i < SRCS_MAX; i++)
        pass->srcs[i] = src_mem[i] + GUARD;
    for (i = 0; i < DSTS_MAX; i++)
        pass->dsts[i] = dst_mem[i] + GUARD;
    pass->args.srcs = pass->srcs;
    pass->args.num_srcs = num_srcs;
    pass->args.dsts = pass->dsts;
    pass->args.num_dsts = 1;
    pass->args.divisor = op == HCE_AVG ? (uint32_t)num_srcs : 0;
}

static hce_datatype_t src_type(const pass_t *pass, int s)
{
    return s < pass->args.num_partials ? hce_reduce_partial_type(pass->type)
                                       : pass->type;
}

static size_t dst_size(const pass_t *pass)
{
    return hce_datatype_size(pass->args.to_partial
                                 ? hce_reduce_partial_type(pass->type)
                                 : pass->type);
}

/* Elements begin to end as they must become. */
static void want_fill(const pass_t *pass)
{
    size_t size = dst_size(pass), at;

    for (at = pass->args.begin; at < pass->args.end; at++)
        ref_put(want_mem, at, size,
                ref_element(&pass->args, pass->op, pass->type, at));
}

/* Elements of any destination that are not as wanted. */
static size_t wrong_count(const hce_reduce_kernel_t *kernel,
                          const pass_t *pass)
{
    size_t size = dst_size(pass), at, wrong = 0;
    size_t len = (pass->args.end - pass->args.begin) * size;
    int d;

    hce_reduce_run(kernel, &pass->args);
    for (d = 0; d < pass->args.num_dsts; d++) {
        if (memcmp((char *)pass->dsts[d] + pass->args.begin * size,
                   want_mem + pass->args.begin * size, len) == 0)
            continue;
        for (at = pass->args.begin; at < pass->args.end; at++)
            wrong += ref_get(pass->dsts[d], at, size) !=
                     ref_get(want_mem, at, size);
    }
    return wrong;
}

static void pass_check(const pass_t *pass)
{
    const hce_reduce_variant_t *variant;
    hce_reduce_kernel_t kernel;
    size_t wrong;

    want_fill(pass);
    for (int v = 0; (variant = hce_reduce_variant_usable(v)) != NULL; v++) {
        kernel = hce_reduce_kernel_get(variant, pass->op, pass->type);
        wrong = wrong_count(&kernel, pass);
        if (wrong > 0)
            printf("# %s %s %s, %d sources, %zu elements\n", variant->name,
                   hce_redop_string(pass->op), hce_datatype_string(pass->type),
                   pass->args.num_srcs, pass->args.end - pass->args.begin);
        assert_int_equal(wrong, 0);
    }
}

/* Special codes of the first num sources in all combinations. */
static size_t grid_fill(const pass_t *pass, int num)
{
    uint64_t codes[REF_SPECIALS_MAX];
    size_t total = 1, step, at;
    int s, n;

    for (s = 0; s < num; s++) {
        n = ref_specials(src_type(pass, s), codes);
        step = total;
        total *= (size_t)n;
    }
    step = 1;
    for (s = 0; s < num; s++) {
        n = ref_specials(src_type(pass, s), codes);
        for (at = 0; at < total; at++)
            ref_put(src_mem[s] + GUARD, at,
                    hce_datatype_size(src_type(pass, s)),
                    codes[at / step % (size_t)n]);
        step *= (size_t)n;
    }
    return total;
}

static void test_special_values(void **state)
{
    pass_t pass;

    for (int type = 0; type < HCE_DATATYPE_LAST; type++) {
        for (int op = 0; op < HCE_REDOP_LAST; op++) {
            pass_init(&pass, (hce_redop_t)op, (hce_datatype_t)type, 3);
            pass.args.end = grid_fill(&pass, 3);
            pass_check(&pass);
            pass_init(&pass, (hce_redop_t)op, (hce_datatype_t)type, 2);
            pass.args.end = grid_fill(&pass, 2);
            pass_check(&pass);
        }
    }
}

/* 8-bit floats and float16 in every mix, to either. */
static void test_special_partials(void **state)
{
    static const hce_datatype_t types[] = {HCE_FLOAT8E4M3, HCE_FLOAT8E5M2};
    pass_t pass;

    for (int i = 0; i < 2 * HCE_REDOP_LAST * 3 * 2; i++) {
        pass_init(&pass, (hce_redop_t)(i / 12), types[i % 2], 2);
        pass.args.num_partials = i / 2 % 3;
        pass.args.to_partial = i / 6 % 2 != 0;
        pass.args.end = grid_fill(&pass, 2);
        pass_check(&pass);
    }
}

/* Ordinary numbers: products of nine neither overflow nor underflow. */
static uint64_t code_draw(hce_datatype_t type, uint64_t *state)
{
    uint64_t draw = hce_rand_next(state);
    double value = 0.75 + ldexp((double)(draw % (1ull << 52)), -53);

    if (!ref_is_float(type))
        return draw >> 8;
    return ref_encode(type, draw >> 63 != 0 ? -value : value);
}

static void sources_draw(const pass_t *pass, uint64_t *state)
{
    hce_datatype_t type;
    size_t at, size;

    for (int s = 0; s < pass->args.num_srcs; s++) {
        type = src_type(pass, s);
        size = hce_datatype_size(type);
        for (at = 0; at < pass->args.end; at++)
            ref_put((void *)pass->srcs[s], at, size, code_draw(type, state));
    }
}

/* The exact result, nearly, and how far from it a result may be: see
 * docs/REDUCE.md. */
static void bound_check(const pass_t *pass, size_t at)
{
    hce_datatype_t type = pass->type;
    size_t size = hce_datatype_size(type);
    double u = type == HCE_FLOAT64 ? ref_unit(type) : ref_unit(HCE_FLOAT32);
    double exact = 0.0, sizes = 0.0, gamma, bound, x;
    long double sum = 0.0L;
    int s, k = pass->args.num_srcs;

    for (s = 0; s < k; s++) {
        x = ref_decode(type, ref_get(pass->srcs[s], at, size));
        if (pass->op == HCE_PROD)
            sum = s == 0 ? x : sum * x;
        else
            sum += x;
        sizes += fabs(x);
    }
    gamma = k * u / (1.0 - k * u); /* one more for what divides */
    if (pass->args.divisor != 0) {
        sum /= pass->args.divisor;
        sizes /= pass->args.divisor;
    }
    exact = (double)sum;
    bound = gamma * (pass->op == HCE_PROD ? fabs(exact) : sizes);
    if (size <= 2)
        bound += ref_unit(type) * (fabs(exact) + bound) + ref_tiny(type);
    x = ref_decode(type, ref_get(pass->dsts[0], at, size));
    assert_true(fabsl((long double)x - sum) <= bound);
}

static void test_lengths_and_bounds(void **state)
{
    static const size_t lens[] = {1, 3, 1000, 4097, 1 << 20};
    uint64_t at = seed;
    pass_t pass;

    for (int i = 0; i < 5 * HCE_DATATYPE_LAST * HCE_REDOP_LAST; i++) {
        pass_init(&pass, (hce_redop_t)(i / 5 % HCE_REDOP_LAST),
                  (hce_datatype_t)(i / 5 / HCE_REDOP_LAST), 3);
        pass.args.end = lens[i % 5];
        if (i % (5 * HCE_REDOP_LAST) < 5)
            sources_draw(&pass, &at);
        pass_check(&pass);
        if (!ref_is_float(pass.type) || pass.op == HCE_MIN ||
            pass.op == HCE_MAX)
            continue;
        for (size_t e = 0; e < hce_min(pass.args.end, 4097u); e++)
            bound_check(&pass, e);
    }
}

static void guards_check(const pass_t *pass, int d)
{
    const unsigned char *byte = dst_mem[d];
    const unsigned char *first =
        (unsigned char *)pass->dsts[d] + pass->args.begin * dst_size(pass);
    const unsigned char *last =
        (unsigned char *)pass->dsts[d] + pass->args.end * dst_size(pass);

    for (; byte < first; byte++)
        assert_int_equal(*byte, 0xee);
    for (byte = last; byte < last + GUARD / 2; byte++)
        assert_int_equal(*byte, 0xee);
}

static void pass_draw(pass_t *pass, uint64_t *state)
{
    bool alike = hce_rand_next(state) % 2 == 0;
    size_t skew = hce_rand_next(state) % 64, limit;
    int s, d;

    pass_init(pass, (hce_redop_t)(hce_rand_next(state) % HCE_REDOP_LAST),
              (hce_datatype_t)(hce_rand_next(state) % HCE_DATATYPE_LAST),
              1 + (int)(hce_rand_next(state) % SRCS_MAX));
    pass->args.num_dsts = 1 + (int)(hce_rand_next(state) % DSTS_MAX);
    pass->args.num_partials =
        (int)(hce_rand_next(state) % (unsigned)(pass->args.num_srcs + 1));
    pass->args.to_partial = hce_rand_next(state) % 2 == 0;
    pass->args.streaming = hce_rand_next(state) % 2 == 0;
    limit = hce_rand_next(state) % 3 == 0 ? 70 : 3000;
    pass->args.end = hce_rand_next(state) % limit;
    pass->args.begin = hce_rand_next(state) % (pass->args.end + 1);
    if (hce_rand_next(state) % 2 == 0)
        pass->args.begin = 0;
    for (s = 0; s < SRCS_MAX; s++)
        pass->srcs[s] = src_mem[s] + GUARD + hce_rand_next(state) % 64;
    for (d = 0; d < DSTS_MAX; d++)
        pass->dsts[d] =
            dst_mem[d] + GUARD + (alike ? skew : hce_rand_next(state) % 64);
}

static void test_places(void **state)
{
    const hce_reduce_variant_t *variant;
    hce_reduce_kernel_t kernel;
    uint64_t at = seed;
    pass_t pass;
    int round, v, d;

    for (round = 0; round < ROUNDS * HCE_DATATYPE_LAST; round++) {
        pass_draw(&pass, &at);
        sources_draw(&pass, &at);
        want_fill(&pass);
        for (v = 0; (variant = hce_reduce_variant_usable(v)) != NULL; v++) {
            for (d = 0; d < DSTS_MAX; d++)
                memset(dst_mem[d], 0xee, 8 * 3000 + 2 * GUARD);
            kernel = hce_reduce_kernel_get(variant, pass.op, pass.type);
            assert_int_equal(wrong_count(&kernel, &pass), 0);
            for (d = 0; d < pass.args.num_dsts; d++)
                guards_check(&pass, d);
        }
    }
}

static void test_in_place(void **state)
{
    const hce_reduce_variant_t *variant;
    hce_reduce_kernel_t kernel;
    uint64_t at = seed;
    pass_t pass;

    for (int i = 0; i < 3 * HCE_DATATYPE_LAST; i++) {
        for (int v = 0; (variant = hce_reduce_variant_usable(v)) != NULL;
             v++) {
            pass_init(&pass, HCE_SUM, (hce_datatype_t)(i / 3), 3);
            pass.args.end = 777;
            pass.args.streaming = i % 2 == 0;
            sources_draw(&pass, &at);
            want_fill(&pass);
            pass.dsts[0] = (void *)pass.srcs[i % 3];
            kernel = hce_reduce_kernel_get(variant, pass.op, pass.type);
            assert_int_equal(wrong_count(&kernel, &pass), 0);
        }
    }
}

/* A caller that rounds up, or has no subnormal numbers, gets the same. */
static void test_foreign_environment(void **state)
{
    hce_reduce_kernel_t kernel =
        hce_reduce_kernel_get(&hce_reduce_portable, HCE_SUM, HCE_FLOAT32);
    uint64_t at = seed;
    size_t wrong;
    pass_t pass;
    int rounding;

    pass_init(&pass, HCE_SUM, HCE_FLOAT32, 3);
    pass.args.end = 4000;
    sources_draw(&pass, &at);
    want_fill(&pass);
    assert_int_equal(fesetround(FE_UPWARD), 0);
    wrong = wrong_count(&kernel, &pass);
    rounding = fegetround();
    kernel.run(&pass.args, 0, pass.args.end, false);
    fesetround(FE_TONEAREST);
    assert_int_equal(wrong, 0);
    assert_int_equal(rounding, FE_UPWARD);
    /* Without the environment the kernel rounds up: that was at work. */
    assert_memory_not_equal(pass.dsts[0], want_mem, 4 * pass.args.end);
#if defined(__x86_64__)
    pass.args.end = grid_fill(&pass, 2);
    pass.args.num_srcs = 2;
    want_fill(&pass);
    __builtin_ia32_ldmxcsr(0x9fc0); /* flush to zero, both ways */
    wrong = wrong_count(&kernel, &pass);
    __builtin_ia32_ldmxcsr(0x1f80);
    assert_int_equal(wrong, 0);
#endif
}

static hce_reduce_kernel_t sound; /* what the faults below are made of */

static void fault_reversed(const hce_reduce_args_t *args, size_t at,
                           size_t end, bool streaming)
{
    const void *srcs[SRCS_MAX];
    hce_reduce_args_t reversed = *args;

    for (int s = 0; s < args->num_srcs; s++)
        srcs[s] = args->srcs[args->num_srcs - 1 - s];
    reversed.srcs = srcs;
    sound.run(&reversed, at, end, streaming);
}

static void fault_two_passes(const hce_reduce_args_t *args, size_t at,
                             size_t end, bool streaming)
{
    const void *srcs[SRCS_MAX] = {args->dsts[0]};
    hce_reduce_args_t half = *args;

    half.num_srcs = 2;
    sound.run(&half, at, end, streaming);
    half = *args;
    half.srcs = srcs;
    half.num_srcs = args->num_srcs - 1;
    for (int s = 2; s < args->num_srcs; s++)
        srcs[s - 1] = args->srcs[s];
    sound.run(&half, at, end, streaming);
}

static void fault_last_lost(const hce_reduce_args_t *args, size_t at,
                            size_t end, bool streaming)
{
    sound.run(args, at, end - 1, streaming);
}

static void fault_one_destination(const hce_reduce_args_t *args, size_t at,
                                  size_t end, bool streaming)
{
    hce_reduce_args_t one = *args;

    one.num_dsts = 1;
    sound.run(&one, at, end, streaming);
}

/* "a < b ? a : b", which forgets a NaN and the sign of zero. */
static void fault_plain_min(const hce_reduce_args_t *args, size_t at,
                            size_t end, bool streaming)
{
    for (; at < end; at++) {
        double a = ref_decode(HCE_FLOAT16, ref_get(args->srcs[0], at, 2));

        for (int s = 1; s < args->num_srcs; s++) {
            double b = ref_decode(HCE_FLOAT16, ref_get(args->srcs[s], at, 2));

            a = a < b ? a : b;
        }
        for (int d = 0; d < args->num_dsts; d++)
            ref_put(args->dsts[d], at, 2, ref_encode(HCE_FLOAT16, a));
    }
}

static void test_faults_are_found(void **state)
{
    static const struct {
        hce_reduce_kernel_fn run;
        hce_redop_t op;
    } faults[] = {
        {fault_reversed, HCE_SUM},  {fault_two_passes, HCE_SUM},
        {fault_last_lost, HCE_SUM}, {fault_one_destination, HCE_SUM},
        {fault_plain_min, HCE_MIN},
    };
    hce_reduce_kernel_t kernel;
    pass_t pass;

    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        pass_init(&pass, faults[i].op, HCE_FLOAT16, 3);
        pass.args.num_dsts = 2;
        pass.args.end = grid_fill(&pass, 3);
        want_fill(&pass);
        sound =
            hce_reduce_kernel_get(&hce_reduce_portable, pass.op, pass.type);
        kernel = sound;
        for (int d = 0; d < 2; d++)
            memset(dst_mem[d], 0xee, MEM_LEN);
        assert_int_equal(wrong_count(&kernel, &pass), 0);
        for (int d = 0; d < 2; d++)
            memset(dst_mem[d], 0xee, MEM_LEN);
        kernel.run = faults[i].run;
        assert_true(wrong_count(&kernel, &pass) > 0);
    }
}

static void test_interface(void **state)
{
    hce_reduce_kernel_t kernel = {NULL, 0, 0};

    assert_int_equal(hce_reduce_init(), HCE_OK);
    assert_int_equal(hce_reduce_kernel_find(HCE_REDOP_LAST, HCE_INT8, &kernel),
                     HCE_ERR_INVALID_ARG);
    assert_int_equal(
        hce_reduce_kernel_find(HCE_SUM, HCE_DATATYPE_LAST, &kernel),
        HCE_ERR_INVALID_ARG);
    assert_null(kernel.run);
    assert_int_equal(hce_reduce_kernel_find(HCE_AVG, HCE_FLOAT8E4M3, &kernel),
                     HCE_OK);
    assert_non_null(kernel.run);
    assert_int_equal(kernel.elem_size, 1);
    assert_int_equal(kernel.partial_size, 2);
    assert_string_equal(hce_reduce_variant_name(),
                        hce_reduce_variant_usable(0)->name);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_special_values),
        cmocka_unit_test(test_special_partials),
        cmocka_unit_test(test_lengths_and_bounds),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_in_place),
        cmocka_unit_test(test_foreign_environment),
        cmocka_unit_test(test_faults_are_found),
        cmocka_unit_test(test_interface),
    };

    if (argc > 1)
        seed = strtoull(argv[1], NULL, 0);
    printf("# seed %llu\n", (unsigned long long)seed);
    return cmocka_run_group_tests(tests, memory_create, memory_destroy);
}
