/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Copy engines of devices with streams: whatever a launch needs is enqueued
 * at the call, by the caller's thread, between begin and end; later nothing
 * but counters in host memory is touched. One hce_ce_dev_t a device and
 * process, shared by all communicators. Thread-safe; nothing here may be
 * called by the engine's owner but hce_ce_word_...().
 */
#ifndef HCE_CE_DEV_H
#define HCE_CE_DEV_H

#include <hce/hce.h>
#include "util/counter.h"

#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>

#define HCE_CE_DEV_QUEUES 4  /* most streams a device and process */
#define HCE_CE_DEV_TOKEN  16 /* random bytes that name a process */
#define HCE_CE_DEV_HANDLE 64

typedef struct hce_ce_dev hce_ce_dev_t;
typedef struct hce_ce_dev_launch hce_ce_dev_launch_t;
typedef struct hce_ce_dev_import hce_ce_dev_import_t;
typedef struct hce_ce_dev_multicast hce_ce_dev_multicast_t;
typedef struct hce_ce_words hce_ce_words_t;
typedef uint64_t hce_ce_dev_ptr_t; /* as the device sees it */

/* When data that a NIC wrote is visible to the device's engines. */
typedef enum hce_ce_dev_order {
    HCE_CE_ORDER_NONE,    /* once a counter says that it has come */
    HCE_CE_ORDER_STREAM,  /* after a wait of the stream that flushes */
    HCE_CE_ORDER_READBACK /* after the NIC has read it back */
} hce_ce_dev_order_t;

typedef struct hce_ce_dev_attr {
    char name[64];
    char bus_id[16];
    int ordinal;
    int num_queues;
    size_t copy_limit; /* longer copies are cut */
    bool has_batch;
    bool has_vmm; /* memory by handle, exported by descriptor */
    bool has_multicast;
    bool has_dmabuf;
    hce_ce_dev_order_t order;
} hce_ce_dev_attr_t;

/* Where a copy's bytes go: counted by kind. Inside one device drivers may
 * use multiprocessors: there is no promise about its engine. */
typedef enum hce_ce_dev_kind {
    HCE_CE_DEV_TO_PEER,
    HCE_CE_DEV_TO_HOST,
    HCE_CE_DEV_FROM_HOST,
    HCE_CE_DEV_SAME,
    HCE_CE_DEV_MULTICAST,
    HCE_CE_DEV_KINDS
} hce_ce_dev_kind_t;

typedef struct hce_ce_dev_stats {
    uint64_t copies[HCE_CE_DEV_KINDS];
    uint64_t bytes[HCE_CE_DEV_KINDS];
    uint64_t batches; /* calls that gave the driver several copies */
    uint64_t waits;
    uint64_t writes;
} hce_ce_dev_stats_t;

typedef struct hce_ce_dev_copy {
    hce_ce_dev_ptr_t dst, src;
    size_t len; /* 0: nothing */
    hce_ce_dev_kind_t kind;
} hce_ce_dev_copy_t;

/* Wait: *addr at least value, as hce_counter_geq. Write: *addr = value. addr
 * is of memory that host_map has mapped. */
typedef struct hce_ce_dev_memop {
    hce_ce_dev_ptr_t addr;
    uint64_t value;
    bool flush; /* a wait for what a NIC wrote, with HCE_CE_ORDER_STREAM */
} hce_ce_dev_memop_t;

typedef enum hce_ce_dev_how {
    HCE_CE_DEV_IPC,   /* handle of cudaMalloc'd memory */
    HCE_CE_DEV_FD,    /* memory by handle; a descriptor goes with it */
    HCE_CE_DEV_FABRIC /* memory by handle; no descriptor */
} hce_ce_dev_how_t;

/* One allocation under a buffer; a buffer may lie on several. */
typedef struct hce_ce_dev_part {
    uint64_t len;
    uint32_t how; /* hce_ce_dev_how_t */
    int32_t fd;   /* HCE_CE_DEV_FD: here, -1 else */
    uint8_t handle[HCE_CE_DEV_HANDLE];
} hce_ce_dev_part_t;

/* A buffer as another process can open it. */
typedef struct hce_ce_dev_export {
    uint8_t token[HCE_CE_DEV_TOKEN]; /* of the process */
    uint64_t id;                     /* of the memory, in that process */
    uint64_t addr;                   /* of the buffer, in that process */
    uint64_t base;                   /* of the first part, there */
    uint64_t len;                    /* of the buffer */
    int32_t ordinal;                 /* of the device, there */
    uint32_t num_parts;
    hce_ce_dev_part_t *parts;
} hce_ce_dev_export_t;

/* A word shared by a stream and its own rank's proxy, in a captured launch:
 * one of them sets it, the other sees that and clears it. */
typedef struct hce_ce_word {
    alignas(64) hce_counter_t state; /* 0 or 1 */
} hce_ce_word_t;

/* The proxy's side. Acquire: pairs with the stream's write. */
static inline bool hce_ce_word_is_set(const hce_ce_word_t *word)
{
    return hce_counter_read(&word->state) != 0;
}
/* Release: pairs with the stream's wait. */
static inline void hce_ce_word_put(hce_ce_word_t *word, uint64_t state)
{
    hce_counter_post(&word->state, state);
}

