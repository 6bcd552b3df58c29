/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * libhce: collectives between devices without a communication kernel.
 *
 * Conventions for every call:
 * - it returns HCE_OK or a negative status; outputs are written on success
 *   only, and are the last parameters;
 * - sizes and lengths are bytes, counts are elements of the datatype;
 * - unless said otherwise a call may be made from any thread, but two
 *   threads must not use one communicator at the same time;
 * - inside a group (hce_group_start) a call marked "groupable" returns at
 *   once and takes effect at the outermost hce_group_end.
 */
#ifndef HCE_HCE_H
#define HCE_HCE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define HCE_PUBLIC __attribute__((visibility("default")))
#else
#define HCE_PUBLIC
#endif

/** API version of this header; compare with hce_get_version(). */
#define HCE_API_MAJOR 0
#define HCE_API_MINOR 1
#define HCE_API_PATCH 0

/** Result of a call. Errors are negative. */
typedef enum hce_status {
    HCE_OK = 0,
    HCE_INPROGRESS = 1,         /**< started, not finished yet */
    HCE_ERR_INVALID_ARG = -1,   /**< an argument is not acceptable */
    HCE_ERR_NO_MEMORY = -2,     /**< memory or descriptors ran out */
    HCE_ERR_SYSTEM = -3,        /**< a system call failed */
    HCE_ERR_UNSUPPORTED = -4,   /**< not possible with this build or layout */
    HCE_ERR_CONFIG = -5,        /**< a setting is malformed, or ranks differ */
    HCE_ERR_BOOTSTRAP = -6,     /**< ranks could not find each other */
    HCE_ERR_TIMEOUT = -7,       /**< a rank is absent or stuck */
    HCE_ERR_GONE = -8,          /**< a rank's process ended */
    HCE_ERR_SILENT = -9,        /**< a rank's node sends no heartbeat */
    HCE_ERR_MISMATCH = -10,     /**< ranks made different calls */
    HCE_ERR_ABORTED = -11,      /**< a rank called hce_comm_abort */
    HCE_ERR_TRANSPORT = -12,    /**< the network failed */
    HCE_ERR_FORKED = -13,       /**< handle was inherited through fork */
    HCE_ERR_VERSION = -14,      /**< ranks speak different wire versions */
    HCE_ERR_NO_RESOURCE = -15,  /**< try again later */
    HCE_ERR_INTERNAL = -16      /**< a defect in the library */
} hce_status_t;

/** Element types of send and receive buffers. */
typedef enum hce_datatype {
    HCE_INT8 = 0,
    HCE_UINT8 = 1,
    HCE_INT32 = 2,
    HCE_UINT32 = 3,
    HCE_INT64 = 4,
    HCE_UINT64 = 5,
    HCE_FLOAT16 = 6,
    HCE_FLOAT32 = 7,
    HCE_FLOAT64 = 8,
    HCE_BFLOAT16 = 9,
    HCE_FLOAT8E4M3 = 10,
    HCE_FLOAT8E5M2 = 11,
    HCE_DATATYPE_LAST
} hce_datatype_t;

/** How reductions combine the ranks' elements.
 *
 * Sums and products of integers wrap. HCE_AVG is the sum divided once by the
 * number of ranks, for integers toward zero. 16- and 8-bit floats are added
 * up as float and rounded once a pass, to nearest even; HCE_FLOAT8E4M3
 * saturates. HCE_MIN and HCE_MAX give NaN if any rank has one, and take -0
 * for less than +0. A result that is NaN is the positive quiet NaN. */
typedef enum hce_redop {
    HCE_SUM = 0,
    HCE_PROD = 1,
    HCE_MIN = 2,
    HCE_MAX = 3,
    HCE_AVG = 4,
    HCE_REDOP_LAST
} hce_redop_t;

/** Collectives that plans can be made for. hce_comm_explain() answers for
 *  those that a path of this build is for, else HCE_ERR_UNSUPPORTED. */
typedef enum hce_coll {
    HCE_COLL_ALLGATHER = 0,
    HCE_COLL_REDUCE_SCATTER = 1,
    HCE_COLL_ALLREDUCE = 2,
    HCE_COLL_LAST
} hce_coll_t;

/** Devices whose memory is moved. */
typedef enum hce_device {
    HCE_DEVICE_HOST = 0, /**< plain memory; the CPU is the copy engine */
    HCE_DEVICE_LAST
} hce_device_t;

