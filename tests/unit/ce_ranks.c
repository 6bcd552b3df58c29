/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Ranks of one node, over the real bootstrap.
 */
#include <config.h>

#include "ce_ranks.h"

#include "boot/local.h"
#include "util/clock.h"
#include "util/log.h"

#include <assert.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define PROCESS_SECONDS 120
#define BOOT_NS         (60 * HCE_NS_PER_SEC)
#define PARTING_NS      (10 * HCE_NS_PER_SEC)

static uint64_t seed = 20260117;

static ranks_shared_t *shared_create(void)
{
    ranks_shared_t *shared =
        mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
             MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    return shared == MAP_FAILED ? NULL : shared;
}

void ranks_init(int argc, char **argv)
{
    static const hce_config_table_t *const tables[] = {
        &hce_util_config, &hce_boot_config, &hce_ce_config, NULL};

    if (hce_config_init(tables) != HCE_OK)
        exit(1);
    if (argc > 1)
        seed = strtoull(argv[1], NULL, 0);
    printf("# seed %llu\n", (unsigned long long)seed);
}

uint64_t ranks_seed(void)
{
    return seed;
}

hce_status_t ranks_open(ranks_self_t *self)
{
    const hce_ce_params_t params = {
        .layout = self->layout,
        .boot = self->boot,
        .deadline = hce_clock_deadline(60 * HCE_NS_PER_SEC),
        .num_counters = RANKS_COUNTERS,
        .rank = self->rank,
        .doorbell = self->doorbell,
    };

    return hce_ce_open(&params, &self->ce);
}

typedef struct start {
    const ranks_spec_t *spec;
    ranks_shared_t *shared;
    int rank;
} start_t;

/* In a rank's thread; its name is known to the test's link line, where it
 * takes the place of hce_boot_allgather for the library as well. */
static _Thread_local ranks_self_t *thread_self;

ranks_self_t *ranks_current(void)
{
    return thread_self;
}

hce_status_t __real_hce_boot_allgather(hce_boot_t *boot, const void *in,
                                       size_t len, void *out,
                                       uint64_t deadline);
hce_status_t __wrap_hce_boot_allgather(hce_boot_t *boot, const void *in,
                                       size_t len, void *out,
                                       uint64_t deadline);

hce_status_t __wrap_hce_boot_allgather(hce_boot_t *boot, const void *in,
                                       size_t len, void *out,
                                       uint64_t deadline)
{
    hce_status_t status =
        __real_hce_boot_allgather(boot, in, len, out, deadline);
    ranks_self_t *self = thread_self;

    if (status == HCE_OK && self != NULL && self->spec->gathered != NULL)
        self->spec->gathered(self, ++self->gathers);
    return status;
}

static void boot_create(ranks_self_t *self)
{
    const hce_boot_params_t params = {
        .bootstrap = HCE_BOOTSTRAP_TCP,
        .rank = self->rank,
        .size = self->size,
        .unique_id = &self->shared->id,
        .deadline = hce_clock_deadline(BOOT_NS),
    };

    RANKS_CHECK(hce_boot_create(&params, &self->boot) == HCE_OK);
}

