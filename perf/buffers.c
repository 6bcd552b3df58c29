/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Memory of a run. Layout of an allocation:
 *   page of padding + offset | front guard is its end | used | back guard
 * so that what is used starts where --offset says, relative to a page.
 */
#include <config.h>

#include "buffers.h"

#include "util/math.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGE_LEN   4096u
#define GUARD_LEN  64u
#define GUARD_BYTE 0xa5

/* What the kernel thinks can be had without swapping, in bytes; UINT64_MAX
 * when it does not say. */
static uint64_t memory_available(void)
{
    unsigned long long kib = UINT64_MAX / HCE_KIB;
    FILE *file = fopen("/proc/meminfo", "re");
    char line[128];

    if (file == NULL)
        return UINT64_MAX;
    while (fgets(line, sizeof(line), file) != NULL) {
        if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1)
            break;
    }
    fclose(file);
    return kib * HCE_KIB;
}

/* "1.5 MiB" */
static const char *bytes_text(uint64_t bytes, char *buf, size_t size)
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB",
                                        "TiB",   "PiB", "EiB"};
    double amount = (double)bytes;
    int unit = 0;

    for (; amount >= 1024; amount /= 1024)
        unit++;
    snprintf(buf, size, "%.*f %s", unit == 0 ? 0 : 1, amount, units[unit]);
    return buf;
}

/* Fixed layout: exchanged between ranks. */
typedef struct demand {
    uint64_t need, available;
} demand_t;

/* Ranks on one machine share what it has: their needs add up, and the first
 * answer about free memory counts, since later ones may be lower already. */
static void sum_host(const hce_perf_job_t *job, const demand_t *demands,
                     int first, demand_t *host_p)
{
    int r;

    *host_p = demands[first];
    for (r = 0; r < job->attr.size; r++) {
        if (r != first &&
            strcmp(job->peers[r].host, job->peers[first].host) == 0)
            host_p->need += demands[r].need;
    }
}

hce_status_t hce_perf_buffers_admit(hce_perf_job_t *job, size_t send_size,
                                    size_t recv_size)
{
    demand_t all[job->attr.size], host;
    demand_t mine = {.need =
                         (uint64_t)job->num_comms * (send_size + recv_size),
                     .available = memory_available()};
    char rank_need[24], need[24], available[24];
    hce_status_t status;
    int r;

    status = hce_perf_job_exchange(job, &mine, sizeof(mine), all);
    if (status != HCE_OK)
        return status;
    for (r = 0; r < job->attr.size; r++) {
        sum_host(job, all, r, &host);
        bytes_text(host.need, need, sizeof(need));
        bytes_text(host.available, available, sizeof(available));
        if (r == 0 && job->attr.rank == 0)
            printf("# memory: %s a rank, %s on %s, which has %s available\n",
                   bytes_text(mine.need, rank_need, sizeof(rank_need)), need,
                   job->peers[r].host, available);
        if (host.need > host.available)
            return hce_perf_job_refuse(
                job, HCE_ERR_NO_MEMORY,
                "buffers need %s on %s, which has %s available", need,
                job->peers[r].host, available);
    }
    return HCE_OK;
}

static hce_status_t buffer_create(const hce_perf_opts_t *opts, size_t size,
                                  hce_perf_buffer_t *buffer)
{
    size_t total = PAGE_LEN + (size_t)opts->offset + size + GUARD_LEN;
    uintptr_t start;

    if (opts->buffers == HCE_PERF_BUFFERS_MALLOC) {
        total += PAGE_LEN;
        buffer->base = malloc(total);
    } else if (hce_mem_alloc(HCE_DEVICE_HOST, total, &buffer->base) !=
               HCE_OK) {
        buffer->base = NULL;
    }
    if (buffer->base == NULL)
        return HCE_ERR_NO_MEMORY;
    start = (uintptr_t)hce_round_up((uintptr_t)buffer->base, PAGE_LEN);
    if (start - (uintptr_t)buffer->base < GUARD_LEN)
        start += PAGE_LEN;
    buffer->addr = (unsigned char *)start + opts->offset;
    buffer->size = size;
    /* All of it once: no page fault is timed. */
    memset(buffer->addr - GUARD_LEN, GUARD_BYTE, size + 2 * GUARD_LEN);
    return HCE_OK;
}

static hce_status_t pair_create(hce_perf_job_t *job, int comm,
                                size_t send_size, size_t recv_size,
                                hce_perf_pair_t *pair)
{
    const hce_perf_opts_t *opts = job->opts;
    hce_status_t status;

    status = buffer_create(opts, send_size, &pair->send);
    if (status == HCE_OK)
        status = buffer_create(opts, recv_size, &pair->recv);
    if (status != HCE_OK)
        return hce_perf_job_fail(job, status, "buffers of %zu and %zu bytes",
                                 send_size, recv_size);
    if (opts->buffers != HCE_PERF_BUFFERS_WINDOW)
        return HCE_OK;
    status = hce_window_register(job->comms[comm], pair->send.addr, send_size,
                                 &pair->send.window);
    if (status == HCE_OK)
        status = hce_window_register(job->comms[comm], pair->recv.addr,
                                     recv_size, &pair->recv.window);
    if (status != HCE_OK)
        return hce_perf_job_fail(job, status, "hce_window_register");
    return HCE_OK;
}

hce_status_t hce_perf_buffers_create(hce_perf_job_t *job, size_t send_size,
                                     size_t recv_size, hce_perf_pair_t *pairs)
{
    hce_status_t status = HCE_OK;
    int i;

    for (i = 0; i < job->num_comms && status == HCE_OK; i++)
        status = pair_create(job, i, send_size, recv_size, &pairs[i]);
    return status;
}

hce_status_t hce_perf_buffers_deregister(hce_perf_job_t *job,
                                         hce_perf_pair_t *pairs)
{
    hce_status_t status = hce_perf_job_barrier(job);
    int i;

    if (status != HCE_OK)
        return status;
    for (i = 0; i < job->num_comms; i++) {
        hce_window_deregister(pairs[i].send.window);
        hce_window_deregister(pairs[i].recv.window);
        pairs[i].send.window = pairs[i].recv.window = NULL;
    }
    return HCE_OK;
}

void hce_perf_buffers_free(const hce_perf_opts_t *opts, hce_perf_pair_t *pairs)
{
    int i;

    for (i = 0; i < opts->num_comms; i++) {
        if (opts->buffers == HCE_PERF_BUFFERS_MALLOC) {
            free(pairs[i].send.base);
            free(pairs[i].recv.base);
        } else {
            hce_mem_free(pairs[i].send.base);
            hce_mem_free(pairs[i].recv.base);
        }
    }
}

uint64_t hce_perf_buffer_check(const hce_perf_buffer_t *buffer)
{
    const unsigned char *front = buffer->addr - GUARD_LEN;
    const unsigned char *back = buffer->addr + buffer->size;
    uint64_t wrong = 0;
    size_t i;

    for (i = 0; i < GUARD_LEN; i++)
        wrong += (front[i] != GUARD_BYTE) + (back[i] != GUARD_BYTE);
    return wrong;
}
