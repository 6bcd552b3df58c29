/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The public calls in jobs that go well: queued and blocking calls, streams,
 * splits, windows, several communicators, groups driven by one thread, what
 * is counted, and arguments that are refused.
 */
#include "config.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "job.h"
#include "plan/plan.h"
#include "util/math.h"

#define SIZE 4
#define LEN 30011 /* odd, and not a multiple of a chunk */
#define MIXED_LEN 6000
#define MIXED_CALLS 600
#define MIXED_SEED 20240607u

/* Call i with its own buffers, checked when all have been queued. */
static void queue_calls(job_t *job, hce_comm_h comm, unsigned num, size_t len)
{
    unsigned char *send = malloc(num * len), *recv = malloc(num * SIZE * len);
    hce_stream_h stream;
    unsigned i;

    JOB_CHECK(hce_stream_create(&stream) == HCE_OK);
    for (i = 0; i < num; i++) {
        job_fill(send + i * len, len, job->rank, i);
        JOB_CHECK(hce_allgather(send + i * len, recv + i * SIZE * len, len,
                                HCE_UINT8, comm, i % 2 ? stream : NULL,
                                NULL) == HCE_OK);
    }
    JOB_CHECK(hce_stream_synchronize(comm, stream) == HCE_OK);
    JOB_CHECK(hce_stream_synchronize(comm, NULL) == HCE_OK);
    for (i = 0; i < num; i++)
        JOB_CHECK(job_check(recv + i * SIZE * len, len, SIZE, i) == 0);
    JOB_CHECK(hce_stream_destroy(stream) == HCE_OK);
    free(send);
    free(recv);
}

static int rank_queue(job_t *job)
{
    hce_comm_h comm;

    JOB_CHECK(job_comm(job, &comm) == HCE_OK);
    queue_calls(job, comm, 100, LEN);
    queue_calls(job, comm, 2500, 8); /* more than it takes: calls wait */
    JOB_CHECK(hce_comm_destroy(comm) == HCE_OK);
    return 0;
}

/* One buffer again and again, with no barrier: data change in every call. */
static int rank_blocking(job_t *job)
{
    hce_call_params_t params = {.field_mask = HCE_CALL_PARAM_BLOCKING,
                                .blocking = 1};
    unsigned char send[257], recv[257 * SIZE];
    hce_comm_stats_t stats;
    hce_comm_h comm;
    unsigned i;

    JOB_CHECK(job_comm(job, &comm) == HCE_OK);
    for (i = 0; i < 2000; i++) {
        job_fill(send, sizeof(send), job->rank, i);
        JOB_CHECK(hce_allgather(send, recv, sizeof(send), HCE_INT8, comm,
                                NULL, &params) == HCE_OK);
        JOB_CHECK(job_check(recv, sizeof(send), SIZE, i) == 0);
    }
    JOB_CHECK(hce_comm_get_stats(comm, &stats) == HCE_OK);
    JOB_CHECK(stats.calls == 2000 && stats.kernels == 0);
    JOB_CHECK(hce_comm_destroy(comm) == HCE_OK);
    return 0;
}

/* Sizes and paths change from call to call, with no barrier and ranks that
 * are late now and then: slots of one plan lie over those of others. */
static int rank_mixed(job_t *job)
{
    static const char *const paths[] = {"eager", "eager", "direct", "eager",
                                        "flat"};
    static unsigned char send[MIXED_LEN], recv[MIXED_LEN * SIZE];
    uint64_t state = MIXED_SEED, late = MIXED_SEED + (uint64_t)job->rank;
    hce_call_params_t params = {.field_mask = HCE_CALL_PARAM_BLOCKING |
                                              HCE_CALL_PARAM_PATH,
                                .blocking = 1};
    unsigned char *at = recv;
    hce_comm_h comm;
    unsigned i;

    JOB_CHECK(job_comm(job, &comm) == HCE_OK);
    for (i = 0; i < MIXED_CALLS; i++) {
        size_t len = hce_rand_next(&state) % MIXED_LEN;
        bool in_place = hce_rand_next(&state) % 2;

        params.path = paths[hce_rand_next(&state) % 5];
        at = in_place ? recv + (size_t)job->rank * len : send;
        job_fill(at, len, job->rank, i);
        if (hce_rand_next(&late) % 16 == 0)
            usleep((useconds_t)(hce_rand_next(&late) % 2000));
        JOB_CHECK(hce_allgather(at, recv, len, HCE_INT8, comm, NULL,
                                &params) == HCE_OK);
        JOB_CHECK(job_check(recv, len, SIZE, i) == 0);
        memset(recv, 0xee, sizeof(recv));
    }
    JOB_CHECK(hce_comm_destroy(comm) == HCE_OK);
    return 0;
}

