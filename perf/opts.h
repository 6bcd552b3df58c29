/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * What the command line of hce_perf asked for. Filled once by
 * hce_perf_opts_parse, read-only afterwards; all ranks have the same.
 */
#ifndef HCE_PERF_OPTS_H
#define HCE_PERF_OPTS_H

#include <hce/hce.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "coll.h"
#include "util/layout.h"

#define HCE_PERF_DEFAULT_BYTES (32ull << 20)
#define HCE_PERF_NOT_GIVEN     UINT64_MAX

typedef enum hce_perf_buffers {
    HCE_PERF_BUFFERS_WINDOW, /* hce_mem_alloc, registered */
    HCE_PERF_BUFFERS_ALLOC,  /* hce_mem_alloc, not registered */
    HCE_PERF_BUFFERS_MALLOC  /* memory of the C library */
} hce_perf_buffers_t;

/* How the times of the ranks become one, in the order of -a. */
typedef enum hce_perf_average {
    HCE_PERF_AVERAGE_RANK0,
    HCE_PERF_AVERAGE_MEAN,
    HCE_PERF_AVERAGE_MIN,
    HCE_PERF_AVERAGE_MAX
} hce_perf_average_t;

/* What one rank of --mismatch does differently in the first call. */
typedef enum hce_perf_mismatch {
    HCE_PERF_MISMATCH_COUNT,
    HCE_PERF_MISMATCH_TYPE,
    HCE_PERF_MISMATCH_PATH
} hce_perf_mismatch_t;

/* Planted faults, to test the checks; a rank of -1 is none. */
typedef struct hce_perf_faults {
    int corrupt_rank;
    int delay_rank;
    int delay_ms;
    int kill_rank;
    int kill_call; /* counted from 1 */
    int mismatch_rank;
    hce_perf_mismatch_t mismatch;
} hce_perf_faults_t;

typedef struct hce_perf_opts {
    const hce_perf_coll_t *coll;
    uint64_t min_bytes, max_bytes, step_bytes;
    int step_factor; /* 1 is off: step_bytes counts */
    bool per_rank;   /* sizes are bytes a rank, not of the output */
    int iters, warmup, checks;
    int milliseconds;  /* as many calls as take so long; 0: iters */
    bool single;       /* also time calls one by one */
    bool out_of_place; /* only */
    hce_perf_average_t average;
    hce_redop_t ops[HCE_REDOP_LAST]; /* of reductions */
    int num_ops;
    int root; /* accepted and checked, of no effect here; -1 is all */
    hce_datatype_t types[HCE_DATATYPE_LAST];
    int num_types;

    int ranks; /* local ranks to start; 0: the launcher started them */
    bool threads;
    const char *nodes; /* NULL: as the library finds them */
    hce_layout_map_t map;

    hce_call_params_t call;
    int num_comms;
    hce_perf_buffers_t buffers;
    int offset; /* bytes by which buffers are off page alignment */
    bool blocking;
    bool check_stats;

    bool each; /* every path, one after the other at each size */
    const char *json, *plot, *calibrate; /* file names or NULL */
    hce_perf_faults_t faults;
} hce_perf_opts_t;

/* Ends the program with a message on a wrong argument and on --help. */
void hce_perf_opts_parse(int argc, char **argv, hce_perf_opts_t *opts_p);

/* Checks flags against each other and fills in defaults that follow from
 * them. On false why is text for the user. */
bool hce_perf_opts_finish(hce_perf_opts_t *opts, char *why, size_t size);

/* Do all flags that name a rank fit a job of nranks? If not, why is text that
 * says which does not. */
bool hce_perf_opts_check_ranks(const hce_perf_opts_t *opts, int nranks,
                               char *why, size_t size);

/* Names as the command line spells them. */
const char *hce_perf_buffers_name(hce_perf_buffers_t buffers);
const char *hce_perf_map_name(hce_layout_map_t map);

#endif
