/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Choice of the copy loops, and what all loops share: blocks that stay in
 * cache between destinations, edges of non-temporal copies.
 */
#include <config.h>

#include "ce/host/copy.h"

#include "ce/ce.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/math.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_LEN     (32 * HCE_KIB) /* goes to each destination in turn */
#define LINES_LEN_MIN 512            /* shorter ones are all edges */
#define PROBE_LEN     HCE_MIB
#define PROBE_DSTS    3
#define PROBE_ROUNDS  5

/* Sanitizers see neither rep movsb nor non-temporal stores: there the
 * default is memcpy, so that they keep their eyes. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define PREFER_MEMCPY 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define PREFER_MEMCPY 1
#endif
#endif
#ifndef PREFER_MEMCPY
#define PREFER_MEMCPY 0
#endif

static bool always_usable(void)
{
    return true;
}

static void memcpy_block(void *dst, const void *src, size_t len)
{
    memcpy(dst, src, len);
}

static const hce_ce_loop_t memcpy_loop = {
    .name = "memcpy",
    .choice = HCE_CE_LOOP_MEMCPY,
    .is_usable = always_usable,
    .block = memcpy_block,
};

/* Written once under once, read after hce_ce_loops_init only. */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static hce_status_t init_status;
static const hce_ce_loop_t *cached_loop = &memcpy_loop;
static const hce_ce_loop_t *streaming_loop = &memcpy_loop;

const hce_ce_loop_t *hce_ce_loop_usable(int i)
{
    const hce_ce_loop_t *const *loop;

    if (i == 0)
        return &memcpy_loop;
    for (loop = hce_ce_arch_loops; *loop != NULL; loop++) {
        if ((*loop)->is_usable() && --i == 0)
            return *loop;
    }
    return NULL;
}

static const hce_ce_loop_t *loop_find(hce_ce_loop_choice_t choice)
{
    const hce_ce_loop_t *loop;
    int i;

    for (i = 0; (loop = hce_ce_loop_usable(i)) != NULL; i++) {
        if (loop->choice == choice)
            return loop;
    }
    return NULL;
}

static void blocks_run(const hce_ce_loop_t *loop, char *const *dsts,
                       int num_dsts, const char *src, size_t len)
{
    size_t done, n;
    int i;

    for (done = 0; done < len; done += n) {
        n = hce_min(len - done, BLOCK_LEN);
        for (i = 0; i < num_dsts; i++)
            loop->block(dsts[i] + done, src + done, n);
    }
}

/* Destinations that all miss a line's start by the same number of bytes. */
static void lines_run(const hce_ce_loop_t *loop, char **dsts, int num_dsts,
                      const char *src, size_t len)
{
    size_t head = -(uintptr_t)dsts[0] % HCE_CE_LINE;
    size_t body = (len - head) / HCE_CE_LINE * HCE_CE_LINE;
    size_t tail = len - head - body;
    int i;

    for (i = 0; i < num_dsts; i++) {
        memcpy(dsts[i], src, head);
        memcpy(dsts[i] + head + body, src + head + body, tail);
        dsts[i] += head;
    }
    loop->lines(dsts, num_dsts, src + head, body);
}

static void streams_run(const hce_ce_loop_t *loop, char *const *dsts,
                        int num_dsts, const char *src, size_t len)
{
    char *same[HCE_CE_LINES_MAX];
    uint32_t todo = (1u << num_dsts) - 1;
    uintptr_t skew;
    int first, i, n;

    while (todo != 0) {
        first = __builtin_ctz(todo);
        skew = (uintptr_t)dsts[first] % HCE_CE_LINE;
        for (n = 0, i = first; i < num_dsts; i++) {
            if ((todo & 1u << i) == 0 ||
                (uintptr_t)dsts[i] % HCE_CE_LINE != skew)
                continue;
            same[n++] = dsts[i];
            todo &= ~(1u << i);
        }
        lines_run(loop, same, n, src, len);
    }
}