static int rank_mixed_staged(job_t *job)
{
    setenv("HCE_HOST_COPY", "staged", 1);
    return rank_mixed(job);
}

static int rank_mixed_vm(job_t *job)
{
    setenv("HCE_HOST_COPY", "vm", 1);
    return rank_mixed(job);
}

/* Over a network that delays, reorders and refuses. */
static int rank_mixed_loop(job_t *job)
{
    setenv("HCE_TRANSPORT", "loop", 1);
    setenv("HCE_LOOP_FAULTS", "delay=10,reorder=30,refuse=20,pieces=30", 1);
    return rank_mixed(job);
}

/* One thread is all ranks, some of them on other nodes, and destroys them one
 * after the other while the others may still read what it showed. */
static int rank_mixed_group(job_t *job)
{
    static unsigned char send[SIZE][LEN], recv[SIZE][SIZE * LEN];
    hce_call_params_t call = {.field_mask = HCE_CALL_PARAM_PATH,
                              .path = "eager"};
    hce_comm_params_t params = {
        .field_mask = HCE_COMM_PARAM_BOOTSTRAP | HCE_COMM_PARAM_RANK |
                      HCE_COMM_PARAM_NODE,
        .bootstrap = HCE_BOOTSTRAP_TCP,
        .size = SIZE,
    };
    hce_comm_h comms[SIZE];
    hce_unique_id_t id;
    int r, i;

    JOB_CHECK(hce_get_unique_id(&id) == HCE_OK);
    params.unique_id = &id;
    JOB_CHECK(hce_group_start() == HCE_OK);
    for (r = 0; r < SIZE; r++) {
        params.rank = r;
        params.node = 0;
        JOB_CHECK(hce_comm_create(&params, &comms[r]) == HCE_OK);
    }
    JOB_CHECK(hce_group_end() == HCE_OK);
    for (i = 0; i < 20; i++) {
        for (r = 0; r < SIZE; r++) {
            job_fill(send[r], LEN, r, (unsigned)i);
            JOB_CHECK(hce_allgather(send[r], recv[r], LEN, HCE_INT8,
                                    comms[r], NULL, &call) == HCE_OK);
        }
        for (r = 0; r < SIZE; r++)
            JOB_CHECK(hce_stream_synchronize(comms[r], NULL) == HCE_OK);
        for (r = 0; r < SIZE; r++)
            JOB_CHECK(job_check(recv[r], LEN, SIZE, (unsigned)i) == 0);
    }
    for (r = 0; r < SIZE; r++)
        JOB_CHECK(hce_comm_destroy(comms[r]) == HCE_OK);
    return 0;
}

/* Statistics of one call equal what the plan says, in all and by peer. */
static int rank_stats(job_t *job)
{
    unsigned char *send = calloc(1, LEN), *recv = calloc(SIZE, LEN);
    hce_peer_stats_t peer, sum = {0};
    hce_comm_stats_t stats;
    hce_explain_t explain;
    hce_comm_h comm;
    int r, c;

    JOB_CHECK(job_comm(job, &comm) == HCE_OK);
    JOB_CHECK(hce_comm_explain(comm, HCE_COLL_ALLGATHER, LEN, HCE_INT8, NULL,
                               &explain) == HCE_OK);
    JOB_CHECK(hce_allgather(send, recv, LEN, HCE_INT8, comm, NULL, NULL) ==
              HCE_OK);
    JOB_CHECK(hce_stream_synchronize(comm, NULL) == HCE_OK);
    JOB_CHECK(hce_comm_get_stats(comm, &stats) == HCE_OK);
    /* Who carries nothing for its node only copies. */
    JOB_CHECK(stats.puts == explain.puts);
    JOB_CHECK(explain.puts > 0 || explain.copies > 0);
    JOB_CHECK(stats.put_bytes == explain.put_bytes);
    JOB_CHECK(stats.copies == explain.copies && explain.copies > 0);
    JOB_CHECK(stats.copy_bytes == explain.copy_bytes);
    for (r = 0; r < SIZE; r++) {
        for (c = 0; c < HCE_PLAN_MAX_CONTEXTS; c++) {
            JOB_CHECK(hce_comm_get_peer_stats(comm, r, c, &peer) == HCE_OK);
            sum.puts += peer.puts;
            sum.put_bytes += peer.put_bytes;
            sum.copy_bytes += peer.copy_bytes;
        }
    }
    JOB_CHECK(sum.puts == stats.puts && sum.put_bytes == stats.put_bytes &&
              sum.copy_bytes == stats.copy_bytes);
    JOB_CHECK(hce_comm_destroy(comm) == HCE_OK);
    free(send);
    free(recv);
    return 0;
}

