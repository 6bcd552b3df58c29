/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The other side of perf/compare: times one collective of MPI at one size as
 * hce_perf does it, and prints the same quantities as a line of JSON:
 *   single_us  median over calls of the slowest rank's time, a barrier before
 *              each call
 *   time_us    mean of calls that follow each other; the slowest rank's
 *   cpu_sec, net_received, net_sent   of all ranks and hosts, during those
 */
#include "measure.h"

#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGE_LEN    4096
#define TRIAL_CALLS 3
#define MIN_CALLS   5
#define MAX_CALLS   20000
#define MAX_SINGLES 2000

typedef struct job {
    const struct coll *coll;
    int rank, size;
    size_t bytes; /* of a slice; the whole buffer's where there are none */
    char *send, *recv;
    size_t send_len, recv_len;
    bool is_first; /* of the ranks on its host */
} job_t;

typedef struct coll {
    const char *name;
    bool sends_all, receives_all; /* a slice for each rank, else one */
    void (*call)(const job_t *job);
    float (*expect)(const job_t *job, size_t i); /* element i received */
} coll_t;

static float sent(int rank, size_t i)
{
    return (float)(rank + 1 + (int)(i % 1009));
}

static float expect_gathered(const job_t *job, size_t i)
{
    size_t slice = job->bytes / sizeof(float);

    return sent((int)(i / slice), i % slice);
}

/* Small whole numbers: their sums are exact in any order. */
static float sum_of_ranks(const job_t *job, size_t i)
{
    float sum = 0;
    int r;

    for (r = 0; r < job->size; r++)
        sum += sent(r, i);
    return sum;
}

static float expect_scattered(const job_t *job, size_t i)
{
    return sum_of_ranks(job,
                        (size_t)job->rank * (job->bytes / sizeof(float)) + i);
}

static float expect_root(const job_t *job, size_t i)
{
    return sent(0, i);
}

static void call_all_gather(const job_t *job)
{
    int count = (int)(job->bytes / sizeof(float));

    MPI_Allgather(job->send, count, MPI_FLOAT, job->recv, count, MPI_FLOAT,
                  MPI_COMM_WORLD);
}

