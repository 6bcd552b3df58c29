/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * One build of all kernels for one set of instructions.
 */
#ifndef HCE_REDUCE_VARIANT_H
#define HCE_REDUCE_VARIANT_H

#include "reduce/reduce.h"

/* One datatype. */
typedef struct hce_reduce_row {
    hce_reduce_kernel_fn kernels[HCE_REDOP_LAST];
    /* Rounds as many sums (float for 16- and 8-bit floats) as it returns;
     * which comes where is the variant's affair. For tests. */
    size_t (*round)(const void *src, void *dst);
} hce_reduce_row_t;

/* An average is a sum whose last pass divides. */
#define ROW(_type)                                                            \
    {                                                                         \
        .kernels = {[HCE_SUM] = _type##_sum,                                  \
                    [HCE_PROD] = _type##_prod,                                \
                    [HCE_MIN] = _type##_least,                                \
                    [HCE_MAX] = _type##_most,                                 \
                    [HCE_AVG] = _type##_sum},                                 \
        .round = _type##_sum_round                                            \
    }

typedef struct hce_reduce_variant {
    const char *name;
    bool (*is_usable)(void); /* on this CPU */
    /* Has the rows that are empty here; NULL if none are. */
    const struct hce_reduce_variant *base;
    hce_reduce_row_t rows[HCE_DATATYPE_LAST];
} hce_reduce_variant_t;

extern const hce_reduce_variant_t hce_reduce_portable;
#if defined(__x86_64__)
extern const hce_reduce_variant_t hce_reduce_avx2;
extern const hce_reduce_variant_t hce_reduce_avx512;
extern const hce_reduce_variant_t hce_reduce_avx512_bf16;
#endif

/* i-th variant that this CPU can use, best first; NULL at the end. */
const hce_reduce_variant_t *hce_reduce_variant_usable(int i);

/* Of a given variant, for tests and measurements. op and datatype are known
 * ones. */
const hce_reduce_row_t *hce_reduce_row_get(const hce_reduce_variant_t *variant,
                                           hce_datatype_t datatype);
hce_reduce_kernel_t hce_reduce_kernel_get(const hce_reduce_variant_t *variant,
                                          hce_redop_t op,
                                          hce_datatype_t datatype);

#endif
