/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Captured launches: words that the streams of a graph share with their own
 * proxy, which is a thread of the test here.
 */
#include "config.h"

#include "ce_cuda.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

enum { GO, ARRIVED, SPREAD, DONE, NUM_WORDS, REPLAYS = 1000, LEN = 20000 };

static hce_ce_dev_t *dev;
static hce_cu_stream_t user;

static int setup(void **state)
{
    user = rig_stream();
    return OPS->open(0, &dev) == HCE_OK ? 0 : -1;
}

static int teardown(void **state)
{
    RIG_OK(gpu.stream_destroy(user));
    OPS->close(dev);
    return 0;
}

/* A captured AllGather's skeleton: go; a copy that waits for an arrival and
 * tells of its end; the end. */
typedef struct job {
    unsigned char *in, *out; /* registered */
    hce_ce_dev_ptr_t mem;
    hce_ce_words_t *words;
    hce_cu_graph_t graph;
    hce_cu_graph_exec_t exec;
} job_t;

static void job_enqueue(job_t *job, bool waits)
{
    hce_ce_dev_copy_t in = {job->mem, rig_ptr(job->in), LEN,
                            HCE_CE_DEV_FROM_HOST};
    hce_ce_dev_copy_t out[2] = {
        {rig_ptr(job->out), job->mem, LEN / 2, HCE_CE_DEV_TO_HOST},
        {rig_ptr(job->out) + LEN / 2, job->mem + LEN / 2, LEN / 2,
         HCE_CE_DEV_TO_HOST}};
    hce_ce_dev_launch_t *launch;

    assert_int_equal(OPS->begin(dev, user, &launch), HCE_OK);
    assert_true(OPS->is_captured(launch));
    assert_int_equal(OPS->words_get(launch, NUM_WORDS, &job->words), HCE_OK);
    assert_int_equal(OPS->word_set(launch, 0, job->words, GO), HCE_OK);
    if (waits)
        assert_int_equal(OPS->word_wait(launch, 1, job->words, ARRIVED),
                         HCE_OK);
    assert_int_equal(OPS->copy(launch, 1, &in, 1), HCE_OK);
    assert_int_equal(OPS->copy(launch, 1, out, 2), HCE_OK);
    assert_int_equal(OPS->word_set(launch, 1, job->words, SPREAD), HCE_OK);
    assert_int_equal(OPS->word_wait(launch, 0, job->words, DONE), HCE_OK);
    assert_int_equal(OPS->end(launch), HCE_OK);
}

static void job_capture(job_t *job, hce_cu_enum_t mode, bool waits)
{
    RIG_OK(gpu.stream_begin_capture(user, mode));
    job_enqueue(job, waits);
    RIG_OK(gpu.stream_end_capture(user, &job->graph));
    RIG_OK(gpu.graph_instantiate(&job->exec, job->graph, 0));
}

static void job_init(job_t *job)
{
    job->in = rig_host(LEN);
    job->out = rig_host(LEN);
    assert_int_equal(OPS->mem_alloc(dev, LEN, &job->mem), HCE_OK);
}

static void gone_wait(const job_t *job)
{
    while (!OPS->words_are_gone(job->words))
        sched_yield();
}

static void job_cleanup(job_t *job)
{
    RIG_OK(gpu.graph_exec_destroy(job->exec));
    assert_false(OPS->words_are_gone(job->words)); /* the graph has them */
    RIG_OK(gpu.graph_destroy(job->graph));
    gone_wait(job);
    OPS->words_put(job->words);
    assert_int_equal(OPS->mem_free(dev, job->mem), HCE_OK);
    rig_host_free(job->in, LEN);
    rig_host_free(job->out, LEN);
}

static void word_take(job_t *job, unsigned index)
{
    hce_ce_word_t *word = OPS->words_at(job->words, index);

    while (!hce_ce_word_is_set(word))
        sched_yield();
    hce_ce_word_put(word, 0);
}

