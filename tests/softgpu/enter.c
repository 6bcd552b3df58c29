/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The door that every call of the soft GPU goes through: initialised, not
 * forked, a context where one is needed, no sticky error, no capture that the
 * call would spoil, no error that a test asked for. And what is counted.
 */
#include "soft.h"

#include <execinfo.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

pthread_mutex_t soft_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t soft_news = PTHREAD_COND_INITIALIZER;
_Atomic unsigned soft_sticky;
softgpu_counters_t soft_counters;

/* Protects counters, sites, the spec of failures. Taken last. */
static pthread_mutex_t count_lock = PTHREAD_MUTEX_INITIALIZER;
static soft_site_t *sites;
static char fail_spec[1024];
static _Atomic int state; /* 0, 1 after cuInit, 2 in a forked child */

void soft_die(const char *format, ...)
{
    void *frames[32];
    va_list args;

    va_start(args, format);
    fprintf(stderr, "softgpu: ");
    vfprintf(stderr, format, args);
    fprintf(stderr, "\n");
    va_end(args);
    backtrace_symbols_fd(frames, backtrace(frames, 32), STDERR_FILENO);
    abort();
}

uint32_t soft_random(uint64_t *at)
{
    /* splitmix64: any state will do. */
    uint64_t z = *at += 0x9e3779b97f4a7c15ull;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return (uint32_t)(z >> 16);
}

uint64_t soft_seed(uint64_t salt)
{
    uint64_t at = soft_settings.seed * 1000003ull + salt;

    soft_random(&at);
    return at;
}

void soft_count(uint64_t *counter, uint64_t by)
{
    pthread_mutex_lock(&count_lock);
    *counter += by;
    pthread_mutex_unlock(&count_lock);
}

void soft_count_live(int64_t *counter, int by)
{
    pthread_mutex_lock(&count_lock);
    *counter += by;
    pthread_mutex_unlock(&count_lock);
}

/* "call:n:result,...". Caller holds count_lock. */
static soft_result_t asked_failure(const char *name, uint64_t call)
{
    const char *at = fail_spec;
    char this_name[128];
    unsigned long nth;
    unsigned result;
    int len;

    while (*at != '\0') {
        if (sscanf(at, "%127[^:]:%lu:%u%n", this_name, &nth, &result, &len) !=
            3)
            soft_die("SOFTGPU_FAIL: expected CALL:N:RESULT,...: %s", at);
        if (strcmp(this_name, name) == 0 && nth == call)
            return result;
        at += len + (at[len] == ',');
    }
    return HCE_CU_OK;
}

static soft_result_t count_call(soft_site_t *site)
{
    soft_result_t result;

    pthread_mutex_lock(&count_lock);
    if (site->calls == 0 && site->next == NULL) {
        soft_site_t *other = sites;

        while (other != NULL && other != site)
            other = other->next;
        if (other == NULL) {
            site->next = sites;
            sites = site;
        }
    }
    site->calls++;
    soft_counters.calls++;
    result = asked_failure(site->name, site->calls);
    pthread_mutex_unlock(&count_lock);
    return result;
}

soft_result_t soft_enter(soft_site_t *site)
{
    soft_result_t result = HCE_CU_OK;

    if (state == 2)
        return HCE_CU_NOT_INITIALIZED;
    if (site->need != SOFT_ANY) {
        if (state == 0)
            return HCE_CU_NOT_INITIALIZED;
        if (soft_sticky != HCE_CU_OK)
            return soft_sticky;
    }
    result = count_call(site);
    if (result != HCE_CU_OK)
        return result;
    if ((site->need == SOFT_CTX || site->need == SOFT_UNSAFE) &&
        soft_current() < 0)
        return HCE_CU_INVALID_CONTEXT;
    if (site->need == SOFT_UNSAFE) {
        pthread_mutex_lock(&soft_lock);
        result = soft_capture_unsafe();
        pthread_mutex_unlock(&soft_lock);
    }
    return result;
}

static void forked(void)
{
    if (state == 1)
        state = 2;
}

static void report(void)
{
    const char *path = getenv("SOFTGPU_REPORT");
    softgpu_counters_t *c = &soft_counters;
    FILE *out;

    if (path == NULL || state != 1 || (out = fopen(path, "ae")) == NULL)
        return;
    fprintf(out,
            "{\"pid\":%d,\"h2d\":%lu,\"d2h\":%lu,\"same\":%lu,\"peer\":%lu,"
            "\"h2h\":%lu,\"multicast\":%lu,\"batches\":%lu,\"waits\":%lu,"
            "\"waits_eq\":%lu,\"writes\":%lu,\"flushes\":%lu,"
            "\"graph_launches\":%lu,\"calls\":%lu,\"allocs\":%ld,"
            "\"handles\":%ld,\"mappings\":%ld,\"ipc_opens\":%ld,"
            "\"host_ranges\":%ld,\"streams\":%ld,\"events\":%ld,"
            "\"graphs\":%ld,\"execs\":%ld,\"contexts\":%ld,"
            "\"launches\":0,\"memsets\":0}\n",
            getpid(), c->copies_h2d, c->copies_d2h, c->copies_same,
            c->copies_peer, c->copies_h2h, c->copies_multicast, c->batches,
            c->waits, c->waits_eq, c->writes, c->flushes, c->graph_launches,
            c->calls, c->allocs, c->handles, c->mappings, c->ipc_opens,
            c->host_ranges, c->streams, c->events, c->graphs, c->execs,
            c->contexts);
    fclose(out);
}

__attribute__((visibility("default"))) void
softgpu_get_counters(softgpu_counters_t *counters_p);
__attribute__((visibility("default"))) void softgpu_set_fail(const char *spec);

void softgpu_get_counters(softgpu_counters_t *counters_p)
{
    pthread_mutex_lock(&count_lock);
    *counters_p = soft_counters;
    pthread_mutex_unlock(&count_lock);
}

void softgpu_set_fail(const char *spec)
{
    soft_site_t *site;

    pthread_mutex_lock(&count_lock);
    snprintf(fail_spec, sizeof(fail_spec), "%s", spec);
    for (site = sites; site != NULL; site = site->next)
        site->calls = 0;
    pthread_mutex_unlock(&count_lock);
}

static void init(void)
{
    const char *spec = getenv("SOFTGPU_FAIL");

    soft_settings_read();
    snprintf(fail_spec, sizeof(fail_spec), "%s", spec == NULL ? "" : spec);
    soft_space_init();
    pthread_atfork(NULL, NULL, forked);
    atexit(report);
}

soft_result_t soft_init(unsigned int flags)
{
    static soft_site_t site = {.name = "cuInit", .need = SOFT_ANY};
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    soft_result_t result;

    if (state == 2)
        return HCE_CU_NOT_INITIALIZED;
    pthread_once(&once, init);
    result = soft_enter(&site);
    if (result != HCE_CU_OK)
        return result;
    if (flags != 0)
        return HCE_CU_INVALID_VALUE;
    if (soft_settings.devices == 0)
        return HCE_CU_NO_DEVICE;
    state = 1;
    return HCE_CU_OK;
}
