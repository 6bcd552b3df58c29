/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The soft GPU's own objects, shared by its files. One lock protects all of
 * them but what says otherwise; engines copy without it. Where a driver's
 * behaviour is not known it is the stricter of what could be.
 */
#ifndef HCE_TESTS_SOFTGPU_SOFT_H
#define HCE_TESTS_SOFTGPU_SOFT_H

#include "calls.h"
#include "softgpu.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#define SOFT_GRAN        (2ul << 20) /* unit of device memory */
#define SOFT_MAX_DEVICES 8
#define SOFT_MAX_QUEUES  32
#define SOFT_MAX_BINDS   64
#define SOFT_FREED       0xdeadull

typedef hce_cu_result_t soft_result_t;

#define SOFT_DECLARE(_need, _member, _name, _version, _params)                \
    soft_result_t soft_##_member _params;
HCE_DRV_CALLS(SOFT_DECLARE)
SOFT_CALLS(SOFT_DECLARE)

/* ---- settings, entry, counters: enter.c, settings.c */

typedef struct soft_settings {
    int devices, jitter_us, connections, engines, version, ordering;
    unsigned seed;
    size_t window, memory; /* bytes */
} soft_settings_t;
extern soft_settings_t soft_settings;
void soft_settings_read(void);
/* Value given by SOFTGPU_ATTR, or dfl. */
int soft_settings_attr(unsigned attr, int dfl);
bool soft_settings_hides(const char *name);

/* Where a call of the driver begins. */
typedef enum soft_need {
    SOFT_ANY,    /* before cuInit, too */
    SOFT_INIT,   /* after cuInit */
    SOFT_CTX,    /* with a current context */
    SOFT_UNSAFE, /* the same, and not during captures: 900 */
} soft_need_t;
typedef struct soft_site {
    const char *name;
    soft_need_t need;
    uint64_t calls; /* under the lock of enter.c */
    struct soft_site *next;
} soft_site_t;
/* Counts; fails where the call has to, or is told to. */
soft_result_t soft_enter(soft_site_t *site);

extern pthread_mutex_t soft_lock;
extern pthread_cond_t soft_news;     /* something was enqueued or has ended */
extern _Atomic unsigned soft_sticky; /* first error of an engine */

extern softgpu_counters_t soft_counters; /* under counters' own lock */
void soft_count(uint64_t *counter, uint64_t by);
void soft_count_live(int64_t *counter, int by);
/* Ends the process with a message: what no driver would tell. */
_Noreturn void soft_die(const char *format, ...)
    __attribute__((format(printf, 1, 2)));
/* Random number of state; SOFTGPU_SEED decides. */
uint32_t soft_random(uint64_t *state);
uint64_t soft_seed(uint64_t salt);

/* ---- devices and contexts: device.c */

struct CUctx_st {
    int dev;
    int retained;
    unsigned peers; /* bit a device whose memory this one reaches */
};
/* Device of this thread's current context, or -1. */
int soft_current(void);
struct CUctx_st *soft_ctx(int dev);
bool soft_device_ok(hce_cu_device_t dev);

/* ---- memory: space.c, object.c */

typedef struct soft_bind {
    _Atomic int state; /* 0 free, 1 being written, 2 valid */
    int dev;
    pid_t pid;
    uint64_t start; /* of the process */
    int fd;
    uint64_t id;                     /* of the object */
    uint64_t mc_offset, offset, len; /* in the multicast and the object */
} soft_bind_t;

/* Last in an object's file, seen by all processes that have it. */
typedef struct soft_label {
    uint64_t magic;
    uint64_t id;
    uint64_t len;
    uint64_t asked; /* bytes that were asked for */
    int32_t dev;
    uint32_t handle_types;
    uint32_t is_vmm;
    uint32_t is_multicast;
    uint32_t num_devices;     /* of a multicast */
    _Atomic uint32_t added;   /* devices, as bits */
    _Atomic uint64_t freed;   /* SOFT_FREED: the owner has freed it */
    _Atomic uint32_t has_nic; /* the first part is in use */
    soft_bind_t binds[SOFT_MAX_BINDS];
} soft_label_t;

/* Physical memory: a file of what the NIC sees, what the device sees, what
 * both saw last, and the label; all mapped where only engines look. */