/* Ranks that something was put to. */
static int peers_put_to(hce_comm_h comm)
{
    hce_peer_stats_t peer;
    int r, c, num = 0;

    for (r = 0; r < SIZE; r++) {
        uint64_t puts = 0;

        for (c = 0; c < HCE_PLAN_MAX_CONTEXTS; c++) {
            JOB_CHECK(hce_comm_get_peer_stats(comm, r, c, &peer) == HCE_OK);
            puts += peer.puts;
        }
        num += puts > 0;
    }
    return num;
}

/* Rings put to two nodes only, direct to all; what was chosen is in the
 * statistics. */
static int rank_choice(job_t *job)
{
    static const struct {
        const char *path, *says;
        int peers;
    } paths[] = {
        {"ring", "ring path: RMA proxy ring + CE, 30011 bytes", 2},
        {"ring_short", "ring_short path: RMA proxy ring + CE, 30011", 2},
        {"direct", "direct path: RMA proxy + CE, 30011 bytes", 3},
    };
    hce_call_params_t params = {
        .field_mask = HCE_CALL_PARAM_PATH | HCE_CALL_PARAM_DIRS, .dirs = 2};
    unsigned char send[LEN], recv[SIZE * LEN];
    hce_comm_stats_t stats;
    hce_explain_t explain;
    hce_comm_h whole, comm;
    unsigned i;

    JOB_CHECK(job_comm(job, &whole) == HCE_OK);
    for (i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        JOB_CHECK(hce_comm_split(whole, 0, job->rank, NULL, &comm) == HCE_OK);
        JOB_CHECK(hce_comm_get_stats(comm, &stats) == HCE_OK);
        JOB_CHECK(stats.choice[0] == '\0');
        params.path = paths[i].path;
        job_fill(send, LEN, job->rank, i);
        JOB_CHECK(hce_allgather(send, recv, LEN, HCE_INT8, comm, NULL,
                                &params) == HCE_OK);
        JOB_CHECK(hce_stream_synchronize(comm, NULL) == HCE_OK);
        JOB_CHECK(job_check(recv, LEN, SIZE, i) == 0);
        JOB_CHECK(peers_put_to(comm) == paths[i].peers);
        JOB_CHECK(hce_comm_get_stats(comm, &stats) == HCE_OK);
        JOB_CHECK(strstr(stats.choice, paths[i].says) == stats.choice);
        JOB_CHECK(strstr(stats.choice, "asked for by params.path") != NULL);
        JOB_CHECK(hce_comm_explain(comm, HCE_COLL_ALLGATHER, LEN, HCE_INT8,
                                   &params, &explain) == HCE_OK);
        JOB_CHECK(strstr(stats.choice, explain.reason) != NULL);
        JOB_CHECK(strstr(stats.choice, explain.settings) != NULL);
        JOB_CHECK(strcmp(explain.path, paths[i].path) == 0);
        JOB_CHECK(explain.dirs == (i == 2 ? 0 : 2));
        JOB_CHECK(hce_comm_destroy(comm) == HCE_OK);
    }
    JOB_CHECK(hce_comm_destroy(whole) == HCE_OK);
    return 0;
}

