/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * What goes wrong between the ranks of a node, while opening and later: every
 * error names the rank that it is about, on every rank, and nobody hangs.
 */
#include <config.h>

#include "ce_ranks.h"

#include "ce/host/link_msg.h"
#include "util/clock.h"
#include "util/log.h"

#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <cmocka.h>

#define LEN 10000u

static void run_logged(const ranks_spec_t *spec, const char *expected)
{
    char *log;
    bool good;

    ranks_log_start();
    good = ranks_run(spec);
    log = ranks_log_end();
    assert_true(good);
    if (expected != NULL && strstr(log, expected) == NULL)
        fail_msg("not in the log: %s", expected);
    free(log);
}

/* Shows [addr, addr + LEN) to all and reaches that of lrank. */
static void buffers_swap(ranks_self_t *self, const void *addr, int lrank,
                         hce_ce_target_t *target)
{
    hce_ce_buf_t buf;

    hce_ce_describe(self->ce, addr, LEN, &buf);
    memcpy(hce_ce_board(self->ce, self->rank), &buf, sizeof(buf));
    ranks_barrier(self);
    memcpy(&buf, hce_ce_board(self->ce, lrank), sizeof(buf));
    RANKS_CHECK(hce_ce_reach(self->ce, lrank, &buf, target) == HCE_OK);
    ranks_barrier(self);
}

static hce_status_t copy_to(ranks_self_t *self, const hce_ce_target_t *target,
                            const char *src, int *bad_p)
{
    hce_ce_dst_t dst = {target, 0};
    hce_ce_copy_t copy = {.src = src, .len = LEN, .dsts = &dst, .num_dsts = 1};

    return hce_ce_copy(self->ce, &copy, bad_p);
}

static void flag_wait(ranks_self_t *self, int flag)
{
    while (atomic_load(&self->shared->flags[flag]) == 0)
        sched_yield();
}

static void killed_body(ranks_self_t *self)
{
    uint64_t deadline = hce_clock_deadline(60 * HCE_NS_PER_SEC);
    char src[LEN] = {1}, *plain = malloc(LEN);
    hce_ce_target_t window_target, plain_target;
    uint32_t window;
    void *exported;
    int bad = -1;

    RANKS_CHECK(hce_ce_mem_alloc(LEN, &exported) == HCE_OK);
    RANKS_CHECK(hce_ce_window_add(self->ce, exported, LEN, HCE_TIME_NEVER,
                                  &window) == HCE_OK);
    buffers_swap(self, plain, 1, &plain_target);
    buffers_swap(self, exported, 1, &window_target);
    ranks_barrier(self);
    if (self->rank == 1) {
        atomic_store(&self->shared->flags[0], 1);
        for (;;)
            pause();
    }
    flag_wait(self, 0); /* its posts are with all */
    RANKS_CHECK(plain_target.how == HCE_CE_VM);
    RANKS_CHECK(window_target.how == HCE_CE_MAP);
    if (self->rank == 0) {
        RANKS_CHECK(!hce_ce_peer_gone(self->ce, 1));
        RANKS_CHECK(copy_to(self, &plain_target, src, &bad) == HCE_OK);
        RANKS_CHECK(kill(self->shared->pids[1], SIGKILL) == 0);
    }
    while (!hce_ce_peer_gone(self->ce, 1)) {
        RANKS_CHECK(hce_clock_ns() < deadline);
        sched_yield();
    }
    RANKS_CHECK(!hce_ce_peer_gone(self->ce, 2 - self->rank));
    RANKS_CHECK(copy_to(self, &plain_target, src, &bad) == HCE_ERR_GONE);
    RANKS_CHECK(bad == 1);
    /* To its memory that is mapped here it does no harm. */
    RANKS_CHECK(copy_to(self, &window_target, src, &bad) == HCE_OK);
    RANKS_CHECK(hce_ce_post(self->ce, 1, 0, 1) == HCE_OK);
    ranks_post(self, 2 - self->rank, 0, 1);
    ranks_wait_counter(self, 0, 1);
    hce_ce_window_remove(self->ce, window);
    RANKS_CHECK(hce_ce_mem_free(exported) == HCE_OK);
    free(plain);
}

static void test_killed_peer(void **state)
{
    ranks_spec_t spec = {.procs = 3,
                         .threads = 1,
                         .force = {HCE_CE_FORCE_MAP, HCE_CE_FORCE_MAP,
                                   HCE_CE_FORCE_MAP},
                         .body = killed_body,
                         .killed = 2};

    if (!ranks_have_vm())
        skip();
    run_logged(&spec, "rank 1 has ended");
}

