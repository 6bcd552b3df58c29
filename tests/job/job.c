/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Forked ranks for tests.
 */
#include "config.h"

#include "job.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "boot/local.h"
#include "util/math.h"

void job_fail(const char *file, int line, const char *what)
{
    fprintf(stderr, "%s:%d: not true: %s (pid %d)\n", file, line, what,
            (int)getpid());
    _exit(1);
}

void job_start(job_t *job, int size, int nodes, job_rank_fn_t fn)
{
    pid_t parent = getpid();
    int r;

#ifndef HCE_HAVE_UCX
    setenv("HCE_TRANSPORT", "loop", 0); /* never chosen by itself */
#endif
    job->size = size;
    job->nodes = nodes;
    JOB_CHECK(size <= JOB_MAX_RANKS && pipe(job->report) == 0);
    JOB_CHECK(hce_boot_local_prepare(&job->id) == HCE_OK);
    fflush(NULL);
    for (r = 0; r < size; r++) {
        job->pids[r] = fork();
        JOB_CHECK(job->pids[r] >= 0);
        if (job->pids[r] > 0)
            continue;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(1);
        job->rank = r;
        exit(fn(job));
    }
    close(job->report[1]); /* the ranks' end tells the test, too */
    hce_boot_local_release(&job->id);
}

int job_end(job_t *job, int except)
{
    int r, status, bad = 0;

    for (r = 0; r < job->size; r++) {
        if (waitpid(job->pids[r], &status, 0) < 0)
            status = -1;
        if (status != 0 && r != except) {
            fprintf(stderr, "rank %d ended with status %#x\n", r, status);
            bad++;
        }
    }
    close(job->report[0]);
    return bad;
}

hce_status_t job_comm(job_t *job, hce_comm_h *comm_p)
{
    hce_comm_params_t params = {
        .field_mask = HCE_COMM_PARAM_BOOTSTRAP | HCE_COMM_PARAM_RANK |
                      HCE_COMM_PARAM_NODE,
        .bootstrap = HCE_BOOTSTRAP_TCP,
        .rank = job->rank,
        .size = job->size,
        .unique_id = &job->id,
        .node = job->rank * job->nodes / job->size,
    };

    return hce_comm_create(&params, comm_p);
}

static unsigned char pattern(size_t at, int rank, unsigned iteration)
{
    uint64_t seed = at / 8 + ((uint64_t)rank << 40) +
                    ((uint64_t)iteration << 48);

    return (unsigned char)(hce_rand_next(&seed) >> (8 * (at % 8)));
}

void job_fill(unsigned char *buf, size_t len, int rank, unsigned iteration)
{
    size_t i;

    for (i = 0; i < len; i++)
        buf[i] = pattern(i, rank, iteration);
}

size_t job_check(const unsigned char *buf, size_t len, int size,
                 unsigned iteration)
{
    size_t i, wrong = 0;
    int r;

    for (r = 0; r < size; r++)
        for (i = 0; i < len; i++)
            wrong += buf[(size_t)r * len + i] != pattern(i, r, iteration);
    return wrong;
}
