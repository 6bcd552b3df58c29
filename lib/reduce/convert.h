/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Conversions between float and the 16- and 8-bit floats: to nearest, ties to
 * even, every NaN becoming the datatype's positive quiet one. A variant whose
 * instructions give the same bits defines
 *   HAVE_F16   and brings f16_load, f16_decode, f16_encode and join
 *   HAVE_BF16  and brings bf16_pack
 *   HAVE_BYTES and brings widen and narrow
 *   HAVE_NAN   and brings has_nan
 * 8-bit floats go through float16, which holds them all.
 */
#ifndef HCE_REDUCE_CONVERT_H
#define HCE_REDUCE_CONVERT_H

#include "reduce/vector.h"

#include <stdbool.h>

#define F32_SIGN 0x80000000u
#define F32_INF  0x7f800000u
#define F32_NAN  0x7fc00000u
#define F64_SIGN 0x8000000000000000ull
#define F64_NAN  0x7ff8000000000000ull

/* A format of 16 or 8 bits: 1 sign, then exponent, then mantissa. */
typedef struct format {
    int bits;
    int mantissa;      /* bits of it */
    int bias;          /* of the exponent */
    uint32_t greatest; /* code of the greatest finite number */
    uint32_t beyond;   /* code of what is rounded to more than that */
    uint32_t special;  /* codes from here on are infinity or NaN */
    uint32_t nan;
} format_t;

static const format_t f16_format = {
    .bits = 16,
    .mantissa = 10,
    .bias = 15,
    .greatest = 0x7bff,
    .beyond = 0x7c00,
    .special = 0x7c00,
    .nan = 0x7e00,
};
static const format_t e5m2_format = {
    .bits = 8,
    .mantissa = 2,
    .bias = 15,
    .greatest = 0x7b,
    .beyond = 0x7c,
    .special = 0x7c,
    .nan = 0x7e,
};
/* OCP: saturates, has no infinity and, for each sign, one NaN. */
static const format_t e4m3_format = {
    .bits = 8,
    .mantissa = 3,
    .bias = 7,
    .greatest = 0x7e,
    .beyond = 0x7e,
    .special = 0x7f,
    .nan = 0x7f,
};

/* Comparisons are signed, which is one instruction everywhere; magnitudes
 * have no sign bit. */
FN vu32_t is_less(vu32_t a, uint32_t b)
{
    return (vu32_t)((vs32_t)a < (vs32_t)all32(b));
}

FN vu32_t is_greater(vu32_t a, uint32_t b)
{
    return (vu32_t)((vs32_t)a > (vs32_t)all32(b));
}

FN vf32_t format_decode(vu32_t code, const format_t *format)
{
    int shift = 23 - format->mantissa, sign_at = format->bits - 1;
    uint32_t rebias = (uint32_t)(127 - format->bias) << 23;
    uint32_t smallest = rebias + (1u << 23); /* normal number, as a float */
    vu32_t sign = (code >> sign_at) << 31;
    vu32_t magnitude = code & ((1u << sign_at) - 1);
    vu32_t wide = magnitude << shift;
    /* Under the implied 1 of the smallest normal number, and without it. */
    vf32_t subnormal = (vf32_t)(wide + smallest) - (vf32_t)all32(smallest);
    vu32_t value;

    value = blend32(is_less(magnitude, 1u << format->mantissa),
                    (vu32_t)subnormal, wide + rebias);
    value |= is_greater(magnitude, format->special - 1) & F32_INF;
    return (vf32_t)(value | sign);
}

FN vu32_t format_encode(vf32_t value, const format_t *format)
{
    int shift = 23 - format->mantissa;
    uint32_t rebias = (uint32_t)(127 - format->bias) << format->mantissa;
    uint32_t smallest = (uint32_t)(128 - format->bias) << 23;
    /* The last bit of a float of this size is worth that of a subnormal
     * number of the format, so that an addition rounds to it. */
    uint32_t anchor = smallest + ((uint32_t)shift << 23);
    vu32_t magnitude = (vu32_t)value & ~F32_SIGN;
    vu32_t sign = (vu32_t)value >> 31;
    vu32_t odd = (magnitude >> shift) & 1;
    vu32_t half = all32((1u << (shift - 1)) - 1) + odd;
    vu32_t normal = ((magnitude + half) >> shift) - rebias;
    vu32_t subnormal =
        (vu32_t)((vf32_t)magnitude + (vf32_t)all32(anchor)) - anchor;
    vu32_t code;

    code = blend32(is_less(magnitude, smallest), subnormal, normal);
    code = blend32(is_greater(code, format->greatest), all32(format->beyond),
                   code);
    code |= sign << (format->bits - 1);
    return blend32(is_greater(magnitude, F32_INF), all32(format->nan), code);
}

