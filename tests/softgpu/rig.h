/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * For tests over the soft GPU: all its calls, and what most tests need.
 */
#ifndef HCE_TESTS_SOFTGPU_RIG_H
#define HCE_TESTS_SOFTGPU_RIG_H

#include "calls.h"
#include "softgpu.h"

#include <hce/hce.h>
#include "drv/drv.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

typedef struct rig {
    hce_cu_result_t (*get_proc)(const char *, void **, int, uint64_t,
                                hce_cu_enum_t *);
    softgpu_get_counters_t get_counters;
    softgpu_set_fail_t set_fail;
    HCE_DRV_CALLS(HCE_DRV_MEMBER)
    SOFT_CALLS(HCE_DRV_MEMBER)
    hce_cu_ctx_t ctx[2]; /* of devices 0 and 1; the first is current */
} rig_t;
extern rig_t gpu;

#define RIG_MIB (1ul << 20)

/* Finds all calls, initialises, retains contexts; exits if it cannot. */
void rig_open(void);
/* Page-aligned, zero, registered for devices; ends with rig_host_free. */
void *rig_host(size_t size);
void rig_host_free(void *addr, size_t size);
hce_cu_ptr_t rig_ptr(const void *addr);
hce_cu_ptr_t rig_alloc(int dev, size_t size);
/* Non-blocking, of device 0. */
hce_cu_stream_t rig_stream(void);
void rig_sync(hce_cu_stream_t stream);
hce_cu_result_t rig_batch(hce_cu_stream_t stream, size_t num,
                          hce_cu_ptr_t *dsts, hce_cu_ptr_t *srcs,
                          size_t *lens);
softgpu_counters_t rig_counters(void);
/* Memory of device dev by handle, mapped; not accessible yet. */
hce_cu_ptr_t rig_map(int dev, hce_cu_enum_t types, hce_cu_mem_t *handle_p);
void rig_access(hce_cu_ptr_t va, size_t size, int dev);

#define RIG_OK(_call) assert_int_equal(_call, HCE_CU_OK)

#endif
