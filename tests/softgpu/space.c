/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Device addresses: slices of a window that nothing on the CPU may touch,
 * elsewhere in each process, and what is mapped there. What is freed is taken
 * again first, so that old addresses come back with other memory.
 */
#include "soft.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct span {
    hce_cu_ptr_t va;
    size_t len;
    struct span *next; /* of higher address */
} span_t;

static char *window;
static span_t *spans;
static soft_range_t *ranges;
static struct sigaction old_action;

/* Says what was touched, then dies of the signal as it would have. Reads the
 * lists without the lock: it is the last thing that happens. */
static void segv(int signal, siginfo_t *info, void *context)
{
    hce_cu_ptr_t va = (hce_cu_ptr_t)(uintptr_t)info->si_addr;
    const soft_range_t *range;
    char text[160];
    int len = 0;

    if (soft_is_device(va)) {
        range = soft_range_find(va);
        len = range == NULL
                  ? snprintf(text, sizeof(text),
                             "softgpu: the CPU touched device address %#llx, "
                             "where nothing is mapped\n",
                             va)
                  : snprintf(text, sizeof(text),
                             "softgpu: the CPU touched memory of device %d: "
                             "%#llx + %llu\n",
                             range->dev, range->va, va - range->va);
        len = (int)write(STDERR_FILENO, text, (size_t)len);
    }
    (void)len;
    sigaction(signal, &old_action, NULL);
}

void soft_space_init(void)
{
    struct sigaction action = {.sa_sigaction = segv, .sa_flags = SA_SIGINFO};
    uint64_t random = soft_seed((uint64_t)getpid());
    uintptr_t hint = 0x200000000000ul + (soft_random(&random) % 512ul << 36);

    window = mmap((void *)hint, soft_settings.window, PROT_NONE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (window == MAP_FAILED)
        soft_die("no window of %zu bytes: %m", soft_settings.window);
    sigaction(SIGSEGV, &action, &old_action);
}

bool soft_is_device(hce_cu_ptr_t va)
{
    uintptr_t base = (uintptr_t)window;

    return window != NULL && va >= base && va < base + soft_settings.window;
}

hce_cu_ptr_t soft_space_take(size_t len)
{
    uintptr_t base = (uintptr_t)window;
    hce_cu_ptr_t va = (base + SOFT_GRAN - 1) / SOFT_GRAN * SOFT_GRAN;
    span_t **at = &spans, *span;

    while (*at != NULL && (*at)->va < va + len) {
        va = (*at)->va + (*at)->len;
        at = &(*at)->next;
    }
    span = malloc(sizeof(*span));
    if (span == NULL || va + len > base + soft_settings.window) {
        free(span);
        return 0;
    }
    *span = (span_t){.va = va, .len = len, .next = *at};
    *at = span;
    return va;
}

bool soft_space_give(hce_cu_ptr_t va, size_t len)
{
    span_t **at = &spans, *span;

    while (*at != NULL && (*at)->va != va)
        at = &(*at)->next;
    span = *at;
    if (span == NULL || span->len != len)
        return false;
    *at = span->next;
    free(span);
    return true;
}

bool soft_space_has(hce_cu_ptr_t va, size_t len)
{
    const span_t *span;

    for (span = spans; span != NULL; span = span->next) {
        if (va >= span->va && va - span->va <= span->len &&
            len <= span->len - (va - span->va))
            return true;
    }
    return false;
}

soft_range_t *soft_range_find(hce_cu_ptr_t va)
{
    soft_range_t *range = ranges;

    while (range != NULL && (va < range->va || va - range->va >= range->len))
        range = range->next;
    return range;
}

soft_range_t *soft_range_first(void)
{
    return ranges;
}

soft_range_t *soft_range_add(const soft_range_t *like)
{
    static uint64_t last_id;
    soft_range_t *range = malloc(sizeof(*range));

    if (range == NULL)
        soft_die("no memory");
    *range = *like;
    range->buffer_id = ++last_id;
    range->next = ranges;
    ranges = range;
    soft_count_live(&soft_counters.mappings, 1);
    return range;
}

void soft_range_remove(soft_range_t *range)
{
    soft_range_t **at = &ranges;

    while (*at != range)
        at = &(*at)->next;
    *at = range->next;
    soft_obj_put(range->obj);
    free(range);
    soft_count_live(&soft_counters.mappings, -1);
}
