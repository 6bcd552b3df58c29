/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The plan: everything one rank does for one collective, as data. Builders
 * make it, core runs it, the verifier proves it, tools show it. Pure: no I/O,
 * no threads, no vendor headers. Immutable once built.
 */
#ifndef HCE_PLAN_PLAN_H
#define HCE_PLAN_PLAN_H

#include <hce/hce.h>
#include <stdbool.h>
#include <stdint.h>
#include "util/layout.h"

#define HCE_PLAN_MAX_CONTEXTS 16
#define HCE_PLAN_MAX_CHUNKS   256        /* a slice */
#define HCE_PLAN_MAX_OPS      (1u << 24) /* a rank; builders refuse more */
#define HCE_PLAN_SLOTS        2          /* of scratch, by turns of launches */

typedef enum hce_plan_kind {
    HCE_OP_COPY,   /* one source, one or many destinations on my node */
    HCE_OP_PUT,    /* to one rank on another node; len may be 0 */
    HCE_OP_REDUCE, /* k sources, added up from left to right, to one or many
                      destinations on my node; one that lies where a source
                      lies starts where that starts */
    HCE_OP_SIGNAL  /* no data: only posts */
} hce_plan_kind_t;

typedef enum hce_plan_buf {
    HCE_BUF_SEND,
    HCE_BUF_RECV,
    HCE_BUF_SCRATCH, /* device memory of the library */
    HCE_BUF_STAGE    /* host memory mapped by the node */
} hce_plan_buf_t;

/* Counters. A counter is named (owner, writer, slot): it lies with owner, and
 * writer alone raises it, from one lane. Slots of one (owner, writer) pair: */
#define HCE_SLOT_READY 0  /* writer has entered, its buffers may be used */
#define HCE_SLOT_FLOW  1  /* + direction * 16 + context: chunks put to owner */
#define HCE_SLOT_NET   33 /* slots below may be written from other nodes */
#define HCE_SLOT_LOCAL HCE_SLOT_NET /* + i: by the writer's i-th copy lane */
#define HCE_PLAN_SLICE_LANES 2 /* copy lanes of a rank for one slice */

/* Slots of a pair of ranks of one node, local slots for each slice; of other
 * pairs HCE_SLOT_NET. */
int hce_plan_local_slots(const hce_layout_t *layout);

/* Counters an owner has in all, and where one of them is. All writers have
 * HCE_SLOT_NET slots, in order of rank, then the further slots of node peers
 * follow, in order of local rank. */
uint32_t hce_plan_num_counters(const hce_layout_t *layout);
uint32_t hce_plan_counter_index(const hce_layout_t *layout, int writer,
                                int slot);

/* Where data is: offset bytes into a buffer of a rank. With depth > 1 the
 * address is offset + (launch number mod depth) * stride: slots. */
typedef struct hce_plan_ref {
    uint64_t offset;
    uint64_t stride;
    int32_t rank;
    uint16_t buf; /* hce_plan_buf_t */
    uint16_t depth;
} hce_plan_ref_t;

/* "My counter (me, writer, slot) is at least value": value counts from the
 * launch's base; <= 0 is a post of an earlier launch (a credit). */
typedef struct hce_plan_wait {
    int32_t writer;
    int32_t slot;
    int64_t value;
} hce_plan_wait_t;

/* "Counter (owner, me, slot) becomes value", absolute from the base. */
typedef struct hce_plan_post {
    int32_t owner;
    int32_t slot;
    int64_t value;
} hce_plan_post_t;

typedef struct hce_plan_op {
    uint64_t len;
    uint32_t lane;
    uint32_t ref;  /* first source in refs[]; destinations follow */
    uint32_t wait; /* first in waits[] */
    uint32_t post; /* first in posts[] */
    uint16_t num_src;
    uint16_t num_dst;
    uint16_t num_wait;
    uint16_t num_post;
    uint8_t kind; /* hce_plan_kind_t */
    bool is_last; /* REDUCE: of all ranks' contributions; averages are divided
                     here and nowhere else */
} hce_plan_op_t;