/** How the ranks of a new communicator find each other. */
typedef enum hce_bootstrap {
    HCE_BOOTSTRAP_AUTO = 0, /**< pmix, then env */
    HCE_BOOTSTRAP_PMIX = 1, /**< mpirun, srun --mpi=pmix */
    HCE_BOOTSTRAP_ENV = 2,  /**< RANK, WORLD_SIZE, MASTER_ADDR, ... */
    HCE_BOOTSTRAP_TCP = 3   /**< a unique id passed by the caller */
} hce_bootstrap_t;

typedef struct hce_comm *hce_comm_h;     /**< communicator */
typedef struct hce_window *hce_window_h; /**< registered buffer */
typedef struct hce_stream *hce_stream_h; /**< ordered queue of operations */

/** Names a communicator before it exists. Opaque; copy it as bytes. */
typedef struct hce_unique_id {
    char data[128];
} hce_unique_id_t;

/** Text of a status; never NULL, static storage. */
HCE_PUBLIC const char *hce_status_string(hce_status_t status);

/** Name of a datatype such as "float"; NULL if @a datatype is unknown. */
HCE_PUBLIC const char *hce_datatype_string(hce_datatype_t datatype);

/** Bytes of one element; 0 if @a datatype is unknown. */
HCE_PUBLIC size_t hce_datatype_size(hce_datatype_t datatype);

/** Name of a reduction such as "sum"; NULL if @a op is unknown. */
HCE_PUBLIC const char *hce_redop_string(hce_redop_t op);

/** Version of the library that is linked, as HCE_API_* of its header.
 * Any of the pointers may be NULL. */
HCE_PUBLIC void hce_get_version(int *major_p, int *minor_p, int *patch_p);

/** Make an id for hce_comm_create with HCE_BOOTSTRAP_TCP.
 *
 * One rank makes it and hands it to all others by its own means. The rank
 * that made it must be rank 0, in the same process, and creates the
 * communicator once. It opens a listening socket, closed by that creation.
 * Ids may be made before fork(): rank 0 is the parent, children are others.
 *
 * @return HCE_OK, HCE_ERR_INVALID_ARG, HCE_ERR_SYSTEM, HCE_ERR_CONFIG
 */
HCE_PUBLIC hce_status_t hce_get_unique_id(hce_unique_id_t *id_p);

/** Bits of hce_comm_params_t.field_mask. */
enum {
    HCE_COMM_PARAM_BOOTSTRAP = 1 << 0,
    HCE_COMM_PARAM_RANK = 1 << 1, /**< rank, size and unique_id */
    HCE_COMM_PARAM_DEVICE = 1 << 2,
    HCE_COMM_PARAM_NODE = 1 << 3,
    HCE_COMM_PARAM_TIMEOUT = 1 << 4
};

/** What hce_comm_create is told; fields whose bit is unset are ignored. */
typedef struct hce_comm_params {
    uint64_t field_mask;
    hce_bootstrap_t bootstrap;         /**< default HCE_BOOTSTRAP_AUTO */
    int rank;                          /**< with HCE_BOOTSTRAP_TCP */
    int size;                          /**< with HCE_BOOTSTRAP_TCP */
    const hce_unique_id_t *unique_id;  /**< with HCE_BOOTSTRAP_TCP */
    hce_device_t device;               /**< default HCE_DEVICE_HOST */
    int node;        /**< ranks with one number form a node; >= 0 */
    double timeout;  /**< seconds, instead of HCE_TIMEOUT; 0 is none */
} hce_comm_params_t;

/** Create a communicator. Collective, blocking, groupable.
 *
 * Gives up after HCE_BOOTSTRAP_TIMEOUT. Where it fails on one rank it fails
 * on all that have connected.
 *
 * @param params  may be NULL: everything at its default
 * @param comm_p  destroyed by the caller with hce_comm_destroy
 * @return HCE_OK, HCE_ERR_INVALID_ARG, HCE_ERR_BOOTSTRAP, HCE_ERR_CONFIG,
 *         HCE_ERR_UNSUPPORTED, HCE_ERR_VERSION, HCE_ERR_TIMEOUT,
 *         HCE_ERR_GONE, HCE_ERR_SYSTEM, HCE_ERR_NO_MEMORY
 *
 * @code
 * hce_comm_h comm;
 * if (hce_comm_create(NULL, &comm) == HCE_OK) {
 *     hce_allgather(send, recv, n, HCE_FLOAT32, comm, NULL, NULL);
 *     hce_stream_synchronize(comm, NULL);
 *     hce_comm_destroy(comm);
 * }
 * @endcode
 */