/* The data arrives for each replay only after go. */
static void *proxy_main(void *arg)
{
    job_t *job = arg;
    unsigned i;

    for (i = 0; i < REPLAYS; i++) {
        word_take(job, GO);
        cuda_fill(job->in, LEN, i);
        hce_ce_word_put(OPS->words_at(job->words, ARRIVED), 1);
        word_take(job, SPREAD);
        hce_ce_word_put(OPS->words_at(job->words, DONE), 1);
    }
    return NULL;
}

static unsigned replays_wrong(job_t *job)
{
    unsigned i, wrong = 0;
    pthread_t proxy;

    assert_int_equal(pthread_create(&proxy, NULL, proxy_main, job), 0);
    for (i = 0; i < REPLAYS; i++) {
        RIG_OK(gpu.graph_launch(job->exec, user));
        RIG_OK(gpu.stream_synchronize(user));
        wrong += !cuda_is_filled(job->out, LEN, i);
        cuda_fill(job->in, LEN, 9999);
    }
    pthread_join(proxy, NULL);
    return wrong;
}

static void test_replays(void **state)
{
    softgpu_counters_t before = rig_counters(), after;
    job_t job;

    job_init(&job);
    job_capture(&job, HCE_CU_CAPTURE_THREAD_LOCAL, true);
    assert_int_equal(replays_wrong(&job), 0);
    after = rig_counters();
    assert_int_equal(after.batches, before.batches); /* none in captures */
    assert_int_equal(after.waits_eq, before.waits_eq);
    assert_int_equal(after.copies_h2d - before.copies_h2d, REPLAYS);
    assert_int_equal(after.copies_d2h - before.copies_d2h, 2 * REPLAYS);
    job_cleanup(&job);
}

/* The check finds a wait that is missing: the word stays set. */
static void test_missing_wait(void **state)
{
    unsigned i, wrong = 0;
    job_t job;

    job_init(&job);
    job_capture(&job, HCE_CU_CAPTURE_THREAD_LOCAL, false);
    for (i = 0; i < 50; i++) {
        cuda_fill(job.in, LEN, 200);
        RIG_OK(gpu.graph_launch(job.exec, user));
        word_take(&job, SPREAD); /* comes without an arrival */
        word_take(&job, GO);
        cuda_fill(job.in, LEN, i);
        hce_ce_word_put(OPS->words_at(job.words, DONE), 1);
        RIG_OK(gpu.stream_synchronize(user));
        wrong += memcmp(job.out, job.in, LEN) != 0;
    }
    assert_int_equal(wrong, 50);
    job_cleanup(&job);
}

/* Set-up calls pass, whoever captures how; the capture stays valid. */
static void test_setup_in_capture(void **state)
{
    static const hce_cu_enum_t modes[] = {HCE_CU_CAPTURE_GLOBAL,
                                          HCE_CU_CAPTURE_THREAD_LOCAL,
                                          HCE_CU_CAPTURE_RELAXED};
    hce_ce_dev_ptr_t ptr, mapped;
    hce_cu_graph_t graph;
    hce_counter_t *counter = aligned_alloc(4096, 4096);
    hce_ce_dev_t *other;
    size_t i;

    for (i = 0; i < 3; i++) {
        RIG_OK(gpu.stream_begin_capture(user, modes[i]));
        assert_int_equal(OPS->open(1, &other), HCE_OK);
        assert_int_equal(OPS->mem_alloc(dev, 4096, &ptr), HCE_OK);
        assert_int_equal(OPS->host_map(dev, counter, 4096, &mapped), HCE_OK);
        OPS->host_unmap(dev, counter);
        assert_int_equal(OPS->mem_free(dev, ptr), HCE_OK);
        OPS->close(other);
        RIG_OK(gpu.stream_end_capture(user, &graph));
        RIG_OK(gpu.graph_destroy(graph));
    }
    free(counter);
}

/* An ordinary launch beside a capture, and a second capture, go their own
 * ways. */
