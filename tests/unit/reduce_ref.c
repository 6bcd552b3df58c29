/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * See reduce_ref.h.
 */
#include <config.h>

#include "reduce_ref.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Exponents are those of the value 1.m * 2^e. */
typedef struct ref_format {
    int bits, mantissa, least_exponent;
    uint64_t greatest; /* code of the greatest finite number */
    uint64_t infinity; /* 0: has none */
    uint64_t nan;      /* the one that results are */
} ref_format_t;

static const ref_format_t formats[HCE_DATATYPE_LAST] = {
    [HCE_FLOAT64] = {64, 52, -1022, 0x7fefffffffffffff, 0x7ff0000000000000,
                     0x7ff8000000000000},
    [HCE_FLOAT32] = {32, 23, -126, 0x7f7fffff, 0x7f800000, 0x7fc00000},
    [HCE_FLOAT16] = {16, 10, -14, 0x7bff, 0x7c00, 0x7e00},
    [HCE_BFLOAT16] = {16, 7, -126, 0x7f7f, 0x7f80, 0x7fc0},
    [HCE_FLOAT8E4M3] = {8, 3, -6, 0x7e, 0, 0x7f},
    [HCE_FLOAT8E5M2] = {8, 2, -14, 0x7b, 0x7c, 0x7e},
};

bool ref_is_float(hce_datatype_t type)
{
    return formats[type].bits != 0;
}

double ref_unit(hce_datatype_t type)
{
    return ldexp(1.0, -formats[type].mantissa - 1);
}

double ref_tiny(hce_datatype_t type)
{
    const ref_format_t *f = &formats[type];

    return ldexp(0.5, f->least_exponent - f->mantissa);
}

double ref_decode(hce_datatype_t type, uint64_t code)
{
    const ref_format_t *f = &formats[type];
    uint64_t sign = code >> (f->bits - 1);
    uint64_t magnitude = code & ((1ull << (f->bits - 1)) - 1);
    uint64_t fraction = magnitude & ((1ull << f->mantissa) - 1);
    int exponent = (int)(magnitude >> f->mantissa);
    double value;

    if (magnitude > f->greatest)
        value = magnitude == f->infinity ? INFINITY : NAN;
    else if (exponent == 0)
        value = ldexp((double)fraction, f->least_exponent - f->mantissa);
    else
        value = ldexp((double)(fraction + (1ull << f->mantissa)),
                      f->least_exponent + exponent - 1 - f->mantissa);
    return sign != 0 ? -value : value;
}

uint64_t ref_encode(hce_datatype_t type, double value)
{
    const ref_format_t *f = &formats[type];
    uint64_t sign = signbit(value) ? 1ull << (f->bits - 1) : 0, code;
    double size = fabs(value), units;
    int exponent = f->least_exponent;

    if (isnan(value))
        return f->nan;
    if (size > 0.0 && !isinf(value) && ilogb(size) > exponent)
        exponent = ilogb(size);
    /* A count of units in the last place, which may carry into the next
     * exponent; the codes go on there without a gap. */
    units = nearbyint(ldexp(size, f->mantissa - exponent));
    code = f->greatest + 1;
    if (!isinf(value))
        code = (uint64_t)units +
               ((uint64_t)(exponent - f->least_exponent) << f->mantissa);
    if (code > f->greatest)
        code = f->infinity != 0 ? f->infinity : f->greatest;
    return code | sign;
}

int ref_specials(hce_datatype_t type, uint64_t *codes)
{
    const ref_format_t *f = &formats[type];
    size_t size = hce_datatype_size(type);
    uint64_t top = 1ull << (8 * size - 1), normal;
    int num = 0, i;

    if (!ref_is_float(type)) {
        const uint64_t ints[] = {0,       1,           2,       3,
                                 7,       top - 1,     top - 2, top,
                                 top + 1, 2 * top - 1, 85,      170};

        for (i = 0; i < 12; i++)
            codes[num++] = ints[i] & (top | (top - 1));
        return num;
    }
    normal = 1ull << f->mantissa;
    const uint64_t magnitudes[] = {
        0,
        1,
        2,
        normal - 1,
        normal,
        normal + 1,
        f->greatest,
        f->greatest - 1,
        f->infinity,
        f->nan,
        top - 1,                                /* another NaN */
        f->infinity != 0 ? f->infinity + 1 : 0, /* a signalling one */
        ref_encode(type, 1.0),
        ref_encode(type, 1.0) + 1,
        ref_encode(type, 1.5),
        ref_encode(type, 3.0),
        ref_encode(type, 0.0625),
        ref_encode(type, 200.0),
    };
    for (i = 0; i < (int)(sizeof(magnitudes) / sizeof(magnitudes[0])); i++) {
        codes[num++] = magnitudes[i];
        codes[num++] = magnitudes[i] | top;
    }
    return num;
}

