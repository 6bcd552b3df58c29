/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Loops to compare the reduction kernels with. Compiled as anybody's code
 * is: for the baseline of the architecture.
 */
#include <config.h>

#include "reduce_loops.h"

#include <stdint.h>
#include <string.h>

#define WORDS  8 /* a step */
#define UNROLL _Pragma("GCC unroll 8")

typedef uint64_t word_t __attribute__((vector_size(16)));

static inline word_t word_load(const void *src, size_t at, size_t i)
{
    word_t word;

    memcpy(&word, (const char *)src + at + i * sizeof(word), sizeof(word));
    return word;
}

void hce_perf_traffic_loop(const hce_reduce_args_t *args, size_t len)
{
    const size_t step = WORDS * sizeof(word_t);
    word_t words[WORDS];
    size_t at, i;
    int s, d;

    for (at = 0; at + step <= len; at += step) {
        UNROLL for (i = 0; i < WORDS; i++) words[i] =
            word_load(args->srcs[0], at, i);
        for (s = 1; s < args->num_srcs; s++)
            UNROLL for (i = 0; i < WORDS; i++) words[i] |=
                word_load(args->srcs[s], at, i);
        for (d = 0; d < args->num_dsts; d++)
            UNROLL for (i = 0; i < WORDS; i++)
                memcpy((char *)args->dsts[d] + at + i * sizeof(word_t),
                       &words[i], sizeof(word_t));
    }
}

static void plain_float(const hce_reduce_args_t *args)
{
    const float *const *srcs = (const float *const *)args->srcs;
    float sum;

    for (size_t i = args->begin; i < args->end; i++) {
        sum = srcs[0][i];
        for (int s = 1; s < args->num_srcs; s++)
            sum += srcs[s][i];
        for (int d = 0; d < args->num_dsts; d++)
            ((float *)args->dsts[d])[i] = sum;
    }
}

static float bf16_load(uint16_t code)
{
    uint32_t bits = (uint32_t)code << 16;
    float value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

static uint16_t bf16_round(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    if (value != value)
        return 0x7fc0;
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static void plain_bf16(const hce_reduce_args_t *args)
{
    const uint16_t *const *srcs = (const uint16_t *const *)args->srcs;
    uint16_t code;
    float sum;

    for (size_t i = args->begin; i < args->end; i++) {
        sum = bf16_load(srcs[0][i]);
        for (int s = 1; s < args->num_srcs; s++)
            sum += bf16_load(srcs[s][i]);
        code = bf16_round(sum);
        for (int d = 0; d < args->num_dsts; d++)
            ((uint16_t *)args->dsts[d])[i] = code;
    }
}

hce_perf_plain_fn hce_perf_plain_find(hce_redop_t op, hce_datatype_t type)
{
    if (op != HCE_SUM)
        return NULL;
    if (type == HCE_BFLOAT16)
        return plain_bf16;
    return type == HCE_FLOAT32 ? plain_float : NULL;
}
