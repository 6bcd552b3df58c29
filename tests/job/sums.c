/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * ReduceScatter and AllReduce over memory that is mapped, windows of it,
 * memory that is read and written through the kernel, and memory that can
 * only be staged; in place and not; with values whose sums are exact, in
 * calls that follow each other with no barrier.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job.h"

#define SIZE  4
#define COUNT 100004 /* elements: more than a quantum, a multiple of SIZE */
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

typedef struct sums_call {
    size_t count; /* of inputs, a multiple of SIZE */
    hce_datatype_t datatype;
    hce_redop_t op;
    int number;
} sums_call_t;

static void check_sums(const sums_call_t *call, const void *recv, size_t first,
                       size_t count)
{
    size_t i;
    double want;

    for (i = 0; i < count; i++) {
        want = expected(call->op, first + i, call->number);
        if (call->op == HCE_AVG)
            want = average(call->datatype, (int)want);
        JOB_CHECK(get_value(recv, call->datatype, i) == want);
    }
}

/* Both collectives with the same input; in place ReduceScatter leaves its sum
 * inside the input. */
static void one_call(job_t *job, hce_comm_h comm, void *send, void *recv,
                     int number)
{
    sums_call_t call = {
        .count = number % 4 == 3 ? SIZE * (size_t)number : COUNT,
        .datatype = number % 2 ? HCE_FLOAT32 : HCE_INT64,
        .op = (hce_redop_t)(number % HCE_REDOP_LAST),
        .number = number,
    };
    size_t slice = call.count / SIZE, first = slice * (size_t)job->rank, i;
    char *part = recv;

    if (send == recv)
        part += first * hce_datatype_size(call.datatype);
    for (i = 0; i < call.count; i++)
        put_value(send, call.datatype, i, value(job->rank, i, number));
    JOB_CHECK(hce_reduce_scatter(send, part, slice, call.datatype, call.op,
                                 comm, NULL, NULL) == HCE_OK);
    JOB_CHECK(hce_stream_synchronize(comm, NULL) == HCE_OK);
    check_sums(&call, part, first, slice);
    for (i = 0; i < call.count; i++)
        put_value(send, call.datatype, i, value(job->rank, i, number));
    call.count--; /* shards that are not alike */
    JOB_CHECK(hce_allreduce(send, recv, call.count, call.datatype, call.op,
                            comm, NULL, NULL) == HCE_OK);
    JOB_CHECK(hce_stream_synchronize(comm, NULL) == HCE_OK);
    check_sums(&call, recv, 0, call.count);
}

/* Nothing is started for a wrong argument. */
static void wrong_calls(hce_comm_h comm, char *buf)
{
    const hce_call_params_t none = {.field_mask = HCE_CALL_PARAM_PATH,
                                    .path = "none"};
    const hce_redop_t bad = HCE_REDOP_LAST;
    const hce_datatype_t f = HCE_FLOAT32;

    JOB_CHECK(hce_allreduce(buf, buf, 8, f, bad, comm, NULL, NULL) ==
              HCE_ERR_INVALID_ARG);
    JOB_CHECK(hce_allreduce(buf, buf + 4, 8, f, HCE_SUM, comm, NULL, NULL) ==
              HCE_ERR_INVALID_ARG);
    JOB_CHECK(hce_allreduce(NULL, buf, 8, f, HCE_SUM, comm, NULL, NULL) ==
              HCE_ERR_INVALID_ARG);
    JOB_CHECK(hce_allreduce(buf, buf, 8, f, HCE_SUM, comm, NULL, &none) ==
              HCE_ERR_INVALID_ARG);
    JOB_CHECK(hce_reduce_scatter(buf, buf + 1, 8, f, HCE_SUM, comm, NULL,
                                 NULL) == HCE_ERR_INVALID_ARG);
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
    wrong_calls(comm, mem);
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