static void call_all_reduce(const job_t *job)
{
    MPI_Allreduce(job->send, job->recv, (int)(job->bytes / sizeof(float)),
                  MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static void call_reduce_scatter(const job_t *job)
{
    MPI_Reduce_scatter_block(job->send, job->recv,
                             (int)(job->bytes / sizeof(float)), MPI_FLOAT,
                             MPI_SUM, MPI_COMM_WORLD);
}

/* In one buffer, that of the receivers. */
static void call_broadcast(const job_t *job)
{
    MPI_Bcast(job->rank == 0 ? job->send : job->recv,
              (int)(job->bytes / sizeof(float)), MPI_FLOAT, 0, MPI_COMM_WORLD);
}

static const coll_t colls[] = {
    {"all_gather", false, true, call_all_gather, expect_gathered},
    {"all_reduce", false, false, call_all_reduce, sum_of_ranks},
    {"reduce_scatter", true, false, call_reduce_scatter, expect_scattered},
    {"broadcast", false, false, call_broadcast, expect_root},
};

static const coll_t *find_coll(const char *name)
{
    size_t i;

    for (i = 0; i < sizeof(colls) / sizeof(colls[0]); i++) {
        if (strcmp(colls[i].name, name) == 0)
            return &colls[i];
    }
    return NULL;
}

static double call_num(const job_t *job, int num)
{
    double start = MPI_Wtime();
    int i;

    for (i = 0; i < num; i++)
        job->coll->call(job);
    return MPI_Wtime() - start;
}

static void reduce_max(double *values, int num)
{
    MPI_Allreduce(MPI_IN_PLACE, values, num, MPI_DOUBLE, MPI_MAX,
                  MPI_COMM_WORLD);
}

/* As many calls as take about so long. */
static int choose_calls(const job_t *job, double milliseconds)
{
    double sec, num;

    call_num(job, 1);
    MPI_Barrier(MPI_COMM_WORLD);
    sec = call_num(job, TRIAL_CALLS);
    reduce_max(&sec, 1);
    num = milliseconds * 1e-3 * TRIAL_CALLS / (sec > 1e-9 ? sec : 1e-9);
    return num < MIN_CALLS   ? MIN_CALLS
           : num > MAX_CALLS ? MAX_CALLS
                             : (int)num;
}

static double time_single(const job_t *job, int num)
{
    double sec[MAX_SINGLES];
    int n = num < MAX_SINGLES ? num : MAX_SINGLES, i;

    for (i = 0; i < n; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        sec[i] = call_num(job, 1);
    }
    reduce_max(sec, n);
    return hce_perf_measure_median(sec, (size_t)n);
}

typedef struct queued {
    double sec, cpu_sec, received, sent;
} queued_t;

/* In rank 0's result times are the slowest rank's, the others sums. */
static queued_t time_queued(const job_t *job, int num)
{
    hce_perf_net_t before, after;
    double cpu, sums[3] = {0, 0, 0};
    queued_t queued;

    hce_perf_measure_net(&before);
    MPI_Barrier(MPI_COMM_WORLD);
    cpu = hce_perf_measure_cpu();
    queued.sec = call_num(job, num);
    sums[0] = hce_perf_measure_cpu() - cpu;
    MPI_Barrier(MPI_COMM_WORLD);
    hce_perf_measure_net(&after);
    if (job->is_first) {
        sums[1] = (double)(after.received - before.received);
        sums[2] = (double)(after.sent - before.sent);
    }
    reduce_max(&queued.sec, 1);
    MPI_Allreduce(MPI_IN_PLACE, sums, 3, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    queued.cpu_sec = sums[0];
    queued.received = sums[1];
    queued.sent = sums[2];
    return queued;
}

/* One more call, on a receive buffer that was cleared. */
static long count_wrong(const job_t *job)
{
    const float *recv = (const float *)job->recv;
    long wrong = 0;
    size_t i;

    memset(job->recv, 0, job->recv_len);
    job->coll->call(job);
    if (job->coll->call == call_broadcast && job->rank == 0)
        recv = (const float *)job->send;
    for (i = 0; i < job->recv_len / sizeof(float); i++)
        wrong += recv[i] != job->coll->expect(job, i);
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    return wrong;
}

/* All of it touched: no page fault is timed. */
static int job_open(job_t *job)
{
    size_t i;
    MPI_Comm host;
    int host_rank;

    job->send_len =
        job->bytes * (job->coll->sends_all ? (size_t)job->size : 1);
    job->recv_len =
        job->bytes * (job->coll->receives_all ? (size_t)job->size : 1);
    job->send = malloc(job->send_len + PAGE_LEN);
    job->recv = malloc(job->recv_len + PAGE_LEN);
    if (job->send == NULL || job->recv == NULL) {
        fprintf(stderr, "compare_mpi: no memory for %zu bytes\n",
                job->send_len + job->recv_len);
        return 1;
    }
    for (i = 0; i < job->send_len / sizeof(float); i++)
        ((float *)job->send)[i] = sent(job->rank, i);
    memset(job->recv, 0, job->recv_len);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL,
                        &host);
    MPI_Comm_rank(host, &host_rank);
    MPI_Comm_free(&host);
    job->is_first = host_rank == 0;
    return 0;
}

static void job_run(const job_t *job, double milliseconds)
{
    int num = choose_calls(job, milliseconds);
    double single_sec = time_single(job, num);
    queued_t queued = time_queued(job, num);
    long wrong = count_wrong(job);

    if (job->rank != 0)
        return;
    printf("{\"collective\": \"%s\", \"bytes\": %zu, \"ranks\": %d, "
           "\"calls\": %d, \"single_us\": %.3f, \"time_us\": %.3f, "
           "\"cpu_sec\": %.6f, \"net_received\": %.0f, \"net_sent\": %.0f, "
           "\"wrong\": %ld}\n",
           job->coll->name, job->bytes, job->size, num, single_sec * 1e6,
           queued.sec * 1e6 / num, queued.cpu_sec, queued.received,
           queued.sent, wrong);
}

int main(int argc, char **argv)
{
    job_t job = {0};
    double milliseconds;
    int rc;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &job.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &job.size);
    job.coll = argc == 4 ? find_coll(argv[1]) : NULL;
    job.bytes = argc == 4 ? strtoull(argv[2], NULL, 10) : 0;
    milliseconds = argc == 4 ? strtod(argv[3], NULL) : 0;
    if (job.coll == NULL || job.bytes < sizeof(float) ||
        job.bytes % sizeof(float) != 0 || job.bytes > (1u << 30)) {
        fprintf(stderr, "usage: compare_mpi COLLECTIVE BYTES-A-RANK "
                        "MILLISECONDS\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    rc = job_open(&job);
    if (rc != 0)
        MPI_Abort(MPI_COMM_WORLD, rc);
    job_run(&job, milliseconds);
    free(job.send);
    free(job.recv);
    MPI_Finalize();
    return 0;
}
