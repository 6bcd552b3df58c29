/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * See rig.h.
 */
#include "config.h"

#include "rig.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

rig_t gpu;

typedef struct wanted {
    const char *name;
    int version;
    size_t offset;
} wanted_t;

#define WANTED(_need, _member, _name, _version, _params)                      \
    {#_name, _version, offsetof(rig_t, _member)},

static const wanted_t wanted[] = {HCE_DRV_CALLS(WANTED) SOFT_CALLS(WANTED)};

static void *symbol(void *library, const char *name)
{
    void *fn = dlsym(library, name);

    if (fn == NULL) {
        fprintf(stderr, "no %s: is this the soft GPU?\n", name);
        exit(1);
    }
    return fn;
}

void rig_open(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL), *fn;
    hce_cu_enum_t state;
    size_t i;

    if (library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    fn = symbol(library, "cuGetProcAddress_v2");
    memcpy(&gpu.get_proc, &fn, sizeof(fn));
    fn = symbol(library, "softgpu_get_counters");
    memcpy(&gpu.get_counters, &fn, sizeof(fn));
    fn = symbol(library, "softgpu_set_fail");
    memcpy(&gpu.set_fail, &fn, sizeof(fn));
    for (i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        fn = NULL;
        /* What an older driver has not stays NULL. */
        if (gpu.get_proc(wanted[i].name, &fn, wanted[i].version, 1, &state) ==
                0 &&
            state == HCE_CU_PROC_FOUND)
            memcpy((char *)&gpu + wanted[i].offset, &fn, sizeof(fn));
    }
    if (gpu.init(0) != 0 || gpu.primary_ctx_retain(&gpu.ctx[0], 0) != 0 ||
        gpu.primary_ctx_retain(&gpu.ctx[1], 1) != 0 ||
        gpu.ctx_set_current(gpu.ctx[0]) != 0) {
        fprintf(stderr, "the soft GPU does not start\n");
        exit(1);
    }
}

void *rig_host(size_t size)
{
    void *addr = mmap(NULL, size, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (addr == MAP_FAILED ||
        gpu.mem_host_register(
            addr, size, HCE_CU_HOST_PORTABLE | HCE_CU_HOST_DEVICEMAP) != 0) {
        fprintf(stderr, "no registered memory\n");
        exit(1);
    }
    return addr;
}

void rig_host_free(void *addr, size_t size)
{
    RIG_OK(gpu.mem_host_unregister(addr));
    munmap(addr, size);
}

hce_cu_ptr_t rig_ptr(const void *addr)
{
    return (hce_cu_ptr_t)(uintptr_t)addr;
}

hce_cu_ptr_t rig_alloc(int dev, size_t size)
{
    hce_cu_ptr_t va = 0;

    RIG_OK(gpu.ctx_set_current(gpu.ctx[dev]));
    RIG_OK(gpu.mem_alloc(&va, size));
    RIG_OK(gpu.ctx_set_current(gpu.ctx[0]));
    return va;
}

hce_cu_stream_t rig_stream(void)
{
    hce_cu_stream_t stream = NULL;

    RIG_OK(gpu.stream_create(&stream, HCE_CU_STREAM_NON_BLOCKING, 0));
    return stream;
}

void rig_sync(hce_cu_stream_t stream)
{
    RIG_OK(gpu.stream_synchronize(stream));
}

hce_cu_result_t rig_batch(hce_cu_stream_t stream, size_t num,
                          hce_cu_ptr_t *dsts, hce_cu_ptr_t *srcs, size_t *lens)
{
    hce_cu_copy_attr_t attr = {.src_order = HCE_CU_SRC_STREAM_ORDER,
                               .flags = HCE_CU_COPY_PREFER_OVERLAP};
    size_t index = 0;

    return gpu.memcpy_batch_async(dsts, srcs, lens, num, &attr, &index, 1,
                                  stream);
}

softgpu_counters_t rig_counters(void)
{
    softgpu_counters_t counters;

    gpu.get_counters(&counters);
    return counters;
}

hce_cu_ptr_t rig_map(int dev, hce_cu_enum_t types, hce_cu_mem_t *handle_p)
{
    hce_cu_mem_prop_t prop = {
        .type = HCE_CU_MEM_PINNED,
        .handle_types = types,
        .location = {.type = HCE_CU_LOCATION_DEVICE, .id = dev}};
    hce_cu_ptr_t va = 0;

    RIG_OK(gpu.mem_create(handle_p, 2 * RIG_MIB, &prop, 0));
    RIG_OK(gpu.mem_address_reserve(&va, 2 * RIG_MIB, 0, 0, 0));
    RIG_OK(gpu.mem_map(va, 2 * RIG_MIB, 0, *handle_p, 0));
    return va;
}

void rig_access(hce_cu_ptr_t va, size_t size, int dev)
{
    hce_cu_access_t access = {
        .location = {.type = HCE_CU_LOCATION_DEVICE, .id = dev},
        .flags = HCE_CU_ACCESS_READWRITE};

    RIG_OK(gpu.mem_set_access(va, size, &access, 1));
}
