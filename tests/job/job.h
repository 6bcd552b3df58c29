/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * A job in a test: ranks as forked processes, each in its own function, and
 * what became of them. Data depend on rank, iteration and offset.
 */
#ifndef HCE_TESTS_JOB_JOB_H
#define HCE_TESTS_JOB_JOB_H

#include <hce/hce.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define JOB_MAX_RANKS 16

typedef struct job {
    int size;
    int nodes; /* ranks are dealt in blocks */
    int rank;
    hce_unique_id_t id;
    pid_t pids[JOB_MAX_RANKS];
    int report[2]; /* a pipe from the ranks to the test */
} job_t;

/* Exit status of the rank; 0 is success. */
typedef int (*job_rank_fn_t)(job_t *job);

void job_start(job_t *job, int size, int nodes, job_rank_fn_t fn);
/* Waits for all; returns how many did not exit with 0. except is a rank that
 * does not count, or -1. */
int job_end(job_t *job, int except);

hce_status_t job_comm(job_t *job, hce_comm_h *comm_p);
void job_fill(unsigned char *buf, size_t len, int rank, unsigned iteration);
size_t job_check(const unsigned char *buf, size_t len, int size,
                 unsigned iteration);

/* A failed check ends the rank (or the test) with a line. */
#define JOB_CHECK(_cond)                                                      \
    do {                                                                      \
        if (!(_cond))                                                         \
            job_fail(__FILE__, __LINE__, #_cond);                             \
    } while (0)
void job_fail(const char *file, int line, const char *what)
    __attribute__((noreturn));

#endif