/* The second half of what rank 1 shows cannot be written. */
static void fault_body(ranks_self_t *self)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char src[LEN], *pages, *addr;
    hce_ce_target_t target;
    int bad = -1;

    memset(src, 'z', LEN);
    pages = mmap(NULL, 4 * page, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    RANKS_CHECK(pages != MAP_FAILED);
    RANKS_CHECK(mprotect(pages + 2 * page, 2 * page, PROT_NONE) == 0);
    addr = pages + 2 * page - LEN / 2;
    buffers_swap(self, addr, 1, &target);
    if (self->rank == 0) {
        RANKS_CHECK(copy_to(self, &target, src, &bad) == HCE_ERR_SYSTEM);
        RANKS_CHECK(bad == 1);
    }
    ranks_barrier(self);
    munmap(pages, 4 * page);
}

static void test_unwritable_memory(void **state)
{
    ranks_spec_t spec = {.procs = 2,
                         .threads = 1,
                         .force = {HCE_CE_FORCE_MAP, HCE_CE_FORCE_MAP},
                         .body = fault_body};

    if (!ranks_have_vm())
        skip();
    run_logged(&spec, "of rank 1: Bad address");
}

/* Rank 0 writes a byte more than rank 1 has allowed. */
static void wild_body(ranks_self_t *self)
{
    char *area = calloc(1, LEN), src[LEN];
    hce_ce_target_t target;
    hce_status_t status;
    size_t i;
    int bad = -1;

    memset(src, 'w', LEN);
    RANKS_CHECK(hce_ce_allow(self->ce, area, LEN - 1) == HCE_OK);
    buffers_swap(self, area, 1, &target);
    if (self->rank == 0) {
        flag_wait(self, 1);
        RANKS_CHECK(target.how == HCE_CE_STAGED);
        RANKS_CHECK(copy_to(self, &target, src, &bad) == HCE_OK);
        atomic_store(&self->shared->flags[0], 1);
    } else {
        atomic_store(&self->shared->flags[1], 1); /* past the barriers */
        flag_wait(self, 0);
        for (i = 0; i < 3; i++) {
            status = hce_ce_progress(self->ce, &bad);
            RANKS_CHECK(status == HCE_ERR_INTERNAL && bad == 0);
        }
        for (i = 0; i < LEN; i++)
            RANKS_CHECK(area[i] == 0);
    }
    hce_ce_disallow(self->ce, area, LEN - 1);
    free(area);
}

static void test_wild_entry(void **state)
{
    ranks_spec_t spec = {.procs = 2,
                         .threads = 1,
                         .force = {HCE_CE_FORCE_STAGED, HCE_CE_FORCE_STAGED},
                         .body = wild_body};

    run_logged(&spec, "staging ring of rank 0: data outside");
}

/* A copy past the end of what was described. */
static void past_end_body(ranks_self_t *self)
{
    char area[LEN] = {0}, src[LEN] = {0};
    hce_ce_target_t target;
    hce_ce_dst_t dst = {&target, 1};
    hce_ce_copy_t copy = {.src = src, .len = LEN, .dsts = &dst, .num_dsts = 1};
    int bad = -1, peer = 1 - self->rank;

    buffers_swap(self, area, peer, &target);
    RANKS_CHECK(hce_ce_copy(self->ce, &copy, &bad) == HCE_ERR_INTERNAL);
    RANKS_CHECK(bad == peer);
    dst.offset = UINT64_MAX;
    bad = -1;
    RANKS_CHECK(hce_ce_copy(self->ce, &copy, &bad) == HCE_ERR_INTERNAL);
    RANKS_CHECK(bad == peer);
    ranks_barrier(self);
}

static void test_past_the_end(void **state)
{
    ranks_spec_t spec = {.procs = 1, .threads = 2, .body = past_end_body};

    run_logged(&spec, "of a buffer of 10000 bytes of rank 1");
}

static void refused_body(ranks_self_t *self)
{
    int l;

    for (l = 0; l < self->size; l++)
        RANKS_CHECK(hce_ce_peer_how(self->ce, l) ==
                    (l == self->rank ? HCE_CE_MAP : HCE_CE_STAGED));
    ranks_barrier(self);
}

static void refuse_and_log(int proc)
{
    hce_log_init("ce:info", NULL);
    ranks_refuse_vm(proc);
}

static void test_refused_as_ordinary_user(void **state)
{
    ranks_spec_t spec = {.procs = 3,
                         .threads = 1,
                         .force = {HCE_CE_FORCE_MAP, HCE_CE_FORCE_MAP,
                                   HCE_CE_FORCE_MAP},
                         .before = refuse_and_log,
                         .body = refused_body};

    if (!ranks_can_refuse_vm())
        skip();
    run_logged(&spec, "rank 2: windows map, other memory staged "
                      "(process_vm_writev: Operation not permitted)");
}

