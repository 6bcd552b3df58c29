/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Every call of the CUDA driver that the library makes: the one list. With
 * each comes the version of the signature written here, which is what the
 * driver is asked for: a plain "today's" version can mean another signature.
 * Nothing that may run on a multiprocessor has a place here: no launch, no
 * module, no library, no function, no memset; a test sees to it.
 */
#ifndef HCE_DRV_CALLS_H
#define HCE_DRV_CALLS_H

/* F(NEED, MEMBER, NAME, VERSION, PARAMETERS): NEED is REQUIRED or OPTIONAL
 * (the member is NULL in older drivers); NAME is the driver's base name. */
#define HCE_DRV_CALLS(F)                                                      \
    HCE_DRV_CALLS_DEVICE(F)                                                   \
    HCE_DRV_CALLS_MEMORY(F)                                                   \
    HCE_DRV_CALLS_SHARING(F)                                                  \
    HCE_DRV_CALLS_STREAM(F)                                                   \
    HCE_DRV_CALLS_CAPTURE(F)

#define HCE_DRV_CALLS_DEVICE(F)                                               \
    F(REQUIRED, init, cuInit, 2000, (unsigned int))                           \
    F(REQUIRED, driver_get_version, cuDriverGetVersion, 2020, (int *))        \
    F(REQUIRED, get_error_name, cuGetErrorName, 6000,                         \
      (hce_cu_result_t, const char **))                                       \
    F(REQUIRED, get_error_string, cuGetErrorString, 6000,                     \
      (hce_cu_result_t, const char **))                                       \
    F(REQUIRED, device_get_count, cuDeviceGetCount, 2000, (int *))            \
    F(REQUIRED, device_get, cuDeviceGet, 2000, (hce_cu_device_t *, int))      \
    F(REQUIRED, device_get_name, cuDeviceGetName, 2000,                       \
      (char *, int, hce_cu_device_t))                                         \
    F(REQUIRED, device_get_attribute, cuDeviceGetAttribute, 2000,             \
      (int *, hce_cu_enum_t, hce_cu_device_t))                                \
    F(REQUIRED, device_get_uuid, cuDeviceGetUuid, 11040,                      \
      (hce_cu_uuid_t *, hce_cu_device_t))                                     \
    F(REQUIRED, device_get_pci_bus_id, cuDeviceGetPCIBusId, 4010,             \
      (char *, int, hce_cu_device_t))                                         \
    F(OPTIONAL, device_total_mem, cuDeviceTotalMem, 3020,                     \
      (size_t *, hce_cu_device_t))                                            \
    F(REQUIRED, primary_ctx_retain, cuDevicePrimaryCtxRetain, 7000,           \
      (hce_cu_ctx_t *, hce_cu_device_t))                                      \
    F(REQUIRED, primary_ctx_release, cuDevicePrimaryCtxRelease, 11000,        \
      (hce_cu_device_t))                                                      \
    F(REQUIRED, ctx_get_current, cuCtxGetCurrent, 4000, (hce_cu_ctx_t *))     \
    F(REQUIRED, ctx_set_current, cuCtxSetCurrent, 4000, (hce_cu_ctx_t))       \
    F(REQUIRED, ctx_push_current, cuCtxPushCurrent, 4000, (hce_cu_ctx_t))     \
    F(REQUIRED, ctx_pop_current, cuCtxPopCurrent, 4000, (hce_cu_ctx_t *))     \
    F(REQUIRED, ctx_get_device, cuCtxGetDevice, 2000, (hce_cu_device_t *))    \
    F(REQUIRED, ctx_get_stream_priority_range, cuCtxGetStreamPriorityRange,   \
      5050, (int *, int *))                                                   \
    F(REQUIRED, device_can_access_peer, cuDeviceCanAccessPeer, 4000,          \
      (int *, hce_cu_device_t, hce_cu_device_t))                              \
    F(REQUIRED, ctx_enable_peer_access, cuCtxEnablePeerAccess, 4000,          \
      (hce_cu_ctx_t, unsigned int))

