/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Log lines: which are written, what they look like, where they go.
 */
#include "config.h"

#include "child.h"
#include "util/log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#define MAX_LINE 2048

static char host[HOST_NAME_MAX + 1];
static char folder[PATH_MAX / 2]; /* of this test */

static int count_levels(void *arg)
{
    if (hce_log_init(arg, NULL) != NULL) {
        return 1;
    }
    hce_log(ERROR, BOOT, "boot");
    hce_log(WARN, BOOT, "boot");
    hce_log(INFO, BOOT, "boot");
    hce_log(DEBUG, BOOT, "boot");
    hce_log(TRACE, BOOT, "boot");
    hce_log(WARN, TUNING, "tuning");
    hce_log(INFO, TUNING, "tuning");
    hce_log(DEBUG, TUNING, "tuning");
    return 0;
}

static void levels_filter(void **state)
{
    static const struct {
        const char *spec;
        int num_lines;
    } cases[] = {
        {NULL, 3},           {"warn", 3},
        {"error", 1},        {"info", 5},
        {"trace", 8},        {"tuning", 4},
        {"error,tuning", 3}, {"tuning,error", 1},
        {"boot:trace", 6},   {"error,boot:debug,tuning:warn", 5},
    };
    static child_t child;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        child_run(count_levels, (void *)cases[i].spec, &child);
        assert_int_equal(child.exit_status, 0);
        assert_int_equal(child.num_lines, cases[i].num_lines);
    }
}

/* A wrong setting changes nothing, however good its beginning. */
static int keep_limits(void *arg)
{
    const char *why;

    if (hce_log_init("debug", NULL) != NULL) {
        return 1;
    }
    why = hce_log_init(arg, NULL);
    if (why == NULL || strncmp(why, "expected ", 9) != 0) {
        return 2;
    }
    for (int i = 0; i < HCE_LOG_AREA_LAST; i++) {
        if (atomic_load(&hce_log_limit[i]) != HCE_LOG_DEBUG) {
            return 3;
        }
    }
    return 0;
}

static void wrong_spec_changes_nothing(void **state)
{
    static const char *const bad[] = {
        "",      "loud",       "warn,",     ",warn",       "warn,,boot",
        "boot:", ":info",      "boot:loud", "boots:info",  "WARN",
        "warn ", "info,boot:", "warn:info", "boot:info:x", "boot:boot"};
    static child_t child;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        child_run(keep_limits, (void *)bad[i], &child);
        assert_int_equal(child.exit_status, 0);
        assert_int_equal(child.num_lines, 0);
    }
}

