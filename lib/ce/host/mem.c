/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Memory that peers can map: a table of this process' allocations by
 * address, each a sealed memfd.
 */
#include <config.h>

#include "ce/host/mem.h"

#include "ce/ce.h"
#include "util/log.h"
#include "util/math.h"
#include "util/shm.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

typedef struct entry {
    hce_shm_t shm;
    uint64_t serial;
    unsigned refs; /* windows */
} entry_t;

/* All of this is protected by lock; entries are sorted by address. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static entry_t *entries;
static size_t num_entries, max_entries;
static uint64_t last_serial;
static uint8_t process_token[HCE_CE_TOKEN_LEN];
static pid_t token_pid; /* process that token belongs to */

hce_status_t hce_ce_process_token(uint8_t token[HCE_CE_TOKEN_LEN])
{
    hce_status_t status = HCE_OK;

    pthread_mutex_lock(&lock);
    if (token_pid != getpid()) {
        if (getrandom(process_token, sizeof(process_token), 0) !=
            sizeof(process_token)) {
            hce_log(ERROR, CE, "no random numbers: %m");
            status = HCE_ERR_SYSTEM;
        } else {
            token_pid = getpid();
        }
    }
    if (status == HCE_OK)
        memcpy(token, process_token, HCE_CE_TOKEN_LEN);
    pthread_mutex_unlock(&lock);
    return status;
}

/* Index of the first entry that starts above addr. Caller holds lock. */
static size_t entry_above(const void *addr)
{
    size_t low = 0, high = num_entries, mid;

    while (low < high) {
        mid = (low + high) / 2;
        if ((uintptr_t)entries[mid].shm.addr <= (uintptr_t)addr)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* Caller holds lock. */
static hce_status_t entry_insert(const hce_shm_t *shm)
{
    size_t at = entry_above(shm->addr), max;
    entry_t *more;

    if (num_entries == max_entries) {
        max = max_entries == 0 ? 16 : 2 * max_entries;
        more = realloc(entries, max * sizeof(*entries));
        if (more == NULL) {
            hce_log(ERROR, CE, "no memory for %zu allocations", max);
            return HCE_ERR_NO_MEMORY;
        }
        entries = more;
        max_entries = max;
    }
    memmove(entries + at + 1, entries + at,
            (num_entries - at) * sizeof(*entries));
    entries[at] = (entry_t){.shm = *shm, .serial = ++last_serial};
    num_entries++;
    return HCE_OK;
}

hce_status_t hce_ce_mem_alloc(size_t size, void **ptr_p)
{
    hce_shm_t shm;
    hce_status_t status;

    status = hce_shm_create("hce-mem", hce_max(size, 1), &shm);
    if (status != HCE_OK)
        return status;
    pthread_mutex_lock(&lock);
    status = entry_insert(&shm);
    pthread_mutex_unlock(&lock);
    if (status != HCE_OK) {
        hce_shm_destroy(&shm);
        return status;
    }
    *ptr_p = shm.addr;
    return HCE_OK;
}

hce_status_t hce_ce_mem_free(void *ptr)
{
    hce_status_t status = HCE_OK;
    hce_shm_t shm;
    size_t at;

    if (ptr == NULL)
        return HCE_OK;
    pthread_mutex_lock(&lock);
    at = entry_above(ptr);
    if (at == 0 || entries[at - 1].shm.addr != ptr) {
        hce_log(ERROR, CE, "hce_mem_free(%p): hce_mem_alloc did not return it",
                ptr);
        status = HCE_ERR_INVALID_ARG;
    } else if (entries[at - 1].refs > 0) {
        hce_log(ERROR, CE, "hce_mem_free(%p): still in %u windows", ptr,
                entries[at - 1].refs);
        status = HCE_ERR_INVALID_ARG;
    } else {
        shm = entries[at - 1].shm;
        memmove(entries + at - 1, entries + at,
                (num_entries - at) * sizeof(*entries));
        num_entries--;
    }
    pthread_mutex_unlock(&lock);
    if (status == HCE_OK)
        hce_shm_destroy(&shm);
    return status;
}

bool hce_ce_mem_get(const void *addr, size_t len, hce_ce_mem_t *mem_p)
{
    uintptr_t start = (uintptr_t)addr;
    bool found = false;
    entry_t *entry;
    size_t at, skip;

    pthread_mutex_lock(&lock);
    at = entry_above(addr);
    if (at > 0) {
        entry = &entries[at - 1];
        skip = start - (uintptr_t)entry->shm.addr;
        if (skip < entry->shm.size && len <= entry->shm.size - skip) {
            entry->refs++;
            *mem_p = (hce_ce_mem_t){.serial = entry->serial,
                                    .addr = entry->shm.addr,
                                    .size = entry->shm.size,
                                    .fd = entry->shm.fd};
            found = true;
        }
    }
    pthread_mutex_unlock(&lock);
    return found;
}

void hce_ce_mem_put(uint64_t serial)
{
    size_t i;

    pthread_mutex_lock(&lock);
    for (i = 0; i < num_entries; i++) {
        if (entries[i].serial == serial) {
            entries[i].refs--;
            break;
        }
    }
    pthread_mutex_unlock(&lock);
}

/* The child has one thread, and the lock may have been held by another: it
 * is not taken. */
void hce_ce_mem_forked(void)
{
    size_t i;

    for (i = 0; i < num_entries; i++) {
        if (entries[i].shm.fd >= 0)
            close(entries[i].shm.fd);
        entries[i].shm.fd = -1;
    }
}
