/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The series of sizes that -b, -e, -i and -f describe.
 */
#ifndef HCE_PERF_SERIES_H
#define HCE_PERF_SERIES_H

#include "opts.h"

#include <stddef.h>

/* The size after *size_p; false when there is none. The first is min_bytes. */
bool hce_perf_series_next(const hce_perf_opts_t *opts, uint64_t *size_p);

/* How many sizes there are, and the last. */
uint64_t hce_perf_series_len(const hce_perf_opts_t *opts, uint64_t *last_p);

/* Whole elements of each of the parts that a size is made of. */
size_t hce_perf_series_count(const hce_perf_opts_t *opts, uint64_t size,
                             hce_datatype_t type, int parts);

/* Most bytes of a part in the whole series. */
size_t hce_perf_series_max(const hce_perf_opts_t *opts, int parts);

#endif
