/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Sizes and counts: integers only.
 */
#include <config.h>

#include "series.h"

#include "util/math.h"

bool hce_perf_series_next(const hce_perf_opts_t *opts, uint64_t *size_p)
{
    uint64_t factor = (uint64_t)opts->step_factor, step = opts->step_bytes;

    if (factor > 1 && *size_p > 0) {
        if (*size_p > opts->max_bytes / factor)
            return false;
        *size_p *= factor;
        return true;
    }
    /* 0 times a factor would stay 0: what follows it is 1. */
    if (factor > 1)
        step = 1;
    if (step == 0 || *size_p >= opts->max_bytes ||
        step > opts->max_bytes - *size_p)
        return false;
    *size_p += step;
    return true;
}

uint64_t hce_perf_series_len(const hce_perf_opts_t *opts, uint64_t *last_p)
{
    uint64_t size = opts->min_bytes, len = 1;

    if (opts->step_factor > 1) {
        while (hce_perf_series_next(opts, &size))
            len++;
    } else if (opts->step_bytes > 0) {
        len += (opts->max_bytes - size) / opts->step_bytes;
        size += (len - 1) * opts->step_bytes;
    }
    *last_p = size;
    return len;
}

size_t hce_perf_series_count(const hce_perf_opts_t *opts, uint64_t size,
                             hce_datatype_t type, int parts)
{
    uint64_t elt_size = hce_datatype_size(type);

    return opts->per_rank ? size / elt_size
                          : size / (elt_size * (uint64_t)parts);
}

size_t hce_perf_series_max(const hce_perf_opts_t *opts, int parts)
{
    size_t count, max = 0;
    uint64_t last;
    int i;

    hce_perf_series_len(opts, &last);
    for (i = 0; i < opts->num_types; i++) {
        count = hce_perf_series_count(opts, last, opts->types[i], parts);
        max = hce_max(max, count * hce_datatype_size(opts->types[i]));
    }
    return max;
}
