/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Floats are whole multiples of a power of two that every datatype of their
 * precision holds, so that inputs are exact; their sums are rounded.
 */
#include <config.h>

#include "values.h"

#include "pattern.h"

#include <math.h>
#include <string.h>

/* Products: further ranks contribute 1 or -1, so that no datatype overflows
 * or loses digits. */
#define PROD_RANKS 8

/* A datatype of floats. */
typedef struct format {
    int digits;    /* of the significand, with the leading one */
    int exp_bits;
    int subnormal; /* the smallest one is 2 to that power */
    int partial;   /* digits of partial results */
} format_t;

static const format_t *find_format(hce_datatype_t type)
{
    static const format_t formats[HCE_DATATYPE_LAST] = {
        [HCE_FLOAT16] = {11, 5, -24, 11},
        [HCE_FLOAT32] = {24, 8, -149, 24},
        [HCE_FLOAT64] = {53, 11, -1074, 53},
        [HCE_BFLOAT16] = {8, 8, -133, 8},
        [HCE_FLOAT8E4M3] = {4, 4, -9, 11},
        [HCE_FLOAT8E5M2] = {3, 5, -16, 11},
    };

    return formats[type].digits > 0 ? &formats[type] : NULL;
}

static int is_signed(hce_datatype_t type)
{
    return type == HCE_INT8 || type == HCE_INT32 || type == HCE_INT64;
}

/* The bits of an integer type's element as a 64-bit number, sign extended. */
static uint64_t extend(hce_datatype_t type, uint64_t bits)
{
    unsigned unused = 64 - 8 * (unsigned)hce_datatype_size(type);

    bits <<= unused;
    return is_signed(type) ? (uint64_t)((int64_t)bits >> unused)
                           : bits >> unused;
}

/* Bits of an element to its value. The float below has the same exponent
 * and leading digits. */
static double decode(const format_t *format, hce_datatype_t type,
                     uint64_t bits)
{
    int digits = format->digits - 1;
    uint64_t mant = bits & ((1ull << digits) - 1);
    int exp = (int)(bits >> digits & ((1ull << format->exp_bits) - 1));
    int top = (1 << format->exp_bits) - 1;
    double value;

    if (exp == top && type == HCE_FLOAT8E4M3 && mant == 7)
        value = NAN;
    else if (exp == top && type != HCE_FLOAT8E4M3)
        value = mant == 0 ? INFINITY : NAN;
    else if (exp == 0)
        value = ldexp((double)mant, format->subnormal);
    else
        value = ldexp((double)(mant | 1ull << digits),
                      exp - 1 + format->subnormal);
    return bits >> (digits + format->exp_bits) & 1 ? -value : value;
}

/* Exact, and normal or 0. */
static uint64_t encode(const format_t *format, double value)
{
    uint64_t bits, sign, exp;
    int digits = format->digits - 1;

    memcpy(&bits, &value, sizeof(bits));
    sign = bits >> 63 << (digits + format->exp_bits);
    if (value == 0)
        return sign;
    exp = (bits >> 52 & 2047) - 1023 + (1ull << (format->exp_bits - 1)) - 1;
    return sign | exp << digits | (bits << 12 >> 12) >> (52 - digits);
}

/* What a rank contributes: a multiple of 2^(1 - digits) below 2, for products
 * from 0.5 to 1 and from 1 to 2 by turns. */
static double float_value(const hce_perf_values_t *values,
                          const format_t *format, int rank, uint64_t word)
{
    uint64_t one = 1ull << (format->digits - 1);
    uint64_t mant = word >> (64 - format->digits);
    double value;

    if (values->op == HCE_PROD)
        mant = rank >= PROD_RANKS ? one : mant | one;
    value = (double)mant / (double)one;
    if (values->op == HCE_PROD && rank < PROD_RANKS && rank % 2 == 0)
        value /= 2;
    return word & 1 ? -value : value;
}

/* Bits of an element of a rank's input. */
static uint64_t element(const hce_perf_values_t *values,
                        const format_t *format, int rank, uint64_t word)
{
    if (format == NULL)
        return extend(values->type, word);
    return encode(format, float_value(values, format, rank, word));
}

static uint64_t key_of(const hce_perf_values_t *values, int rank)
{
    return hce_perf_pattern_key(rank, values->comm, values->data);
}

