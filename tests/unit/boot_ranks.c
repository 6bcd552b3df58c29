/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The frame of the bootstrap's tests.
 */
#include <config.h>

#include "boot_ranks.h"

#include "boot/local.h"
#include "util/log.h"
#include "util/math.h"

#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

void ranks_setup(void)
{
    static const hce_config_table_t *const tables[] = {&hce_util_config,
                                                       &hce_boot_config, NULL};

    if (hce_config_init(tables) != HCE_OK) {
        exit(1);
    }
}

static void on_news(void *arg, const hce_boot_news_t *news)
{
    ranks_news_t *kept = arg;

    kept->news = *news;
    /* Release: the news is there for who has seen the count. */
    atomic_fetch_add_explicit(&kept->count, 1, memory_order_release);
}

bool ranks_await_news(ranks_self_t *self, uint64_t len_ns)
{
    uint64_t deadline = hce_clock_deadline(len_ns);

    for (;;) {
        struct pollfd fd = {.fd = hce_boot_fd(self->boot), .events = POLLIN};
        uint64_t now, then;

        hce_boot_progress(self->boot);
        if (atomic_load_explicit(&self->news.count, memory_order_acquire)) {
            return true;
        }
        now = hce_clock_ns();
        if (now >= deadline) {
            return false;
        }
        then = hce_min(deadline, hce_boot_next_ns(self->boot));
        then = then > now ? (then - now) / HCE_NS_PER_MS + 1 : 0;
        poll(&fd, 1, (int)hce_min(then, (uint64_t)1000));
    }
}

/* Enough information to tell a failure by. */
void ranks_check_news(ranks_self_t *self, hce_status_t status, int rank,
                      const char *text)
{
    const hce_boot_news_t *news = &self->news.news;

    RANKS_CHECK(self, ranks_await_news(self, RANKS_NEWS_NS));
    RANKS_CHECK(self, self->news.count == 1);
    RANKS_CHECK(self, news->status == (int)status);
    RANKS_CHECK(self, news->rank == rank);
    RANKS_CHECK(self, strstr(news->text, text) != NULL);
    if (self->failures > 0) {
        fprintf(stderr, "rank %d: news %d of rank %d: %s\n", self->rank,
                news->status, news->rank, news->text);
    }
}

void ranks_run(ranks_self_t *self, const ranks_spec_t *spec,
               const hce_boot_params_t *params)
{
    hce_log_set_rank(self->rank);
    self->size = spec->size;
    self->arg = spec->arg;
    self->boot = NULL;
    self->status = hce_boot_create(params, &self->boot);
    RANKS_CHECK(self, self->status == HCE_OK);
    if (self->status == HCE_OK) {
        hce_boot_set_news_cb(self->boot, on_news, &self->news);
        spec->fn(self);
        hce_boot_destroy(self->boot);
    }
}

typedef struct thread {
    pthread_t id;
    ranks_self_t self;
    const ranks_spec_t *spec;
    hce_boot_params_t params;
} thread_t;

static void *thread_run(void *arg)
{
    thread_t *thread = arg;

    ranks_run(&thread->self, thread->spec, &thread->params);
    return NULL;
}

static hce_boot_params_t params_make(const ranks_spec_t *spec, int rank,
                                     const hce_unique_id_t *id)
{
    uint64_t limit_ns = spec->limit_ns != 0 ? spec->limit_ns : RANKS_LIMIT_NS;
    hce_boot_params_t params = {
        .bootstrap = spec->port != 0 ? HCE_BOOTSTRAP_ENV : HCE_BOOTSTRAP_TCP,
        .rank = rank,
        .size = spec->size,
        .unique_id = id,
        .deadline = hce_clock_deadline(limit_ns),
        .silence_ns = spec->silence_ns};

    return params;
}

int ranks_threads(const ranks_spec_t *spec)
{
    thread_t *threads = calloc((size_t)spec->size, sizeof(*threads));
    hce_unique_id_t id;
    int failures = 0;

    if (threads == NULL || hce_boot_unique_id_create(&id) != HCE_OK) {
        free(threads);
        return 1;
    }
    for (int r = 0; r < spec->size; r++) {
        threads[r].self.rank = r;
        threads[r].spec = spec;
        threads[r].params = params_make(spec, r, &id);
        if (pthread_create(&threads[r].id, NULL, thread_run, &threads[r])) {
            abort();
        }
    }
    for (int r = 0; r < spec->size; r++) {
        pthread_join(threads[r].id, NULL);
        failures += threads[r].self.failures;
    }
    free(threads);
    return failures;
}

static void number_export(const char *name, int value)
{
    char text[16];

    snprintf(text, sizeof(text), "%d", value);
    setenv(name, text, 1);
}

/* As a launcher would. */
static void env_export(const ranks_spec_t *spec, int rank)
{
    number_export("RANK", rank);
    number_export("WORLD_SIZE", spec->size);
    number_export("MASTER_PORT", spec->port);
    setenv("MASTER_ADDR", "127.0.0.1", 1);
}

int ranks_port_find(void)
{
    for (;;) {
        struct sockaddr_in in = {.sin_family = AF_INET,
                                 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t len = sizeof(in);
        int first = 0, good = 0;

        for (int i = 0; i < RANKS_PORTS; i++) {
            int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

            in.sin_port = htons((uint16_t)(first == 0 ? 0 : first + i));
            if (bind(fd, (struct sockaddr *)&in, len) == 0 &&
                getsockname(fd, (struct sockaddr *)&in, &len) == 0) {
                first = first == 0 ? ntohs(in.sin_port) : first;
                good++;
            }
            close(fd);
        }
        if (good == RANKS_PORTS && first + RANKS_PORTS < 65536) {
            return first;
        }
    }
}

void ranks_fork(const ranks_spec_t *spec, pid_t *pids)
{
    hce_unique_id_t id;

    fflush(NULL);
    if (hce_boot_local_prepare(&id) != HCE_OK) {
        abort();
    }
    for (int r = 0; r < spec->size; r++) {
        pids[r] = fork();
        if (pids[r] < 0) {
            abort();
        }
        if (pids[r] == 0) {
            ranks_self_t self = {.rank = r};
            hce_boot_params_t params = params_make(spec, r, &id);

            if (spec->port != 0) {
                env_export(spec, r);
            }
            ranks_run(&self, spec, &params);
            fflush(NULL);
            _exit(self.failures > 0);
        }
    }
    hce_boot_local_release(&id);
}

bool ranks_reap(pid_t pid)
{
    uint64_t deadline = hce_clock_deadline(RANKS_LIMIT_NS);
    int status;
    pid_t got;

    while ((got = waitpid(pid, &status, WNOHANG)) == 0) {
        if (hce_clock_ns() >= deadline) {
            fprintf(stderr, "child %d hangs: killed\n", (int)pid);
            kill(pid, SIGKILL);
            waitpid(pid, &status, 0);
            return false;
        }
        poll(NULL, 0, 1);
    }
    return got == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int ranks_processes(const ranks_spec_t *spec)
{
    pid_t pids[RANKS_MAX];
    int failures = 0;

    ranks_fork(spec, pids);
    for (int r = 0; r < spec->size; r++) {
        failures += !ranks_reap(pids[r]);
    }
    return failures;
}
