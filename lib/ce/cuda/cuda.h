/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The CUDA copy engine's objects, shared by its files only. Locks, in the
 * order in which they are taken: the registry's (device.c), a device's launch
 * lock, its memory lock.
 */
#ifndef HCE_CE_CUDA_CUDA_H
#define HCE_CE_CUDA_CUDA_H

#include "ce/dev.h"
#include "drv/drv.h"

#include <pthread.h>

#define HCE_CE_CUDA_BATCH 64 /* most copies of one batch */

/* An own stream, with the event that whoever waits for it waits for. */
typedef struct hce_ce_cuda_queue {
    hce_cu_stream_t stream;
    hce_cu_event_t event;
    struct hce_ce_cuda_queue *next;
} hce_ce_cuda_queue_t;

/* Memory of mem_alloc. */
typedef struct hce_ce_cuda_mem {
    hce_cu_ptr_t ptr;
    size_t size;         /* as mapped */
    hce_cu_mem_t handle; /* if is_vmm */
    bool is_vmm;
    struct hce_ce_cuda_mem *next;
} hce_ce_cuda_mem_t;

struct hce_ce_dev_import {
    hce_ce_dev_t *dev;
    uint8_t token[HCE_CE_DEV_TOKEN];
    uint64_t id, base, size; /* of all parts */
    unsigned refs;
    hce_cu_ptr_t ptr; /* where base is here */
    bool is_ipc, is_own;
    struct hce_ce_dev_import *next;
};

typedef struct hce_ce_cuda_host {
    void *addr;
    size_t len;
    hce_cu_ptr_t ptr;
    unsigned refs;
    bool is_ours; /* registered by us, not by the application */
    struct hce_ce_cuda_host *next;
} hce_ce_cuda_host_t;

struct hce_ce_words {
    hce_ce_dev_t *dev;
    hce_ce_word_t *words;
    hce_ce_dev_ptr_t ptr;
    uint32_t max;
    _Atomic(unsigned) owners;  /* bits of words.c */
    struct hce_ce_words *next; /* of those that nobody uses */
};

/* What a launch is given; one a device, under its launch lock. */
struct hce_ce_dev_launch {
    hce_ce_dev_t *dev;
    hce_drv_scope_t scope;
    hce_cu_stream_t user;
    bool is_captured;
    uint64_t capture_id;
    hce_cu_graph_t graph;
    bool is_forked;
    hce_ce_cuda_queue_t *queues[HCE_CE_DEV_QUEUES]; /* NULL: not used yet */
};

struct hce_ce_dev {
    hce_ce_dev_t *next;
    unsigned refs; /* the registry's lock */
    const hce_drv_t *drv;
    hce_cu_device_t device;
    hce_cu_ctx_t ctx;
    hce_ce_dev_attr_t attr;
    hce_ce_cuda_queue_t queues[HCE_CE_DEV_QUEUES];
    hce_cu_event_t fork;

    /* From begin to end. */
    pthread_mutex_t launch_lock;
    hce_ce_dev_launch_t launch;
    hce_ce_cuda_queue_t *capture_queues; /* used in captures only */
    hce_cu_event_t capture_fork;
    hce_ce_dev_stats_t stats;
    hce_cu_ptr_t dsts[HCE_CE_CUDA_BATCH], srcs[HCE_CE_CUDA_BATCH];
    size_t lens[HCE_CE_CUDA_BATCH];
    hce_cu_memop_t memops[HCE_CU_LIMIT_MEMOPS];

    pthread_mutex_t mem_lock; /* the lists */
    hce_ce_cuda_mem_t *mems;
    hce_ce_dev_import_t *imports;
    hce_ce_cuda_host_t *hosts;
    hce_ce_words_t *free_words;
    unsigned num_words; /* blocks that somebody uses */
};

/* The context for calls outside of launches. */
hce_status_t hce_ce_cuda_enter(const hce_ce_dev_t *dev,
                               hce_drv_scope_t *scope_p);

/* device.c */
int hce_ce_cuda_count(char *text, size_t size);
void hce_ce_cuda_describe(int ordinal, char *text, size_t size);
hce_status_t hce_ce_cuda_open(int ordinal, hce_ce_dev_t **dev_p);
void hce_ce_cuda_close(hce_ce_dev_t *dev);
hce_status_t hce_ce_cuda_queue_init(hce_ce_dev_t *dev,
                                    hce_ce_cuda_queue_t *queue);
void hce_ce_cuda_queue_cleanup(hce_ce_dev_t *dev, hce_ce_cuda_queue_t *queue);

/* mem.c; the last finds memory of mem_alloc, NULL if it is not. */
hce_status_t hce_ce_cuda_mem_alloc(hce_ce_dev_t *dev, size_t size,
                                   hce_ce_dev_ptr_t *ptr_p);