HCE_PUBLIC hce_status_t hce_comm_create(const hce_comm_params_t *params,
                                        hce_comm_h *comm_p);

/** Colour for ranks that take no part in a split. */
#define HCE_SPLIT_NONE (-1)

/** Make one new communicator for each colour. Collective, groupable.
 *
 * @param color   >= 0, or HCE_SPLIT_NONE to get a NULL communicator
 * @param key     orders the ranks of a colour; ties by rank
 * @param params  only DEVICE, NODE and TIMEOUT count; may be NULL
 * @return as hce_comm_create
 */
HCE_PUBLIC hce_status_t hce_comm_split(hce_comm_h comm, int color, int key,
                                       const hce_comm_params_t *params,
                                       hce_comm_h *comm_p);

/** Stop all operations of @a comm on all ranks, now.
 *
 * Every rank's pending and later operations end with HCE_ERR_ABORTED that
 * names the calling rank. The communicator must still be destroyed.
 * May be called while other threads use @a comm.
 *
 * @return HCE_OK, HCE_ERR_INVALID_ARG, HCE_ERR_FORKED
 */
HCE_PUBLIC hce_status_t hce_comm_abort(hce_comm_h comm);

/** The first error of a communicator.
 *
 * Operations that were running then are given back, with an error, when
 * nobody uses their buffers any more: what this rank had put has ended and
 * the ranks of its node have stopped copying. Where a rank is stopped or cut
 * off this waits for one second only, with a warning in the log. After such a
 * warning that rank may yet write once to a recvbuf when it goes on, and the
 * network may yet read a sendbuf: free or reuse them only when that rank's
 * process has ended. Memory of hce_mem_alloc may be freed in any case.
 */
typedef struct hce_comm_error {
    hce_status_t status; /**< HCE_OK while there is none */
    int rank;            /**< rank that is to blame, or -1 */
    int node;            /**< its node, or -1 */
    char text[480];      /**< what happened, to whom, in which operation */
} hce_comm_error_t;

/** Read the first error, without blocking. From any thread, at any time. */
HCE_PUBLIC hce_status_t hce_comm_get_async_error(hce_comm_h comm,
                                                 hce_comm_error_t *error_p);

/** What hce_comm_query tells. */
typedef struct hce_comm_attr {
    int rank;
    int size;
    int node;               /**< index of this rank's node */
    int num_nodes;
    int local_rank;         /**< index of this rank in its node */
    int local_size;
    hce_device_t device;
    const char *transport;  /**< "ucx", "loop", ...; "none" on one node */
    const char *host_copy;  /**< "map", "vm" or "staged": how memory of node
                                 peers outside of mapped windows is written */
} hce_comm_attr_t;

/** Describe a communicator. Strings live as long as it does. */
HCE_PUBLIC hce_status_t hce_comm_query(hce_comm_h comm,
                                       hce_comm_attr_t *attr_p);

/** Destroy a communicator and its windows.
 *
 * Work in flight is aborted (use hce_stream_synchronize first to let it
 * finish). Not a collective: waits at most 2 s for others to say goodbye.
 *
 * @return HCE_OK, HCE_ERR_INVALID_ARG, HCE_ERR_FORKED
 */
HCE_PUBLIC hce_status_t hce_comm_destroy(hce_comm_h comm);

/** Allocate memory that node peers can map, aligned to a page.
 *
 * @return HCE_OK, HCE_ERR_INVALID_ARG, HCE_ERR_NO_MEMORY
 */
HCE_PUBLIC hce_status_t hce_mem_alloc(hce_device_t device, size_t size,
                                      void **ptr_p);

/** Free what hce_mem_alloc returned; NULL is nothing.
 * Deregister its windows first. */
HCE_PUBLIC hce_status_t hce_mem_free(void *ptr);

/** Register a buffer, so that peers reach it directly. Collective,
 * blocking, groupable.
 *
 * Any memory may be registered; node peers map it when it came from
 * hce_mem_alloc. Sizes may differ between ranks, and 0 is allowed.
 *
 * @return HCE_OK, HCE_ERR_INVALID_ARG, HCE_ERR_NO_MEMORY,
 *         HCE_ERR_TRANSPORT, or the communicator's error
 */
