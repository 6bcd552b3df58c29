/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Host memory that devices may reach: registered or allocated, by exact
 * bytes; two ranges may share a page but not a byte.
 */
#include "soft.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

typedef struct pin {
    hce_cu_ptr_t va;
    size_t len;
    unsigned flags;
    bool is_alloc; /* by cuMemHostAlloc */
    struct pin *next;
} pin_t;

static pin_t *pins;

static pin_t *pin_find(hce_cu_ptr_t va)
{
    pin_t *pin = pins;

    while (pin != NULL && (va < pin->va || va - pin->va >= pin->len))
        pin = pin->next;
    return pin;
}

/* Not what a device reaches by memops, unless mapped for it. */
bool soft_is_pinned(hce_cu_ptr_t va, size_t len)
{
    const pin_t *pin = pin_find(va);

    return pin != NULL && len <= pin->len - (va - pin->va) &&
           (pin->flags & HCE_CU_HOST_DEVICEMAP) != 0;
}

/* Every page of it mapped readable and writable? */
static bool is_writable(hce_cu_ptr_t va, size_t len)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    hce_cu_ptr_t end = va + len, low, high;
    char line[512], mode[5];

    if (maps == NULL)
        soft_die("no /proc/self/maps: %m");
    while (va < end && fgets(line, sizeof(line), maps) != NULL) {
        if (sscanf(line, "%llx-%llx %4s", &low, &high, mode) != 3)
            continue;
        if (va >= low && va < high) {
            if (mode[0] != 'r' || mode[1] != 'w')
                break;
            va = high;
        }
    }
    fclose(maps);
    return va >= end;
}

static soft_result_t pin_add(const pin_t *like)
{
    pin_t *pin;

    for (pin = pins; pin != NULL; pin = pin->next) {
        if (like->va < pin->va + pin->len && pin->va < like->va + like->len)
            return HCE_CU_HOST_MEMORY_ALREADY_REGISTERED;
    }
    pin = malloc(sizeof(*pin));
    if (pin == NULL)
        return HCE_CU_OUT_OF_MEMORY;
    *pin = *like;
    pin->next = pins;
    pins = pin;
    soft_count_live(&soft_counters.host_ranges, 1);
    return HCE_CU_OK;
}

static void pin_remove(pin_t *pin)
{
    pin_t **at = &pins;

    while (*at != pin)
        at = &(*at)->next;
    *at = pin->next;
    free(pin);
    soft_count_live(&soft_counters.host_ranges, -1);
}

soft_result_t soft_mem_host_register(void *addr, size_t size,
                                     unsigned int flags)
{
    static soft_site_t site = {.name = "cuMemHostRegister",
                               .need = SOFT_UNSAFE};
    soft_result_t result = soft_enter(&site);
    pin_t pin = {
        .va = (hce_cu_ptr_t)(uintptr_t)addr, .len = size, .flags = flags};

    if (result != HCE_CU_OK)
        return result;
    if (addr == NULL || size == 0 || flags > 15)
        return HCE_CU_INVALID_VALUE;
    pthread_mutex_lock(&soft_lock);
    if (soft_is_device(pin.va) || !is_writable(pin.va, size))
        result = HCE_CU_INVALID_VALUE;
    else
        result = pin_add(&pin);
    pthread_mutex_unlock(&soft_lock);
    return result;
}

soft_result_t soft_mem_host_unregister(void *addr)
{
    static soft_site_t site = {.name = "cuMemHostUnregister",
                               .need = SOFT_UNSAFE};
    soft_result_t result = soft_enter(&site);
    hce_cu_ptr_t va = (hce_cu_ptr_t)(uintptr_t)addr;
    pin_t *pin;

    if (result != HCE_CU_OK)
        return result;
    if (addr == NULL)
        return HCE_CU_INVALID_VALUE;
    pthread_mutex_lock(&soft_lock);
    pin = pin_find(va);
    if (pin == NULL) {
        result = HCE_CU_HOST_MEMORY_NOT_REGISTERED;
    } else if (pin->va != va || pin->is_alloc) {
        result = HCE_CU_INVALID_VALUE;
    } else {
        soft_drain();
        pin_remove(pin);
    }
    pthread_mutex_unlock(&soft_lock);
    return result;
}

soft_result_t soft_mem_host_get_device_pointer(hce_cu_ptr_t *va_p, void *addr,
                                               unsigned int flags)
{
    static soft_site_t site = {.name = "cuMemHostGetDevicePointer",
                               .need = SOFT_CTX};
    soft_result_t result = soft_enter(&site);
    hce_cu_ptr_t va = (hce_cu_ptr_t)(uintptr_t)addr;

    if (result != HCE_CU_OK)
        return result;
    pthread_mutex_lock(&soft_lock);
    if (flags != 0 || !soft_is_pinned(va, 1))
        result = HCE_CU_INVALID_VALUE;
    else
        *va_p = va;
    pthread_mutex_unlock(&soft_lock);
    return result;
}

soft_result_t soft_mem_host_alloc(void **addr_p, size_t size,
                                  unsigned int flags)
{
    static soft_site_t site = {.name = "cuMemHostAlloc", .need = SOFT_UNSAFE};
    soft_result_t result = soft_enter(&site);
    pin_t pin = {.len = size, .flags = flags, .is_alloc = true};
    void *addr;

    if (result != HCE_CU_OK)
        return result;
    if (size == 0 || flags > 7)
        return HCE_CU_INVALID_VALUE;
    addr = mmap(NULL, size, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (addr == MAP_FAILED)
        return HCE_CU_OUT_OF_MEMORY;
    pin.va = (hce_cu_ptr_t)(uintptr_t)addr;
    pthread_mutex_lock(&soft_lock);
    result = pin_add(&pin);
    pthread_mutex_unlock(&soft_lock);
    if (result == HCE_CU_OK)
        *addr_p = addr;
    else
        munmap(addr, size);
    return result;
}

soft_result_t soft_mem_free_host(void *addr)
{
    static soft_site_t site = {.name = "cuMemFreeHost", .need = SOFT_UNSAFE};
    soft_result_t result = soft_enter(&site);
    hce_cu_ptr_t va = (hce_cu_ptr_t)(uintptr_t)addr;
    pin_t *pin;

    if (result != HCE_CU_OK || addr == NULL)
        return result;
    pthread_mutex_lock(&soft_lock);
    pin = pin_find(va);
    if (pin == NULL || pin->va != va || !pin->is_alloc) {
        result = HCE_CU_INVALID_VALUE;
    } else {
        soft_drain();
        munmap(addr, pin->len);
        pin_remove(pin);
    }
    pthread_mutex_unlock(&soft_lock);
    return result;
}
