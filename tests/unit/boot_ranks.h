/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Groups of real ranks for tests, over real sockets: as threads of this
 * process or as children of it. What fails in a rank is printed and counted;
 * a child tells by its exit status.
 */
#ifndef TESTS_BOOT_RANKS_H
#define TESTS_BOOT_RANKS_H

#include "boot/boot.h"
#include "util/clock.h"

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#define RANKS_MAX 64

/* For everything that must happen; far more than it takes. */
#define RANKS_LIMIT_NS (60 * HCE_NS_PER_SEC)

/* The deadline of what begins now. */
static inline uint64_t ranks_soon(void)
{
    return hce_clock_deadline(RANKS_LIMIT_NS);
}

typedef struct ranks_news {
    _Atomic int count; /* calls of the callback */
    hce_boot_news_t news;
} ranks_news_t;

typedef struct ranks_self {
    int rank, size;
    hce_status_t status; /* of hce_boot_create */
    hce_boot_t *boot;    /* destroyed by the frame */
    ranks_news_t news;
    void *arg;
    int failures; /* of this rank */
} ranks_self_t;

typedef void (*ranks_fn_t)(ranks_self_t *self);

typedef struct ranks_spec {
    int size;
    int port; /* processes: env bootstrap with this MASTER_PORT, if not 0 */
    uint64_t limit_ns; /* for the creation; 0 is RANKS_LIMIT_NS */
    uint64_t silence_ns;
    ranks_fn_t fn; /* runs in each rank that has a group */
    void *arg;
} ranks_spec_t;

#define RANKS_CHECK(_self, _cond)                                             \
    do {                                                                      \
        if (!(_cond)) {                                                       \
            fprintf(stderr, "%s:%d: rank %d: %s\n", __FILE__, __LINE__,       \
                    (_self)->rank, #_cond);                                   \
            (_self)->failures++;                                              \
        }                                                                     \
    } while (0)

/* Settings and log; once a process. */
void ranks_setup(void);

/* Return the number of failures. */
int ranks_threads(const ranks_spec_t *spec);
int ranks_processes(const ranks_spec_t *spec);

/* Children for tests that end some of them on purpose. */
void ranks_fork(const ranks_spec_t *spec, pid_t *pids);
/* Waits; true if it exited with 0. Kills it after RANKS_LIMIT_NS. */
bool ranks_reap(pid_t pid);

/* The next RANKS_PORTS ports of loopback were free just now. */
#define RANKS_PORTS 17
int ranks_port_find(void);

/* Creates, runs fn, destroys; what ranks_fork does in a child. */
void ranks_run(ranks_self_t *self, const ranks_spec_t *spec,
               const hce_boot_params_t *params);

/* Progresses until the news callback has come, or for len_ns. True if it
 * has. */
bool ranks_await_news(ranks_self_t *self, uint64_t len_ns);

/* The news come, once, and say this. */
#define RANKS_NEWS_NS (30 * HCE_NS_PER_SEC)
void ranks_check_news(ranks_self_t *self, hce_status_t status, int rank,
                      const char *text);

#endif
