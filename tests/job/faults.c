/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * What the others see when a rank ends, is stopped, never calls, calls
 * something else, aborts or leaves in good order. Each case is a job of its
 * own; a job that hangs is ended by the runner's limit.
 */
#include "config.h"

#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/comm.h"
#include "core/quiet.h"
#include "job.h"
#include "util/math.h"

#define SIZE 4
#define LEN 100000 /* at most */

/* Bytes a rank; JOB_BYTES is for paths that only take less. */
static size_t len = LEN;

static int victim; /* rank that is at fault */
static unsigned round_number;
static uint64_t seed;

/* Gathers by adding up, to have the faults on AllReduce: JOB_COLL. Its paths
 * are for one node. */
static bool is_sum;

static void start(job_t *job, int nodes, job_rank_fn_t fn)
{
    job_start(job, SIZE, is_sum ? 1 : nodes, fn);
}

/* The others' slices of a sum are 0. */
static hce_status_t gather(const void *send, void *recv, size_t count,
                           hce_datatype_t datatype, hce_comm_h comm,
                           const hce_call_params_t *params)
{
    if (!is_sum)
        return hce_allgather(send, recv, count, datatype, comm, NULL, params);
    memset(recv, 0, SIZE * count);
    memcpy((char *)recv + (size_t)comm->rank * count, send, count);
    return hce_allreduce(recv, recv, SIZE * count, datatype, HCE_SUM, comm,
                         NULL, params);
}

/* Makes so many calls, or until an error comes, which it returns. */
static hce_status_t call_some(job_t *job, hce_comm_h comm, unsigned num,
                              int report_after)
{
    unsigned char *send = malloc(LEN);
    unsigned char *recv = malloc((size_t)job->size * LEN);
    hce_status_t status = HCE_OK;
    unsigned i;

    for (i = 0; i < num && status == HCE_OK; i++) {
        job_fill(send, len, job->rank, i);
        status = gather(send, recv, len, HCE_INT8, comm, NULL);
        if (status == HCE_OK)
            status = hce_stream_synchronize(comm, NULL);
        if (status == HCE_OK)
            JOB_CHECK(job_check(recv, len, job->size, i) == 0);
        if ((int)i == report_after && job->rank == victim)
            JOB_CHECK(write(job->report[1], "x", 1) == 1);
    }
    free(send);
    free(recv);
    return status;
}

static hce_status_t call_until_error(job_t *job, hce_comm_h comm,
                                     int report_after)
{
    return call_some(job, comm, UINT_MAX, report_after);
}

static int expect_error(hce_comm_h comm, hce_status_t have,
                        hce_status_t want, int rank)
{
    hce_comm_error_t error;

    JOB_CHECK(hce_comm_get_async_error(comm, &error) == HCE_OK);
    if (have != want || error.status != want || error.rank != rank)
        fprintf(stderr, "have %s, error %s by rank %d: %s\n",
                hce_status_string(have), hce_status_string(error.status),
                error.rank, error.text);
    JOB_CHECK(have == want && error.status == want && error.rank == rank);
    JOB_CHECK(strlen(error.text) > 0);
    JOB_CHECK(hce_comm_destroy(comm) == HCE_OK);
    return 0;
}

static int rank_gone(job_t *job)
{
    hce_comm_h comm;

    JOB_CHECK(job_comm(job, &comm) == HCE_OK);
    return expect_error(comm, call_until_error(job, comm, 3), HCE_ERR_GONE,
                        victim);
}

static void await_report(job_t *job)
{
    char c;

    JOB_CHECK(read(job->report[0], &c, 1) == 1);
}

/* At a moment that differs from round to round. */
static void test_gone(job_t *job)
{
    start(job, 2, rank_gone);
    await_report(job);
    usleep((useconds_t)(hce_rand_next(&seed) % 3000));
    kill(job->pids[victim], SIGKILL);
    JOB_CHECK(job_end(job, victim) == 0);
}

/* A program that a rank has started outlives it and holds whatever was not
 * closed on exec. Only the end of the process can tell here. */
static int rank_survived(job_t *job)
{
    char *argv[] = {"sleep", "120", NULL};
    hce_comm_h comm;
    pid_t child;

    setenv("HCE_SILENCE", "0", 1);
    setenv("HCE_TIMEOUT", "0", 1);
    JOB_CHECK(job_comm(job, &comm) == HCE_OK);
    (void)call_some(job, comm, 3, -1); /* all is connected */
    if (job->rank == victim) {
        if (round_number % 2 == 0) {
            JOB_CHECK(posix_spawnp(&child, argv[0], NULL, NULL, argv,
                                   environ) == 0);
        } else if ((child = fork()) == 0) {
            execvp(argv[0], argv);
            _exit(127);
        }
        JOB_CHECK(child > 0 && write(job->report[1], &child,
                                     sizeof(child)) == sizeof(child));
    }
    return expect_error(comm, call_until_error(job, comm, -1), HCE_ERR_GONE,
                        victim);
}

