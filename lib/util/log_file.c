/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Files are opened when their first line comes, since only then the rank and
 * (after a fork) the process are known. They form a list that is only ever
 * prepended to, by compare-and-swap: readers need no lock.
 */
#include <config.h>

#include "util/log_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct file {
    struct file *next;
    int fd;
    char path[]; /* expanded */
} file_t;

/* Set by init only, before others log. */
static char file_pattern[PATH_MAX];

static _Atomic(file_t *) files;

static void file_close(file_t *file)
{
    if (file->fd != STDERR_FILENO)
        close(file->fd);
    free(file);
}

void hce_log_file_init(const char *pattern)
{
    file_t *file = atomic_exchange(&files, NULL);

    while (file != NULL) {
        file_t *next = file->next;

        file_close(file);
        file = next;
    }
    snprintf(file_pattern, sizeof(file_pattern), "%s",
             pattern != NULL ? pattern : "");
}

static int part_print(char *buf, size_t size, char kind, int rank)
{
    char host[HOST_NAME_MAX + 1] = "host";

    switch (kind) {
    case 'h':
        gethostname(host, sizeof(host) - 1);
        return snprintf(buf, size, "%s", host);
    case 'p':
        return snprintf(buf, size, "%d", (int)getpid());
    case 'r':
        return rank < 0 ? snprintf(buf, size, "none")
                        : snprintf(buf, size, "%d", rank);
    default:
        return snprintf(buf, size, "%s%c", kind == '%' ? "" : "%", kind);
    }
}

/* path has PATH_MAX bytes; what does not fit is cut off. */
static void path_expand(char *path, int rank)
{
    size_t len = 0;

    for (const char *p = file_pattern; *p != '\0'; p++) {
        size_t room = PATH_MAX - len;
        int part;

        if (*p == '%' && p[1] != '\0')
            part = part_print(path + len, room, *++p, rank);
        else
            part = snprintf(path + len, room, "%c", *p);
        if (part < 0 || (size_t)part >= room)
            break;
        len += (size_t)part;
    }
}

static file_t *file_find(const char *path)
{
    /* Acquire: the fields of a file are visible once it is in the list;
     * pairs with file_open(). */
    file_t *file = atomic_load_explicit(&files, memory_order_acquire);

    while (file != NULL && strcmp(file->path, path) != 0)
        file = file->next;
    return file;
}

/* Where the file cannot be opened its lines go to standard error, after one
 * that says so. Two threads may open the same file at once: both append, and
 * the list finds the later entry; neither is closed before the next init. */
static int file_open(const char *path)
{
    size_t size = strlen(path) + 1;
    file_t *file = malloc(sizeof(*file) + size);

    if (file == NULL)
        return STDERR_FILENO;
    memcpy(file->path, path, size);
    file->fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (file->fd < 0) {
        dprintf(STDERR_FILENO, "hce: HCE_LOG_FILE %s: %s\n", path,
                strerror(errno));
        file->fd = STDERR_FILENO;
    }
    file->next = atomic_load_explicit(&files, memory_order_relaxed);
    /* Release: see file_find(). */
    while (!atomic_compare_exchange_weak_explicit(&files, &file->next, file,
                                                  memory_order_release,
                                                  memory_order_relaxed)) {
    }
    return file->fd;
}

static int file_fd(int rank)
{
    char path[PATH_MAX] = "";
    file_t *file;

    if (file_pattern[0] == '\0')
        return STDERR_FILENO;
    path_expand(path, rank);
    file = file_find(path);
    return file != NULL ? file->fd : file_open(path);
}

void hce_log_file_write(const char *line, size_t len, int rank)
{
    int fd = file_fd(rank);

    /* A log that cannot be written has nobody to tell. */
    while (write(fd, line, len) < 0 && errno == EINTR) {
    }
}