uint64_t ref_get(const void *buf, size_t at, size_t size)
{
    const unsigned char *bytes = (const unsigned char *)buf + at * size;
    uint64_t code = 0;

    for (size_t i = size; i-- > 0;)
        code = code << 8 | bytes[i];
    return code;
}

void ref_put(void *buf, size_t at, size_t size, uint64_t code)
{
    unsigned char *bytes = (unsigned char *)buf + at * size;

    for (size_t i = 0; i < size; i++)
        bytes[i] = (unsigned char)(code >> (8 * i));
}

/* -0 is less than +0, a NaN is the result. */
static double least(double a, double b)
{
    if (isnan(a) || isnan(b))
        return NAN;
    if (a == b)
        return signbit(a) ? a : b;
    return a < b ? a : b;
}

static double combine(hce_redop_t op, double a, double b, bool wide)
{
    switch (op) {
    case HCE_PROD:
        return wide ? a * b : (double)((float)a * (float)b);
    case HCE_MIN:
        return least(a, b);
    case HCE_MAX:
        return -least(-a, -b);
    default:
        return wide ? a + b : (double)((float)a + (float)b);
    }
}

static hce_datatype_t source_type(const hce_reduce_args_t *args,
                                  hce_datatype_t type, int s)
{
    return s < args->num_partials ? hce_reduce_partial_type(type) : type;
}

static uint64_t source_get(const hce_reduce_args_t *args, hce_datatype_t type,
                           int s, size_t at)
{
    return ref_get(args->srcs[s], at,
                   hce_datatype_size(source_type(args, type, s)));
}

static uint64_t float_element(const hce_reduce_args_t *args, hce_redop_t op,
                              hce_datatype_t type, size_t at)
{
    bool wide = type == HCE_FLOAT64;
    double sum = 0.0, value;

    for (int s = 0; s < args->num_srcs; s++) {
        value = ref_decode(source_type(args, type, s),
                           source_get(args, type, s, at));
        sum = s == 0 ? value : combine(op, sum, value, wide);
    }
    if (args->divisor != 0)
        sum = wide ? sum / args->divisor
                   : (double)((float)sum / (float)args->divisor);
    if (args->to_partial)
        type = hce_reduce_partial_type(type);
    return ref_encode(type, sum);
}

/* A code as the number that it stands for, in two's complement. */
static uint64_t extend(hce_datatype_t type, uint64_t code)
{
    int unused = 64 - 8 * (int)hce_datatype_size(type);
    bool is_signed =
        type == HCE_INT8 || type == HCE_INT32 || type == HCE_INT64;

    return is_signed ? (uint64_t)((int64_t)(code << unused) >> unused) : code;
}

static bool is_below(hce_datatype_t type, uint64_t a, uint64_t b)
{
    return type == HCE_UINT64 ? a < b : (int64_t)a < (int64_t)b;
}

static uint64_t int_element(const hce_reduce_args_t *args, hce_redop_t op,
                            hce_datatype_t type, size_t at)
{
    uint64_t sum = extend(type, source_get(args, type, 0, at)), value;

    for (int s = 1; s < args->num_srcs; s++) {
        value = extend(type, source_get(args, type, s, at));
        if (op == HCE_PROD)
            sum *= value;
        else if (op == HCE_MIN)
            sum = is_below(type, value, sum) ? value : sum;
        else if (op == HCE_MAX)
            sum = is_below(type, sum, value) ? value : sum;
        else
            sum += value;
        sum = extend(type, sum << (64 - 8 * hce_datatype_size(type)) >>
                               (64 - 8 * hce_datatype_size(type)));
    }
    if (args->divisor != 0)
        sum = type == HCE_UINT64
                  ? sum / args->divisor
                  : (uint64_t)((int64_t)sum / (int64_t)args->divisor);
    return sum;
}

uint64_t ref_element(const hce_reduce_args_t *args, hce_redop_t op,
                     hce_datatype_t type, size_t at)
{
    size_t size = hce_datatype_size(
        args->to_partial ? hce_reduce_partial_type(type) : type);
    uint64_t code = ref_is_float(type) ? float_element(args, op, type, at)
                                       : int_element(args, op, type, at);

    return size == 8 ? code : code & ((1ull << (8 * size)) - 1);
}
