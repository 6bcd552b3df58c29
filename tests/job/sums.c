/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Reductions are run as a plan says: an AllReduce in one pass, over memory
 * that is mapped, windows of it, memory that is read and written through the
 * kernel, and memory that can only be staged; in place and not; with values
 * whose sums are exact, in calls that follow each other with no barrier.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/args.h"
#include "core/coll.h"
#include "core/comm.h"
#include "direct/direct.h"
#include "job.h"
#include "plan/plan.h"

#define SIZE  4
#define COUNT 100003 /* elements: more than a quantum, and odd */
#define CALLS 12

/* Small enough that products and sums of all ranks are exact everywhere. */
static int value(int rank, size_t at, int call)
{
    return 1 + (int)((at + 3 * (size_t)rank + (size_t)call) % 5);
}

static int expected(hce_redop_t op, size_t at, int call)
{
    int r, v, sum = value(0, at, call);

    for (r = 1; r < SIZE; r++) {
        v = value(r, at, call);
        switch (op) {
        case HCE_PROD: sum *= v; break;
        case HCE_MIN: sum = v < sum ? v : sum; break;
        case HCE_MAX: sum = v > sum ? v : sum; break;
        default: sum += v;
        }
    }
    return sum;
}

static void put_value(void *buf, hce_datatype_t datatype, size_t at, int v)
{
    if (datatype == HCE_FLOAT32)
        ((float *)buf)[at] = (float)v;
    else
        ((int64_t *)buf)[at] = v;
}

static double get_value(const void *buf, hce_datatype_t datatype, size_t at)
{
    return datatype == HCE_FLOAT32 ? (double)((const float *)buf)[at]
                                   : (double)((const int64_t *)buf)[at];
}

static double average(hce_datatype_t datatype, int sum)
{
    return datatype == HCE_FLOAT32 ? (double)sum / SIZE
                                   : (double)(sum / SIZE);
}

static void one_call(job_t *job, hce_comm_h comm, void *send, void *recv,
                     int call)
{
    hce_group_job_t work = {.kind = HCE_GROUP_COLL, .comm = comm};
    hce_args_t *args = &work.coll;
    size_t i;
    double want;

    *args = (hce_args_t){
        .coll = HCE_COLL_ALLREDUCE,
        .call = "sums",
        .send = send,
        .recv = recv,
        .count = call % 4 == 3 ? (size_t)call : COUNT,
        .datatype = call % 2 ? HCE_FLOAT32 : HCE_INT64,
        .op = (hce_redop_t)(call % HCE_REDOP_LAST),
        .choice = {.builder = &hce_direct_allreduce,
                   .contexts = 1,
                   .width = 8192,
                   .forced_by = "the test"},
    };
    for (i = 0; i < args->count; i++)
        put_value(send, args->datatype, i, value(job->rank, i, call));
    JOB_CHECK(hce_args_check(comm, args) == HCE_OK);
    JOB_CHECK(hce_coll_enqueue(&work) == HCE_OK);
    JOB_CHECK(hce_stream_synchronize(comm, NULL) == HCE_OK);
    for (i = 0; i < args->count; i++) {
        want = expected(args->op, i, call);
        if (args->op == HCE_AVG)
            want = average(args->datatype, (int)want);
        JOB_CHECK(get_value(recv, args->datatype, i) == want);
    }
}

static int rank_sums(job_t *job)
{
    size_t size = COUNT * sizeof(int64_t);
    void *send = malloc(size), *recv = malloc(size), *mem;
    hce_window_h win;
    hce_comm_h comm;
    int i;

    JOB_CHECK(job_comm(job, &comm) == HCE_OK);
    JOB_CHECK(hce_mem_alloc(HCE_DEVICE_HOST, 2 * size, &mem) == HCE_OK);
    JOB_CHECK(hce_window_register(comm, mem, 2 * size, &win) == HCE_OK);
    for (i = 0; i < CALLS; i++) {
        one_call(job, comm, send, recv, i);
        one_call(job, comm, recv, recv, i);
        one_call(job, comm, mem, (char *)mem + size, i);
        one_call(job, comm, mem, mem, i);
        one_call(job, comm, mem, recv, i);
    }
    JOB_CHECK(hce_comm_destroy(comm) == HCE_OK);
    JOB_CHECK(hce_mem_free(mem) == HCE_OK);
    free(send);
    free(recv);
    return 0;
}

static int rank_sums_vm(job_t *job)
{
    setenv("HCE_HOST_COPY", "vm", 1);
    return rank_sums(job);
}

static int rank_sums_staged(job_t *job)
{
    setenv("HCE_HOST_COPY", "staged", 1);
    return rank_sums(job);
}

int main(void)
{
    static const struct {
        const char *name;
        job_rank_fn_t fn;
    } cases[] = {{"sums", rank_sums}, {"sums, vm", rank_sums_vm},
                 {"sums, staged", rank_sums_staged}};
    unsigned i;
    job_t job;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        memset(&job, 0, sizeof(job));
        job_start(&job, SIZE, 1, cases[i].fn);
        JOB_CHECK(job_end(&job, -1) == 0);
        printf("%s: ok\n", cases[i].name);
        fflush(stdout);
    }
    return 0;
}
