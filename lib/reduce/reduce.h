/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Reductions by the CPU: k sources are combined, from left to right, into m
 * destinations in one pass over memory. Every variant of the code (portable,
 * AVX2, AVX-512) gives the same bits; docs/REDUCE.md has the rules. Any
 * thread, at any time: nothing is shared but the choice of a variant.
 */
#ifndef HCE_REDUCE_REDUCE_H
#define HCE_REDUCE_REDUCE_H

#include <hce/hce.h>
#include <stdbool.h>

#include "util/config.h"

extern const hce_config_table_t hce_reduce_config;

/* One pass. Sources and destinations need no alignment. A destination may
 * start where a source with elements of the same size starts; otherwise
 * destinations overlap neither sources nor each other. */
typedef struct hce_reduce_args {
    const void *const *srcs;
    int num_srcs;     /* at least 1 */
    int num_partials; /* the first so many sources are partial results */
    void *const *dsts;
    int num_dsts;      /* at least 1 */
    size_t begin, end; /* elements of every source and destination */
    /* Last pass of an average: what the sum is divided by. Else 0. */
    uint32_t divisor;
    bool to_partial; /* destinations become partial results, not elements */
    /* Stores go past the caches where all destinations lie alike to a cache
     * line. They are ordered before a later release. */
    bool streaming;
} hce_reduce_args_t;

/* Elements at to end; streaming: there all destinations start a line. */
typedef void (*hce_reduce_kernel_fn)(const hce_reduce_args_t *args, size_t at,
                                     size_t end, bool streaming);

typedef struct hce_reduce_kernel {
    hce_reduce_kernel_fn run;
    size_t elem_size, partial_size;
} hce_reduce_kernel_t;

/* Chooses the variant, at the first call in the process. An error, which has
 * been logged, if HCE_REDUCE_KERNEL names one that this CPU has not.
 * Thread-safe. */
hce_status_t hce_reduce_init(void);

/* The chosen variant's kernel. HCE_ERR_INVALID_ARG if op or datatype is
 * unknown. Only after hce_reduce_init. */
hce_status_t hce_reduce_kernel_find(hce_redop_t op, hce_datatype_t datatype,
                                    hce_reduce_kernel_t *kernel_p);

/* One pass, in the floating-point environment that results are defined in
 * (nearest even, subnormal numbers kept), whatever the caller's is. */
void hce_reduce_run(const hce_reduce_kernel_t *kernel,
                    const hce_reduce_args_t *args);

/* What partial results are kept and sent as: float16 for 8-bit floats, else
 * the datatype itself. */
hce_datatype_t hce_reduce_partial_type(hce_datatype_t datatype);

/* "avx512", ...: the chosen variant. Only after hce_reduce_init. */
const char *hce_reduce_variant_name(void);

#endif
