/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Ranks of one node for tests of copy engines: some processes with some
 * threads each. The test's main process forks them and judges by their exit;
 * in a rank RANKS_CHECK takes the place of cmocka's assertions.
 */
#ifndef HCE_TESTS_CE_RANKS_H
#define HCE_TESTS_CE_RANKS_H

#include "ce/ce.h"
#include "ce/host/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define RANKS_MAX      8
#define RANKS_COUNTERS 64
#define RANKS_WAIT_MS  60000 /* longest sleep without news: a hang */

typedef struct ranks_self ranks_self_t;
typedef void (*ranks_body_t)(ranks_self_t *self);

typedef struct ranks_spec {
    int procs, threads;       /* ranks = procs * threads */
    int force[RANKS_MAX];     /* hce_ce_force_t, by process */
    void (*before)(int proc); /* in each process, before its threads */
    /* In a rank, after its n-th allgather, from 1. */
    void (*gathered)(ranks_self_t *self, int n);
    ranks_body_t body;     /* with an open copy engine */
    ranks_body_t raw_body; /* instead of body: opens by itself */
    const void *arg;
    int killed; /* process that is expected to be killed - 1 */
} ranks_spec_t;

/* Shared by all processes. */
typedef struct ranks_shared {
    _Atomic int flags[16];
    _Atomic uint64_t words[16];
    char text[256];
    hce_unique_id_t id;
    _Atomic int has_id;
    pid_t pids[RANKS_MAX];
} ranks_shared_t;

struct ranks_self {
    const ranks_spec_t *spec;
    ranks_shared_t *shared;
    int rank, size, proc;
    uint64_t rounds; /* barriers passed */
    int gathers;     /* allgathers passed */
    uint64_t seed;
    hce_layout_t *layout;
    hce_boot_t *boot;
    int doorbell;
    hce_ce_t *ce;
};

/* Runs it; true if every rank came to its end in good order. */
bool ranks_run(const ranks_spec_t *spec);

/* First in main: settings, and the seed, which the first argument sets. */
void ranks_init(int argc, char **argv);
uint64_t ranks_seed(void);

/* The rank of this thread, or NULL. */
ranks_self_t *ranks_current(void);

hce_status_t ranks_open(ranks_self_t *self);

/* Progresses and sleeps as an engine does, until done(arg) is true. */
typedef bool (*ranks_done_t)(ranks_self_t *self, void *arg);
void ranks_wait(ranks_self_t *self, ranks_done_t done, void *arg);
/* The same for "my counter index is at least value". */
void ranks_wait_counter(ranks_self_t *self, uint32_t index, uint64_t value);
/* Copies or posts, progressing while there is no room. */
hce_status_t ranks_copy(ranks_self_t *self, const hce_ce_copy_t *copy,
                        int *bad_p);
void ranks_post(ranks_self_t *self, int lrank, uint32_t index, uint64_t value);
/* Can this process write to memory of itself by process_vm_writev? */
bool ranks_have_vm(void);

/* For before: becomes an ordinary user whom the kernel refuses
 * process_vm_writev. False in a trial, where that cannot be had. */
void ranks_refuse_vm(int proc);
bool ranks_can_refuse_vm(void);

/* Number of open descriptors, and a few. */
int ranks_fds(void);

/* What all ranks of the next run write to standard error goes to a file;
 * the whole of it then, malloc'd. Prints it as well. */
void ranks_log_start(void);
char *ranks_log_end(void);

/* All ranks, in order of their counters 48 and up. */
void ranks_barrier(ranks_self_t *self);

#define RANKS_CHECK(_what)                                                    \
    do {                                                                      \
        if (!(_what)) {                                                       \
            fprintf(stderr, "%s:%d: rank %d: not true: %s\n", __FILE__,       \
                    __LINE__, self->rank, #_what);                            \
            _exit(1);                                                         \
        }                                                                     \
    } while (0)

#endif
