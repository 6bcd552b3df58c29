/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The env bootstrap: variables, foreign listeners on the port, several jobs
 * on the same ports, several communicators of one job.
 */
#include <config.h>

#include "boot_ranks.h"

#include "boot/settings.h"
#include "util/math.h"

#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

/* A socket that is bound and, if backlog is not 0, listens. */
static int port_hold(int port, int backlog)
{
    struct sockaddr_in in = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&in, sizeof(in)), 0);
    assert_int_equal(backlog == 0 ? 0 : listen(fd, backlog), 0);
    return fd;
}

/* True once something listens there. */
static bool port_answers(int port)
{
    struct sockaddr_in in = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool answers = connect(fd, (struct sockaddr *)&in, sizeof(in)) == 0;

    close(fd);
    return answers;
}

static void port_await(int port)
{
    uint64_t deadline = ranks_soon();

    while (!port_answers(port)) {
        assert_true(hce_clock_ns() < deadline);
        usleep(1000);
    }
}

/* Each rank gives its job's number: all must be of one job. */
static void job_run(ranks_self_t *self)
{
    int me[2] = {*(const int *)self->arg, self->rank};
    int all[RANKS_MAX][2];

    RANKS_CHECK(self, strcmp(hce_boot_name(self->boot), "env") == 0);
    RANKS_CHECK(self, hce_boot_allgather(self->boot, me, sizeof(me), all,
                                         ranks_soon()) == HCE_OK);
    for (int r = 0; r < self->size; r++) {
        RANKS_CHECK(self, all[r][0] == me[0]);
        RANKS_CHECK(self, all[r][1] == r);
    }
    hce_boot_goodbye(self->boot, 10 * HCE_NS_PER_SEC);
    RANKS_CHECK(self, self->news.count == 0);
}

static void test_plain(void **state)
{
    static const int sizes[] = {1, 2, 4, 16};
    int job = 1;

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        ranks_spec_t spec = {.size = sizes[i],
                             .port = ranks_port_find(),
                             .fn = job_run,
                             .arg = &job};

        assert_int_equal(ranks_processes(&spec), 0);
    }
}

/* The kernel accepts, and nobody ever says a word. */
static void test_silent_listener(void **state)
{
    int port = ranks_port_find(), job = 1;
    int fds[3] = {port_hold(port, 64), port_hold(port + 1, 64),
                  port_hold(port + 2, 0)};
    ranks_spec_t spec = {.size = 4, .port = port, .fn = job_run, .arg = &job};

    assert_int_equal(ranks_processes(&spec), 0);
    for (int i = 0; i < 3; i++) {
        close(fds[i]);
    }
}

/* Answers each connection with nonsense, in several ways. */
static void garbage_serve(int listen_fd, uint64_t seed)
{
    for (int i = 0;; i++) {
        int fd = accept(listen_fd, NULL, NULL);
        uint8_t bytes[200];

        for (size_t b = 0; b < sizeof(bytes); b++) {
            bytes[b] = (uint8_t)hce_rand_next(&seed);
        }
        if (i % 3 == 1) {
            memcpy(bytes, "HCEB\1\0\2\0\377\377\377\377", 12); /* too long */
        } else if (i % 3 == 2) {
            memcpy(bytes, "HCEB\1\0\4\0\40\0\0\0", 12); /* out of turn */
        }
        (void)!write(fd, bytes, sizeof(bytes));
        close(fd);
    }
}

static void test_garbage_listener(void **state)
{
    int port = ranks_port_find(), job = 1;
    int fd = port_hold(port, 64);
    ranks_spec_t spec = {.size = 4, .port = port, .fn = job_run, .arg = &job};
    pid_t server = fork();

    print_message("garbage: seed 7\n");
    assert_true(server >= 0);
    if (server == 0) {
        garbage_serve(fd, 7);
    }
    assert_int_equal(ranks_processes(&spec), 0);
    kill(server, SIGKILL);
    assert_false(ranks_reap(server));
    close(fd);
}

/* --- two jobs --- */

typedef struct job {
    ranks_spec_t spec;
    int number;
    const char *secret; /* HCE_JOB_SECRET */
    int hubs_fd;        /* leaves wait until this pipe is closed */
} job_t;

/* A launcher: a process and a session of its own, with ranks as children. */
static pid_t launcher_fork(job_t *job)
{
    pid_t pid = fork();
    int failures = 0;
    pid_t ranks[RANKS_MAX];

    assert_true(pid >= 0);
    if (pid > 0) {
        return pid;
    }
    setsid();
    hce_boot_settings.job_secret = job->secret;
    job->spec.arg = &job->number;
    ranks_fork(&job->spec, ranks);
    for (int r = 0; r < job->spec.size; r++) {
        failures += !ranks_reap(ranks[r]);
    }
    fflush(NULL);
    _exit(failures > 0);
}

