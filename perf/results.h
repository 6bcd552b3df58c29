/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * What a run measured, for the table, the JSON file and the curve. Kept by
 * every rank; the same on all, but for explain, which is this rank's.
 */
#ifndef HCE_PERF_RESULTS_H
#define HCE_PERF_RESULTS_H

#include "measure.h"
#include "opts.h"
#include "variants.h"

#include <stddef.h>

typedef struct hce_perf_cell {
    bool is_measured;
    uint64_t calls;      /* timed */
    double single_us;    /* of a call on its own; 0: not measured */
    double cpu_sec;      /* of all ranks, during the timed calls */
    hce_perf_net_t net;  /* of all hosts, likewise */
    double time_us;      /* of one call */
    double algbw, busbw; /* 10^9 bytes/s */
    uint64_t wrong;      /* elements, of all ranks */
} hce_perf_cell_t;

typedef enum hce_perf_place {
    HCE_PERF_OUT_OF_PLACE,
    HCE_PERF_IN_PLACE,
    HCE_PERF_PLACES
} hce_perf_place_t;

typedef struct hce_perf_row {
    uint64_t size; /* bytes as users give them */
    size_t count;  /* elements a rank */
    hce_datatype_t type;
    hce_redop_t op; /* of a reduction */
    int variant; /* of hce_perf_results_t */
    hce_explain_t explain;
    hce_perf_cell_t cells[HCE_PERF_PLACES];
} hce_perf_row_t;

typedef struct hce_perf_results {
    hce_perf_variant_t *variants; /* by number */
    int num_variants;
    hce_perf_row_t *rows;
    size_t num_rows;      /* measured */
    size_t max_rows;      /* to be measured */
    uint64_t wrong;       /* elements, of all ranks */
    uint64_t checked;     /* elements compared, of all ranks */
    hce_comm_stats_t *stats; /* by rank, of all its communicators; or NULL */
    uint64_t *put_bytes;     /* [rank][peer], likewise */
    uint64_t stats_wrong; /* bursts whose counts were not those planned */
} hce_perf_results_t;

/* How many places are measured, the first ones. */
int hce_perf_results_places(const hce_perf_opts_t *opts);

/* "sum", or "none" where nothing is reduced. */
const char *hce_perf_results_op(const hce_perf_opts_t *opts,
                                const hce_perf_row_t *row);

/* Mean of all cells' bus bandwidth; 0 without any. */
double hce_perf_results_busbw(const hce_perf_results_t *results);

/* "OK, ..." or "FAILED, ..."; failure is the job's, empty if there is none.
 * Returns whether it is OK. */
bool hce_perf_results_verdict(const hce_perf_results_t *results,
                              const hce_perf_opts_t *opts, const char *failure,
                              char *buf, size_t size);

#endif
