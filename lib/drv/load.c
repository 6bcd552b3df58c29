/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Finds the driver and resolves the list of calls.c, each with the version of
 * its signature.
 */
#include "config.h"

#include "drv/drv.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef hce_cu_result_t (*get_proc_t)(const char *, void **, int, uint64_t,
                                      hce_cu_enum_t *);

typedef struct entry {
    const char *name;
    int version;
    bool is_required;
    size_t offset; /* of the member of hce_drv_t */
} entry_t;

enum { REQUIRED = 1, OPTIONAL = 0 };

#define ENTRY(_need, _member, _name, _version, _params)                       \
    {#_name, _version, _need, offsetof(hce_drv_t, _member)},

static const entry_t entries[] = {HCE_DRV_CALLS(ENTRY)};

/* Written by load() under once, constant afterwards. */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static hce_drv_t drv;
static hce_status_t load_status;
static char load_reason[256];
static pid_t load_pid;

static hce_status_t fail(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

static hce_status_t fail(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(load_reason, sizeof(load_reason), format, args);
    va_end(args);
    return HCE_ERR_UNSUPPORTED;
}

/* The driver may answer success and leave no pointer, or leave everything
 * untouched: result, state and pointer all have to be right. */
static hce_cu_result_t resolve(get_proc_t get_proc, const char *name,
                               int version, void **fn_p)
{
    hce_cu_enum_t state = HCE_CU_PROC_NOT_FOUND;
    hce_cu_result_t result;

    *fn_p = NULL;
    result = get_proc(name, fn_p, version, HCE_CU_PROC_LEGACY_STREAM, &state);
    if (result != HCE_CU_OK)
        *fn_p = NULL;
    else if (state != HCE_CU_PROC_FOUND || *fn_p == NULL) {
        *fn_p = NULL;
        result = HCE_CU_NOT_FOUND;
    }
    return result;
}

static hce_status_t version_get(get_proc_t get_proc)
{
    hce_cu_result_t (*get_version)(int *);
    hce_cu_result_t result;
    void *fn;

    result = resolve(get_proc, "cuDriverGetVersion", 2020, &fn);
    if (result == HCE_CU_STUB_LIBRARY)
        return fail("libcuda.so.1 is the toolkit's stub, not a driver");
    if (fn == NULL)
        return fail("cuGetProcAddress does not know cuDriverGetVersion "
                    "(result %u)",
                    result);
    memcpy(&get_version, &fn, sizeof(fn));
    result = get_version(&drv.version);
    if (result == HCE_CU_STUB_LIBRARY)
        return fail("libcuda.so.1 is the toolkit's stub, not a driver");
    if (result != HCE_CU_OK)
        return fail("cuDriverGetVersion returns %u", result);
    if (drv.version < HCE_DRV_MIN_VERSION)
        return fail("the driver is for CUDA %d.%d, at least %d.%d is needed",
                    drv.version / 1000, drv.version % 1000 / 10,
                    HCE_DRV_MIN_VERSION / 1000,
                    HCE_DRV_MIN_VERSION % 1000 / 10);
    return HCE_OK;
}

static hce_status_t entries_resolve(get_proc_t get_proc)
{
    hce_cu_result_t result;
    size_t i;
    void *fn;

    for (i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
        const entry_t *entry = &entries[i];

        fn = NULL;
        result = HCE_CU_NOT_FOUND;
        /* Asking for more than the driver's version is an error to it. */
        if (entry->version <= drv.version)
            result = resolve(get_proc, entry->name, entry->version, &fn);
        if (fn == NULL && entry->is_required)
            return fail("the driver (CUDA %d.%d) has no %s of version %d "
                        "(result %u)",
                        drv.version / 1000, drv.version % 1000 / 10,
                        entry->name, entry->version, result);
        memcpy((char *)&drv + entry->offset, &fn, sizeof(fn));
    }
    return HCE_OK;
}

static hce_status_t init(void)
{
    hce_cu_result_t result = drv.init(0);
    char text[HCE_DRV_NAME_LEN];

    if (result == HCE_CU_OK)
        result = drv.device_get_count(&drv.num_devices);
    if (result != HCE_CU_OK)
        return fail("the driver finds no usable device: %s",
                    hce_drv_result_name(result, text));
    if (drv.num_devices == 0)
        return fail("the driver finds no device");
    return HCE_OK;
}

/* The library is never closed: its threads and handlers stay. */
static hce_status_t load_try(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    get_proc_t get_proc;
    hce_status_t status;
    void *fn;

    if (library == NULL)
        return fail("no CUDA driver: %s", dlerror());
    fn = dlsym(library, "cuGetProcAddress_v2");
    if (fn == NULL)
        return fail("libcuda.so.1 has no cuGetProcAddress_v2: the driver is "
                    "older than CUDA 12.0");
    memcpy(&get_proc, &fn, sizeof(fn));
    status = version_get(get_proc);
    if (status == HCE_OK)
        status = entries_resolve(get_proc);
    if (status == HCE_OK)
        status = init();
    return status;
}

static void load(void)
{
    load_pid = getpid();
    load_status = load_try();
}

hce_status_t hce_drv_get(const hce_drv_t **drv_p)
{
    pthread_once(&once, load);
    if (load_status != HCE_OK)
        return load_status;
    /* The driver's state does not survive fork, nor is it made anew. */
    if (load_pid != getpid())
        return HCE_ERR_FORKED;
    *drv_p = &drv;
    return HCE_OK;
}

const char *hce_drv_reason(void)
{
    return load_reason;
}

const char *hce_drv_result_name(hce_cu_result_t result,
                                char text[HCE_DRV_NAME_LEN])
{
    const char *name = NULL;

    /* An unknown result makes it return an error and set NULL. */
    if (drv.get_error_name != NULL &&
        drv.get_error_name(result, &name) == HCE_CU_OK && name != NULL)
        return name;
    snprintf(text, HCE_DRV_NAME_LEN, "result %u", result);
    return text;
}