HCE_PUBLIC hce_status_t hce_window_register(hce_comm_h comm, void *buf,
                                            size_t size,
                                            hce_window_h *win_p);

/** Undo a registration. Local; no operation may be using the buffer on any
 * rank (synchronise all ranks first). NULL is nothing. */
HCE_PUBLIC hce_status_t hce_window_deregister(hce_window_h win);

/** Create a stream for the host device: operations on it run in order. */
HCE_PUBLIC hce_status_t hce_stream_create(hce_stream_h *stream_p);

/** Has everything of @a comm on @a stream finished?
 *
 * @param stream  NULL is the communicator's own
 * @return HCE_OK, HCE_INPROGRESS, or the communicator's error
 */
HCE_PUBLIC hce_status_t hce_stream_query(hce_comm_h comm,
                                         hce_stream_h stream);

/** Wait until everything of @a comm on @a stream has finished.
 *
 * The calling thread does the work itself meanwhile. Never hangs: every
 * operation has the deadline of the communicator.
 *
 * @return HCE_OK, or the communicator's error
 */
HCE_PUBLIC hce_status_t hce_stream_synchronize(hce_comm_h comm,
                                               hce_stream_h stream);

/** Destroy a stream. Its operations must have finished. NULL is nothing. */
HCE_PUBLIC hce_status_t hce_stream_destroy(hce_stream_h stream);

/** Open a group; groups nest, by thread.
 *
 * Until the outermost hce_group_end of this thread, creations, splits,
 * registrations and collectives return at once. Their outputs are written
 * by that end.
 */
HCE_PUBLIC hce_status_t hce_group_start(void);

/** Close a group. The outermost end runs all creations and registrations
 * side by side, enqueues all collectives, and returns when the former are
 * done. If an argument of any call was wrong nothing was started and the
 * error names the call. */
HCE_PUBLIC hce_status_t hce_group_end(void);

/** Bits of hce_call_params_t.field_mask. */
enum {
    HCE_CALL_PARAM_PATH = 1 << 0,
    HCE_CALL_PARAM_CONTEXTS = 1 << 1,
    HCE_CALL_PARAM_WIDTH = 1 << 2,
    HCE_CALL_PARAM_TIMEOUT = 1 << 3,
    HCE_CALL_PARAM_NAME = 1 << 4,
    HCE_CALL_PARAM_BLOCKING = 1 << 5,
    HCE_CALL_PARAM_DIRS = 1 << 6,
    HCE_CALL_PARAM_CARRIERS = 1 << 7
};

/** One call's own choices; the same on all ranks. */
typedef struct hce_call_params {
    uint64_t field_mask;
    const char *path; /**< "auto", "direct", "ring", "ring_short", "eager",
                           "flat" */
    int contexts;     /**< 1..16 */
    size_t width;     /**< bytes of a chunk */
    double timeout;   /**< seconds from the start; 0 is none */
    const char *name; /**< shown in errors and traces */
    int blocking;     /**< return when done, with no thread switch; not in a
                           group */
    int dirs;         /**< in which rings send: 1 or 2 */
    int carriers;     /**< ranks of a node that send and receive; 0 is all */
} hce_call_params_t;

/** Gather @a count elements of every rank, in rank order, on every rank.
 * Asynchronous, groupable.
 *
 * In place when sendbuf == recvbuf + rank * count elements; otherwise the
 * buffers must not overlap. Both belong to the library until the stream
 * has passed the operation. Any memory works; windows are faster.
 * All ranks of a communicator make their calls in the same order.
 *
 * @param sendbuf  count elements; may be NULL when count is 0
 * @param recvbuf  count * size elements
 * @param stream   NULL is the communicator's own
 * @param params   may be NULL
 * @return HCE_OK when enqueued; HCE_ERR_INVALID_ARG, HCE_ERR_UNSUPPORTED,
 *         HCE_ERR_NO_MEMORY, HCE_ERR_FORKED, or the communicator's error.
 *         Later errors are returned by hce_stream_synchronize.
 */
HCE_PUBLIC hce_status_t hce_allgather(const void *sendbuf, void *recvbuf,
                                      size_t count,
                                      hce_datatype_t datatype,
                                      hce_comm_h comm, hce_stream_h stream,
                                      const hce_call_params_t *params);

