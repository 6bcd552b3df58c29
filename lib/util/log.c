/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Log lines: which are written and how they look. Any thread; no lock, so
 * that a child of fork can log whatever its parent was doing.
 */
#include <config.h>

#include "util/log.h"
#include "util/log_file.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Below PIPE_BUF, so that lines of several writers to one pipe stay whole. */
#define LINE_SIZE 2048

_Static_assert(LINE_SIZE <= PIPE_BUF, "a line must be one atomic write");

static const char *const level_names[] = {"error", "warn",  "info",
                                          "debug", "trace", NULL};
static const char *const level_titles[] = {"ERROR", "WARN", "INFO", "DEBUG",
                                           "TRACE"};
static const char *const area_names[HCE_LOG_AREA_LAST + 1] = {
    [HCE_LOG_UTIL] = "util",     [HCE_LOG_BOOT] = "boot",
    [HCE_LOG_TOPO] = "topo",     [HCE_LOG_PLAN] = "plan",
    [HCE_LOG_CE] = "ce",         [HCE_LOG_PROXY] = "proxy",
    [HCE_LOG_CORE] = "core",     [HCE_LOG_FAULT] = "fault",
    [HCE_LOG_TUNING] = "tuning", [HCE_LOG_GRAPH] = "graph",
};

_Atomic(int) hce_log_limit[HCE_LOG_AREA_LAST] = {
    [HCE_LOG_UTIL] = HCE_LOG_WARN,   [HCE_LOG_BOOT] = HCE_LOG_WARN,
    [HCE_LOG_TOPO] = HCE_LOG_WARN,   [HCE_LOG_PLAN] = HCE_LOG_WARN,
    [HCE_LOG_CE] = HCE_LOG_WARN,     [HCE_LOG_PROXY] = HCE_LOG_WARN,
    [HCE_LOG_CORE] = HCE_LOG_WARN,   [HCE_LOG_FAULT] = HCE_LOG_WARN,
    [HCE_LOG_TUNING] = HCE_LOG_WARN, [HCE_LOG_GRAPH] = HCE_LOG_WARN,
};

static _Thread_local int thread_rank = -1;

/* Written once, by whom changes the state from NONE. */
static char first_error[512];
static _Atomic(int) first_state;
enum { FIRST_NONE, FIRST_WRITTEN, FIRST_THERE };

/* Index of the name text[0..len) in a NULL-terminated list, or -1. */
static int name_find(const char *const *names, const char *text, size_t len)
{
    for (int i = 0; names[i] != NULL; i++)
        if (strlen(names[i]) == len && memcmp(names[i], text, len) == 0)
            return i;
    return -1;
}

static void limits_fill(unsigned char *limits, int level)
{
    memset(limits, level, HCE_LOG_AREA_LAST);
}

/* One item of HCE_LOG: "level", "area" or "area:level". */
static const char *limits_apply(unsigned char *limits, const char *item,
                                size_t len)
{
    const char *colon = memchr(item, ':', len);
    size_t area_len = colon != NULL ? (size_t)(colon - item) : len;
    int area = name_find(area_names, item, area_len);
    int level = HCE_LOG_INFO;

    if (colon != NULL) {
        level = name_find(level_names, colon + 1, len - area_len - 1);
    } else if (area < 0) {
        level = name_find(level_names, item, len);
        if (level >= 0) {
            limits_fill(limits, level);
            return NULL;
        }
    }
    if (area < 0 || level < 0) {
        return "expected levels (error, warn, info, debug, trace), areas "
               "(util, boot, topo, plan, ce, proxy, core, fault, tuning, "
               "graph) or area:level, separated by commas";
    }
    limits[area] = (unsigned char)level;
    return NULL;
}

const char *hce_log_init(const char *spec, const char *file)
{
    unsigned char limits[HCE_LOG_AREA_LAST];
    const char *why = NULL;

    limits_fill(limits, HCE_LOG_WARN);
    while (spec != NULL && why == NULL) {
        size_t len = strcspn(spec, ",");

        why = limits_apply(limits, spec, len);
        spec = spec[len] == ',' ? spec + len + 1 : NULL;
    }
    if (why != NULL)
        return why;
    for (int i = 0; i < HCE_LOG_AREA_LAST; i++) {
        atomic_store_explicit(&hce_log_limit[i], limits[i],
                              memory_order_relaxed);
    }
    hce_log_file_init(file);
    return NULL;
}

void hce_log_set_rank(int rank)
{
    thread_rank = rank;
}

/* A line stays a line, whatever a peer or an environment put into it. */
static void text_clean(char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)text[i] < ' ' || text[i] == 127)
            text[i] = ' ';
}

static size_t prefix_print(char *line, hce_log_level_t level,
                           hce_log_area_t area)
{
    char host[HOST_NAME_MAX + 1] = "?";
    char rank[16] = "";

    gethostname(host, sizeof(host) - 1);
    if (thread_rank >= 0)
        snprintf(rank, sizeof(rank), " %d", thread_rank);
    return (size_t)snprintf(line, LINE_SIZE, "hce[%s:%d%s] %s %s: ", host,
                            (int)getpid(), rank, level_titles[level],
                            area_names[area]);
}

static void first_keep(const char *text, size_t len)
{
    int state = FIRST_NONE;

    if (!atomic_compare_exchange_strong_explicit(
            &first_state, &state, FIRST_WRITTEN, memory_order_relaxed,
            memory_order_relaxed))
        return;
    snprintf(first_error, sizeof(first_error), "%.*s", (int)len, text);
    /* Release: the text is visible before the state; pairs with
     * hce_log_first_error(). */
    atomic_store_explicit(&first_state, FIRST_THERE, memory_order_release);
}

const char *hce_log_first_error(void)
{
    /* Acquire: see first_keep(). */
    int state = atomic_load_explicit(&first_state, memory_order_acquire);

    return state == FIRST_THERE ? first_error : NULL;
}

void hce_log_write(hce_log_level_t level, hce_log_area_t area,
                   const char *format, ...)
{
    int caller_errno = errno;
    char line[LINE_SIZE];
    size_t len = prefix_print(line, level, area);
    size_t room = sizeof(line) - len - 1; /* the newline's place */
    va_list args;
    int text_len;

    va_start(args, format);
    errno = caller_errno; /* for %m */
    text_len = vsnprintf(line + len, room, format, args);
    va_end(args);
    if (text_len < 0) {
        text_len = 0;
    } else if ((size_t)text_len >= room) {
        text_len = (int)room - 1;
        memcpy(line + sizeof(line) - 5, "...", 3);
    }
    text_clean(line + len, (size_t)text_len);
    if (level == HCE_LOG_ERROR)
        first_keep(line + len, (size_t)text_len);
    len += (size_t)text_len;
    line[len++] = '\n';
    hce_log_file_write(line, len, thread_rank);
    errno = caller_errno;
}
