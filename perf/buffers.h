/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Send and receive buffers of one rank for one communicator, with guards
 * around them that show writes out of bounds.
 */
#ifndef HCE_PERF_BUFFERS_H
#define HCE_PERF_BUFFERS_H

#include "job.h"

typedef struct hce_perf_buffer {
    void *base;          /* as allocated */
    unsigned char *addr; /* what is used: size bytes */
    size_t size;
    hce_window_h window; /* NULL if not registered */
} hce_perf_buffer_t;

typedef struct hce_perf_pair {
    hce_perf_buffer_t send, recv;
} hce_perf_pair_t;

/* States the memory that all ranks need, and refuses more than the fullest
 * machine has free. Collective. */
hce_status_t hce_perf_buffers_admit(hce_perf_job_t *job, size_t send_size,
                                    size_t recv_size);

/* Fills pairs[num_comms], which were zero; what was made before a failure
 * stays for hce_perf_buffers_free. Collective: registers windows. */
hce_status_t hce_perf_buffers_create(hce_perf_job_t *job, size_t send_size,
                                     size_t recv_size, hce_perf_pair_t *pairs);

/* The orderly end of the windows; after a failure they end with their
 * communicators instead. Collective: nobody may use them any more. */
hce_status_t hce_perf_buffers_deregister(hce_perf_job_t *job,
                                         hce_perf_pair_t *pairs);

/* When the communicators are destroyed or the windows deregistered. */
void hce_perf_buffers_free(const hce_perf_opts_t *opts,
                           hce_perf_pair_t *pairs);

/* Bytes of the guards that are no longer what they were. */
uint64_t hce_perf_buffer_check(const hce_perf_buffer_t *buffer);

#endif
