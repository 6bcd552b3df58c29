/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * What is measured beside time, and how: one source for hce_perf and for the
 * program it is compared with. Depends on the C library only.
 */
#ifndef HCE_PERF_MEASURE_H
#define HCE_PERF_MEASURE_H

#include <stddef.h>
#include <stdint.h>

/* Bytes by all interfaces of this host but loopback, as the kernel counts.
 * Fixed layout: exchanged between ranks. */
typedef struct hce_perf_net {
    uint64_t received, sent;
} hce_perf_net_t;

/* Seconds of a core that this process, all its threads, has used so far. */
double hce_perf_measure_cpu(void);

/* Zeros where the kernel does not say. */
void hce_perf_measure_net(hce_perf_net_t *net_p);

/* The middle, or the mean of the two in the middle; sorts values. num > 0. */
double hce_perf_measure_median(double *values, size_t num);

#endif