#define HCE_DRV_CALLS_MEMORY(F)                                               \
    F(REQUIRED, mem_alloc, cuMemAlloc, 3020, (hce_cu_ptr_t *, size_t))        \
    F(REQUIRED, mem_free, cuMemFree, 3020, (hce_cu_ptr_t))                    \
    F(REQUIRED, mem_host_register, cuMemHostRegister, 6050,                   \
      (void *, size_t, unsigned int))                                         \
    F(REQUIRED, mem_host_unregister, cuMemHostUnregister, 4000, (void *))     \
    F(REQUIRED, mem_host_get_device_pointer, cuMemHostGetDevicePointer, 3020, \
      (hce_cu_ptr_t *, void *, unsigned int))                                 \
    F(REQUIRED, mem_get_address_range, cuMemGetAddressRange, 3020,            \
      (hce_cu_ptr_t *, size_t *, hce_cu_ptr_t))                               \
    F(REQUIRED, pointer_get_attribute, cuPointerGetAttribute, 4000,           \
      (void *, hce_cu_enum_t, hce_cu_ptr_t))                                  \
    F(REQUIRED, pointer_set_attribute, cuPointerSetAttribute, 6000,           \
      (const void *, hce_cu_enum_t, hce_cu_ptr_t))                            \
    F(OPTIONAL, mem_get_handle_for_address_range,                             \
      cuMemGetHandleForAddressRange, 11070,                                   \
      (void *, hce_cu_ptr_t, size_t, hce_cu_enum_t, unsigned long long))      \
    F(OPTIONAL, flush_rdma_writes, cuFlushGPUDirectRDMAWrites, 11030,         \
      (hce_cu_enum_t, hce_cu_enum_t))

#define HCE_DRV_CALLS_SHARING(F)                                              \
    F(REQUIRED, ipc_get_mem_handle, cuIpcGetMemHandle, 4010,                  \
      (hce_cu_ipc_mem_t *, hce_cu_ptr_t))                                     \
    F(REQUIRED, ipc_open_mem_handle, cuIpcOpenMemHandle, 11000,               \
      (hce_cu_ptr_t *, hce_cu_ipc_mem_t, unsigned int))                       \
    F(REQUIRED, ipc_close_mem_handle, cuIpcCloseMemHandle, 4010,              \
      (hce_cu_ptr_t))                                                         \
    F(REQUIRED, mem_create, cuMemCreate, 10020,                               \
      (hce_cu_mem_t *, size_t, const hce_cu_mem_prop_t *,                     \
       unsigned long long))                                                   \
    F(REQUIRED, mem_release, cuMemRelease, 10020, (hce_cu_mem_t))             \
    F(REQUIRED, mem_address_reserve, cuMemAddressReserve, 10020,              \
      (hce_cu_ptr_t *, size_t, size_t, hce_cu_ptr_t, unsigned long long))     \
    F(REQUIRED, mem_address_free, cuMemAddressFree, 10020,                    \
      (hce_cu_ptr_t, size_t))                                                 \
    F(REQUIRED, mem_map, cuMemMap, 10020,                                     \
      (hce_cu_ptr_t, size_t, size_t, hce_cu_mem_t, unsigned long long))       \
    F(REQUIRED, mem_unmap, cuMemUnmap, 10020, (hce_cu_ptr_t, size_t))         \
    F(REQUIRED, mem_set_access, cuMemSetAccess, 10020,                        \
      (hce_cu_ptr_t, size_t, const hce_cu_access_t *, size_t))                \
    F(REQUIRED, mem_export, cuMemExportToShareableHandle, 10020,              \
      (void *, hce_cu_mem_t, hce_cu_enum_t, unsigned long long))              \
    F(REQUIRED, mem_import, cuMemImportFromShareableHandle, 10020,            \
      (hce_cu_mem_t *, void *, hce_cu_enum_t))                                \
    F(REQUIRED, mem_get_granularity, cuMemGetAllocationGranularity, 10020,    \
      (size_t *, const hce_cu_mem_prop_t *, hce_cu_enum_t))                   \
    F(REQUIRED, mem_get_properties, cuMemGetAllocationPropertiesFromHandle,   \
      10020, (hce_cu_mem_prop_t *, hce_cu_mem_t))                             \
    F(REQUIRED, mem_retain_handle, cuMemRetainAllocationHandle, 11000,        \
      (hce_cu_mem_t *, void *))                                               \
    F(OPTIONAL, multicast_create, cuMulticastCreate, 12010,                   \
      (hce_cu_mem_t *, const hce_cu_multicast_prop_t *))                      \
    F(OPTIONAL, multicast_add_device, cuMulticastAddDevice, 12010,            \
      (hce_cu_mem_t, hce_cu_device_t))                                        \
    F(OPTIONAL, multicast_bind_mem, cuMulticastBindMem, 12010,                \
      (hce_cu_mem_t, size_t, hce_cu_mem_t, size_t, size_t,                    \
       unsigned long long))                                                   \
    F(OPTIONAL, multicast_unbind, cuMulticastUnbind, 12010,                   \
      (hce_cu_mem_t, hce_cu_device_t, size_t, size_t))                        \
    F(OPTIONAL, multicast_get_granularity, cuMulticastGetGranularity, 12010,  \
      (size_t *, const hce_cu_multicast_prop_t *, hce_cu_enum_t))

