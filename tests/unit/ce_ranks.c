/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Ranks of one node, and the little of a bootstrap that copy engines use:
 * an allgather through memory that is shared since before the fork.
 */
#include <config.h>

#include "ce_ranks.h"

#include "util/clock.h"
#include "util/log.h"

#include <assert.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define BOOT_ITEM 4096 /* most bytes of one rank in an allgather */

typedef struct common {
    pthread_mutex_t lock; /* protects the next three */
    pthread_cond_t moved;
    uint64_t arrived; /* since the start */
    bool broken;
    uint8_t secret[16];
    char items[RANKS_MAX][BOOT_ITEM];
    ranks_shared_t shared;
} common_t;

struct hce_boot {
    ranks_self_t *self;
    common_t *common;
    uint64_t rounds;
    int gathers;
};

int hce_boot_size(const hce_boot_t *boot)
{
    return boot->self->size;
}

int hce_boot_rank(const hce_boot_t *boot)
{
    return boot->self->rank;
}

const uint8_t *hce_boot_secret(const hce_boot_t *boot)
{
    return boot->common->secret;
}

static hce_status_t boot_barrier(hce_boot_t *boot)
{
    common_t *common = boot->common;
    uint64_t goal = ++boot->rounds * (uint64_t)boot->self->size;
    hce_status_t status = HCE_OK;

    pthread_mutex_lock(&common->lock);
    common->arrived++;
    pthread_cond_broadcast(&common->moved);
    while (common->arrived < goal && !common->broken)
        pthread_cond_wait(&common->moved, &common->lock);
    if (common->arrived < goal)
        status = HCE_ERR_GONE;
    pthread_mutex_unlock(&common->lock);
    return status;
}

hce_status_t hce_boot_allgather(hce_boot_t *boot, const void *in, size_t len,
                                void *out, uint64_t deadline)
{
    common_t *common = boot->common;
    ranks_self_t *self = boot->self;
    int rank;

    assert(len <= BOOT_ITEM);
    memcpy(common->items[self->rank], in, len);
    if (boot_barrier(boot) != HCE_OK)
        return HCE_ERR_GONE;
    for (rank = 0; rank < self->size; rank++)
        memcpy((char *)out + (size_t)rank * len, common->items[rank], len);
    if (boot_barrier(boot) != HCE_OK)
        return HCE_ERR_GONE;
    if (self->spec->gathered != NULL)
        self->spec->gathered(self, ++boot->gathers);
    return HCE_OK;
}

void ranks_break(ranks_self_t *self)
{
    common_t *common = self->boot->common;

    pthread_mutex_lock(&common->lock);
    common->broken = true;
    pthread_cond_broadcast(&common->moved);
    pthread_mutex_unlock(&common->lock);
}

static common_t *common_create(void)
{
    common_t *common = mmap(NULL, sizeof(*common), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_mutexattr_t mutex;
    pthread_condattr_t cond;

    if (common == MAP_FAILED)
        return NULL;
    pthread_mutexattr_init(&mutex);
    pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&common->lock, &mutex);
    pthread_condattr_init(&cond);
    pthread_condattr_setpshared(&cond, PTHREAD_PROCESS_SHARED);
    pthread_cond_init(&common->moved, &cond);
    memset(common->secret, RANKS_SECRET, sizeof(common->secret));
    return common;
}

uint64_t ranks_seed(void)
{
    static uint64_t seed;
    const char *text = getenv("HCE_TEST_SEED");

    if (seed == 0) {
        seed = text != NULL ? strtoull(text, NULL, 0) : (hce_clock_ns() | 1);
        printf("# HCE_TEST_SEED=%llu\n", (unsigned long long)seed);
        fflush(stdout);
    }
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
    common_t *common;
    int rank;
} start_t;

static void *rank_main(void *arg)
{
    const start_t *start = arg;
    int color[RANKS_MAX] = {0};
    hce_boot_t boot = {.common = start->common};
    ranks_self_t me = {.spec = start->spec,
                       .shared = &start->common->shared,
                       .rank = start->rank,
                       .size = start->spec->procs * start->spec->threads,
                       .proc = start->rank / start->spec->threads,
                       .seed = ranks_seed(),
                       .boot = &boot,
                       .doorbell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    ranks_self_t *self = &me;

    boot.self = self;
    hce_log_set_rank(self->rank);
    RANKS_CHECK(hce_layout_create(self->size, color, &self->layout) == HCE_OK);
    if (start->spec->raw_body != NULL) {
        start->spec->raw_body(self);
    } else {
        RANKS_CHECK(ranks_open(self) == HCE_OK);
        start->spec->body(self);
        hce_ce_close(self->ce);
    }
    close(self->doorbell);
    hce_layout_destroy(self->layout);
    return NULL;
}

static void process_main(const ranks_spec_t *spec, common_t *common, int proc)
{
    pthread_t threads[RANKS_MAX];
    start_t starts[RANKS_MAX];
    int i;

    hce_ce_settings.host_copy = spec->force[proc];
    if (spec->before != NULL)
        spec->before(proc);
    for (i = 0; i < spec->threads; i++)
        starts[i] = (start_t){spec, common, proc * spec->threads + i};
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

bool ranks_run(const ranks_spec_t *spec)
{
    common_t *common = common_create();
    pid_t pids[RANKS_MAX];
    int gate[2], i;
    bool good;

    ranks_seed();
    if (common == NULL || pipe(gate) != 0)
        return false;
    fflush(NULL);
    for (i = 0; i < spec->procs; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            alarm(120);
            signal(SIGSEGV, SIG_DFL); /* cmocka's would go on as the parent */
            signal(SIGBUS, SIG_DFL);
            signal(SIGABRT, SIG_DFL);
            gate_pass(gate);
            process_main(spec, common, i);
            exit(0); /* not _exit: sanitizers report leaks here */
        }
        common->shared.pids[i] = pids[i];
    }
    close(gate[0]);
    close(gate[1]);
    good = processes_reap(spec, pids);
    munmap(common, sizeof(*common));
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
