/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * What tests ask the soft GPU beyond the driver's interface. The functions
 * are found by dlsym in libcuda.so.1; a real driver has none of them.
 *
 * Environment (read once, at cuInit):
 *   SOFTGPU_DEVICES      1..8 (2)
 *   SOFTGPU_SEED         of all jitter and orders (1)
 *   SOFTGPU_JITTER       longest random delay of an engine, us (50; 0 none)
 *   SOFTGPU_CONNECTIONS  hardware channels a device and process, 1..32 (8)
 *   SOFTGPU_ENGINES      engine threads a device and process, 1..8 (3)
 *   SOFTGPU_WINDOW       GiB of address space for device memory (64)
 *   SOFTGPU_MEMORY       MiB a process may allocate on a device (0: any)
 *   SOFTGPU_VERSION      12000..13020 (13000)
 *   SOFTGPU_ORDERING     of NIC writes: 0, 100, 200 (0)
 *   SOFTGPU_ATTR         "124=0,132=0": device attributes
 *   SOFTGPU_FAIL         "cuMemMap:3:2,...": call, n-th, result
 *   SOFTGPU_HIDE         "cuMemMap,...": calls that are not found
 *   SOFTGPU_STUB         1: answers as the toolkit's stub does
 *   SOFTGPU_REPORT       file to which a line of JSON is added at exit
 */
#ifndef HCE_TESTS_SOFTGPU_H
#define HCE_TESTS_SOFTGPU_H

#include <stdint.h>

/* Of this process. */
typedef struct softgpu_counters {
    uint64_t copies_h2d, bytes_h2d;
    uint64_t copies_d2h, bytes_d2h;
    uint64_t copies_same, bytes_same; /* inside one device */
    uint64_t copies_peer, bytes_peer;
    uint64_t copies_h2h, bytes_h2h;
    uint64_t copies_multicast;
    uint64_t batches;  /* batch copies, each of some of the copies above */
    uint64_t waits;    /* memops that wait */
    uint64_t waits_eq; /* of these, for equality */
    uint64_t writes;   /* memops that write */
    uint64_t flushes;  /* of NIC writes */
    uint64_t graph_launches;
    uint64_t calls; /* of the driver, all together */
    /* What is there now. */
    int64_t allocs, handles, mappings, ipc_opens, host_ranges;
    int64_t streams, events, graphs, execs, contexts;
} softgpu_counters_t;

typedef void (*softgpu_get_counters_t)(softgpu_counters_t *counters_p);
/* "cuMemMap:1:2": replaces SOFTGPU_FAIL from now on; counting starts anew. */
typedef void (*softgpu_set_fail_t)(const char *spec);

#endif