/* Windows of different sizes; buffers inside, across the end, outside. */
static int rank_windows(job_t *job)
{
    size_t size = (size_t)SIZE * LEN + 4096 * (size_t)job->rank;
    unsigned char *buf, send[LEN];
    hce_window_h win, empty;
    hce_comm_h comm;
    void *mem;
    unsigned i;

    JOB_CHECK(job_comm(job, &comm) == HCE_OK);
    JOB_CHECK(hce_mem_alloc(HCE_DEVICE_HOST, 2 * size, &mem) == HCE_OK);
    JOB_CHECK(hce_window_register(comm, mem, size, &win) == HCE_OK);
    JOB_CHECK(hce_window_register(comm, NULL, 0, &empty) == HCE_OK);
    for (i = 0; i < 8; i++) {
        buf = (unsigned char *)mem + (i % 2 ? 0 : size - 1000 * (i / 2));
        job_fill(send, LEN, job->rank, i);
        memset(buf, 0xee, (size_t)SIZE * LEN);
        JOB_CHECK(hce_allgather(send, buf, LEN, HCE_INT8, comm, NULL, NULL) ==
                  HCE_OK);
        JOB_CHECK(hce_stream_synchronize(comm, NULL) == HCE_OK);
        JOB_CHECK(job_check(buf, LEN, SIZE, i) == 0);
    }
    JOB_CHECK(hce_window_deregister(win) == HCE_OK);
    JOB_CHECK(hce_comm_destroy(comm) == HCE_OK); /* closes the other one */
    JOB_CHECK(hce_mem_free(mem) == HCE_OK);
    return 0;
}

/* Halves with the order of ranks turned round, and the whole beside them. */
static int rank_split(job_t *job)
{
    unsigned char send[LEN], recv[SIZE * LEN], half_recv[SIZE * LEN];
    hce_comm_h comm, half, none;
    hce_comm_attr_t attr;
    int r;

    JOB_CHECK(job_comm(job, &comm) == HCE_OK);
    JOB_CHECK(hce_comm_split(comm, job->rank % 2, -job->rank, NULL, &half) ==
              HCE_OK);
    JOB_CHECK(hce_comm_split(comm, HCE_SPLIT_NONE, 0, NULL, &none) == HCE_OK);
    JOB_CHECK(none == NULL);
    JOB_CHECK(hce_comm_query(half, &attr) == HCE_OK);
    JOB_CHECK(attr.size == SIZE / 2 && attr.rank == 1 - job->rank / 2);
    job_fill(send, LEN, job->rank, 7);
    JOB_CHECK(hce_allgather(send, recv, LEN, HCE_INT8, comm, NULL, NULL) ==
              HCE_OK);
    JOB_CHECK(hce_allgather(send, half_recv, LEN, HCE_INT8, half, NULL,
                            NULL) == HCE_OK);
    JOB_CHECK(hce_stream_synchronize(half, NULL) == HCE_OK);
    JOB_CHECK(hce_stream_synchronize(comm, NULL) == HCE_OK);
    JOB_CHECK(job_check(recv, LEN, SIZE, 7) == 0);
    for (r = 0; r < SIZE / 2; r++) /* of my colour, the last rank first */
        JOB_CHECK(memcmp(half_recv + r * LEN,
                         recv + (SIZE - 2 - 2 * r + job->rank % 2) * LEN,
                         LEN) == 0);
    JOB_CHECK(hce_comm_destroy(half) == HCE_OK);
    JOB_CHECK(hce_comm_destroy(comm) == HCE_OK);
    return 0;
}

/* An id that is older than the fork: the parent is rank 0. */
static int rank_id_before_fork(job_t *job)
{
    unsigned char send[LEN], recv[2 * LEN];
    hce_unique_id_t id;
    hce_comm_params_t params = {
        .field_mask = HCE_COMM_PARAM_BOOTSTRAP | HCE_COMM_PARAM_RANK,
        .bootstrap = HCE_BOOTSTRAP_TCP,
        .size = 2,
        .unique_id = &id,
    };
    hce_comm_h comm;
    int status;
    pid_t pid;

    JOB_CHECK(hce_get_unique_id(&id) == HCE_OK);
    pid = fork();
    params.rank = pid == 0;
    JOB_CHECK(pid >= 0 && hce_comm_create(&params, &comm) == HCE_OK);
    job_fill(send, LEN, params.rank, 0);
    JOB_CHECK(hce_allgather(send, recv, LEN, HCE_INT8, comm, NULL, NULL) ==
              HCE_OK);
    JOB_CHECK(hce_stream_synchronize(comm, NULL) == HCE_OK);
    JOB_CHECK(job_check(recv, LEN, 2, 0) == 0);
    JOB_CHECK(hce_comm_destroy(comm) == HCE_OK);
    if (pid == 0)
        _exit(0);
    JOB_CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    return 0;
}

/* Settings count from the very first call on. This process has made none:
 * its parent asked lib/boot for the job's id. */
static int rank_first_call(job_t *job)
{
    hce_unique_id_t id;

    setenv("HCE_SOCKET_IFNAME", "no-such-if", 1);
    JOB_CHECK(hce_get_unique_id(&id) == HCE_ERR_CONFIG);
    return 0;
}