typedef struct soft_obj {
    int fd;
    size_t len;
    char *map;
    char *nic, *data, *seen;
    soft_label_t *label;
    int refs;
    bool is_import;
    pthread_mutex_t nic_lock; /* the three parts' differences */
    struct soft_obj *targets[SOFT_MAX_BINDS]; /* of a multicast, opened */
} soft_obj_t;

#define SOFT_LABEL_SIZE 16384
#define SOFT_MAGIC      0x534f465447505531ull

soft_result_t soft_obj_create(const soft_label_t *label, soft_obj_t **obj_p);
/* Takes fd over on success; 1 if it is no object. */
soft_result_t soft_obj_open(int fd, soft_obj_t **obj_p);
void soft_obj_put(soft_obj_t *obj);
/* Descriptor of another process' object; -1 if it is gone. */
int soft_obj_reach(pid_t pid, uint64_t start, int fd);
uint64_t soft_start_time(pid_t pid);

typedef enum soft_kind { SOFT_ALLOC, SOFT_IPC, SOFT_VMM } soft_kind_t;
typedef struct soft_range {
    hce_cu_ptr_t va;
    size_t len;   /* mapped */
    size_t asked; /* what may be touched */
    soft_obj_t *obj;
    soft_kind_t kind;
    int dev;          /* whose memory it is */
    int opener;       /* device whose context opened it */
    unsigned readers; /* devices, as bits */
    unsigned writers;
    uint64_t buffer_id;
    int refs; /* IPC opens */
    int sync_memops;
    struct soft_range *next;
} soft_range_t;

/* Address space for device memory. The caller holds soft_lock. */
void soft_space_init(void);
hce_cu_ptr_t soft_space_take(size_t len);
bool soft_space_give(hce_cu_ptr_t va, size_t len); /* exactly one span */
bool soft_space_has(hce_cu_ptr_t va, size_t len);  /* in one span */
bool soft_is_device(hce_cu_ptr_t va);              /* in the window */
soft_range_t *soft_range_find(hce_cu_ptr_t va);
soft_range_t *soft_range_first(void);
soft_range_t *soft_range_add(const soft_range_t *range);
void soft_range_remove(soft_range_t *range); /* puts the object */

/* Registered host memory: all of it pinned? Caller holds soft_lock. */
bool soft_is_pinned(hce_cu_ptr_t va, size_t len);

/* NIC writes: what is due becomes visible to readers on dev (-1: all). */
void soft_nic_settle(soft_obj_t *obj, int dev, uint64_t *random);
void soft_nic_flush_all(void); /* caller holds soft_lock */
/* A device has written data + offset. */
void soft_nic_written(soft_obj_t *obj, size_t offset, size_t len);

/* ---- multicast.c */
/* Objects that bytes from offset of mc go to, with the offset there; len_p is
 * cut to what is uniform. Number of them; 0: nothing is bound. */
typedef struct soft_target {
    soft_obj_t *obj;
    size_t offset;
} soft_target_t;
int soft_multicast_targets(soft_obj_t *mc, size_t offset, size_t *len_p,
                           soft_target_t targets[SOFT_MAX_BINDS]);

/* ---- streams and engines: stream.c, engine.c */

typedef struct soft_copy {
    hce_cu_ptr_t dst, src;
    size_t len;
} soft_copy_t;

typedef struct soft_dep {
    struct CUstream_st *stream;
    uint64_t seq;
} soft_dep_t;

typedef enum soft_op_kind {
    SOFT_OP_MARK, /* nothing: events, begin and end of graphs */
    SOFT_OP_COPY,
    SOFT_OP_MEMOP
} soft_op_kind_t;

typedef struct soft_op {
    soft_op_kind_t kind;
    bool is_batch;
    bool is_peer; /* staged by the driver where there is no peer access */
    size_t num, pos;
    soft_copy_t *copies;
    hce_cu_memop_t *memops;
    soft_dep_t *deps;
    size_t num_deps;
    struct CUstream_st *stream;
    uint64_t seq;
    struct soft_op *next;
} soft_op_t;