static void jobs_check(job_t *jobs, int num)
{
    pid_t pids[8];

    for (int j = 0; j < num; j++) {
        jobs[j].number = j;
        pids[j] = launcher_fork(&jobs[j]);
    }
    for (int j = 0; j < num; j++) {
        assert_true(ranks_reap(pids[j]));
    }
}

/* Told apart by their secrets. */
static void test_jobs_with_secrets(void **state)
{
    int port = ranks_port_find();
    job_t jobs[3] = {
        {.spec = {.size = 4, .port = port, .fn = job_run}, .secret = "one"},
        {.spec = {.size = 4, .port = port, .fn = job_run}, .secret = "two"},
        {.spec = {.size = 4, .port = port, .fn = job_run}},
    };

    for (int i = 0; i < 5; i++) {
        jobs_check(jobs, 3);
    }
}

/* Told apart by their sizes: a leaf goes on to the next port. */
static void test_jobs_of_other_size(void **state)
{
    int port = ranks_port_find();
    job_t jobs[2] = {
        {.spec = {.size = 3, .port = port, .fn = job_run}},
        {.spec = {.size = 5, .port = port, .fn = job_run}},
    };

    for (int i = 0; i < 5; i++) {
        jobs_check(jobs, 2);
    }
}

/* Nothing tells them apart but who started them. All come up; the ranks that
 * come when both hubs listen find their own. */
static void twin_run(ranks_self_t *self)
{
    int me = self->rank, all[RANKS_MAX];

    RANKS_CHECK(self, hce_boot_allgather(self->boot, &me, sizeof(me), all,
                                         ranks_soon()) == HCE_OK);
    for (int r = 0; r < self->size; r++) {
        RANKS_CHECK(self, all[r] == r);
    }
    hce_boot_goodbye(self->boot, 10 * HCE_NS_PER_SEC);
}

static void test_jobs_alike(void **state)
{
    int port = ranks_port_find();
    job_t jobs[3] = {
        {.spec = {.size = 4, .port = port, .fn = twin_run}},
        {.spec = {.size = 4, .port = port, .fn = twin_run}},
        {.spec = {.size = 4, .port = port, .fn = twin_run}},
    };

    for (int i = 0; i < 5; i++) {
        jobs_check(jobs, 3);
    }
}

/* One rank of a job, created when a byte can be read from gate. */
static void rank_main(int gate, int rank, job_t *job)
{
    ranks_self_t self = {.rank = rank};
    hce_boot_params_t params = {.bootstrap = HCE_BOOTSTRAP_ENV,
                                .deadline = ranks_soon()};
    char byte, text[16];

    setenv("MASTER_ADDR", "127.0.0.1", 1);
    snprintf(text, sizeof(text), "%d", job->spec.port);
    setenv("MASTER_PORT", text, 1);
    snprintf(text, sizeof(text), "%d", job->spec.size);
    setenv("WORLD_SIZE", text, 1);
    snprintf(text, sizeof(text), "%d", rank);
    setenv("RANK", text, 1);
    job->spec.arg = &job->number;
    if (rank > 0) {
        (void)!read(gate, &byte, 1); /* end of file */
    }
    ranks_run(&self, &job->spec, &params);
    fflush(NULL);
    _exit(self.failures > 0);
}

static pid_t gated_launcher_fork(job_t *job, const int *gate)
{
    pid_t pid = fork(), ranks[RANKS_MAX];
    int failures = 0;

    assert_true(pid >= 0);
    if (pid > 0) {
        return pid;
    }
    setsid();
    close(gate[1]);
    for (int r = 0; r < job->spec.size; r++) {
        ranks[r] = fork();
        if (ranks[r] == 0) {
            rank_main(gate[0], r, job);
        }
    }
    for (int r = 0; r < job->spec.size; r++) {
        failures += !ranks_reap(ranks[r]);
    }
    fflush(NULL);
    _exit(failures > 0);
}

static void test_jobs_alike_do_not_mix(void **state)
{
    int port = ranks_port_find(), gate[2];
    job_t jobs[2] = {
        {.spec = {.size = 4, .port = port, .fn = job_run}, .number = 1},
        {.spec = {.size = 4, .port = port, .fn = job_run}, .number = 2},
    };
    pid_t pids[2];

    assert_int_equal(pipe(gate), 0);
    fflush(NULL);
    for (int j = 0; j < 2; j++) {
        pids[j] = gated_launcher_fork(&jobs[j], gate);
        port_await(port + j);
    }
    close(gate[0]);
    close(gate[1]);
    assert_true(ranks_reap(pids[0]));
    assert_true(ranks_reap(pids[1]));
}

/* --- one process, several communicators --- */

