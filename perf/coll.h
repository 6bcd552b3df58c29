/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The collectives that can be measured: how long their buffers are, what is
 * called, and how bandwidth is counted. Formulas are those of nccl-tests.
 */
#ifndef HCE_PERF_COLL_H
#define HCE_PERF_COLL_H

#include <hce/hce.h>
#include <stdbool.h>

typedef struct hce_perf_coll {
    const char *name;  /* "all_gather" */
    const char *call;  /* "hce_allgather" */
    hce_coll_t number;
    bool sends_all;    /* input: count elements for every rank, else once */
    bool receives_all; /* likewise its output */
    bool reduces;
} hce_perf_coll_t;

/* One call. */
typedef struct hce_perf_coll_args {
    const void *send;
    void *recv;
    size_t count;
    hce_datatype_t type;
    hce_redop_t op; /* of reductions */
    hce_comm_h comm;
    hce_stream_h stream;
    const hce_call_params_t *params;
} hce_perf_coll_args_t;

/* NULL if there is none of that name. */
const hce_perf_coll_t *hce_perf_coll_find(const char *name);

/* Parts of count elements that a size is made of: ranks or 1. */
int hce_perf_coll_parts(const hce_perf_coll_t *coll, int ranks);

/* Bytes of a rank's input and output for a part of so many bytes. */
size_t hce_perf_coll_send_len(const hce_perf_coll_t *coll, size_t len,
                              int ranks);
size_t hce_perf_coll_recv_len(const hce_perf_coll_t *coll, size_t len,
                              int ranks);

/* Bus bandwidth for an algorithm bandwidth of 1. */
double hce_perf_coll_bus_factor(const hce_perf_coll_t *coll, int ranks);

hce_status_t hce_perf_coll_run(const hce_perf_coll_t *coll,
                               const hce_perf_coll_args_t *args);

#endif