#define HCE_DRV_CALLS_STREAM(F)                                               \
    F(REQUIRED, memcpy_async, cuMemcpyAsync, 4000,                            \
      (hce_cu_ptr_t, hce_cu_ptr_t, size_t, hce_cu_stream_t))                  \
    F(OPTIONAL, memcpy_batch_async, cuMemcpyBatchAsync, 13000,                \
      (hce_cu_ptr_t *, hce_cu_ptr_t *, size_t *, size_t,                      \
       hce_cu_copy_attr_t *, size_t *, size_t, hce_cu_stream_t))              \
    F(OPTIONAL, memcpy_batch_async_12080, cuMemcpyBatchAsync, 12080,          \
      (hce_cu_ptr_t *, hce_cu_ptr_t *, size_t *, size_t,                      \
       hce_cu_copy_attr_t *, size_t *, size_t, size_t *, hce_cu_stream_t))    \
    F(REQUIRED, stream_create, cuStreamCreateWithPriority, 5050,              \
      (hce_cu_stream_t *, unsigned int, int))                                 \
    F(REQUIRED, stream_destroy, cuStreamDestroy, 4000, (hce_cu_stream_t))     \
    F(REQUIRED, stream_query, cuStreamQuery, 2000, (hce_cu_stream_t))         \
    F(REQUIRED, stream_synchronize, cuStreamSynchronize, 2000,                \
      (hce_cu_stream_t))                                                      \
    F(REQUIRED, stream_wait_event, cuStreamWaitEvent, 3020,                   \
      (hce_cu_stream_t, hce_cu_event_t, unsigned int))                        \
    F(REQUIRED, stream_get_ctx, cuStreamGetCtx, 9020,                         \
      (hce_cu_stream_t, hce_cu_ctx_t *))                                      \
    F(REQUIRED, stream_get_flags, cuStreamGetFlags, 5050,                     \
      (hce_cu_stream_t, unsigned int *))                                      \
    F(REQUIRED, event_create, cuEventCreate, 2000,                            \
      (hce_cu_event_t *, unsigned int))                                       \
    F(REQUIRED, event_destroy, cuEventDestroy, 4000, (hce_cu_event_t))        \
    F(REQUIRED, event_record, cuEventRecord, 2000,                            \
      (hce_cu_event_t, hce_cu_stream_t))                                      \
    F(REQUIRED, event_query, cuEventQuery, 2000, (hce_cu_event_t))            \
    F(REQUIRED, stream_batch_memop, cuStreamBatchMemOp, 11070,                \
      (hce_cu_stream_t, unsigned int, hce_cu_memop_t *, unsigned int))

#define HCE_DRV_CALLS_CAPTURE(F)                                              \
    F(REQUIRED, stream_is_capturing, cuStreamIsCapturing, 10000,              \
      (hce_cu_stream_t, hce_cu_enum_t *))                                     \
    F(REQUIRED, stream_get_capture_info, cuStreamGetCaptureInfo, 11030,       \
      (hce_cu_stream_t, hce_cu_enum_t *, uint64_t *, hce_cu_graph_t *,        \
       const hce_cu_graph_node_t **, size_t *))                               \
    F(REQUIRED, thread_exchange_capture_mode,                                 \
      cuThreadExchangeStreamCaptureMode, 10010, (hce_cu_enum_t *))            \
    F(REQUIRED, user_object_create, cuUserObjectCreate, 11030,                \
      (hce_cu_user_object_t *, void *, hce_cu_host_fn_t, unsigned int,        \
       unsigned int))                                                         \
    F(REQUIRED, user_object_release, cuUserObjectRelease, 11030,              \
      (hce_cu_user_object_t, unsigned int))                                   \
    F(REQUIRED, graph_retain_user_object, cuGraphRetainUserObject, 11030,     \
      (hce_cu_graph_t, hce_cu_user_object_t, unsigned int, unsigned int))

#endif