void hce_ce_loop_run(const hce_ce_loop_t *loop, char *const *dsts,
                     int num_dsts, const char *src, size_t len)
{
    int i;

    if (loop->lines == NULL || len < LINES_LEN_MIN) {
        blocks_run(loop->block != NULL ? loop : &memcpy_loop, dsts, num_dsts,
                   src, len);
        return;
    }
    for (i = 0; i < num_dsts; i += HCE_CE_LINES_MAX)
        streams_run(loop, dsts + i, hce_min(num_dsts - i, HCE_CE_LINES_MAX),
                    src, len);
}

void hce_ce_loop_copy(char *const *dsts, int num_dsts, const char *src,
                      size_t len, bool streaming)
{
    hce_ce_loop_run(streaming ? streaming_loop : cached_loop, dsts, num_dsts,
                    src, len);
}

/* ns of one copy. */
static uint64_t loop_time(const hce_ce_loop_t *loop, char *const *dsts,
                          const char *src)
{
    uint64_t start = hce_clock_ns(), took;

    hce_ce_loop_run(loop, dsts, PROBE_DSTS, src, PROBE_LEN);
    took = hce_clock_ns() - start;
    return hce_max(took, 1);
}

static void probe_log(const hce_ce_loop_t *const *loops, const uint64_t *best,
                      int num)
{
    int i;

    for (i = 0; i < num; i++)
        hce_log(INFO, CE, "probe of the copy loops: %s %.1f GB/s",
                loops[i]->name,
                (double)(PROBE_DSTS * PROBE_LEN) / (double)best[i]);
}

/* Which is best differs from CPU to CPU, and no flag that can be trusted
 * under a hypervisor tells: measure, in turns, and take each loop's best, so
 * that a disturbance does not decide. */
static const hce_ce_loop_t *probe_cached(void)
{
    const hce_ce_loop_t *loops[] = {&memcpy_loop,
                                    loop_find(HCE_CE_LOOP_VECTOR),
                                    loop_find(HCE_CE_LOOP_REP)};
    uint64_t best[] = {UINT64_MAX, UINT64_MAX, UINT64_MAX}, took;
    char *dsts[PROBE_DSTS], *mem;
    int i, round, first = 0, num = 0;

    for (i = 0; i < 3; i++)
        if (loops[i] != NULL)
            loops[num++] = loops[i];
    mem = num > 1 && !PREFER_MEMCPY ? malloc((PROBE_DSTS + 1) * PROBE_LEN)
                                    : NULL;
    if (mem == NULL)
        return &memcpy_loop;
    memset(mem, 1, (PROBE_DSTS + 1) * PROBE_LEN);
    for (i = 0; i < PROBE_DSTS; i++)
        dsts[i] = mem + (size_t)(i + 1) * PROBE_LEN;
    for (round = 0; round < PROBE_ROUNDS; round++) {
        for (i = 0; i < num; i++) {
            took = loop_time(loops[i], dsts, mem);
            best[i] = hce_min(best[i], took);
        }
    }
    free(mem);
    for (i = 1; i < num; i++)
        if (best[i] < best[first])
            first = i;
    probe_log(loops, best, num);
    return loops[first];
}

static void loops_choose(void)
{
    static const char *const names[] = {"auto", "memcpy", "rep", "vector",
                                        "nt"};
    int choice = hce_ce_settings.copy_loop;
    const hce_ce_loop_t *nt = loop_find(HCE_CE_LOOP_NT);

    if (choice == HCE_CE_LOOP_AUTO) {
        cached_loop = probe_cached();
        streaming_loop = nt != NULL && !PREFER_MEMCPY ? nt : cached_loop;
    } else {
        cached_loop = loop_find((hce_ce_loop_choice_t)choice);
        streaming_loop = cached_loop;
    }
    if (cached_loop == NULL) {
        hce_log(ERROR, CE, "HCE_COPY_LOOP=%s: this CPU has no such loop",
                names[choice]);
        init_status = HCE_ERR_CONFIG;
        return;
    }
    hce_log(INFO, CE, "copy loop %s, from %llu bytes of footprint %s",
            cached_loop->name,
            (unsigned long long)hce_ce_settings.nt_threshold,
            streaming_loop->name);
}

hce_status_t hce_ce_loops_init(void)
{
    pthread_once(&once, loops_choose);
    return init_status;
}

bool hce_ce_streams(uint64_t footprint)
{
    return footprint >= hce_ce_settings.nt_threshold;
}
