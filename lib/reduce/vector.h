/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Vectors for the kernels, in the vector extension of gcc and clang. Included
 * once by each variant, which first defines
 *   WIDTH   bytes of a vector register
 *   TARGET  attribute that allows the variant's instructions
 */
#ifndef HCE_REDUCE_VECTOR_H
#define HCE_REDUCE_VECTOR_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifndef WIDTH
#define WIDTH 16 /* so that the header compiles alone */
#define TARGET
#endif

/* Vectors are arguments of inlined functions only: what a call would do with
 * them depends on the compiler's flags. */
#define FN static inline __attribute__((always_inline)) TARGET

#define VECTOR(_elem, _size) _elem __attribute__((vector_size(_size)))

typedef VECTOR(uint8_t, WIDTH) vu8_t;
typedef VECTOR(int8_t, WIDTH) vs8_t;
typedef VECTOR(uint16_t, WIDTH) vu16_t;
typedef VECTOR(int16_t, WIDTH) vs16_t;
typedef VECTOR(uint32_t, WIDTH) vu32_t;
typedef VECTOR(int32_t, WIDTH) vs32_t;
typedef VECTOR(uint64_t, WIDTH) vu64_t;
typedef VECTOR(int64_t, WIDTH) vs64_t;
typedef VECTOR(float, WIDTH) vf32_t;
typedef VECTOR(double, WIDTH) vf64_t;
/* As many bytes as a vector has 16-bit lanes. */
typedef VECTOR(uint8_t, WIDTH / 2) vhalf_t;

/* The lanes of a vu16_t as float. Which of them are in a is up to each
 * function that splits, and to the one that joins again. */
typedef struct pair {
    vf32_t a, b;
} pair_t;

/* All lanes alike. */
FN vu32_t all32(uint32_t value)
{
    return (vu32_t){0} + value;
}

FN vu64_t all64(uint64_t value)
{
    return (vu64_t){0} + value;
}

/* Lane by lane a where mask is all ones, b where it is 0. */
FN vu32_t blend32(vu32_t mask, vu32_t a, vu32_t b)
{
    return (a & mask) | (b & ~mask);
}

FN vu64_t blend64(vu64_t mask, vu64_t a, vu64_t b)
{
    return (a & mask) | (b & ~mask);
}

#endif