static void test_survived(job_t *job)
{
    pid_t child;

    start(job, 2, rank_survived);
    JOB_CHECK(read(job->report[0], &child, sizeof(child)) == sizeof(child));
    kill(job->pids[victim], SIGKILL);
    JOB_CHECK(job_end(job, victim) == 0);
    JOB_CHECK(kill(child, SIGKILL) == 0); /* it was there all the time */
}

static int rank_silent(job_t *job)
{
    hce_comm_h comm;

    setenv("HCE_SILENCE", "1s", 1);
    JOB_CHECK(job_comm(job, &comm) == HCE_OK);
    return expect_error(comm, call_until_error(job, comm, 3), HCE_ERR_SILENT,
                        victim);
}

static void test_silent(job_t *job)
{
    start(job, 2, rank_silent);
    await_report(job);
    kill(job->pids[victim], SIGSTOP);
    for (int r = 0; r < job->size; r++) {
        siginfo_t info;

        if (r != victim) /* ends by itself, is reaped by job_end */
            JOB_CHECK(waitid(P_PID, (id_t)job->pids[r], &info,
                             WEXITED | WNOWAIT) == 0);
    }
    kill(job->pids[victim], SIGKILL);
    JOB_CHECK(job_end(job, victim) == 0);
}

static int rank_absent(job_t *job)
{
    unsigned char send[8] = {0}, recv[8 * SIZE];
    hce_comm_error_t error;
    hce_comm_h comm;
    hce_status_t status = HCE_OK;
    char want[64];

    setenv("HCE_TIMEOUT", "1s", 1);
    JOB_CHECK(job_comm(job, &comm) == HCE_OK);
    JOB_CHECK(gather(send, recv, 8, HCE_INT8, comm, NULL) == HCE_OK);
    JOB_CHECK(hce_stream_synchronize(comm, NULL) == HCE_OK);
    if (job->rank == victim) { /* never makes the second call */
        do {
            usleep(10000);
            JOB_CHECK(hce_comm_get_async_error(comm, &error) == HCE_OK);
        } while (error.status == HCE_OK);
        return expect_error(comm, error.status, HCE_ERR_TIMEOUT, victim);
    }
    status = gather(send, recv, 8, HCE_INT8, comm, NULL);
    if (status == HCE_OK)
        status = hce_stream_synchronize(comm, NULL);
    JOB_CHECK(hce_comm_get_async_error(comm, &error) == HCE_OK);
    snprintf(want, sizeof(want), "rank %d has not entered call 2", victim);
    if (strstr(error.text, want) == NULL)
        fprintf(stderr, "'%s' does not say '%s'\n", error.text, want);
    JOB_CHECK(strstr(error.text, want) != NULL);
    return expect_error(comm, status, HCE_ERR_TIMEOUT, victim);
}

static void test_absent(job_t *job)
{
    start(job, 2, rank_absent);
    JOB_CHECK(job_end(job, -1) == 0);
}

/* One rank makes another call than the others: count, type or path. */
static int rank_mismatch(job_t *job)
{
    static const char *const paths[] = {"direct", "flat", "eager"};
    uint64_t choice = seed + round_number;
    unsigned char send[64] = {0}, recv[64 * SIZE];
    hce_call_params_t params = {.field_mask = HCE_CALL_PARAM_PATH,
                                .path = paths[hce_rand_next(&choice) % 3]};
    unsigned what = (unsigned)(hce_rand_next(&choice) % (is_sum ? 2 : 3));
    hce_datatype_t datatype = HCE_INT8;
    hce_comm_error_t error;
    size_t count = hce_rand_next(&choice) % 2 * 17;
    hce_comm_h comm;
    hce_status_t status;

    if (is_sum)
        params.path = paths[0];
    if (job->rank == victim) {
        if (what == 0)
            count += 1;
        else if (what == 1)
            datatype = HCE_UINT8;
        else
            params.path = params.path == paths[0] ? paths[1] : paths[0];
    }
    JOB_CHECK(job_comm(job, &comm) == HCE_OK);
    status = gather(send, recv, count, datatype, comm, &params);
    if (status == HCE_OK)
        status = hce_stream_synchronize(comm, NULL);
    JOB_CHECK(status == HCE_ERR_MISMATCH);
    JOB_CHECK(hce_comm_get_async_error(comm, &error) == HCE_OK);
    JOB_CHECK(strstr(error.text, "different calls: rank ") != NULL);
    JOB_CHECK(hce_comm_destroy(comm) == HCE_OK);
    return 0;
}

static void test_mismatch(job_t *job)
{
    start(job, 1 + (int)(round_number % 2), rank_mismatch);
    JOB_CHECK(job_end(job, -1) == 0);
}