/* One thread is all ranks. Nothing of a group with a bad call is started. */
static int rank_group(job_t *job)
{
    static unsigned char send[SIZE][LEN], recv[SIZE][SIZE * LEN];
    hce_comm_h comms[SIZE];
    hce_comm_params_t params = {
        .field_mask = HCE_COMM_PARAM_BOOTSTRAP | HCE_COMM_PARAM_RANK |
                      HCE_COMM_PARAM_NODE,
        .bootstrap = HCE_BOOTSTRAP_TCP,
        .size = SIZE,
    };
    hce_comm_stats_t stats;
    hce_unique_id_t id;
    int r, i;

    JOB_CHECK(hce_get_unique_id(&id) == HCE_OK);
    params.unique_id = &id;
    JOB_CHECK(hce_group_start() == HCE_OK && hce_group_start() == HCE_OK);
    for (r = 0; r < SIZE; r++) {
        params.rank = r;
        params.node = 0;
        JOB_CHECK(hce_comm_create(&params, &comms[r]) == HCE_OK);
    }
    JOB_CHECK(hce_group_end() == HCE_OK && hce_group_end() == HCE_OK);
    for (i = 0; i < 20; i++) {
        JOB_CHECK(hce_group_start() == HCE_OK);
        for (r = 0; r < SIZE; r++) {
            job_fill(send[r], LEN, r, (unsigned)i);
            JOB_CHECK(hce_allgather(send[r], recv[r], LEN, HCE_INT8,
                                    comms[r], NULL, NULL) == HCE_OK);
        }
        if (i == 10)
            JOB_CHECK(hce_allgather(send[0], NULL, LEN, HCE_INT8, comms[0],
                                    NULL, NULL) == HCE_ERR_INVALID_ARG);
        JOB_CHECK(hce_group_end() ==
                  (i == 10 ? HCE_ERR_INVALID_ARG : HCE_OK));
        for (r = 0; r < SIZE; r++) {
            JOB_CHECK(hce_stream_synchronize(comms[r], NULL) == HCE_OK);
            if (i != 10)
                JOB_CHECK(job_check(recv[r], LEN, SIZE, (unsigned)i) == 0);
        }
    }
    JOB_CHECK(hce_comm_get_stats(comms[0], &stats) == HCE_OK);
    JOB_CHECK(stats.calls == 19);
    for (r = 0; r < SIZE; r++)
        JOB_CHECK(hce_comm_destroy(comms[r]) == HCE_OK);
    return 0;
}

/* A child has dead handles and disturbs nobody, also when it exits. */
static int rank_fork(job_t *job)
{
    unsigned char send[LEN], recv[SIZE * LEN];
    hce_comm_h comm;
    unsigned i;
    int status;
    pid_t pid;

    JOB_CHECK(job_comm(job, &comm) == HCE_OK);
    for (i = 0; i < 3; i++) {
        job_fill(send, LEN, job->rank, i);
        JOB_CHECK(hce_allgather(send, recv, LEN, HCE_INT8, comm, NULL,
                                NULL) == HCE_OK);
        JOB_CHECK(hce_stream_synchronize(comm, NULL) == HCE_OK);
        JOB_CHECK(job_check(recv, LEN, SIZE, i) == 0);
        pid = fork();
        if (pid == 0) {
            JOB_CHECK(hce_allgather(send, recv, LEN, HCE_INT8, comm, NULL,
                                    NULL) == HCE_ERR_FORKED);
            JOB_CHECK(hce_comm_destroy(comm) == HCE_ERR_FORKED);
#ifdef __SANITIZE_ADDRESS__
            _exit(0); /* what threads of the parent held looks like a leak */
#else
            exit(0);
#endif
        }
        JOB_CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
    }
    JOB_CHECK(hce_comm_destroy(comm) == HCE_OK);
    return 0;
}

