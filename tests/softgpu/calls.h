/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Calls of the soft GPU that only tests make, in the form of drv/calls.h;
 * the library's own are in that list.
 */
#ifndef HCE_TESTS_SOFTGPU_CALLS_H
#define HCE_TESTS_SOFTGPU_CALLS_H

#include "drv/calls.h"
#include "drv/types.h"

#define SOFT_CALLS(F)                                                         \
    SOFT_CALLS_PLAIN(F)                                                       \
    SOFT_CALLS_GRAPH(F)

#define SOFT_CALLS_PLAIN(F)                                                   \
    F(OPTIONAL, mem_host_alloc, cuMemHostAlloc, 2020,                         \
      (void **, size_t, unsigned int))                                        \
    F(OPTIONAL, mem_free_host, cuMemFreeHost, 2000, (void *))                 \
    F(OPTIONAL, memcpy_peer_async, cuMemcpyPeerAsync, 4000,                   \
      (hce_cu_ptr_t, hce_cu_ctx_t, hce_cu_ptr_t, hce_cu_ctx_t, size_t,        \
       hce_cu_stream_t))                                                      \
    F(OPTIONAL, pointer_get_attributes, cuPointerGetAttributes, 7000,         \
      (unsigned int, hce_cu_enum_t *, void **, hce_cu_ptr_t))                 \
    F(OPTIONAL, stream_wait_value64, cuStreamWaitValue64, 11070,              \
      (hce_cu_stream_t, hce_cu_ptr_t, uint64_t, unsigned int))                \
    F(OPTIONAL, stream_write_value64, cuStreamWriteValue64, 11070,            \
      (hce_cu_stream_t, hce_cu_ptr_t, uint64_t, unsigned int))                \
    F(OPTIONAL, stream_wait_value32, cuStreamWaitValue32, 11070,              \
      (hce_cu_stream_t, hce_cu_ptr_t, uint32_t, unsigned int))                \
    F(OPTIONAL, stream_write_value32, cuStreamWriteValue32, 11070,            \
      (hce_cu_stream_t, hce_cu_ptr_t, uint32_t, unsigned int))                \
    F(OPTIONAL, event_synchronize, cuEventSynchronize, 2000,                  \
      (hce_cu_event_t))                                                       \
    F(OPTIONAL, ipc_get_event_handle, cuIpcGetEventHandle, 4010,              \
      (hce_cu_ipc_event_t *, hce_cu_event_t))

#define SOFT_CALLS_GRAPH(F)                                                   \
    F(OPTIONAL, stream_begin_capture, cuStreamBeginCapture, 10010,            \
      (hce_cu_stream_t, hce_cu_enum_t))                                       \
    F(OPTIONAL, stream_end_capture, cuStreamEndCapture, 10000,                \
      (hce_cu_stream_t, hce_cu_graph_t *))                                    \
    F(OPTIONAL, graph_instantiate, cuGraphInstantiateWithFlags, 11040,        \
      (hce_cu_graph_exec_t *, hce_cu_graph_t, unsigned long long))            \
    F(OPTIONAL, graph_launch, cuGraphLaunch, 10000,                           \
      (hce_cu_graph_exec_t, hce_cu_stream_t))                                 \
    F(OPTIONAL, graph_exec_destroy, cuGraphExecDestroy, 10000,                \
      (hce_cu_graph_exec_t))                                                  \
    F(OPTIONAL, graph_destroy, cuGraphDestroy, 10000, (hce_cu_graph_t))       \
    F(OPTIONAL, graph_get_nodes, cuGraphGetNodes, 10000,                      \
      (hce_cu_graph_t, hce_cu_graph_node_t *, size_t *))                      \
    F(OPTIONAL, graph_node_get_type, cuGraphNodeGetType, 10000,               \
      (hce_cu_graph_node_t, hce_cu_enum_t *))

#endif