FN vu16_t load16(const char *src)
{
    vu16_t code;

    memcpy(&code, src, sizeof(code));
    return code;
}

#ifndef HAVE_F16
/* Even and odd lanes, which shifts suffice for. */
FN pair_t f16_decode(vu16_t code)
{
    vu32_t both = (vu32_t)code;
    pair_t value;

    value.a = format_decode(both & 0xffff, &f16_format);
    value.b = format_decode(both >> 16, &f16_format);
    return value;
}

/* Codes of at most 16 bits, as f16_decode splits them. */
FN vu16_t join(vu32_t a, vu32_t b)
{
    return (vu16_t)(a | b << 16);
}

FN vu16_t f16_encode(pair_t value)
{
    return join(format_encode(value.a, &f16_format),
                format_encode(value.b, &f16_format));
}

FN pair_t f16_load(const char *src)
{
    return f16_decode(load16(src));
}
#endif

#ifndef HAVE_BYTES
FN vu16_t widen(vhalf_t code)
{
    return __builtin_convertvector(code, vu16_t);
}

FN vhalf_t narrow(vu16_t code)
{
    return __builtin_convertvector(code, vhalf_t);
}
#endif

#ifndef HAVE_NAN
/* Where looking costs more than cleaning. */
FN bool has_nan(pair_t value)
{
    return true;
}
#endif

FN vf32_t f32_clean(vf32_t value)
{
    return (vf32_t)blend32((vu32_t)(value != value), all32(F32_NAN),
                           (vu32_t)value);
}

FN pair_t clean(pair_t value)
{
    if (__builtin_expect(has_nan(value), 0)) {
        value.a = f32_clean(value.a);
        value.b = f32_clean(value.b);
    }
    return value;
}

FN vu16_t f16_pack(pair_t value)
{
    return f16_encode(clean(value));
}

/* The upper halves of floats: even lanes in a, odd ones in b. */
FN pair_t bf16_load(const char *src)
{
    vu32_t both = (vu32_t)load16(src);
    pair_t value;

    value.a = (vf32_t)(both << 16);
    value.b = (vf32_t)(both & 0xffff0000);
    return value;
}

/* No NaN; the result is in the upper half of each lane. */
FN vu32_t bf16_nearest(vf32_t value)
{
    return (vu32_t)value + 0x7fff + (((vu32_t)value >> 16) & 1);
}

FN vu16_t bf16_round(pair_t value)
{
    pair_t number = clean(value);

    return (vu16_t)(bf16_nearest(number.a) >> 16 |
                    (bf16_nearest(number.b) & 0xffff0000));
}

#ifndef HAVE_BF16
FN vu16_t bf16_pack(pair_t value)
{
    return bf16_round(value);
}
#endif

FN vhalf_t load8(const char *src)
{
    vhalf_t code;

    memcpy(&code, src, sizeof(code));
    return code;
}

/* The upper byte of a float16. */
FN pair_t e5m2_load(const char *src)
{
    return f16_decode(widen(load8(src)) << 8);
}

FN vhalf_t e5m2_pack(pair_t value)
{
    return narrow(join(format_encode(value.a, &e5m2_format),
                       format_encode(value.b, &e5m2_format)));
}

/* As float16 the bits mean 2^-8 of the value, the difference of the biases,
 * subnormal numbers included. */
FN pair_t e4m3_load(const char *src)
{
    vu16_t code = widen(load8(src));
    vu16_t magnitude = code & 0x7f;
    vu16_t is_nan = (vu16_t)((vs16_t)magnitude > 0x7e) & 0x7c00;
    pair_t value = f16_decode(magnitude << 7 | is_nan | (code & 0x80) << 8);

    value.a *= 256.0f;
    value.b *= 256.0f;
    return value;
}

FN vhalf_t e4m3_pack(pair_t value)
{
    return narrow(join(format_encode(value.a, &e4m3_format),
                       format_encode(value.b, &e4m3_format)));
}

#endif
