/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Surroundings for ranks: a kernel that refuses process_vm_writev to an
 * ordinary user, and a place where their log goes.
 */
#include <config.h>

#include "ce_ranks.h"

#include <dirent.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#define NOBODY 65534

bool ranks_have_vm(void)
{
    char from = 'x', to = 'y';
    struct iovec src = {&from, 1}, dst = {&to, 1};

    return process_vm_writev(getpid(), &src, 1, &dst, 1, 0) == 1 && to == 'x';
}

static bool refuse_vm(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};

    if (getuid() == 0 && setresuid(NOBODY, NOBODY, NOBODY) != 0)
        return false;
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0 &&
           !ranks_have_vm();
}

void ranks_refuse_vm(int proc)
{
    if (!refuse_vm()) {
        perror("process_vm_writev cannot be refused");
        _exit(3);
    }
}

bool ranks_can_refuse_vm(void)
{
    int status = -1;
    pid_t pid;

    fflush(NULL);
    pid = fork();
    if (pid == 0)
        _exit(refuse_vm() ? 0 : 1);
    return waitpid(pid, &status, 0) == pid && status == 0;
}

static int log_fd = -1, stderr_fd = -1;

/* One open file for all processes, so that their lines follow each other. */
void ranks_log_start(void)
{
    fflush(stderr);
    log_fd = memfd_create("log", MFD_CLOEXEC);
    stderr_fd = dup(2);
    dup2(log_fd, 2);
}

char *ranks_log_end(void)
{
    struct stat st;
    char *text;

    fflush(stderr);
    dup2(stderr_fd, 2);
    close(stderr_fd);
    if (fstat(log_fd, &st) != 0)
        st.st_size = 0;
    text = calloc(1, (size_t)st.st_size + 1);
    if (text == NULL || pread(log_fd, text, (size_t)st.st_size, 0) < 0)
        abort();
    close(log_fd);
    fputs(text, stderr);
    return text;
}

int ranks_fds(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int n = 0;

    if (dir == NULL)
        abort();
    while (readdir(dir) != NULL)
        n++;
    closedir(dir);
    return n;
}
