/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * What loop.h must know of a datatype T. T_acc_t is what is added up,
 * T_packed_t what a vector of that is stored as, and
 *   T_load, T_pack  between memory, T_acc_t and T_packed_t
 *   T_add, T_mul    lane by lane
 *   T_min           the smaller of two
 *   T_flip          reverses the order, so that max is min of the flipped
 *   T_divide        by a positive number, once
 */
#ifndef HCE_REDUCE_TYPES_H
#define HCE_REDUCE_TYPES_H

#include "reduce/convert.h"

/* Added up as unsigned, whose overflow is defined; _elems is the vector that
 * compares and divides, _wide holds a quotient of any element and divisor. */
#define INTEGER(_name, _unsigned, _elems, _wide)                              \
    typedef _unsigned _name##_acc_t;                                          \
    typedef _unsigned _name##_packed_t;                                       \
    FN _unsigned _name##_load(const char *src)                                \
    {                                                                         \
        _unsigned value;                                                      \
                                                                              \
        memcpy(&value, src, sizeof(value));                                   \
        return value;                                                         \
    }                                                                         \
    FN _unsigned _name##_pack(_unsigned value)                                \
    {                                                                         \
        return value;                                                         \
    }                                                                         \
    FN _unsigned _name##_add(_unsigned a, _unsigned b)                        \
    {                                                                         \
        return a + b;                                                         \
    }                                                                         \
    FN _unsigned _name##_mul(_unsigned a, _unsigned b)                        \
    {                                                                         \
        return a * b;                                                         \
    }                                                                         \
    FN _unsigned _name##_min(_unsigned a, _unsigned b)                        \
    {                                                                         \
        _unsigned mask = (_unsigned)((_elems)a < (_elems)b);                  \
                                                                              \
        return (a & mask) | (b & ~mask);                                      \
    }                                                                         \
    FN _unsigned _name##_flip(_unsigned value)                                \
    {                                                                         \
        return ~value;                                                        \
    }                                                                         \
    FN _unsigned _name##_divide(_unsigned value, uint32_t divisor)            \
    {                                                                         \
        _elems elems = (_elems)value;                                         \
                                                                              \
        for (size_t i = 0; i < sizeof(elems) / sizeof(elems[0]); i++)         \
            elems[i] /= (_wide)divisor;                                       \
        return (_unsigned)elems;                                              \
    }

INTEGER(int8, vu8_t, vs8_t, int64_t)
INTEGER(uint8, vu8_t, vu8_t, uint64_t)
INTEGER(int32, vu32_t, vs32_t, int64_t)
INTEGER(uint32, vu32_t, vu32_t, uint64_t)
INTEGER(int64, vu64_t, vs64_t, int64_t)
INTEGER(uint64, vu64_t, vu64_t, uint64_t)

#undef INTEGER

#ifndef HAVE_LESSER
/* a if it is less than b, else b. */
FN vf32_t f32_lesser(vf32_t a, vf32_t b)
{
    return (vf32_t)blend32((vu32_t)(a < b), (vu32_t)a, (vu32_t)b);
}

FN vf64_t f64_lesser(vf64_t a, vf64_t b)
{
    return (vf64_t)blend64((vu64_t)(a < b), (vu64_t)a, (vu64_t)b);
}
#endif

/* Where a and b differ both ways round give the lesser. Zeros are equal, and
 * the two ways give one each: or makes -0 of +0 and -0. With a NaN they give
 * both operands, and a NaN with further bits set is a NaN. */
FN vf32_t f32_min(vf32_t a, vf32_t b)
{
    return (vf32_t)((vu32_t)f32_lesser(a, b) | (vu32_t)f32_lesser(b, a));
}

FN vf64_t f64_min(vf64_t a, vf64_t b)
{
    return (vf64_t)((vu64_t)f64_lesser(a, b) | (vu64_t)f64_lesser(b, a));
}

FN vf32_t f32_flip(vf32_t value)
{
    return (vf32_t)((vu32_t)value ^ F32_SIGN);
}

FN vf64_t f64_flip(vf64_t value)
{
    return (vf64_t)((vu64_t)value ^ F64_SIGN);
}

FN vf32_t f32_add(vf32_t a, vf32_t b)
{
    return a + b;
}

FN vf64_t f64_add(vf64_t a, vf64_t b)
{
    return a + b;
}

FN vf32_t f32_mul(vf32_t a, vf32_t b)
{
    return a * b;
}

FN vf64_t f64_mul(vf64_t a, vf64_t b)
{
    return a * b;
}

FN vf32_t f32_divide(vf32_t value, uint32_t divisor)
{
    return value / (float)divisor;
}

FN vf64_t f64_divide(vf64_t value, uint32_t divisor)
{
    return value / (double)divisor;
}

typedef vf32_t f32_acc_t;
typedef vf32_t f32_packed_t;
typedef vf64_t f64_acc_t;
typedef vf64_t f64_packed_t;

FN vf32_t f32_load(const char *src)
{
    vf32_t value;

    memcpy(&value, src, sizeof(value));
    return value;
}

FN vf64_t f64_load(const char *src)
{
    vf64_t value;

    memcpy(&value, src, sizeof(value));
    return value;
}

/* Which of two NaNs an addition passes on depends on the order of its
 * operands, which compilers are free to change: all become the same one. */
FN vf32_t f32_pack(vf32_t value)
{
    return f32_clean(value);
}

FN vf64_t f64_pack(vf64_t value)
{
    return (vf64_t)blend64((vu64_t)(value != value), all64(F64_NAN),
                           (vu64_t)value);
}

/* Those that are added up as float. */
#define SMALL_FLOAT(_name, _packed)                                           \
    typedef pair_t _name##_acc_t;                                             \
    typedef _packed _name##_packed_t;                                         \
    FN pair_t _name##_add(pair_t x, pair_t y)                                 \
    {                                                                         \
        return (pair_t){f32_add(x.a, y.a), f32_add(x.b, y.b)};                \
    }                                                                         \
    FN pair_t _name##_mul(pair_t x, pair_t y)                                 \
    {                                                                         \
        return (pair_t){f32_mul(x.a, y.a), f32_mul(x.b, y.b)};                \
    }                                                                         \
    FN pair_t _name##_min(pair_t x, pair_t y)                                 \
    {                                                                         \
        return (pair_t){f32_min(x.a, y.a), f32_min(x.b, y.b)};                \
    }                                                                         \
    FN pair_t _name##_flip(pair_t x)                                          \
    {                                                                         \
        return (pair_t){f32_flip(x.a), f32_flip(x.b)};                        \
    }                                                                         \
    FN pair_t _name##_divide(pair_t x, uint32_t divisor)                      \
    {                                                                         \
        return (pair_t){f32_divide(x.a, divisor), f32_divide(x.b, divisor)};  \
    }

SMALL_FLOAT(f16, vu16_t)
SMALL_FLOAT(bf16, vu16_t)
SMALL_FLOAT(e4m3, vhalf_t)
SMALL_FLOAT(e5m2, vhalf_t)

#undef SMALL_FLOAT

#endif