/** Reduce the ranks' inputs, and leave one slice of the result on each rank.
 * Asynchronous, groupable.
 *
 * Rank r gets elements r * count to (r + 1) * count of the reduction of all
 * sendbufs. In place when recvbuf == sendbuf + rank * count elements;
 * otherwise the buffers must not overlap. In place what else is in sendbuf
 * stays as it is. Buffers, streams and order of calls are as for
 * hce_allgather. The order of additions follows from layout, path, contexts
 * and width alone: the same call gives the same bits again.
 *
 * @param sendbuf  count * size elements; may be NULL when count is 0
 * @param recvbuf  count elements
 * @param op       see hce_redop_t
 * @param stream   NULL is the communicator's own
 * @param params   may be NULL
 * @return as hce_allgather
 */
HCE_PUBLIC hce_status_t hce_reduce_scatter(const void *sendbuf, void *recvbuf,
                                           size_t count,
                                           hce_datatype_t datatype,
                                           hce_redop_t op, hce_comm_h comm,
                                           hce_stream_h stream,
                                           const hce_call_params_t *params);

/** Reduce the ranks' inputs, and leave the whole result on every rank.
 * Asynchronous, groupable.
 *
 * In place when sendbuf == recvbuf; otherwise the buffers must not overlap.
 * Buffers, streams and order of calls are as for hce_allgather. All ranks
 * get the same bits, and the same call gives them again: see
 * hce_reduce_scatter.
 *
 * @param sendbuf  count elements; may be NULL when count is 0
 * @param recvbuf  count elements
 * @param op       see hce_redop_t
 * @param stream   NULL is the communicator's own
 * @param params   may be NULL
 * @return as hce_allgather
 *
 * @code
 * hce_allreduce(grad, grad, n, HCE_BFLOAT16, HCE_AVG, comm, NULL, NULL);
 * hce_stream_synchronize(comm, NULL);
 * @endcode
 */
HCE_PUBLIC hce_status_t hce_allreduce(const void *sendbuf, void *recvbuf,
                                      size_t count, hce_datatype_t datatype,
                                      hce_redop_t op, hce_comm_h comm,
                                      hce_stream_h stream,
                                      const hce_call_params_t *params);

/** The dispatcher's answer. */
typedef struct hce_explain {
    char path[16];        /**< the path that would run */
    int contexts;
    size_t width;         /**< bytes of a chunk */
    uint64_t puts;        /**< this rank's transfers to other nodes */
    uint64_t put_bytes;
    uint64_t copies;      /**< this rank's copies inside the node */
    uint64_t copy_bytes;  /**< counted once for each destination */
    char reason[512];     /**< why this path, and why not the others */
    int dirs;             /**< in which a ring sends; 0: not a ring */
    int carriers;         /**< ranks of a node that send; 0 is all */
    uint64_t in_place_copies;     /**< copies of a call in place */
    uint64_t in_place_copy_bytes;
    char settings[192];   /**< variables that repeat the choice */
} hce_explain_t;

/** What would a call do? Runs nothing. Local. */
HCE_PUBLIC hce_status_t hce_comm_explain(hce_comm_h comm, hce_coll_t coll,
                                         size_t count,
                                         hce_datatype_t datatype,
                                         const hce_call_params_t *params,
                                         hce_explain_t *explain_p);

/** What a communicator has done since it was created. */
typedef struct hce_comm_stats {
    uint64_t calls;
    uint64_t puts;
    uint64_t put_bytes;
    uint64_t copies;
    uint64_t copy_bytes;     /**< counted once for each destination */
    uint64_t kernels;        /**< launched on a device: always 0 */
    uint64_t retries;        /**< posts that a transport put off */
    uint64_t progress_wakes; /**< switches to the progress thread */
    char choice[1024]; /**< the dispatcher's last choice: path, geometry, why
                            this path and why not the others, and settings
                            that repeat it; empty before the first call */
} hce_comm_stats_t;

/** Read the statistics. Any thread, any time. */
HCE_PUBLIC hce_status_t hce_comm_get_stats(hce_comm_h comm,
                                           hce_comm_stats_t *stats_p);

/** What went to one peer through one context. */
typedef struct hce_peer_stats {
    uint64_t puts;
    uint64_t put_bytes;
    uint64_t copies;      /**< context 0 only */
    uint64_t copy_bytes;
} hce_peer_stats_t;

/** Read the statistics of @a peer (a rank) and @a context (0..15). */
HCE_PUBLIC hce_status_t hce_comm_get_peer_stats(hce_comm_h comm, int peer,
                                                int context,
                                                hce_peer_stats_t *stats_p);

#ifdef __cplusplus
}
#endif

#endif
