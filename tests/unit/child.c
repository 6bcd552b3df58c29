/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * See child.h.
 */
#include "config.h"

#include "child.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void die(const char *what)
{
    fprintf(stderr, "child_run: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void lines_read(int fd, child_t *child)
{
    child->num_lines = 0;
    for (;;) {
        char *line = child->lines[child->num_lines];
        ssize_t len = recv(fd, line, CHILD_LINE_SIZE - 1, 0);

        if (len < 0) {
            die("recv");
        }
        if (len == 0) {
            return; /* all copies of the child's end are closed */
        }
        line[len] = '\0';
        if (++child->num_lines == CHILD_MAX_LINES) {
            errno = EMSGSIZE;
            die("too many lines");
        }
    }
}

void child_run(child_fn_t fn, void *arg, child_t *child)
{
    int fds[2], status;
    pid_t pid;

    fflush(NULL);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0) {
        die("socketpair");
    }
    pid = fork();
    if (pid < 0) {
        die("fork");
    }
    if (pid == 0) {
        dup2(fds[1], STDERR_FILENO);
        close(fds[0]);
        close(fds[1]);
        status = fn(arg);
        fflush(NULL);
        _exit(status);
    }
    close(fds[1]);
    lines_read(fds[0], child);
    close(fds[0]);
    if (waitpid(pid, &status, 0) != pid) {
        die("waitpid");
    }
    child->exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void child_clean_env(void)
{
    char **entry = environ;

    while (*entry != NULL) {
        char name[256];

        snprintf(name, sizeof(name), "%.*s", (int)strcspn(*entry, "="),
                 *entry);
        /* unsetenv moves what follows: start over. */
        if (strncmp(name, "HCE_", 4) == 0 && unsetenv(name) == 0) {
            entry = environ;
        } else {
            entry++;
        }
    }
}
