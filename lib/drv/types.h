/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The CUDA driver's types as far as they are used, so that the library builds
 * on machines without the toolkit. Where the toolkit's header is present,
 * check_types.c and check_calls.c compare sizes, offsets, values and
 * signatures with it.
 */
#ifndef HCE_DRV_TYPES_H
#define HCE_DRV_TYPES_H

#include <stddef.h>
#include <stdint.h>

/* The driver's enums are unsigned int to its ABI. */
typedef unsigned int hce_cu_result_t;
typedef unsigned int hce_cu_enum_t;
typedef int hce_cu_device_t;
typedef unsigned long long hce_cu_ptr_t;
typedef unsigned long long hce_cu_mem_t; /* generic allocation handle */

/* Opaque; the tags are the driver's, so that pointers are compatible. */
typedef struct CUctx_st *hce_cu_ctx_t;
typedef struct CUstream_st *hce_cu_stream_t;
typedef struct CUevent_st *hce_cu_event_t;
typedef struct CUgraph_st *hce_cu_graph_t;
typedef struct CUgraphExec_st *hce_cu_graph_exec_t;
typedef struct CUgraphNode_st *hce_cu_graph_node_t;
typedef struct CUuserObject_st *hce_cu_user_object_t;
typedef void (*hce_cu_host_fn_t)(void *arg);

enum {
    HCE_CU_OK = 0,
    HCE_CU_INVALID_VALUE = 1,
    HCE_CU_OUT_OF_MEMORY = 2,
    HCE_CU_NOT_INITIALIZED = 3,
    HCE_CU_STUB_LIBRARY = 34,
    HCE_CU_NO_DEVICE = 100,
    HCE_CU_INVALID_DEVICE = 101,
    HCE_CU_INVALID_CONTEXT = 201,
    HCE_CU_MAP_FAILED = 205,
    HCE_CU_ALREADY_MAPPED = 208,
    HCE_CU_PEER_ACCESS_UNSUPPORTED = 217,
    HCE_CU_INVALID_HANDLE = 400,
    HCE_CU_ILLEGAL_STATE = 401,
    HCE_CU_NOT_FOUND = 500,
    HCE_CU_NOT_READY = 600,
    HCE_CU_ILLEGAL_ADDRESS = 700,
    HCE_CU_PEER_ACCESS_ALREADY_ENABLED = 704,
    HCE_CU_PEER_ACCESS_NOT_ENABLED = 705,
    HCE_CU_HOST_MEMORY_ALREADY_REGISTERED = 712,
    HCE_CU_HOST_MEMORY_NOT_REGISTERED = 713,
    HCE_CU_NOT_PERMITTED = 800,
    HCE_CU_NOT_SUPPORTED = 801,
    HCE_CU_SYSTEM_NOT_READY = 802,
    HCE_CU_CAPTURE_UNSUPPORTED = 900,
    HCE_CU_CAPTURE_INVALIDATED = 901,
    HCE_CU_CAPTURE_MERGE = 902,
    HCE_CU_CAPTURE_UNMATCHED = 903,
    HCE_CU_CAPTURE_UNJOINED = 904,
    HCE_CU_CAPTURE_ISOLATION = 905,
    HCE_CU_CAPTURE_IMPLICIT = 906,
    HCE_CU_CAPTURED_EVENT = 907,
    HCE_CU_CAPTURE_WRONG_THREAD = 908,
    HCE_CU_UNKNOWN = 999
};

/* Device attributes. */
enum {
    HCE_CU_DEV_ASYNC_ENGINE_COUNT = 40,
    HCE_CU_DEV_UNIFIED_ADDRESSING = 41,
    HCE_CU_DEV_CC_MAJOR = 75,
    HCE_CU_DEV_CC_MINOR = 76,
    HCE_CU_DEV_HOST_POINTER_REGISTERED = 91, /* same address on the device */
    HCE_CU_DEV_CAN_FLUSH_REMOTE_WRITES = 98,
    HCE_CU_DEV_HOST_REGISTER = 99,
    HCE_CU_DEV_VMM = 102,
    HCE_CU_DEV_POSIX_FD = 103,
    HCE_CU_DEV_RDMA_WITH_VMM = 110,
    HCE_CU_DEV_RDMA = 116,
    HCE_CU_DEV_RDMA_FLUSH_OPTIONS = 117,   /* 1 host call, 2 memops */
    HCE_CU_DEV_RDMA_WRITES_ORDERING = 118, /* 0 none, 100 owner, 200 all */
    HCE_CU_DEV_MEMOPS_64 = 122,
    HCE_CU_DEV_DMA_BUF = 124,
    HCE_CU_DEV_IPC_EVENT = 125,
    HCE_CU_DEV_FABRIC = 128,
    HCE_CU_DEV_MULTICAST = 132,
    HCE_CU_DEV_MPS = 133
};

/* Pointer attributes. */
enum {
    HCE_CU_PTR_CONTEXT = 1,
    HCE_CU_PTR_MEMORY_TYPE = 2, /* 1 host, 2 device */
    HCE_CU_PTR_DEVICE_POINTER = 3,
    HCE_CU_PTR_HOST_POINTER = 4,
    HCE_CU_PTR_SYNC_MEMOPS = 6,
    HCE_CU_PTR_BUFFER_ID = 7,
    HCE_CU_PTR_IS_MANAGED = 8,
    HCE_CU_PTR_DEVICE_ORDINAL = 9,
    HCE_CU_PTR_IS_IPC_CAPABLE = 10,
    HCE_CU_PTR_RANGE_START = 11,
    HCE_CU_PTR_RANGE_SIZE = 12,
    HCE_CU_PTR_MAPPED = 13,
    HCE_CU_PTR_HANDLE_TYPES = 14,
    HCE_CU_PTR_RDMA_CAPABLE = 15,
    HCE_CU_PTR_ACCESS_FLAGS = 16,
    HCE_CU_PTR_MAPPING_SIZE = 18,
    HCE_CU_PTR_MAPPING_BASE = 19
};