static int write_lines(void *arg)
{
    char text[3 * MAX_LINE];

    hce_log(WARN, CE, "number %d", 5);
    if (hce_log_first_error() != NULL) {
        return 1;
    }
    hce_log_set_rank(3);
    errno = ENOENT;
    hce_log(ERROR, PROXY, "open: %m");
    if (errno != ENOENT) {
        return 1;
    }
    hce_log(WARN, UTIL, "%s", "two\nlines\r\t\x1b[31m and \x7f caf\xc3\xa9");
    memset(text, 'a', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    hce_log(WARN, UTIL, "%s", text);
    hce_log_set_rank(-1);
    hce_log(WARN, UTIL, "%s", "");
    if (strcmp(hce_log_first_error(),
               "open: No such file or directory") != 0) {
        return 1;
    }
    /* A child of fork says its own pid. */
    if (fork() == 0) {
        hce_log(WARN, UTIL, "child");
        _exit(0);
    }
    return wait(NULL) < 0;
}

static void assert_line(const char *line, int rank, const char *rest)
{
    char expected[MAX_LINE], rank_text[16] = "";
    int pid = -1;

    assert_memory_equal(line, "hce[", 4);
    assert_memory_equal(line + 4, host, strlen(host));
    assert_int_equal(sscanf(line + 4 + strlen(host), ":%d", &pid), 1);
    if (rank >= 0) {
        snprintf(rank_text, sizeof(rank_text), " %d", rank);
    }
    snprintf(expected, sizeof(expected), "hce[%s:%d%s] %s\n", host, pid,
             rank_text, rest);
    assert_string_equal(line, expected);
}

/* A packet of the child is one write(2). */
static void lines_are_whole(void **state)
{
    static child_t child;
    const char *line;

    child_run(write_lines, NULL, &child);
    assert_int_equal(child.exit_status, 0);
    assert_int_equal(child.num_lines, 6);
    assert_line(child.lines[0], -1, "WARN ce: number 5");
    assert_line(child.lines[1], 3,
                "ERROR proxy: open: No such file or directory");
    assert_line(child.lines[2], 3,
                "WARN util: two lines   [31m and   caf\xc3\xa9");
    line = child.lines[3];
    assert_int_equal(strlen(line), MAX_LINE - 1);
    assert_string_equal(line + MAX_LINE - 1 - 6, "aa...\n");
    assert_line(child.lines[4], -1, "WARN util: ");
    assert_line(child.lines[5], -1, "WARN util: child");
    assert_true(strncmp(child.lines[4], child.lines[5],
                        strcspn(child.lines[4], "]")) != 0);
}

static int file_lines(const char *path)
{
    FILE *file = fopen(path, "r");
    int lines = 0, c;

    if (file == NULL) {
        return -1;
    }
    while ((c = getc(file)) != EOF) {
        lines += c == '\n';
    }
    fclose(file);
    return lines;
}

static int write_file(void *arg)
{
    char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s/once.log", folder);
    hce_log_init(NULL, path);
    if (access(path, F_OK) == 0) {
        return 1; /* no line yet */
    }
    hce_log(WARN, UTIL, "one");
    if (file_lines(path) != 1) {
        return 2;
    }
    hce_log(WARN, UTIL, "two");
    /* An earlier log is continued, not lost. */
    hce_log_init(NULL, path);
    hce_log(WARN, UTIL, "three");
    return file_lines(path) == 3 ? 0 : 3;
}

static void file_opens_at_first_line(void **state)
{
    static child_t child;

    child_run(write_file, NULL, &child);
    assert_int_equal(child.exit_status, 0);
    assert_int_equal(child.num_lines, 0);
}

static int write_ranks(void *arg)
{
    char pattern[PATH_MAX], path[PATH_MAX];
    int pid;

    snprintf(pattern, sizeof(pattern), "%s/%%%%.%%h.%%p.%%r.%%x.%%", folder);
    hce_log_init(NULL, pattern);
    hce_log(WARN, UTIL, "no rank");
    hce_log_set_rank(0);
    hce_log(WARN, UTIL, "rank 0");
    hce_log_set_rank(12);
    hce_log(WARN, UTIL, "rank 12");
    hce_log(WARN, UTIL, "rank 12");
    snprintf(path, sizeof(path), "%s/%%.%s.%d.none.%%x.%%", folder, host,
             getpid());
    if (file_lines(path) != 1) {
        return 1;
    }
    snprintf(path, sizeof(path), "%s/%%.%s.%d.12.%%x.%%", folder, host,
             getpid());
    if (file_lines(path) != 2) {
        return 2;
    }
    pid = fork();
    if (pid == 0) {
        hce_log(WARN, UTIL, "child of rank 12");
        _exit(0);
    }
    wait(NULL);
    snprintf(path, sizeof(path), "%s/%%.%s.%d.12.%%x.%%", folder, host, pid);
    return file_lines(path) == 1 ? 0 : 3;
}

static void file_names_expand(void **state)
{
    static child_t child;

    child_run(write_ranks, NULL, &child);
    assert_int_equal(child.exit_status, 0);
    assert_int_equal(child.num_lines, 0);
}

static int write_nowhere(void *arg)
{
    hce_log_init(NULL, "/nonexistent/folder/hce.log");
    hce_log(WARN, UTIL, "one");
    hce_log(WARN, UTIL, "two");
    return 0;
}

static void file_failure_is_said_once(void **state)
{
    static child_t child;

    child_run(write_nowhere, NULL, &child);
    assert_int_equal(child.exit_status, 0);
    assert_int_equal(child.num_lines, 3);
    assert_string_equal(child.lines[0],
                        "hce: HCE_LOG_FILE /nonexistent/folder/hce.log: "
                        "No such file or directory\n");
    assert_line(child.lines[1], -1, "WARN util: one");
    assert_line(child.lines[2], -1, "WARN util: two");
}

/* A log on a full disk is lost, but disturbs nobody. */
static int write_full(void *arg)
{
    hce_log_init(NULL, "/dev/full");
    errno = ENOENT;
    hce_log(WARN, UTIL, "one");
    return errno == ENOENT ? 0 : 1;
}

static void file_full_keeps_errno(void **state)
{
    static child_t child;

    child_run(write_full, NULL, &child);
    assert_int_equal(child.exit_status, 0);
    assert_int_equal(child.num_lines, 0);
}

static int file_flags(void *arg)
{
    char path[PATH_MAX], link[64], target[PATH_MAX];
    int fd, found = 0;

    snprintf(path, sizeof(path), "%s/flags.log", folder);
    hce_log_init(NULL, path);
    hce_log(WARN, UTIL, "one");
    for (fd = 3; fd < 256; fd++) {
        ssize_t len;

        snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        len = readlink(link, target, sizeof(target) - 1);
        if (len > 0 && (target[len] = '\0', strcmp(target, path) == 0)) {
            found++;
            if ((fcntl(fd, F_GETFD) & FD_CLOEXEC) == 0) {
                return 1;
            }
        }
    }
    return found == 1 ? 0 : 2;
}

static void file_is_cloexec(void **state)
{
    static child_t child;

    child_run(file_flags, NULL, &child);
    assert_int_equal(child.exit_status, 0);
}

#define NUM_THREADS 8
#define NUM_LINES   100

static void *write_thread(void *arg)
{
    hce_log_set_rank(*(int *)arg);
    for (int i = 0; i < NUM_LINES; i++) {
        hce_log(WARN, UTIL, "line %d", i);
    }
    return NULL;
}

/* Half of the threads share a rank, and so race for one file. Not in a child:
 * TSan starts no threads after a fork. */
static void threads_have_ranks(void **state)
{
    pthread_t threads[NUM_THREADS];
    int ranks[NUM_THREADS];
    char pattern[PATH_MAX], path[PATH_MAX];

    snprintf(pattern, sizeof(pattern), "%s/thread.%%r", folder);
    hce_log_init(NULL, pattern);
    for (int i = 0; i < NUM_THREADS; i++) {
        ranks[i] = i < NUM_THREADS / 2 ? 0 : i;
        if (pthread_create(&threads[i], NULL, write_thread, &ranks[i]) != 0) {
            abort();
        }
    }
    for (int i = 0; i < NUM_THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    for (int i = 0; i < NUM_THREADS; i++) {
        snprintf(path, sizeof(path), "%s/thread.%d", folder, ranks[i]);
        assert_int_equal(file_lines(path), ranks[i] == 0
                                               ? NUM_THREADS / 2 * NUM_LINES
                                               : NUM_LINES);
    }
    hce_log_init(NULL, NULL);
}

static int setup(void **state)
{
    const char *tmp = getenv("TMPDIR");

    snprintf(folder, sizeof(folder), "%s/hce-log.XXXXXX",
             tmp != NULL ? tmp : "/tmp");
    return gethostname(host, sizeof(host)) != 0 || mkdtemp(folder) == NULL;
}

static int teardown(void **state)
{
    char command[PATH_MAX];

    snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(levels_filter),
        cmocka_unit_test(wrong_spec_changes_nothing),
        cmocka_unit_test(lines_are_whole),
        cmocka_unit_test(file_opens_at_first_line),
        cmocka_unit_test(file_names_expand),
        cmocka_unit_test(file_failure_is_said_once),
        cmocka_unit_test(file_full_keeps_errno),
        cmocka_unit_test(file_is_cloexec),
        cmocka_unit_test(threads_have_ranks),
    };

    return cmocka_run_group_tests_name("util_log", tests, setup, teardown);
}