typedef struct hce_ce_dev_ops {
    const char *name; /* "cuda" */
    /* How many there are; 0 with the reason in text. */
    int (*count)(char *text, size_t size);
    /* For people, without opening it: name, what it can, how it orders. */
    void (*describe)(int ordinal, char *text, size_t size);
    hce_status_t (*open)(int ordinal, hce_ce_dev_t **dev_p);
    void (*close)(hce_ce_dev_t *dev); /* its queues are drained */
    const hce_ce_dev_attr_t *(*attr)(const hce_ce_dev_t *dev);
    void (*get_stats)(hce_ce_dev_t *dev, hce_ce_dev_stats_t *stats_p);

    /* Memory that peers can open. */
    hce_status_t (*mem_alloc)(hce_ce_dev_t *dev, size_t size,
                              hce_ce_dev_ptr_t *ptr_p);
    hce_status_t (*mem_free)(hce_ce_dev_t *dev, hce_ce_dev_ptr_t ptr);
    /* Ordinal of the device that has ptr; -1: host memory. */
    hce_status_t (*mem_where)(hce_ce_dev_t *dev, hce_ce_dev_ptr_t ptr,
                              int *ordinal_p);

    /* HCE_ERR_UNSUPPORTED after a log line that says why the memory cannot be
     * opened by others. Ends with export_free, which closes descriptors. */
    hce_status_t (*mem_export)(hce_ce_dev_t *dev, hce_ce_dev_ptr_t ptr,
                               size_t len, hce_ce_dev_export_t *export_p);
    void (*export_free)(hce_ce_dev_export_t *exported);
    /* Opened once a device and process, however often it is imported; the
     * descriptors in exported stay the caller's. In the exporting process it
     * is the memory itself. *ptr_p is where exported->addr is. */
    hce_status_t (*mem_import)(hce_ce_dev_t *dev,
                               const hce_ce_dev_export_t *exported,
                               hce_ce_dev_import_t **import_p,
                               hce_ce_dev_ptr_t *ptr_p);
    void (*import_put)(hce_ce_dev_import_t *import);

    /* Host memory for counters and staging, from here to host_unmap. */
    hce_status_t (*host_map)(hce_ce_dev_t *dev, void *addr, size_t len,
                             hce_ce_dev_ptr_t *ptr_p);
    void (*host_unmap)(hce_ce_dev_t *dev, void *addr);

    /* One launch at a time: begin takes the device, end gives it back, also
     * after an error. user is the caller's stream as the driver names it. */
    hce_status_t (*begin)(hce_ce_dev_t *dev, void *user,
                          hce_ce_dev_launch_t **launch_p);
    bool (*is_captured)(const hce_ce_dev_launch_t *launch);
    hce_status_t (*end)(hce_ce_dev_launch_t *launch);
    /* All of what follows is for queue 0..num_queues-1, in order. A queue that
     * is used begins after what user has been given, and user goes on after
     * it. No order between the copies of one call: no two may touch the same
     * bytes, and a signal for them is a later call. */
    hce_status_t (*copy)(hce_ce_dev_launch_t *launch, int queue,
                         const hce_ce_dev_copy_t *copies, size_t num);
    hce_status_t (*wait)(hce_ce_dev_launch_t *launch, int queue,
                         const hce_ce_dev_memop_t *memops, size_t num);
    hce_status_t (*write)(hce_ce_dev_launch_t *launch, int queue,
                          const hce_ce_dev_memop_t *memops, size_t num);

    /* Words of a captured launch: they live until no graph has it any more.
     * Others must not use them; the proxy asks words_are_gone in each turn
     * and calls words_put then. */
    hce_status_t (*words_get)(hce_ce_dev_launch_t *launch, uint32_t num,
                              hce_ce_words_t **words_p);
    hce_ce_word_t *(*words_at)(hce_ce_words_t *words, uint32_t index);
    bool (*words_are_gone)(const hce_ce_words_t *words);
    void (*words_put)(hce_ce_words_t *words);
    /* The stream waits until they are 1 and clears them; sets them to 1. */
    hce_status_t (*word_wait)(hce_ce_dev_launch_t *launch, int queue,
                              hce_ce_words_t *words, uint32_t index);
    hce_status_t (*word_set)(hce_ce_dev_launch_t *launch, int queue,
                             hce_ce_words_t *words, uint32_t index);

    /* Has all that was enqueued come to its end? HCE_OK, HCE_INPROGRESS. */
    hce_status_t (*query)(hce_ce_dev_t *dev);
    /* Calls release(arg), which stores HCE_COUNTER_RELEASE to all that streams
     * may wait for, again and again until they have drained. After
     * HCE_ERR_TIMEOUT nothing that they use may be freed. */
    hce_status_t (*drain)(hce_ce_dev_t *dev, uint64_t deadline,
                          void (*release)(void *arg), void *arg);

    /* A copy to all devices at once. In this order on all of them, with a
     * barrier between: create (one) and open (others); add; bind; then copies
     * with HCE_CE_DEV_MULTICAST to its ptr. ptr of bind is of mem_alloc. */
    hce_status_t (*multicast_create)(hce_ce_dev_t *dev, int num_devices,
                                     size_t size, int *fd_p,
                                     hce_ce_dev_multicast_t **multicast_p);
    hce_status_t (*multicast_open)(hce_ce_dev_t *dev, int fd, size_t size,
                                   hce_ce_dev_multicast_t **multicast_p);
    hce_status_t (*multicast_add)(hce_ce_dev_multicast_t *multicast);
    hce_status_t (*multicast_bind)(hce_ce_dev_multicast_t *multicast,
                                   hce_ce_dev_ptr_t mem,
                                   hce_ce_dev_ptr_t *ptr_p);
    void (*multicast_close)(hce_ce_dev_multicast_t *multicast);
} hce_ce_dev_ops_t;

extern const hce_ce_dev_ops_t hce_ce_cuda_ops;

const char *hce_ce_dev_order_string(hce_ce_dev_order_t order);

#endif