/* Elements are little-endian, like all machines that this runs on. */
void hce_perf_values_fill(const hce_perf_values_t *values, int rank,
                          size_t first, void *buf, size_t count)
{
    const format_t *format = find_format(values->type);
    size_t size = hce_datatype_size(values->type), i;
    uint64_t key = key_of(values, rank), bits;
    char *at = buf;

    for (i = 0; i < count; i++, at += size) {
        bits = element(values, format, rank,
                       hce_perf_pattern_word(key, first + i));
        memcpy(at, &bits, size);
    }
}

uint64_t hce_perf_values_check_input(const hce_perf_values_t *values, int rank,
                                     size_t first, const void *buf,
                                     size_t count)
{
    const format_t *format = find_format(values->type);
    size_t size = hce_datatype_size(values->type), i;
    uint64_t key = key_of(values, rank), wrong = 0, want;
    const char *at = buf;

    for (i = 0; i < count; i++, at += size) {
        want = element(values, format, rank,
                       hce_perf_pattern_word(key, first + i));
        wrong += memcmp(at, &want, size) != 0;
    }
    return wrong;
}

static uint64_t combine(const hce_perf_values_t *values, uint64_t a,
                        uint64_t b)
{
    int less = is_signed(values->type) ? (int64_t)b < (int64_t)a : b < a;

    switch (values->op) {
    case HCE_PROD:
        return a * b;
    case HCE_MIN:
        return less ? b : a;
    case HCE_MAX:
        return less ? a : b;
    default:
        return a + b;
    }
}

static int is_right_int(const hce_perf_values_t *values, const uint64_t *keys,
                        size_t index, uint64_t have)
{
    uint64_t sum = 0, one;
    int r;

    for (r = 0; r < values->ranks; r++) {
        one = element(values, NULL, r, hce_perf_pattern_word(keys[r], index));
        sum = r == 0 ? one : combine(values, sum, one);
    }
    sum = extend(values->type, sum);
    if (values->op == HCE_AVG && is_signed(values->type))
        sum = (uint64_t)((int64_t)sum / values->ranks);
    else if (values->op == HCE_AVG)
        sum /= (uint64_t)values->ranks;
    return sum == extend(values->type, have);
}

/* Most that a result may be off: factor times the sum of absolute values, and
 * least. R - 1 passes round to partial results, and one to the datatype. */
typedef struct bound {
    long double factor, least;
} bound_t;

static bound_t make_bound(const hce_perf_values_t *values,
                          const format_t *format)
{
    int r = values->ranks;
    long double u = ldexpl(1, format->digits > 24 ? -53 : -24);
    long double g = r * u / (1 - r * u);
    long double grown = (1 + g) * (1 + ldexpl(1, -format->digits)) *
                        powl(1 + ldexpl(1, -format->partial), r - 1);

    return (bound_t){grown - 1, r * ldexpl(1, format->subnormal - 1)};
}

static int is_right_float(const hce_perf_values_t *values,
                          const bound_t *bound, const uint64_t *keys,
                          size_t index, double have)
{
    const format_t *format = find_format(values->type);
    long double sum = 0, abs = 0, one;
    int r;

    for (r = 0; r < values->ranks; r++) {
        one = float_value(values, format, r,
                          hce_perf_pattern_word(keys[r], index));
        abs += fabsl(one);
        if (r == 0)
            sum = one;
        else if (values->op == HCE_PROD)
            sum *= one;
        else if (values->op == HCE_MIN)
            sum = fminl(sum, one);
        else if (values->op == HCE_MAX)
            sum = fmaxl(sum, one);
        else
            sum += one;
    }
    if (values->op == HCE_MIN || values->op == HCE_MAX)
        return sum == have;
    if (values->op == HCE_AVG) {
        sum /= values->ranks;
        abs /= values->ranks;
    }
    if (values->op == HCE_PROD)
        abs = fabsl(sum);
    /* False for NaN. */
    return fabsl(have - sum) <= bound->factor * abs + bound->least;
}

uint64_t hce_perf_values_check(const hce_perf_values_t *values, size_t first,
                               const void *buf, size_t count)
{
    const format_t *format = find_format(values->type);
    size_t size = hce_datatype_size(values->type), i;
    uint64_t keys[values->ranks], wrong = 0, bits = 0;
    const char *at = buf;
    bound_t bound = {0, 0};
    int r;

    if (format != NULL)
        bound = make_bound(values, format);
    for (r = 0; r < values->ranks; r++)
        keys[r] = key_of(values, r);
    for (i = 0; i < count; i++, at += size) {
        memcpy(&bits, at, size);
        wrong += format == NULL
                     ? !is_right_int(values, keys, first + i, bits)
                     : !is_right_float(values, &bound, keys, first + i,
                                       decode(format, values->type, bits));
    }
    return wrong;
}