/* Arguments that are refused leave the communicator as it was. */
static int rank_refused(job_t *job)
{
    unsigned char send[LEN], recv[SIZE * LEN];
    hce_call_params_t params = {.field_mask = HCE_CALL_PARAM_PATH,
                                .path = "tunnel"};
    hce_comm_h comm;

    JOB_CHECK(job_comm(job, &comm) == HCE_OK);
    JOB_CHECK(hce_allgather(NULL, recv, 1, HCE_INT8, comm, NULL, NULL) ==
              HCE_ERR_INVALID_ARG);
    JOB_CHECK(hce_allgather(send, recv, 1, HCE_DATATYPE_LAST, comm, NULL,
                            NULL) == HCE_ERR_INVALID_ARG);
    JOB_CHECK(hce_allgather(send, recv, SIZE_MAX / 2, HCE_INT64, comm, NULL,
                            NULL) == HCE_ERR_INVALID_ARG);
    JOB_CHECK(hce_allgather(recv + 1, recv, LEN, HCE_INT8, comm, NULL,
                            NULL) == HCE_ERR_INVALID_ARG);
    JOB_CHECK(hce_allgather(send, recv, 1, HCE_INT8, comm, NULL, &params) ==
              HCE_ERR_INVALID_ARG);
    JOB_CHECK(hce_allgather(send, recv, 1, HCE_INT8, NULL, NULL, NULL) ==
              HCE_ERR_INVALID_ARG);
    JOB_CHECK(hce_group_end() == HCE_ERR_INVALID_ARG);
    job_fill(send, LEN, job->rank, 1);
    JOB_CHECK(hce_allgather(send, recv, LEN, HCE_INT8, comm, NULL, NULL) ==
              HCE_OK);
    JOB_CHECK(hce_stream_synchronize(comm, NULL) == HCE_OK);
    JOB_CHECK(job_check(recv, LEN, SIZE, 1) == 0);
    JOB_CHECK(hce_comm_destroy(comm) == HCE_OK);
    return 0;
}

/* All ranks fail alike where one has another setting, nothing is left of what
 * they had opened, and it is said which and where. */
static int rank_differs(job_t *job, const char *name, const char *value)
{
    hce_comm_h comm = NULL;

    if (job->rank == SIZE - 1)
        setenv(name, value, 1);
    JOB_CHECK(job_comm(job, &comm) == HCE_ERR_CONFIG);
    JOB_CHECK(comm == NULL);
    return 0;
}

static int rank_other_width(job_t *job)
{
    return rank_differs(job, "HCE_CHUNK_WIDTH", "64K");
}

static int rank_other_path(job_t *job)
{
    const char *path = getenv("HCE_AG_PATH");
    bool is_flat = path != NULL && strcmp(path, "flat") == 0;

    return rank_differs(job, "HCE_AG_PATH", is_flat ? "direct" : "flat");
}

static int rank_other_dirs(job_t *job)
{
    return rank_differs(job, "HCE_RING_DIRS", "1");
}

static int rank_other_carriers(job_t *job)
{
    return rank_differs(job, "HCE_CARRIERS", "7");
}

static int rank_other_nccl(job_t *job)
{
    return rank_differs(job, "NCCL_ENABLE_HCE_AG_RING", "0");
}

static const struct {
    const char *name;
    job_rank_fn_t fn;
    int size, nodes;
} cases[] = {
    {"queue", rank_queue, SIZE, 2},
    {"queue on one node", rank_queue, SIZE, 1},
    {"blocking", rank_blocking, SIZE, 2},
    {"blocking on one node", rank_blocking, SIZE, 1},
    {"mixed", rank_mixed, SIZE, 2},
    {"mixed on one node", rank_mixed, SIZE, 1},
    {"mixed on four nodes", rank_mixed, SIZE, 4},
    {"mixed, staged", rank_mixed_staged, SIZE, 2},
    {"mixed, staged on one node", rank_mixed_staged, SIZE, 1},
    {"mixed, vm on one node", rank_mixed_vm, SIZE, 1},
    {"mixed over a bad network", rank_mixed_loop, SIZE, 2},
    {"mixed in a group", rank_mixed_group, 1, 1},
    {"statistics", rank_stats, SIZE, 2},
    {"choice", rank_choice, SIZE, SIZE},
    {"windows", rank_windows, SIZE, 2},
    {"split", rank_split, SIZE, 2},
    {"id before fork", rank_id_before_fork, 1, 1},
    {"first call", rank_first_call, 1, 1},
    {"group", rank_group, 1, 1},
    {"fork", rank_fork, SIZE, 2},
    {"refused", rank_refused, SIZE, 2},
    {"other width", rank_other_width, SIZE, 2},
    {"other path", rank_other_path, SIZE, 1},
    {"other directions", rank_other_dirs, SIZE, 1},
    {"other carriers", rank_other_carriers, SIZE, 1},
    {"other variable", rank_other_nccl, SIZE, 1},
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