/* In odd rounds before anything is connected. */
static int rank_abort(job_t *job)
{
    static unsigned char send[LEN], recv[LEN * SIZE];
    hce_comm_h comm;
    hce_status_t status = HCE_OK;

    JOB_CHECK(job_comm(job, &comm) == HCE_OK);
    if (job->rank != victim)
        return expect_error(comm, call_until_error(job, comm, -1),
                            HCE_ERR_ABORTED, victim);
    job_fill(send, len, job->rank, 0);
    if (round_number % 2 == 0)
        status = gather(send, recv, len, HCE_INT8, comm, NULL);
    if (status == HCE_OK)
        status = hce_stream_synchronize(comm, NULL);
    JOB_CHECK(status == HCE_OK);
    JOB_CHECK(hce_comm_abort(comm) == HCE_OK);
    return expect_error(comm, HCE_ERR_ABORTED, HCE_ERR_ABORTED, victim);
}

static void test_abort(job_t *job)
{
    start(job, 2, rank_abort);
    JOB_CHECK(job_end(job, -1) == 0);
}

/* Waits until all others are in their first call, as their READY says, and
 * aborts. Nobody's call comes back while a node peer may still write to its
 * buffers. */
static int rank_quiet(job_t *job)
{
    static unsigned char send[LEN], recv[LEN * SIZE];
    hce_comm_h comm;
    hce_status_t status;
    uint32_t index;
    int rank;

    JOB_CHECK(job_comm(job, &comm) == HCE_OK);
    if (job->rank == victim) {
        for (rank = 0; rank < job->size; rank++) {
            index = hce_plan_counter_index(comm->layout, rank,
                                           HCE_SLOT_READY);
            while (rank != victim &&
                   hce_counter_read(&comm->run.counters[index]) == 0)
                usleep(100);
        }
        JOB_CHECK(hce_comm_abort(comm) == HCE_OK);
        return expect_error(comm, HCE_ERR_ABORTED, HCE_ERR_ABORTED, victim);
    }
    JOB_CHECK(gather(send, recv, len, HCE_INT8, comm, NULL) == HCE_OK);
    status = hce_stream_synchronize(comm, NULL);
    JOB_CHECK(hce_quiet_are_peers(comm, &rank));
    return expect_error(comm, status, HCE_ERR_ABORTED, victim);
}

static void test_quiet(job_t *job)
{
    start(job, 1, rank_quiet);
    JOB_CHECK(job_end(job, -1) == 0);
}

/* The victim returns from main right after its last call; the others look
 * whether anybody reports it, and find the data of a last call right. */
static int rank_leaves(job_t *job)
{
    unsigned char *send = malloc(LEN);
    unsigned char *recv = malloc((size_t)job->size * LEN);
    hce_comm_error_t error;
    hce_comm_h comm;

    JOB_CHECK(job_comm(job, &comm) == HCE_OK);
    job_fill(send, len, job->rank, round_number);
    JOB_CHECK(gather(send, recv, len, HCE_INT8, comm, NULL) == HCE_OK);
    JOB_CHECK(hce_stream_synchronize(comm, NULL) == HCE_OK);
    JOB_CHECK(job_check(recv, len, job->size, round_number) == 0);
    free(send);
    free(recv);
    if (job->rank == victim)
        return 0;
    usleep(2000); /* time for false news, not for the truth */
    JOB_CHECK(hce_comm_get_async_error(comm, &error) == HCE_OK);
    if (error.status != HCE_OK)
        fprintf(stderr, "reported: %s\n", error.text);
    JOB_CHECK(error.status == HCE_OK);
    JOB_CHECK(hce_comm_destroy(comm) == HCE_OK);
    return 0;
}

static void test_leaves(job_t *job)
{
    start(job, 2, rank_leaves);
    JOB_CHECK(job_end(job, -1) == 0);
}

static const struct {
    const char *name;
    void (*run)(job_t *job);
    unsigned rounds;
} cases[] = {
    {"gone", test_gone, 8},         {"silent", test_silent, 2},
    {"survived", test_survived, 8}, {"absent", test_absent, 2},
    {"mismatch", test_mismatch, 36}, {"abort", test_abort, 4},
    {"leaves", test_leaves, 8},     {"quiet", test_quiet, 16},
};

/* faults [CASE [ROUNDS [SEED]]], JOB_COLL=allreduce in the environment */
int main(int argc, char **argv)
{
    const char *bytes = getenv("JOB_BYTES");
    unsigned i, rounds;
    job_t job;

    seed = argc > 3 ? strtoull(argv[3], NULL, 0)
                    : (uint64_t)time(NULL) / 86400;
    if (bytes != NULL)
        len = hce_min((size_t)strtoull(bytes, NULL, 0), (size_t)LEN);
    is_sum = getenv("JOB_COLL") != NULL;
    printf("seed %llu\n", (unsigned long long)seed);
    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (argc > 1 && strcmp(argv[1], cases[i].name) != 0)
            continue;
        rounds = argc > 2 ? (unsigned)atoi(argv[2]) : cases[i].rounds;
        for (round_number = 0; round_number < rounds; round_number++) {
            memset(&job, 0, sizeof(job));
            victim = (int)(round_number % SIZE);
            cases[i].run(&job);
        }
        printf("%s: %u jobs\n", cases[i].name, rounds);
    }
    return 0;
}