typedef enum hce_plan_lane_kind {
    HCE_LANE_ENTRY, /* tells others that my buffers may be used */
    HCE_LANE_PROXY, /* puts to peer through context, in direction */
    HCE_LANE_COPY,  /* copies: of the slice of rank peer, or in rings to it */
    HCE_LANE_REDUCE
} hce_plan_lane_kind_t;

/* An ordered list of ops. Order is of start only. A post is raised when its
 * op and all earlier ops of the lane that post to that counter have ended. */
typedef struct hce_plan_lane {
    uint32_t first; /* in lane_ops[] */
    uint32_t num_ops;
    int32_t peer;
    uint8_t kind; /* hce_plan_lane_kind_t */
    uint8_t context;
    uint8_t direction; /* 0 cw, 1 ccw */
} hce_plan_lane_t;

/* How much a counter grows in one launch. */
typedef struct hce_plan_rise {
    int32_t rank; /* writer of my counter, or owner of the one I write */
    int32_t slot;
    int64_t rise;
} hce_plan_rise_t;

/* What the device and the network can do; equal on all ranks. */
typedef struct hce_plan_limits {
    uint64_t scratch; /* bytes of SCRATCH, and as many of STAGE, that one
                         launch may use on a rank */
    uint64_t parcel;  /* most bytes of a put that carries the entry; 0: none
                         can */
    bool reads;       /* ops may read SCRATCH of node peers */
    bool pulls;       /* and SEND and RECV */
} hce_plan_limits_t;

/* The pure function's arguments. */
typedef struct hce_plan_params {
    const hce_layout_t *layout; /* outlives the plan */
    hce_plan_limits_t limits;
    uint64_t len; /* bytes: of a rank's slice of the output (AllGather,
                     ReduceScatter), of the whole (AllReduce) */
    uint64_t width;             /* wanted bytes of a chunk, >= 1 */
    hce_coll_t coll;
    hce_datatype_t datatype; /* of reductions */
    hce_redop_t op;
    int rank;
    int root;
    int contexts; /* 1..HCE_PLAN_MAX_CONTEXTS */
    int carriers; /* ranks of a node that send and receive; 0: all */
    int dirs;     /* in which a ring sends: 1 or 2; 0 is 2 */
    bool in_place;
} hce_plan_params_t;

/* Buffers of another rank that my ops read or write. */
typedef struct hce_plan_touch {
    int32_t rank;
    uint32_t bufs; /* 1 << hce_plan_buf_t */
} hce_plan_touch_t;

typedef struct hce_plan {
    hce_plan_params_t params;
    char path[16];
    hce_plan_op_t *ops; /* in plan order */
    uint32_t num_ops;
    hce_plan_lane_t *lanes;
    uint32_t num_lanes;
    uint32_t *lane_ops; /* indices into ops[], lane by lane */
    hce_plan_ref_t *refs;
    uint32_t num_refs;
    hce_plan_wait_t *waits;
    uint32_t num_waits;
    hce_plan_post_t *posts;
    uint32_t num_posts;
    /* Completion: all my lanes have ended and these hold; a range of
     * waits[]. */
    uint32_t done_wait;
    uint32_t num_done_wait;
    hce_plan_rise_t *in; /* my counters that rise, sorted by rank, slot */
    uint32_t num_in;
    hce_plan_rise_t *out; /* counters that I raise, sorted likewise */
    uint32_t num_out;
    hce_plan_touch_t *touches; /* one a rank, ascending */
    uint32_t num_touches;
    uint32_t net_bufs; /* of mine that puts read or write, as of a touch */
    uint64_t scratch_len;
    uint64_t stage_len;
    void *builder; /* only while it is being built */
} hce_plan_t;

/* Builder helpers. After the first failure (memory) all later calls do
 * nothing and hce_plan_finish returns it. Order of calls: create; lanes and
 * ops; done_wait; finish. wait, post, src, dst apply to the last op. */
hce_status_t hce_plan_create(const hce_plan_params_t *params, const char *path,
                             hce_plan_t **plan_p);