static void *rank_main(void *arg)
{
    const start_t *start = arg;
    int color[RANKS_MAX] = {0};
    ranks_self_t me = {.spec = start->spec,
                       .shared = start->shared,
                       .rank = start->rank,
                       .size = start->spec->procs * start->spec->threads,
                       .proc = start->rank / start->spec->threads,
                       .seed = seed,
                       .doorbell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    ranks_self_t *self = &me;

    hce_log_set_rank(self->rank);
    RANKS_CHECK(hce_layout_create(self->size, color, &self->layout) == HCE_OK);
    boot_create(self);
    thread_self = self;
    if (start->spec->raw_body != NULL) {
        start->spec->raw_body(self);
    } else {
        RANKS_CHECK(ranks_open(self) == HCE_OK);
        start->spec->body(self);
        hce_ce_close(self->ce);
    }
    hce_boot_goodbye(self->boot, PARTING_NS);
    hce_boot_destroy(self->boot);
    close(self->doorbell);
    hce_layout_destroy(self->layout);
    return NULL;
}

static void process_main(const ranks_spec_t *spec, ranks_shared_t *shared,
                         int proc)
{
    pthread_t threads[RANKS_MAX];
    start_t starts[RANKS_MAX];
    int i;

    hce_ce_settings.host_copy = spec->force[proc];
    if (spec->before != NULL)
        spec->before(proc);
    for (i = 0; i < spec->threads; i++)
        starts[i] = (start_t){spec, shared, proc * spec->threads + i};
    for (i = 1; i < spec->threads; i++) {
        if (pthread_create(&threads[i], NULL, rank_main, &starts[i]) != 0)
            _exit(2);
    }
    rank_main(&starts[0]);
    for (i = 1; i < spec->threads; i++)
        pthread_join(threads[i], NULL);
}

/* The processes stop at the gate until all their pids are known. */
static void gate_pass(int gate[2])
{
    char byte;

    close(gate[1]);
    while (read(gate[0], &byte, 1) > 0)
        ;
    close(gate[0]);
}

static bool processes_reap(const ranks_spec_t *spec, pid_t *pids)
{
    bool good = true;
    int left, status, i, other;
    pid_t pid;

    for (left = spec->procs; left > 0; left--) {
        pid = wait(&status);
        for (i = 0; i < spec->procs && pids[i] != pid; i++)
            ;
        assert(i < spec->procs);
        pids[i] = -1;
        if (i + 1 == spec->killed && WIFSIGNALED(status) &&
            WTERMSIG(status) == SIGKILL)
            continue;
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
            continue;
        fprintf(stderr, "process %d: status %#x\n", i, status);
        good = false;
        /* The others may wait for it for ever. */
        for (other = 0; other < spec->procs; other++) {
            if (pids[other] > 0)
                kill(pids[other], SIGKILL);
        }
    }
    return good;
}

/* Made by the process of rank 0, as for a communicator of threads. */
static void id_make(ranks_shared_t *shared, int proc)
{
    if (proc == 0) {
        if (hce_boot_local_prepare(&shared->id) != HCE_OK)
            _exit(2);
        atomic_store(&shared->has_id, 1);
    }
    while (atomic_load(&shared->has_id) == 0)
        sched_yield();
}

static void child_main(const ranks_spec_t *spec, ranks_shared_t *shared,
                       int proc)
{
    alarm(PROCESS_SECONDS);
    signal(SIGSEGV, SIG_DFL); /* cmocka's would go on as the parent */
    signal(SIGBUS, SIG_DFL);
    signal(SIGABRT, SIG_DFL);
    id_make(shared, proc);
    process_main(spec, shared, proc);
    exit(0); /* not _exit: sanitizers report leaks here */
}

bool ranks_run(const ranks_spec_t *spec)
{
    ranks_shared_t *shared = shared_create();
    pid_t pids[RANKS_MAX];
    int gate[2], i;
    bool good;

    if (shared == NULL || pipe(gate) != 0)
        return false;
    fflush(NULL);
    for (i = 0; i < spec->procs; i++) {
        pids[i] = fork();
        if (pids[i] < 0)
            abort();
        if (pids[i] == 0) {
            gate_pass(gate);
            child_main(spec, shared, i);
        }
        shared->pids[i] = pids[i];
    }
    close(gate[0]);
    close(gate[1]);
    good = processes_reap(spec, pids);
    munmap(shared, sizeof(*shared));
    return good;
}

void ranks_wait(ranks_self_t *self, ranks_done_t done, void *arg)
{
    struct pollfd fd = {self->doorbell, POLLIN, 0};
    hce_status_t status;
    uint64_t rings;
    int bad;

    for (;;) {
        status = hce_ce_progress(self->ce, &bad);
        RANKS_CHECK(status >= 0);
        if (done(self, arg))
            return;
        if (status == HCE_INPROGRESS || !hce_ce_arm(self->ce))
            continue;
        RANKS_CHECK(poll(&fd, 1, RANKS_WAIT_MS) == 1);
        hce_ce_awake(self->ce);
        RANKS_CHECK(read(self->doorbell, &rings, sizeof(rings)) ==
                    sizeof(rings));
    }
}

typedef struct goal {
    uint32_t index;
    uint64_t value;
} goal_t;

static bool goal_reached(ranks_self_t *self, void *arg)
{
    const goal_t *goal = arg;

    return hce_counter_geq(
        hce_counter_read(&hce_ce_counters(self->ce)[goal->index]),
        goal->value);
}

void ranks_wait_counter(ranks_self_t *self, uint32_t index, uint64_t value)
{
    goal_t goal = {index, value};

    ranks_wait(self, goal_reached, &goal);
}

typedef struct attempt {
    const hce_ce_copy_t *copy;
    int bad;
    int lrank;
    uint32_t index;
    uint64_t value;
    hce_status_t status;
} attempt_t;

static bool copy_attempt(ranks_self_t *self, void *arg)
{
    attempt_t *attempt = arg;

    attempt->status = hce_ce_copy(self->ce, attempt->copy, &attempt->bad);
    return attempt->status != HCE_ERR_NO_RESOURCE;
}

hce_status_t ranks_copy(ranks_self_t *self, const hce_ce_copy_t *copy,
                        int *bad_p)
{
    attempt_t attempt = {.copy = copy, .bad = -1};

    ranks_wait(self, copy_attempt, &attempt);
    *bad_p = attempt.bad;
    return attempt.status;
}

static bool post_attempt(ranks_self_t *self, void *arg)
{
    attempt_t *attempt = arg;

    return hce_ce_post(self->ce, attempt->lrank, attempt->index,
                       attempt->value) == HCE_OK;
}

void ranks_post(ranks_self_t *self, int lrank, uint32_t index, uint64_t value)
{
    attempt_t attempt = {.lrank = lrank, .index = index, .value = value};

    ranks_wait(self, post_attempt, &attempt);
}

void ranks_barrier(ranks_self_t *self)
{
    uint64_t round = ++self->rounds;
    int l;

    for (l = 0; l < self->size; l++)
        ranks_post(self, l, 48 + (uint32_t)self->rank, round);
    for (l = 0; l < self->size; l++)
        ranks_wait_counter(self, 48 + (uint32_t)l, round);
}
