/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Rounding of sums to the 16- and 8-bit floats, in every variant. The nearest
 * code is found without its bits: codes are in the order of their values, and
 * a float belongs to the code on whose side of the midpoints it lies, a
 * midpoint to the even code.
 *
 * usage: reduce_rounding [all]: all 2^32 floats, else those around each
 * midpoint and each code, and many at random.
 */
#include <config.h>

#include "reduce/variant.h"
#include "reduce_ref.h"
#include "util/math.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define LANES_MAX    64
#define VARIANTS_MAX 4
#define BATCH        4096
#define RANDOM       (1 << 19)
#define SEED         20261201

static const hce_datatype_t types[] = {HCE_FLOAT16, HCE_BFLOAT16,
                                       HCE_FLOAT8E4M3, HCE_FLOAT8E5M2};
static bool want_all;

/* One variant. */
typedef struct rounder {
    const char *name;
    size_t (*round)(const void *src, void *dst);
    size_t lanes;
    size_t place[LANES_MAX]; /* where the i-th float's code comes */
    uint64_t wrong;
} rounder_t;

/* BATCH floats of which codes are expected, for every variant. */
typedef struct batch {
    hce_datatype_t type;
    size_t size, num;
    uint32_t floats[BATCH];
    uint16_t expected[BATCH];
    rounder_t rounders[VARIANTS_MAX];
    int num_rounders;
    uint64_t checked;
} batch_t;

/* Where does what is not 0 come? */
static void places_find(rounder_t *rounder, size_t size)
{
    float floats[LANES_MAX] = {0.0f};
    unsigned char codes[2 * LANES_MAX];
    size_t i, j;

    rounder->lanes = rounder->round(floats, codes);
    assert_in_range(rounder->lanes, 1, LANES_MAX);
    assert_int_equal(BATCH % rounder->lanes, 0);
    for (i = 0; i < rounder->lanes; i++) {
        floats[i] = 1.0f;
        rounder->round(floats, codes);
        floats[i] = 0.0f;
        for (j = 0; j < rounder->lanes && ref_get(codes, j, size) == 0;)
            j++;
        assert_in_range(j, 0, rounder->lanes - 1);
        rounder->place[i] = j;
    }
}

static void rounder_add(batch_t *batch, const char *name,
                        size_t (*round)(const void *src, void *dst))
{
    rounder_t *rounder = &batch->rounders[batch->num_rounders++];

    assert_in_range(batch->num_rounders, 1, VARIANTS_MAX);
    rounder->name = name;
    rounder->round = round;
    places_find(rounder, batch->size);
}

static void rounder_check(batch_t *batch, rounder_t *rounder)
{
    uint16_t codes[LANES_MAX], code;
    size_t at, i;

    for (at = 0; at < BATCH; at += rounder->lanes) {
        rounder->round(batch->floats + at, codes);
        for (i = 0; i < rounder->lanes; i++) {
            code = batch->size == 1
                       ? ((unsigned char *)codes)[rounder->place[i]]
                       : codes[rounder->place[i]];
            if (code != batch->expected[at + i] && rounder->wrong++ == 0)
                printf("# %s %s: %08x became %04x, not %04x\n", rounder->name,
                       hce_datatype_string(batch->type), batch->floats[at + i],
                       code, batch->expected[at + i]);
        }
    }
}

static void batch_check(batch_t *batch)
{
    while (batch->num < BATCH) {
        batch->floats[batch->num] = 0;
        batch->expected[batch->num++] = 0;
    }
    for (int i = 0; i < batch->num_rounders; i++)
        rounder_check(batch, &batch->rounders[i]);
    batch->checked += BATCH;
    batch->num = 0;
}

static void batch_add(batch_t *batch, uint32_t bits, uint64_t expected)
{
    batch->floats[batch->num] = bits;
    batch->expected[batch->num++] = (uint16_t)expected;
    if (batch->num == BATCH)
        batch_check(batch);
}

static void batch_init(batch_t *batch, hce_datatype_t type)
{
    memset(batch, 0, sizeof(*batch));
    batch->type = type;
    batch->size = hce_datatype_size(type);
}