/* Flags and small enums of several calls. */
enum {
    HCE_CU_PROC_LEGACY_STREAM = 1, /* handle 0 is the legacy stream */
    HCE_CU_PROC_FOUND = 0,
    HCE_CU_PROC_NOT_FOUND = 1,
    HCE_CU_PROC_VERSION_TOO_OLD = 2,
    HCE_CU_STREAM_NON_BLOCKING = 1,
    HCE_CU_EVENT_DISABLE_TIMING = 2,
    HCE_CU_EVENT_INTERPROCESS = 4,
    HCE_CU_HOST_PORTABLE = 1, /* of register and alloc */
    HCE_CU_HOST_DEVICEMAP = 2,
    HCE_CU_IPC_LAZY_PEER_ACCESS = 1,
    HCE_CU_WAIT_GEQ = 0, /* signed and cyclic */
    HCE_CU_WAIT_EQ = 1,
    HCE_CU_WAIT_AND = 2,
    HCE_CU_WAIT_NOR = 3,
    HCE_CU_WAIT_FLUSH = 1 << 30,
    HCE_CU_WRITE_NO_BARRIER = 1,
    HCE_CU_CAPTURE_NONE = 0, /* status */
    HCE_CU_CAPTURE_ACTIVE = 1,
    HCE_CU_CAPTURE_INVALID = 2,
    HCE_CU_CAPTURE_GLOBAL = 0, /* mode */
    HCE_CU_CAPTURE_THREAD_LOCAL = 1,
    HCE_CU_CAPTURE_RELAXED = 2,
    HCE_CU_NODE_MEMCPY = 1,
    HCE_CU_NODE_EMPTY = 5,
    HCE_CU_NODE_BATCH_MEMOP = 12,
    HCE_CU_USER_OBJECT_NO_SYNC = 1,
    HCE_CU_GRAPH_USER_OBJECT_MOVE = 1,
    HCE_CU_RANGE_DMA_BUF = 1,
    HCE_CU_FLUSH_CURRENT_CTX = 0,
    HCE_CU_FLUSH_TO_OWNER = 100,
    HCE_CU_FLUSH_TO_ALL = 200,
    HCE_CU_HANDLE_FD = 1,
    HCE_CU_HANDLE_FABRIC = 8,
    HCE_CU_MEM_PINNED = 1,
    HCE_CU_LOCATION_DEVICE = 1,
    HCE_CU_ACCESS_READ = 1,
    HCE_CU_ACCESS_READWRITE = 3,
    HCE_CU_GRANULARITY_MINIMUM = 0,
    HCE_CU_GRANULARITY_RECOMMENDED = 1,
    HCE_CU_SRC_STREAM_ORDER = 1, /* source read in stream order */
    HCE_CU_SRC_DURING_CALL = 2,
    HCE_CU_SRC_ANY = 3,
    HCE_CU_COPY_PREFER_OVERLAP = 1,
    HCE_CU_LIMIT_MEMOPS = 255 /* most of one batch: "less than 256" */
};

#define HCE_CU_STREAM_LEGACY     ((hce_cu_stream_t)1)
#define HCE_CU_STREAM_PER_THREAD ((hce_cu_stream_t)2)

typedef struct hce_cu_uuid {
    char bytes[16];
} hce_cu_uuid_t;

typedef struct hce_cu_ipc_mem {
    char reserved[64];
} hce_cu_ipc_mem_t;

typedef struct hce_cu_ipc_event {
    char reserved[64];
} hce_cu_ipc_event_t;

typedef struct hce_cu_fabric {
    unsigned char data[64];
} hce_cu_fabric_t;

typedef struct hce_cu_location {
    hce_cu_enum_t type;
    int id;
} hce_cu_location_t;

typedef struct hce_cu_mem_prop {
    hce_cu_enum_t type;
    hce_cu_enum_t handle_types;
    hce_cu_location_t location;
    void *win32;
    unsigned char compression;
    unsigned char rdma_capable;
    unsigned short usage;
    unsigned char reserved[4];
} hce_cu_mem_prop_t;

typedef struct hce_cu_access {
    hce_cu_location_t location;
    hce_cu_enum_t flags;
} hce_cu_access_t;

typedef struct hce_cu_multicast_prop {
    unsigned int num_devices;
    size_t size;
    unsigned long long handle_types;
    unsigned long long flags;
} hce_cu_multicast_prop_t;

typedef struct hce_cu_copy_attr {
    hce_cu_enum_t src_order;
    hce_cu_location_t src_hint;
    hce_cu_location_t dst_hint;
    unsigned int flags;
} hce_cu_copy_attr_t;

enum {
    HCE_CU_MEMOP_WAIT_32 = 1,
    HCE_CU_MEMOP_WRITE_32 = 2,
    HCE_CU_MEMOP_FLUSH = 3,
    HCE_CU_MEMOP_WAIT_64 = 4,
    HCE_CU_MEMOP_WRITE_64 = 5,
    HCE_CU_MEMOP_BARRIER = 6
};

/* A union of forms with one layout: waits and writes. */
typedef union hce_cu_memop {
    hce_cu_enum_t kind;
    struct {
        hce_cu_enum_t kind;
        hce_cu_ptr_t address;
        uint64_t value;
        unsigned int flags;
        hce_cu_ptr_t alias; /* written by the driver */
    } op;
    uint64_t pad[6];
} hce_cu_memop_t;

#endif