static void several_run(ranks_self_t *self)
{
    hce_boot_t *boots[4];

    for (int i = 0; i < 4; i++) {
        hce_boot_params_t params = {.bootstrap = HCE_BOOTSTRAP_AUTO,
                                    .deadline = ranks_soon()};

        RANKS_CHECK(self, hce_boot_create(&params, &boots[i]) == HCE_OK);
        if (self->failures > 0) {
            return;
        }
    }
    for (int i = 3; i >= 0; i--) {
        RANKS_CHECK(self, hce_boot_barrier(boots[i], ranks_soon()) == HCE_OK);
        hce_boot_goodbye(boots[i], 10 * HCE_NS_PER_SEC);
        hce_boot_destroy(boots[i]);
    }
    hce_boot_goodbye(self->boot, 10 * HCE_NS_PER_SEC);
}

static void test_several(void **state)
{
    ranks_spec_t spec = {
        .size = 3, .port = ranks_port_find(), .fn = several_run};

    assert_int_equal(ranks_processes(&spec), 0);
}

/* --- errors --- */

typedef struct variables {
    const char *rank, *size, *local_rank, *addr, *port;
} variables_t;

static void variable_set(const char *name, const char *value)
{
    if (value != NULL) {
        setenv(name, value, 1);
    } else {
        unsetenv(name);
    }
}

static hce_status_t variables_try(const variables_t *v)
{
    hce_boot_params_t params = {.bootstrap = HCE_BOOTSTRAP_AUTO,
                                .deadline = hce_clock_ns()};
    hce_boot_t *boot = NULL;
    hce_status_t status;

    variable_set("RANK", v->rank);
    variable_set("WORLD_SIZE", v->size);
    variable_set("LOCAL_RANK", v->local_rank);
    variable_set("MASTER_ADDR", v->addr);
    variable_set("MASTER_PORT", v->port);
    status = hce_boot_create(&params, &boot);
    hce_boot_destroy(boot);
    return status;
}

static void test_variables(void **state)
{
    static const struct {
        variables_t v;
        hce_status_t status;
    } cases[] = {
        {{"0", "1", NULL, "127.0.0.1", "29500"}, HCE_OK},
        {{"0", "1", "0", "localhost", "65535"}, HCE_OK},
        {{NULL, "1", NULL, "127.0.0.1", "29500"}, HCE_ERR_BOOTSTRAP},
        {{"0", NULL, NULL, "127.0.0.1", "29500"}, HCE_ERR_BOOTSTRAP},
        {{"0", "1", NULL, NULL, "29500"}, HCE_ERR_BOOTSTRAP},
        {{"0", "1", NULL, "", "29500"}, HCE_ERR_BOOTSTRAP},
        {{"0", "1", NULL, "127.0.0.1", NULL}, HCE_ERR_BOOTSTRAP},
        {{"0", "1", NULL, "no.such.host.invalid", "1"}, HCE_ERR_BOOTSTRAP},
        {{"1", "1", NULL, "127.0.0.1", "29500"}, HCE_ERR_CONFIG},
        {{"-1", "1", NULL, "127.0.0.1", "29500"}, HCE_ERR_CONFIG},
        {{"x", "1", NULL, "127.0.0.1", "29500"}, HCE_ERR_CONFIG},
        {{"0x0", "1", NULL, "127.0.0.1", "29500"}, HCE_ERR_CONFIG},
        {{"", "1", NULL, "127.0.0.1", "29500"}, HCE_ERR_CONFIG},
        {{"0", "0", NULL, "127.0.0.1", "29500"}, HCE_ERR_CONFIG},
        {{"0", "1 ", NULL, "127.0.0.1", "29500"}, HCE_ERR_CONFIG},
        {{"0", "1", "1", "127.0.0.1", "29500"}, HCE_ERR_CONFIG},
        {{"0", "1", NULL, "127.0.0.1", "0"}, HCE_ERR_CONFIG},
        {{"0", "1", NULL, "127.0.0.1", "65536"}, HCE_ERR_CONFIG},
        {{"0", "1", NULL, "127.0.0.1", "http"}, HCE_ERR_CONFIG},
        /* Nobody comes, nobody is there. */
        {{"0", "2", NULL, "127.0.0.1", "65530"}, HCE_ERR_BOOTSTRAP},
        {{"1", "2", NULL, "127.0.0.1", "65530"}, HCE_ERR_BOOTSTRAP},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(variables_try(&cases[i].v), cases[i].status);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain),
        cmocka_unit_test(test_silent_listener),
        cmocka_unit_test(test_garbage_listener),
        cmocka_unit_test(test_jobs_with_secrets),
        cmocka_unit_test(test_jobs_of_other_size),
        cmocka_unit_test(test_jobs_alike),
        cmocka_unit_test(test_jobs_alike_do_not_mix),
        cmocka_unit_test(test_several),
        cmocka_unit_test(test_variables),
    };
    static const char *const foreign[] = {"TORCHELASTIC_RUN_ID",
                                          "TORCHELASTIC_USE_AGENT_STORE",
                                          "SLURM_JOB_ID", "PMIX_NAMESPACE"};

    for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++) {
        unsetenv(foreign[i]);
    }
    ranks_setup();
    return cmocka_run_group_tests_name("boot_env", tests, NULL, NULL);
}
