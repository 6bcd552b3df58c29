/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Compares the signatures of drv/calls.h with those that the toolkit's
 * headers give for the same versions: our names become the toolkit's types
 * here, so that each pointer must have exactly its type. Compiled where these
 * headers are; nothing to run.
 */
#include "config.h"

/* Its layout is compared by check_types.c; names only, here. */
#define HCE_DRV_TYPES_H

/* Otherwise cuda.h renames base names to today's. */
#define __CUDA_API_VERSION_INTERNAL
#include <assert.h>
#include <cuda.h>
#include <cudaTypedefs.h>

#include "drv/calls.h"

typedef CUresult hce_cu_result_t;
typedef CUdevice hce_cu_device_t;
typedef CUdeviceptr hce_cu_ptr_t;
typedef CUmemGenericAllocationHandle hce_cu_mem_t;
typedef CUcontext hce_cu_ctx_t;
typedef CUstream hce_cu_stream_t;
typedef CUevent hce_cu_event_t;
typedef CUgraph hce_cu_graph_t;
typedef CUgraphNode hce_cu_graph_node_t;
typedef CUuserObject hce_cu_user_object_t;
typedef CUhostFn hce_cu_host_fn_t;
typedef CUuuid hce_cu_uuid_t;
typedef CUipcMemHandle hce_cu_ipc_mem_t;
typedef CUmemAllocationProp hce_cu_mem_prop_t;
typedef CUmemAccessDesc hce_cu_access_t;
typedef CUmulticastObjectProp hce_cu_multicast_prop_t;
typedef CUmemcpyAttributes hce_cu_copy_attr_t;
typedef CUstreamBatchMemOpParams hce_cu_memop_t;
typedef unsigned int hce_cu_enum_t;

/* Compatible, which for C means equal but for an enum and unsigned int. */
#define CHECK(_need, _member, _name, _version, _params)                       \
    typedef hce_cu_result_t(*our_##_member) _params;                          \
    static_assert(_Generic((PFN_##_name##_v##_version)0, our_##_member : 1,   \
                           default : 0),                                      \
                  #_name " has another signature in this version");

HCE_DRV_CALLS(CHECK)