static void open_fails_body(ranks_self_t *self)
{
    const hce_status_t *expected = self->spec->arg;
    int fds = ranks_fds();

    RANKS_CHECK(ranks_open(self) == *expected);
    RANKS_CHECK(self->ce == NULL);
    /* The bootstrap may have closed some of its own. */
    RANKS_CHECK(ranks_fds() <= fds);
}

static void refuse_one(int proc)
{
    if (proc == 1)
        ranks_refuse_vm(proc);
    else if (getuid() == 0 && setresuid(65534, 65534, 65534) != 0)
        _exit(3);
}

/* One rank cannot: all fail, and all say why. */
static void test_forced_vm_refused(void **state)
{
    const hce_status_t expected = HCE_ERR_UNSUPPORTED;
    ranks_spec_t spec = {.procs = 3,
                         .threads = 1,
                         .force = {HCE_CE_FORCE_AUTO, HCE_CE_FORCE_VM},
                         .before = refuse_one,
                         .raw_body = open_fails_body,
                         .arg = &expected};

    if (!ranks_can_refuse_vm())
        skip();
    run_logged(&spec, "rank 1 cannot open its copy engine: "
                      "HCE_HOST_COPY=vm: rank 1 cannot write to rank 0");
}

static void die_after_hello(ranks_self_t *self, int n)
{
    if (n == 1 && self->rank == 1)
        raise(SIGKILL);
}

/* In the middle of opening: long before any deadline. */
static void test_killed_while_opening(void **state)
{
    const hce_status_t expected = HCE_ERR_GONE;
    ranks_spec_t spec = {.procs = 3,
                         .threads = 1,
                         .gathered = die_after_hello,
                         .raw_body = open_fails_body,
                         .arg = &expected,
                         .killed = 2};

    run_logged(&spec, "lost its node link to rank 1");
}

/* After hello this rank can open no further descriptor. */
static void starve_after_hello(ranks_self_t *self, int n)
{
    struct rlimit limit;

    if (n != 1 || self->rank != 2)
        return;
    RANKS_CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    limit.rlim_cur = 3;
    RANKS_CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
}

static void starved_body(ranks_self_t *self)
{
    struct rlimit before;
    hce_status_t status;

    RANKS_CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0);
    status = ranks_open(self);
    if (self->rank == 2)
        RANKS_CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
    /* As rank 0 finds: long before its deadline, and not only then. */
    RANKS_CHECK(status == HCE_ERR_GONE);
}

static void test_starved_while_opening(void **state)
{
    ranks_spec_t spec = {.procs = 3,
                         .threads = 1,
                         .gathered = starve_after_hello,
                         .raw_body = starved_body};

    run_logged(&spec, "Too many open files");
}

static void mismatch_body(ranks_self_t *self)
{
    const hce_ce_params_t params = {
        .layout = self->layout,
        .boot = self->boot,
        .deadline = hce_clock_deadline(60 * HCE_NS_PER_SEC),
        .num_counters = self->rank == 1 ? 7 : 8,
        .rank = self->rank,
        .doorbell = self->doorbell,
    };

    RANKS_CHECK(hce_ce_open(&params, &self->ce) == HCE_ERR_MISMATCH);
}

static void test_counters_differ(void **state)
{
    ranks_spec_t spec = {.procs = 2, .threads = 1, .raw_body = mismatch_body};

    run_logged(&spec, "rank 1 has 7 counters, but rank 0 has 8");
}

static void strangers_body(ranks_self_t *self)
{
    ranks_barrier(self);
}

/* Strangers find rank 0's door and stand in it while rank 1 comes. */
static void door_publish(ranks_self_t *self)
{
    struct sockaddr_un addr;
    socklen_t len, int_len;
    int fd, listens;

    for (fd = 3; fd < 200; fd++) {
        len = sizeof(addr);
        int_len = sizeof(listens);
        listens = 0;
        if (getsockname(fd, (struct sockaddr *)&addr, &len) == 0 &&
            addr.sun_family == AF_UNIX &&
            getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &int_len) ==
                0 &&
            listens)
            break;
    }
    RANKS_CHECK(fd < 200 && addr.sun_path[0] == '\0');
    memcpy(self->shared->text, &addr, len);
    atomic_store(&self->shared->flags[1], (int)len);
}

/* A hello that is right in all but one thing. */
static void impostor_send(ranks_self_t *self, int fd, int fault)
{
    uint8_t secret[HCE_CE_LINK_SECRET_LEN];
    hce_ce_exchange_t exchange = {.kind = HCE_CE_LINK_HELLO};
    hce_ce_parcel_t nothing = {0};
    hce_ce_link_msg_t msg;

    memcpy(secret, hce_boot_secret(self->boot), sizeof(secret));
    secret[15] ^= fault == 0;
    hce_ce_link_msg_fill(&msg, secret, &exchange);
    msg.version += fault == 1;
    msg.kind += fault == 2;
    msg.rank = fault == 3 ? 0 : 1;
    RANKS_CHECK(hce_ce_link_msg_send(fd, &msg, &nothing) == HCE_OK);
}

