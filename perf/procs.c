/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The parent only waits, with its signals blocked and taken one by one, so
 * that no child can end or be left behind unseen. A child that outlives its
 * parent is killed by the kernel.
 */
#include <config.h>

#include "procs.h"

#include "boot/local.h"
#include "util/clock.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* After the first rank that failed the others get so long to notice, which
 * includes HCE_SILENCE for a rank that was stopped, then so long to obey. */
#define GRACE_NS (20 * HCE_NS_PER_SEC)
#define TERM_NS  (2 * HCE_NS_PER_SEC)

typedef struct procs {
    int ranks;
    pid_t *pids; /* by rank; 0 once reaped */
    int running;
    int rc;            /* exit status for the job */
    int signal;        /* that ended this job from outside; 0 is none */
    uint64_t deadline; /* of the phase below */
    enum { PHASE_RUN, PHASE_GRACE, PHASE_TERM, PHASE_KILL } phase;
    sigset_t watched, before;
} procs_t;

static void child_main(const procs_t *procs, pid_t parent,
                       const hce_perf_opts_t *opts, hce_perf_body_t body,
                       const hce_perf_entry_t *entry)
    __attribute__((noreturn));

static void child_main(const procs_t *procs, pid_t parent,
                       const hce_perf_opts_t *opts, hce_perf_body_t body,
                       const hce_perf_entry_t *entry)
{
    /* The parent may have ended before the request took effect. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
        _exit(1);
    sigprocmask(SIG_SETMASK, &procs->before, NULL);
    exit(body(opts, entry));
}

static void signal_all(const procs_t *procs, int signal)
{
    int r;

    for (r = 0; r < procs->ranks; r++) {
        if (procs->pids[r] != 0)
            kill(procs->pids[r], signal);
    }
}

static void set_phase(procs_t *procs, int phase)
{
    switch (phase) {
    case PHASE_GRACE:
        procs->deadline = hce_clock_deadline(GRACE_NS);
        break;
    case PHASE_TERM:
        signal_all(procs, SIGTERM);
        procs->deadline = hce_clock_deadline(TERM_NS);
        break;
    case PHASE_KILL:
        signal_all(procs, SIGKILL);
        procs->deadline = HCE_TIME_NEVER;
        break;
    default:
        break;
    }
    procs->phase = phase;
}

/* Text in the form "was killed by signal 9 (Killed)". */
static void describe_end(int status, char *buf, size_t size)
{
    if (WIFSIGNALED(status))
        snprintf(buf, size, "was killed by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(buf, size, "ended with status %d", WEXITSTATUS(status));
}

/* A rank's own way to fail, with the reason on standard error and, where it
 * is rank 0, the verdict. */
static bool has_explained(int status)
{
    return WIFEXITED(status) && WEXITSTATUS(status) == 1;
}

static void note_end(procs_t *procs, int rank, int status)
{
    pid_t pid = procs->pids[rank];
    char how[80];

    procs->pids[rank] = 0;
    procs->running--;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return;
    procs->rc = 1;
    describe_end(status, how, sizeof(how));
    /* Not news: a rank that has said why it ends, and one ended by us. */
    if (procs->phase <= PHASE_GRACE && !has_explained(status))
        fprintf(stderr, "hce_perf: rank %d (pid %d) %s\n", rank, (int)pid,
                how);
    if (rank == 0 && !has_explained(status))
        printf("# Verdict: FAILED, rank 0 %s\n", how);
    if (procs->phase == PHASE_RUN)
        set_phase(procs, PHASE_GRACE);
}

static void reap(procs_t *procs)
{
    int r, status;

    for (r = 0; r < procs->ranks; r++) {
        if (procs->pids[r] != 0 &&
            waitpid(procs->pids[r], &status, WNOHANG) == procs->pids[r])
            note_end(procs, r, status);
    }
}

/* The deadline of the phase has passed, or a signal asks for the end. */
static void next_phase(procs_t *procs)
{
    int r;

    if (procs->phase == PHASE_GRACE) {
        for (r = 0; r < procs->ranks; r++) {
            if (procs->pids[r] != 0)
                fprintf(stderr,
                        "hce_perf: rank %d (pid %d) did not end; killing it\n",
                        r, (int)procs->pids[r]);
        }
    }
    set_phase(procs, procs->phase < PHASE_TERM ? PHASE_TERM : PHASE_KILL);
}

/* Until the next signal or the deadline of the phase. */
static void wait_signal(procs_t *procs)
{
    uint64_t now = hce_clock_ns(), left = 3600 * HCE_NS_PER_SEC;
    struct timespec timeout;
    int signal;

    if (procs->deadline != HCE_TIME_NEVER)
        left = procs->deadline > now ? procs->deadline - now : 0;
    timeout.tv_sec = (time_t)(left / HCE_NS_PER_SEC);
    timeout.tv_nsec = (long)(left % HCE_NS_PER_SEC);
    signal = sigtimedwait(&procs->watched, NULL, &timeout);
    if (signal > 0 && signal != SIGCHLD) {
        procs->signal = signal;
        next_phase(procs);
    } else if (hce_clock_ns() >= procs->deadline) {
        next_phase(procs);
    }
}

/* A signal that was ignored (nohup) stays so. */
static void watch_signal(procs_t *procs, int number)
{
    struct sigaction action;

    if (sigaction(number, NULL, &action) == 0 && action.sa_handler != SIG_IGN)
        sigaddset(&procs->watched, number);
}

static int procs_init(procs_t *procs, int ranks)
{
    memset(procs, 0, sizeof(*procs));
    procs->ranks = ranks;
    procs->deadline = HCE_TIME_NEVER;
    procs->pids = calloc((size_t)ranks, sizeof(*procs->pids));
    if (procs->pids == NULL) {
        fprintf(stderr, "hce_perf: no memory for %d ranks\n", ranks);
        return -1;
    }
    signal(SIGCHLD, SIG_DFL); /* ignored, children could not be reaped */
    sigemptyset(&procs->watched);
    sigaddset(&procs->watched, SIGCHLD);
    watch_signal(procs, SIGINT);
    watch_signal(procs, SIGTERM);
    watch_signal(procs, SIGHUP);
    sigprocmask(SIG_BLOCK, &procs->watched, &procs->before);
    return 0;
}

int hce_perf_procs_run(const hce_perf_opts_t *opts, hce_perf_body_t body,
                       const hce_perf_entry_t *entries)
{
    pid_t parent = getpid(), pid;
    procs_t procs;
    int r;

    if (procs_init(&procs, opts->ranks) != 0)
        return 1;
    fflush(NULL); /* else each child writes it again */
    for (r = 0; r < opts->ranks; r++) {
        pid = fork();
        if (pid == 0)
            child_main(&procs, parent, opts, body, &entries[r]);
        if (pid < 0) {
            fprintf(stderr, "hce_perf: cannot fork rank %d: %m\n", r);
            procs.rc = 1;
            set_phase(&procs, PHASE_TERM);
            break;
        }
        procs.pids[r] = pid;
        procs.running++;
    }
    hce_boot_local_release(entries[0].unique_id);
    while (procs.running > 0) {
        wait_signal(&procs);
        reap(&procs);
    }
    free(procs.pids);
    sigprocmask(SIG_SETMASK, &procs.before, NULL);
    fflush(stdout);
    if (procs.signal != 0) {
        raise(procs.signal);       /* so that our parent sees what ended us */
        return 128 + procs.signal; /* it was blocked */
    }
    return procs.rc;
}