static void test_side_by_side(void **state)
{
    hce_cu_stream_t second = rig_stream(), first = user;
    hce_ce_dev_ptr_t from, to;
    job_t a, b;
    int64_t streams;

    job_init(&a);
    job_init(&b);
    assert_int_equal(OPS->mem_alloc(dev, LEN, &from), HCE_OK);
    assert_int_equal(OPS->mem_alloc(dev, LEN, &to), HCE_OK);
    cuda_put(0, from, LEN, 5);
    RIG_OK(gpu.stream_begin_capture(first, HCE_CU_CAPTURE_RELAXED));
    RIG_OK(gpu.stream_begin_capture(second, HCE_CU_CAPTURE_RELAXED));
    job_enqueue(&a, true);
    cuda_copy(dev, NULL, (hce_ce_dev_copy_t){to, from, LEN, HCE_CE_DEV_SAME});
    user = second;
    job_enqueue(&b, true);
    user = first;
    streams = rig_counters().streams;
    RIG_OK(gpu.stream_end_capture(first, &a.graph));
    RIG_OK(gpu.stream_end_capture(second, &b.graph));
    assert_true(cuda_holds(0, to, LEN, 5));
    RIG_OK(gpu.graph_instantiate(&a.exec, a.graph, 0));
    RIG_OK(gpu.graph_instantiate(&b.exec, b.graph, 0));
    assert_int_equal(replays_wrong(&b), 0);
    assert_int_equal(replays_wrong(&a), 0);
    job_cleanup(&a);
    job_cleanup(&b);
    /* The streams of captures are used again. */
    job_init(&a);
    job_capture(&a, HCE_CU_CAPTURE_RELAXED, true);
    assert_int_equal(rig_counters().streams, streams);
    job_cleanup(&a);
    assert_int_equal(OPS->mem_free(dev, from), HCE_OK);
    assert_int_equal(OPS->mem_free(dev, to), HCE_OK);
    RIG_OK(gpu.stream_destroy(second));
}

static void test_invalid_capture(void **state)
{
    hce_ce_dev_launch_t *launch;
    hce_cu_graph_t graph;

    RIG_OK(gpu.stream_begin_capture(user, HCE_CU_CAPTURE_RELAXED));
    assert_int_equal(gpu.stream_query(user), HCE_CU_CAPTURE_UNSUPPORTED);
    assert_int_equal(OPS->begin(dev, user, &launch), HCE_ERR_INVALID_ARG);
    gpu.stream_end_capture(user, &graph);
}

/* A capture that fails, too, gives its words back; many do not pile up. */
static void test_words_come_back(void **state)
{
    hce_ce_dev_launch_t *launch;
    hce_cu_graph_t graph;
    int64_t before = -1;
    job_t job = {0};
    int i;

    for (i = 0; i < 100; i++) {
        RIG_OK(gpu.stream_begin_capture(user, HCE_CU_CAPTURE_RELAXED));
        assert_int_equal(OPS->begin(dev, user, &launch), HCE_OK);
        assert_int_equal(OPS->words_get(launch, 200, &job.words), HCE_OK);
        assert_int_equal(OPS->word_set(launch, 2, job.words, 199), HCE_OK);
        assert_int_equal(OPS->end(launch), HCE_OK);
        if (i % 2 == 0)
            gpu.stream_query(user);
        if (gpu.stream_end_capture(user, &graph) == HCE_CU_OK)
            RIG_OK(gpu.graph_destroy(graph));
        gone_wait(&job);
        OPS->words_put(job.words);
        if (i == 0)
            before = rig_counters().host_ranges;
    }
    assert_int_equal(rig_counters().host_ranges, before);
}

#define CASE(_name) cmocka_unit_test_setup_teardown(_name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_replays),          CASE(test_missing_wait),
        CASE(test_setup_in_capture), CASE(test_side_by_side),
        CASE(test_invalid_capture),  CASE(test_words_come_back),
    };

    unsetenv("SOFTGPU_FAIL");
    unsetenv("SOFTGPU_ATTR");
    rig_open();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
