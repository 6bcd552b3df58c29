/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Log lines with a level and an area. HCE_LOG picks what is written, to
 * standard error or HCE_LOG_FILE. Safe from any thread; a line is written
 * by one write(2), so that lines of several ranks do not mix.
 */
#ifndef HCE_UTIL_LOG_H
#define HCE_UTIL_LOG_H

#include <stdatomic.h>

typedef enum hce_log_level {
    HCE_LOG_ERROR = 0,
    HCE_LOG_WARN = 1,
    HCE_LOG_INFO = 2,
    HCE_LOG_DEBUG = 3,
    HCE_LOG_TRACE = 4
} hce_log_level_t;

typedef enum hce_log_area {
    HCE_LOG_UTIL,
    HCE_LOG_BOOT,
    HCE_LOG_TOPO,
    HCE_LOG_PLAN,
    HCE_LOG_CE,
    HCE_LOG_PROXY,
    HCE_LOG_CORE,
    HCE_LOG_FAULT,
    HCE_LOG_TUNING,
    HCE_LOG_GRAPH,
    HCE_LOG_AREA_LAST
} hce_log_area_t;

/* Highest level written, by area; read by the macro below only. */
extern _Atomic(int) hce_log_limit[HCE_LOG_AREA_LAST];

/* Takes the values of HCE_LOG and HCE_LOG_FILE; called by hce_config_init().
 * A level name ("warn" is the default) goes for all areas, an area name
 * ("tuning") adds that area at info, "area:level" sets one; comma-separated,
 * later ones win. file may hold %h (host), %p (pid), %r (rank) and %%; NULL
 * is standard error. It is opened by the first line. Returns a text about
 * what is wrong with spec, or NULL. Not while others log: closes the files
 * of an earlier call. */
const char *hce_log_init(const char *spec, const char *file);

/* This thread's rank for the prefix, -1 for none. Threads that serve several
 * ranks set it around the work for one. */
void hce_log_set_rank(int rank);

void hce_log_write(hce_log_level_t level, hce_log_area_t area,
                   const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Text of the first line at level error in this process, or NULL: the cause,
 * where a status alone says little. Lives as long as the process. */
const char *hce_log_first_error(void);

/* hce_log(WARN, BOOT, "peer %d ...", peer) */
#define hce_log(_level, _area, ...)                                           \
    do {                                                                      \
        if (HCE_LOG_##_level <=                                               \
            atomic_load_explicit(&hce_log_limit[HCE_LOG_##_area],             \
                                 memory_order_relaxed))                       \
            hce_log_write(HCE_LOG_##_level, HCE_LOG_##_area, __VA_ARGS__);    \
    } while (0)

#endif