static uint32_t float_bits(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static float bits_float(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* The greatest float that belongs to a positive code below the last finite
 * one: midpoints have one bit more than codes, so float holds them. */
static uint32_t border_find(hce_datatype_t type, uint64_t code)
{
    double low = ref_decode(type, code), high = ref_decode(type, code + 1);
    uint32_t bits;

    if (isinf(high) || isnan(high)) /* as if the exponent went on */
        high = low + (low - ref_decode(type, code - 1));
    bits = float_bits((float)(low / 2 + high / 2));
    return code % 2 == 0 ? bits : bits - 1;
}

/* All floats in order, both signs, against codes in order. */
static void test_all(batch_t *batch)
{
    uint64_t infinity = ref_encode(batch->type, INFINITY);
    uint64_t nan = ref_encode(batch->type, NAN);
    uint64_t top = 1ull << (8 * batch->size - 1), code = 0;
    bool saturates = ref_decode(batch->type, infinity) < INFINITY;
    uint64_t last = saturates ? infinity : infinity - 1;
    uint32_t border = border_find(batch->type, 0), bits;

    for (bits = 0; bits < 0x80000000u; bits++) {
        while (code <= last && bits > border && bits <= 0x7f800000u) {
            if (saturates && code == last)
                break;
            code++;
            if (code <= last)
                border = border_find(batch->type, code);
        }
        if (bits > 0x7f800000u)
            code = nan;
        batch_add(batch, bits, code);
        batch_add(batch, bits | 0x80000000u,
                  bits > 0x7f800000u ? nan : code | top);
    }
}

static void around(batch_t *batch, uint32_t bits)
{
    for (int i = -2; i <= 2; i++) {
        uint32_t near = bits + (uint32_t)i;

        batch_add(batch, near, ref_encode(batch->type, bits_float(near)));
        near ^= 0x80000000u;
        batch_add(batch, near, ref_encode(batch->type, bits_float(near)));
    }
}

static void test_some(batch_t *batch)
{
    uint64_t infinity = ref_encode(batch->type, INFINITY), code;
    uint64_t state = SEED;
    uint32_t bits;
    int i;

    for (code = 0; code < infinity; code++) {
        around(batch, border_find(batch->type, code));
        around(batch, float_bits((float)ref_decode(batch->type, code)));
    }
    around(batch, 0x7f800000);
    around(batch, 0x7fc00000);
    around(batch, 0x00800000);
    for (i = 0; i < RANDOM; i++) {
        bits = (uint32_t)hce_rand_next(&state);
        batch_add(batch, bits, ref_encode(batch->type, bits_float(bits)));
    }
}

static void test_rounding(void **state)
{
    const hce_reduce_variant_t *variant;
    static batch_t batch;

    for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++) {
        batch_init(&batch, types[t]);
        for (int v = 0; (variant = hce_reduce_variant_usable(v)) != NULL; v++)
            rounder_add(&batch, variant->name,
                        hce_reduce_row_get(variant, types[t])->round);
        if (want_all)
            test_all(&batch);
        else
            test_some(&batch);
        batch_check(&batch);
        printf("# %s, %d variants: %llu floats\n",
               hce_datatype_string(types[t]), batch.num_rounders,
               (unsigned long long)batch.checked);
        for (int i = 0; i < batch.num_rounders; i++)
            assert_int_equal(batch.rounders[i].wrong, 0);
    }
}

/* What a float that is cut off instead of rounded looks like. */
static size_t cut_round(const void *src, void *dst)
{
    ref_put(dst, 0, 2, ref_get(src, 0, 4) >> 16);
    return 1;
}

/* As vcvtneps2bf16 does it. */
static size_t flush_round(const void *src, void *dst)
{
    float value = bits_float((uint32_t)ref_get(src, 0, 4));

    if (fpclassify(value) == FP_SUBNORMAL)
        value = copysignf(0.0f, value);
    ref_put(dst, 0, 2, ref_encode(HCE_BFLOAT16, value));
    return 1;
}

static void test_faults_are_found(void **state)
{
    static batch_t batch;

    batch_init(&batch, HCE_BFLOAT16);
    rounder_add(&batch, "fault: cut", cut_round);
    rounder_add(&batch, "fault: flush", flush_round);
    test_some(&batch);
    batch_check(&batch);
    assert_true(batch.rounders[0].wrong > 0);
    assert_true(batch.rounders[1].wrong > 0);
}

/* Codes survive; NaNs become the one that results are. */
static void test_codes_survive(void **state)
{
    const hce_reduce_variant_t *variant;
    static unsigned char codes[1 << 17], out[1 << 17];
    const void *srcs[] = {codes};
    void *dsts[] = {out};
    hce_reduce_args_t args = {
        .srcs = srcs, .num_srcs = 1, .dsts = dsts, .num_dsts = 1};
    hce_reduce_kernel_t kernel;

    for (int v = 0; (variant = hce_reduce_variant_usable(v)) != NULL; v++) {
        for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++) {
            kernel = hce_reduce_kernel_get(variant, HCE_SUM, types[t]);
            args.end = (size_t)1 << (8 * kernel.elem_size);
            for (size_t i = 0; i < args.end; i++)
                ref_put(codes, i, kernel.elem_size, i);
            hce_reduce_run(&kernel, &args);
            for (size_t i = 0; i < args.end; i++)
                assert_int_equal(ref_get(out, i, kernel.elem_size),
                                 isnan(ref_decode(types[t], i))
                                     ? ref_encode(types[t], NAN)
                                     : i);
        }
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rounding),
        cmocka_unit_test(test_faults_are_found),
        cmocka_unit_test(test_codes_survive),
    };

    want_all = argc > 1 && strcmp(argv[1], "all") == 0;
    printf("# seed %d\n", SEED);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