uint32_t hce_plan_add_lane(hce_plan_t *plan, hce_plan_lane_kind_t kind,
                           int peer, int context, int direction);
void hce_plan_add_op(hce_plan_t *plan, hce_plan_kind_t kind, uint32_t lane,
                     uint64_t len);
void hce_plan_add_src(hce_plan_t *plan, int rank, hce_plan_buf_t buf,
                      uint64_t offset);
void hce_plan_add_dst(hce_plan_t *plan, int rank, hce_plan_buf_t buf,
                      uint64_t offset);
/* The last op is a REDUCE that completes its sums. */
void hce_plan_set_last(hce_plan_t *plan);
/* The last ref is one of depth slots, stride bytes apart. */
void hce_plan_set_slots(hce_plan_t *plan, int depth, uint64_t stride);
/* The same at offset of the scratch memory of one launch: two launches that
 * follow each other have different slots, whatever their plans. */
void hce_plan_add_scratch_src(hce_plan_t *plan, int rank, uint64_t offset);
void hce_plan_add_scratch_dst(hce_plan_t *plan, int rank, uint64_t offset);
void hce_plan_add_wait(hce_plan_t *plan, int writer, int slot, int64_t value);
void hce_plan_add_post(hce_plan_t *plan, int owner, int slot, int64_t value);
void hce_plan_add_done_wait(hce_plan_t *plan, int writer, int slot,
                            int64_t value);
/* My counter rises to value although I do not wait that far (credits that
 * the end of a launch does not need). */
void hce_plan_add_rise(hce_plan_t *plan, int writer, int slot, int64_t value);
/* Sorts lanes, computes rises and touches. On failure the plan is destroyed. */
hce_status_t hce_plan_finish(hce_plan_t *plan);
void hce_plan_destroy(hce_plan_t *plan);

/* Bytes of each rank's SEND and RECV. */
uint64_t hce_plan_send_len(const hce_plan_params_t *params);
uint64_t hce_plan_recv_len(const hce_plan_params_t *params);

/* Chunk geometry of a slice: real width (>= params->width, so that there are
 * at most HCE_PLAN_MAX_CHUNKS) and number; an empty slice is one chunk of no
 * bytes, so that ranks meet all the same. */
uint64_t hce_plan_chunk_width(uint64_t len, uint64_t width);
uint32_t hce_plan_num_chunks(uint64_t len, uint64_t width);

/* The same as a value: chunk j starts at j * width and belongs to context
 * j mod contexts. */
typedef struct hce_plan_chunks {
    uint64_t len;   /* of the slice */
    uint64_t width; /* of a chunk */
    uint32_t count;
    uint32_t contexts;
} hce_plan_chunks_t;
hce_plan_chunks_t hce_plan_chunks(const hce_plan_params_t *params);
uint64_t hce_plan_chunk_len(const hce_plan_chunks_t *chunks, uint32_t j);
/* Chunks of a slice in a context: what its counter rises by. */
uint32_t hce_plan_context_chunks(const hce_plan_chunks_t *chunks,
                                 uint32_t context);

/* What a plan moves, counted from its ops; copies once a destination. Ops of
 * no bytes are signals and not counted. */
typedef struct hce_plan_totals {
    uint64_t puts;
    uint64_t put_bytes;
    uint64_t copies;
    uint64_t copy_bytes;
} hce_plan_totals_t;
void hce_plan_count(const hce_plan_t *plan, hce_plan_totals_t *totals_p);

/* One algorithm: what core's dispatcher and the verifier know of it. */
typedef struct hce_plan_builder {
    const char *path; /* "direct" */
    hce_coll_t coll;
    hce_status_t (*build)(const hce_plan_params_t *params,
                          hce_plan_t **plan_p);
    /* NULL if the path can run with these params, else why not (static). */
    const char *(*refuse)(const hce_plan_params_t *params);
    /* Bytes and puts (of more than no bytes) from a node to another in one
     * launch, by formula, not by counting ops. */
    void (*traffic)(const hce_plan_params_t *params, int from_node,
                    int to_node, uint64_t *bytes_p, uint64_t *puts_p);
} hce_plan_builder_t;

#endif