/* Rank 2 is slow to say its hello: so many strangers come meanwhile that it
 * is taken for one. */
ssize_t __real_sendmsg(int fd, const struct msghdr *msg, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags);

ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags)
{
    ranks_self_t *self = ranks_current();
    struct pollfd link = {.fd = fd};
    socklen_t len = sizeof(int);
    int domain = 0;

    if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0 &&
        domain == AF_UNIX && self != NULL && self->rank == 2 &&
        self->spec->body == strangers_body &&
        atomic_exchange(&self->shared->flags[2], 1) == 0)
        RANKS_CHECK(poll(&link, 1, RANKS_WAIT_MS) == 1);
    return __real_sendmsg(fd, msg, flags);
}

static void strangers_come(ranks_self_t *self)
{
    struct sockaddr_un addr;
    char junk[200];
    int i, fd, len;

    flag_wait(self, 1);
    flag_wait(self, 2);
    len = atomic_load(&self->shared->flags[1]);
    memcpy(&addr, self->shared->text, (size_t)len);
    memset(junk, 0x5a, sizeof(junk));
    for (i = 0; i < 160; i++) {
        fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        RANKS_CHECK(connect(fd, (struct sockaddr *)&addr, (socklen_t)len) ==
                    0);
        if (i % 4 == 1)
            RANKS_CHECK(send(fd, junk, sizeof(junk), 0) == sizeof(junk));
        else if (i % 4 == 2)
            impostor_send(self, fd, i / 4 % 4);
        else if (i % 4 == 3)
            close(fd);
        /* The rest stays and says nothing. */
    }
}

static void strangers(ranks_self_t *self, int n)
{
    if (n == 1 && self->rank == 0)
        door_publish(self);
    if (n == 1 && self->rank == 1)
        strangers_come(self);
}

static void log_info(int proc)
{
    hce_log_init("ce:info", NULL);
}

static void test_strangers(void **state)
{
    ranks_spec_t spec = {.procs = 3,
                         .threads = 1,
                         .before = log_info,
                         .gathered = strangers,
                         .body = strangers_body};

    run_logged(&spec, "dropped a connection from a stranger");
}

static void fork_body(ranks_self_t *self)
{
    int fds = ranks_fds(), status;
    uint32_t window;
    void *ptr;
    pid_t pid;

    RANKS_CHECK(ranks_open(self) == HCE_OK);
    RANKS_CHECK(hce_ce_mem_alloc(LEN, &ptr) == HCE_OK);
    RANKS_CHECK(hce_ce_window_add(self->ce, ptr, LEN, HCE_TIME_NEVER,
                                  &window) == HCE_OK);
    pid = fork();
    if (pid == 0) {
        hce_ce_forked(self->ce);
        hce_ce_mem_forked();
        _exit(ranks_fds() == fds ? 0 : 1);
    }
    RANKS_CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    ranks_barrier(self); /* the parent is as it was */
    RANKS_CHECK(!hce_ce_peer_gone(self->ce, 1 - self->rank));
    ranks_barrier(self);
    hce_ce_close(self->ce);
    RANKS_CHECK(hce_ce_mem_free(ptr) == HCE_OK);
    RANKS_CHECK(ranks_fds() == fds);
}

static void test_forked_child(void **state)
{
    ranks_spec_t spec = {.procs = 2, .threads = 1, .raw_body = fork_body};

    run_logged(&spec, NULL);
}

static void reopen_body(ranks_self_t *self)
{
    int fds = ranks_fds(), i;

    for (i = 0; i < 100; i++) {
        RANKS_CHECK(ranks_open(self) == HCE_OK);
        ranks_barrier(self);
        hce_ce_close(self->ce);
    }
    if (self->spec->threads == 1)
        RANKS_CHECK(ranks_fds() == fds);
}

static void test_open_many_times(void **state)
{
    ranks_spec_t spec = {.procs = 2, .threads = 1, .raw_body = reopen_body};

    run_logged(&spec, NULL);
    spec.threads = 2;
    run_logged(&spec, NULL);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_killed_peer),
        cmocka_unit_test(test_unwritable_memory),
        cmocka_unit_test(test_wild_entry),
        cmocka_unit_test(test_past_the_end),
        cmocka_unit_test(test_refused_as_ordinary_user),
        cmocka_unit_test(test_forced_vm_refused),
        cmocka_unit_test(test_killed_while_opening),
        cmocka_unit_test(test_starved_while_opening),
        cmocka_unit_test(test_counters_differ),
        cmocka_unit_test(test_strangers),
        cmocka_unit_test(test_forked_child),
        cmocka_unit_test(test_open_many_times),
    };

    ranks_init(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