/* A hardware channel: first in, first out; a head that waits blocks it. */
typedef struct soft_queue {
    soft_op_t *head, **tail;
    bool busy;
} soft_queue_t;

struct soft_capture;
struct CUstream_st {
    struct CUctx_st *ctx;
    unsigned flags;
    int priority;
    uint64_t id;
    soft_queue_t *queue;
    uint64_t issued, done;
    bool is_legacy, is_dead;
    struct soft_capture *capture;
    size_t *heads; /* of the capture: nodes that come before the next */
    size_t num_heads;
    struct CUstream_st *next;
};

/* A handle to the stream it means for this thread; NULL if it is none. */
struct CUstream_st *soft_stream(hce_cu_stream_t handle);
struct CUstream_st *soft_stream_first(void);
/* Of the library's own, for a branch of a graph. */
struct CUstream_st *soft_stream_make(int dev, unsigned flags);
void soft_stream_unmake(struct CUstream_st *stream);
bool soft_stream_idle(const struct CUstream_st *stream);
/* Until every stream of this process is idle. Caller holds soft_lock. */
void soft_drain(void);
void soft_engines_start(int dev);
soft_queue_t *soft_queue_pick(int dev, unsigned index);
soft_queue_t *soft_queues(int dev);

soft_op_t *soft_op_make(soft_op_kind_t kind, size_t num);
soft_op_t *soft_op_clone(const soft_op_t *op);
void soft_op_free(soft_op_t *op);
void soft_op_depend(soft_op_t *op, struct CUstream_st *stream, uint64_t seq);
/* Enqueues, or adds a node to the capture; takes op over in any case. Caller
 * holds soft_lock. */
soft_result_t soft_submit(struct CUstream_st *stream, soft_op_t *op);
/* Not into a capture: launches of graphs, drains. */
void soft_enqueue(struct CUstream_st *stream, soft_op_t *op);
/* 906 where the legacy stream would touch a capture. */
soft_result_t soft_legacy_check(const struct CUstream_st *stream);

/* Has the memop at op->pos come to its end? */
bool soft_memop_step(soft_op_t *op);
soft_result_t soft_copy_run(soft_op_t *op, uint64_t *random);

/* ---- events, captures, graphs: event.c, capture.c, graph.c */

struct CUevent_st {
    unsigned flags;
    int dev;
    struct CUstream_st *stream; /* NULL: never recorded */
    uint64_t seq;
    struct soft_capture *capture; /* recorded in it */
    uint64_t capture_id;
    size_t *heads;
    size_t num_heads;
    struct CUevent_st *next;
};

typedef struct soft_node {
    struct CUgraphNode_st *handle;
    soft_op_t *op; /* template */
    int dev;
    size_t *deps;
    size_t num_deps;
} soft_node_t;

typedef struct soft_capture {
    uint64_t id;
    unsigned mode;
    pthread_t thread;
    struct CUstream_st *origin;
    struct CUgraph_st *graph;
    bool is_invalid;
    struct soft_capture *next;
} soft_capture_t;

/* Caller holds soft_lock. */
soft_result_t soft_capture_add(struct CUstream_st *stream, soft_op_t *op);
soft_result_t soft_capture_wait(struct CUstream_st *stream,
                                const struct CUevent_st *event);
bool soft_capture_alive(const soft_capture_t *capture, uint64_t id);
/* 900, and captures invalid, if a call that is unsafe now must fail. */
soft_result_t soft_capture_unsafe(void);
soft_capture_t *soft_capture_first(void);
size_t *soft_heads_copy(const size_t *heads, size_t num);

struct CUuserObject_st {
    void *ptr;
    hce_cu_host_fn_t destroy;
    unsigned refs;
};
struct CUgraph_st {
    soft_node_t *nodes;
    size_t num_nodes;
    struct CUuserObject_st **objects; /* one entry a reference */
    size_t num_objects;
};
struct CUgraph_st *soft_graph_make(void);
size_t soft_graph_add(struct CUgraph_st *graph, soft_op_t *op, int dev,
                      const size_t *deps, size_t num_deps);
void soft_graph_unmake(struct CUgraph_st *graph);
/* Drops count references; the caller does not hold soft_lock. */
void soft_user_object_put(struct CUuserObject_st *object, unsigned count);

#endif
