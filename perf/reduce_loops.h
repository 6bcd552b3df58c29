/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * What the reduction kernels are measured against.
 */
#ifndef HCE_PERF_REDUCE_LOOPS_H
#define HCE_PERF_REDUCE_LOOPS_H

#include "reduce/reduce.h"

/* The loads and stores of a pass over len bytes of each source, and next to
 * no arithmetic. */
void hce_perf_traffic_loop(const hce_reduce_args_t *args, size_t len);

/* A sum as one writes it in C, an element at a time. */
typedef void (*hce_perf_plain_fn)(const hce_reduce_args_t *args);

/* NULL where there is none: other types than float and bfloat16. */
hce_perf_plain_fn hce_perf_plain_find(hce_redop_t op, hce_datatype_t type);

#endif
