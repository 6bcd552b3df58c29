/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The soft GPU's only way in, cuGetProcAddress_v2: calls by name and version.
 * What could run on a multiprocessor resolves to a function that ends the
 * process; other calls that are not simulated are not found.
 */
#include "soft.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct proc {
    const char *name;
    int version;
    void (*fn)(void);
} proc_t;

#define PROC(_need, _member, _name, _version, _params)                        \
    {#_name, _version, (void (*)(void))soft_##_member},

/* Of several versions of one name the newest that was asked for counts. */
static const proc_t procs[] = {HCE_DRV_CALLS(PROC) SOFT_CALLS(PROC)};

/* Families; a memset runs on multiprocessors or not, as the driver likes. */
static const char *const forbidden[] = {
    "cuLaunch",
    "cuModule",
    "cuLibrary",
    "cuLink",
    "cuKernel",
    "cuFunc",
    "cuMemset",
    "cuGraphAddKernel",
    "cuGraphAddMemset",
    "cuMemAllocManaged",
    "cuStreamAddCallback",
};

static void forbidden_called(void)
{
    soft_die("a call that may run on a multiprocessor");
}

static soft_result_t stub_called(void)
{
    return HCE_CU_STUB_LIBRARY;
}

soft_result_t soft_driver_get_version(int *version_p)
{
    static soft_site_t site = {.name = "cuDriverGetVersion", .need = SOFT_ANY};
    soft_result_t result = soft_enter(&site);

    if (soft_settings.version == 0)
        soft_settings_read();
    if (result == HCE_CU_OK)
        *version_p = soft_settings.version;
    return result;
}

static const struct {
    soft_result_t result;
    const char *name;
} names[] = {
    {HCE_CU_OK, "CUDA_SUCCESS"},
    {HCE_CU_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"},
    {HCE_CU_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
    {HCE_CU_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED"},
    {HCE_CU_NO_DEVICE, "CUDA_ERROR_NO_DEVICE"},
    {HCE_CU_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE"},
    {HCE_CU_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT"},
    {HCE_CU_MAP_FAILED, "CUDA_ERROR_MAP_FAILED"},
    {HCE_CU_ALREADY_MAPPED, "CUDA_ERROR_ALREADY_MAPPED"},
    {HCE_CU_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE"},
    {HCE_CU_ILLEGAL_STATE, "CUDA_ERROR_ILLEGAL_STATE"},
    {HCE_CU_NOT_FOUND, "CUDA_ERROR_NOT_FOUND"},
    {HCE_CU_NOT_READY, "CUDA_ERROR_NOT_READY"},
    {HCE_CU_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS"},
    {HCE_CU_PEER_ACCESS_ALREADY_ENABLED,
     "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED"},
    {HCE_CU_HOST_MEMORY_ALREADY_REGISTERED,
     "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED"},
    {HCE_CU_HOST_MEMORY_NOT_REGISTERED,
     "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED"},
    {HCE_CU_NOT_PERMITTED, "CUDA_ERROR_NOT_PERMITTED"},
    {HCE_CU_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED"},
    {HCE_CU_SYSTEM_NOT_READY, "CUDA_ERROR_SYSTEM_NOT_READY"},
    {HCE_CU_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"},
    {HCE_CU_CAPTURE_INVALIDATED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"},
    {HCE_CU_UNKNOWN, "CUDA_ERROR_UNKNOWN"},
};

static soft_result_t name_get(soft_result_t of, const char **name_p)
{
    size_t i;

    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (names[i].result == of) {
            *name_p = names[i].name;
            return HCE_CU_OK;
        }
    }
    *name_p = NULL;
    return HCE_CU_INVALID_VALUE;
}

soft_result_t soft_get_error_name(soft_result_t of, const char **name_p)
{
    return name_get(of, name_p);
}

soft_result_t soft_get_error_string(soft_result_t of, const char **text_p)
{
    return name_get(of, text_p);
}

static bool is_forbidden(const char *name)
{
    size_t i;

    for (i = 0; i < sizeof(forbidden) / sizeof(forbidden[0]); i++) {
        if (strncmp(name, forbidden[i], strlen(forbidden[i])) == 0)
            return true;
    }
    return false;
}

static const proc_t *proc_find(const char *name, int version, bool *known_p)
{
    const proc_t *best = NULL;
    size_t i;

    *known_p = false;
    for (i = 0; i < sizeof(procs) / sizeof(procs[0]); i++) {
        if (strcmp(procs[i].name, name) != 0)
            continue;
        *known_p = true;
        if (procs[i].version <= version &&
            (best == NULL || procs[i].version > best->version))
            best = &procs[i];
    }
    return best;
}

__attribute__((visibility("default"))) soft_result_t
cuGetProcAddress_v2(const char *name, void **fn_p, int version, uint64_t flags,
                    hce_cu_enum_t *state_p);

static soft_result_t answer(void (*fn)(void), void **fn_p, hce_cu_enum_t state,
                            hce_cu_enum_t *state_p)
{
    memcpy(fn_p, &fn, sizeof(fn));
    if (state_p != NULL)
        *state_p = state;
    return HCE_CU_OK;
}

soft_result_t cuGetProcAddress_v2(const char *name, void **fn_p, int version,
                                  uint64_t flags, hce_cu_enum_t *state_p)
{
    const char *stub = getenv("SOFTGPU_STUB");
    const proc_t *proc;
    bool known;

    /* A stub leaves the outputs as they were. */
    if (stub != NULL && strcmp(stub, "1") == 0)
        return stub_called();
    if (soft_settings.version == 0)
        soft_settings_read();
    if (name == NULL || fn_p == NULL || version > soft_settings.version ||
        flags > 2)
        return HCE_CU_INVALID_VALUE;
    /* Handle 0 would have to mean another stream. */
    if (flags == 2)
        soft_die("per-thread default streams by flag are not simulated");
    if (is_forbidden(name))
        return answer(forbidden_called, fn_p, HCE_CU_PROC_FOUND, state_p);
    proc = proc_find(name, version, &known);
    if (proc == NULL || soft_settings_hides(name)) {
        if (!known)
            fprintf(stderr, "softgpu: %s is not simulated\n", name);
        return answer(NULL, fn_p,
                      known && proc == NULL ? HCE_CU_PROC_VERSION_TOO_OLD
                                            : HCE_CU_PROC_NOT_FOUND,
                      state_p);
    }
    return answer(proc->fn, fn_p, HCE_CU_PROC_FOUND, state_p);
}
