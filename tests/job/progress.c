/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Who makes progress: callers who wait, asleep or spinning, and the progress
 * thread for those who do not.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "job.h"

#define SIZE      4
#define LEN       500
#define ROUNDS    20
#define HABIT     40 /* calls in a row after which a wait is expected */
#define LIMIT_SEC 20

/* Times that this thread went to sleep while rank 1 was late. */
static long sleeps_while_late(job_t *job, const char *spin)
{
    unsigned char send[8] = {0}, recv[8 * 2];
    hce_call_params_t params = {.field_mask = HCE_CALL_PARAM_BLOCKING,
                                .blocking = 1};
    struct rusage before, after;
    hce_comm_h comm;

    setenv("HCE_SPIN", spin, 1);
    JOB_CHECK(job_comm(job, &comm) == HCE_OK);
    JOB_CHECK(hce_allgather(send, recv, 8, HCE_INT8, comm, NULL, &params) ==
              HCE_OK);
    if (job->rank == 1)
        usleep(100000);
    JOB_CHECK(getrusage(RUSAGE_THREAD, &before) == 0);
    JOB_CHECK(hce_allgather(send, recv, 8, HCE_INT8, comm, NULL, &params) ==
              HCE_OK);
    JOB_CHECK(getrusage(RUSAGE_THREAD, &after) == 0);
    JOB_CHECK(hce_comm_destroy(comm) == HCE_OK);
    return after.ru_nvcsw - before.ru_nvcsw;
}

static int rank_sleeps(job_t *job)
{
    JOB_CHECK(sleeps_while_late(job, "0") > 0 || job->rank == 1);
    return 0;
}

static int rank_spins(job_t *job)
{
    long sleeps = sleeps_while_late(job, "60s");

    if (job->rank == 1)
        return 0;
    if (sleeps != 0)
        fprintf(stderr, "slept %ld times\n", sleeps);
    JOB_CHECK(sleeps == 0);
    return 0;
}

static void enqueue(job_t *job, hce_comm_h comm, unsigned iteration,
                    unsigned char *send, unsigned char *recv)
{
    job_fill(send, LEN, job->rank, iteration);
    JOB_CHECK(hce_allgather(send, recv, LEN, HCE_UINT8, comm, NULL, NULL) ==
              HCE_OK);
}

/* Each call is waited for at once. */
static void make_a_habit(job_t *job, hce_comm_h comm, unsigned *iteration)
{
    unsigned char send[LEN], recv[LEN * SIZE];
    int i;

    for (i = 0; i < HABIT; i++, ++*iteration) {
        enqueue(job, comm, *iteration, send, recv);
        JOB_CHECK(hce_stream_synchronize(comm, NULL) == HCE_OK);
        JOB_CHECK(job_check(recv, LEN, SIZE, *iteration) == 0);
    }
}

static void nap(void)
{
    struct timespec ts = {.tv_nsec = 100000};

    nanosleep(&ts, NULL);
}

/* What is there now. A glance, which is not ordered with those who write:
 * the thread sanitizer is not to take it for more. */
__attribute__((no_sanitize_thread)) static void
peek(unsigned char *copy, const unsigned char *buf, size_t len)
{
    size_t i;

    for (i = 0; i < len; i++) {
        copy[i] = buf[i];
        __asm__ volatile("" ::: "memory"); /* neither kept nor a memcpy */
    }
}

/* Nobody waits for the last call, and the library is not called until its data
 * have come. */
static int rank_leaves(job_t *job)
{
    unsigned char send[LEN], recv[LEN * SIZE], seen[LEN * SIZE];
    unsigned iteration = 0;
    time_t end;
    hce_comm_h comm;
    int i;

    JOB_CHECK(job_comm(job, &comm) == HCE_OK);
    for (i = 0; i < ROUNDS; i++) {
        make_a_habit(job, comm, &iteration);
        memset(recv, 0, sizeof(recv));
        enqueue(job, comm, iteration, send, recv);
        end = time(NULL) + LIMIT_SEC;
        peek(seen, recv, sizeof(seen));
        while (job_check(seen, LEN, SIZE, iteration) != 0) {
            JOB_CHECK(time(NULL) < end);
            nap();
            peek(seen, recv, sizeof(seen));
        }
        iteration++;
    }
    JOB_CHECK(hce_comm_destroy(comm) == HCE_OK);
    return 0;
}

static int rank_asks(job_t *job)
{
    unsigned char send[LEN], recv[LEN * SIZE];
    unsigned iteration = 0;
    hce_status_t status;
    time_t end;
    hce_comm_h comm;
    int i;

    JOB_CHECK(job_comm(job, &comm) == HCE_OK);
    for (i = 0; i < ROUNDS; i++) {
        make_a_habit(job, comm, &iteration);
        enqueue(job, comm, iteration, send, recv);
        end = time(NULL) + LIMIT_SEC;
        while ((status = hce_stream_query(comm, NULL)) == HCE_INPROGRESS) {
            JOB_CHECK(time(NULL) < end);
            nap();
        }
        JOB_CHECK(status == HCE_OK);
        JOB_CHECK(job_check(recv, LEN, SIZE, iteration++) == 0);
    }
    JOB_CHECK(hce_comm_destroy(comm) == HCE_OK);
    return 0;
}

static const struct {
    const char *name;
    job_rank_fn_t fn;
    int size, nodes;
} cases[] = {
    {"sleeps", rank_sleeps, 2, 1},
    {"spins", rank_spins, 2, 1},
    {"leaves", rank_leaves, SIZE, 1},
    {"leaves on two nodes", rank_leaves, SIZE, 2},
    {"asks", rank_asks, SIZE, 1},
    {"asks on two nodes", rank_asks, SIZE, 2},
};

int main(int argc, char **argv)
{
    unsigned i;
    job_t job;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (argc > 1 && strcmp(argv[1], cases[i].name) != 0)
            continue;
        memset(&job, 0, sizeof(job));
        job_start(&job, cases[i].size, cases[i].nodes, cases[i].fn);
        JOB_CHECK(job_end(&job, -1) == 0);
        printf("%s: ok\n", cases[i].name);
        fflush(stdout);
    }
    return 0;
}