hce_status_t hce_ce_cuda_mem_free(hce_ce_dev_t *dev, hce_ce_dev_ptr_t ptr);
hce_status_t hce_ce_cuda_mem_where(hce_ce_dev_t *dev, hce_ce_dev_ptr_t ptr,
                                   int *ordinal_p);
hce_ce_cuda_mem_t *hce_ce_cuda_mem_find(hce_ce_dev_t *dev, hce_cu_ptr_t ptr);
hce_status_t hce_ce_cuda_access(const hce_ce_dev_t *dev, hce_cu_ptr_t ptr,
                                size_t size);

/* export.c, import.c */
hce_status_t hce_ce_cuda_export(hce_ce_dev_t *dev, hce_ce_dev_ptr_t ptr,
                                size_t len, hce_ce_dev_export_t *export_p);
void hce_ce_cuda_export_free(hce_ce_dev_export_t *exported);
hce_status_t hce_ce_cuda_import(hce_ce_dev_t *dev,
                                const hce_ce_dev_export_t *exported,
                                hce_ce_dev_import_t **import_p,
                                hce_ce_dev_ptr_t *ptr_p);
void hce_ce_cuda_import_put(hce_ce_dev_import_t *import);

/* host_map.c */
hce_status_t hce_ce_cuda_host_map(hce_ce_dev_t *dev, void *addr, size_t len,
                                  hce_ce_dev_ptr_t *ptr_p);
void hce_ce_cuda_host_unmap(hce_ce_dev_t *dev, void *addr);

/* launch.c; the last is the queue, forked from the user's stream. */
hce_status_t hce_ce_cuda_begin(hce_ce_dev_t *dev, void *user,
                               hce_ce_dev_launch_t **launch_p);
bool hce_ce_cuda_is_captured(const hce_ce_dev_launch_t *launch);
hce_status_t hce_ce_cuda_end(hce_ce_dev_launch_t *launch);
hce_status_t hce_ce_cuda_queue_get(hce_ce_dev_launch_t *launch, int index,
                                   hce_cu_stream_t *stream_p);

/* copy.c, memop.c */
hce_status_t hce_ce_cuda_copy(hce_ce_dev_launch_t *launch, int queue,
                              const hce_ce_dev_copy_t *copies, size_t num);
hce_status_t hce_ce_cuda_wait(hce_ce_dev_launch_t *launch, int queue,
                              const hce_ce_dev_memop_t *memops, size_t num);
hce_status_t hce_ce_cuda_write(hce_ce_dev_launch_t *launch, int queue,
                               const hce_ce_dev_memop_t *memops, size_t num);

/* words.c */
hce_status_t hce_ce_cuda_words_get(hce_ce_dev_launch_t *launch, uint32_t num,
                                   hce_ce_words_t **words_p);
hce_ce_word_t *hce_ce_cuda_words_at(hce_ce_words_t *words, uint32_t index);
bool hce_ce_cuda_words_are_gone(const hce_ce_words_t *words);
void hce_ce_cuda_words_put(hce_ce_words_t *words);
hce_status_t hce_ce_cuda_word_wait(hce_ce_dev_launch_t *launch, int queue,
                                   hce_ce_words_t *words, uint32_t index);
hce_status_t hce_ce_cuda_word_set(hce_ce_dev_launch_t *launch, int queue,
                                  hce_ce_words_t *words, uint32_t index);
/* Frees what nobody uses; false if somebody still does. */
bool hce_ce_cuda_words_cleanup(hce_ce_dev_t *dev);

/* drain.c */
hce_status_t hce_ce_cuda_query(hce_ce_dev_t *dev);
hce_status_t hce_ce_cuda_drain(hce_ce_dev_t *dev, uint64_t deadline,
                               void (*release)(void *arg), void *arg);

/* multicast.c */
hce_status_t
hce_ce_cuda_multicast_create(hce_ce_dev_t *dev, int num_devices, size_t size,
                             int *fd_p, hce_ce_dev_multicast_t **multicast_p);
hce_status_t hce_ce_cuda_multicast_open(hce_ce_dev_t *dev, int fd, size_t size,
                                        hce_ce_dev_multicast_t **multicast_p);
hce_status_t hce_ce_cuda_multicast_add(hce_ce_dev_multicast_t *multicast);
hce_status_t hce_ce_cuda_multicast_bind(hce_ce_dev_multicast_t *multicast,
                                        hce_ce_dev_ptr_t mem,
                                        hce_ce_dev_ptr_t *ptr_p);
void hce_ce_cuda_multicast_close(hce_ce_dev_multicast_t *multicast);

#endif
