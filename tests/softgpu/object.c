/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Physical memory of a device: an anonymous file, so that other processes can
 * open it and a killed one leaves nothing behind. See soft_obj_t for what is
 * in it. How one process finds another's: /proc/PID/fd, checked by the time
 * the process started, since numbers are used again.
 */
#define _GNU_SOURCE
#include "soft.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

static size_t file_size(size_t len)
{
    return 3 * len + SOFT_LABEL_SIZE;
}

static soft_result_t obj_map(int fd, size_t len, soft_obj_t **obj_p)
{
    soft_obj_t *obj = calloc(1, sizeof(*obj));

    static_assert(sizeof(soft_label_t) <= SOFT_LABEL_SIZE, "label");
    if (obj == NULL)
        return HCE_CU_OUT_OF_MEMORY;
    obj->map =
        mmap(NULL, file_size(len), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (obj->map == MAP_FAILED) {
        free(obj);
        return HCE_CU_OUT_OF_MEMORY;
    }
    obj->fd = fd;
    obj->len = len;
    obj->refs = 1;
    obj->nic = obj->map;
    obj->data = obj->nic + len;
    obj->seen = obj->data + len;
    obj->label = (soft_label_t *)(obj->seen + len);
    pthread_mutex_init(&obj->nic_lock, NULL);
    *obj_p = obj;
    return HCE_CU_OK;
}

soft_result_t soft_obj_create(const soft_label_t *label, soft_obj_t **obj_p)
{
    int fd = memfd_create("softgpu", MFD_CLOEXEC);
    soft_result_t result = HCE_CU_OUT_OF_MEMORY;
    soft_obj_t *obj;

    if (fd < 0)
        return result;
    if (ftruncate(fd, (off_t)file_size(label->len)) == 0)
        result = obj_map(fd, label->len, &obj);
    if (result != HCE_CU_OK) {
        close(fd);
        return result;
    }
    *obj->label = *label;
    obj->label->magic = SOFT_MAGIC;
    if (getrandom(&obj->label->id, sizeof(obj->label->id), 0) !=
        sizeof(obj->label->id))
        soft_die("no random numbers: %m");
    *obj_p = obj;
    return HCE_CU_OK;
}

soft_result_t soft_obj_open(int fd, soft_obj_t **obj_p)
{
    struct stat st;
    soft_result_t result;
    uint64_t magic = 0;
    size_t len;

    if (fstat(fd, &st) != 0 || st.st_size < SOFT_LABEL_SIZE ||
        (st.st_size - SOFT_LABEL_SIZE) % 3 != 0)
        return HCE_CU_INVALID_VALUE;
    len = (size_t)(st.st_size - SOFT_LABEL_SIZE) / 3;
    if (pread(fd, &magic, sizeof(magic), (off_t)(3 * len)) != sizeof(magic) ||
        magic != SOFT_MAGIC)
        return HCE_CU_INVALID_VALUE;
    result = obj_map(fd, len, obj_p);
    if (result == HCE_CU_OK)
        (*obj_p)->is_import = true;
    return result;
}

void soft_obj_put(soft_obj_t *obj)
{
    size_t i;

    if (--obj->refs > 0)
        return;
    for (i = 0; i < SOFT_MAX_BINDS; i++) {
        if (obj->targets[i] != NULL)
            soft_obj_put(obj->targets[i]);
    }
    pthread_mutex_destroy(&obj->nic_lock);
    munmap(obj->map, file_size(obj->len));
    close(obj->fd);
    free(obj);
}

uint64_t soft_start_time(pid_t pid)
{
    char path[64], text[1024], *at;
    ssize_t len;
    int fd, field;

    /* The first thread's: emulators make up a process's own stat. */
    snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    len = read(fd, text, sizeof(text) - 1);
    close(fd);
    text[len > 0 ? len : 0] = '\0';
    /* Field 22; the second ends with the last parenthesis. */
    at = strrchr(text, ')');
    for (field = 2; at != NULL && field < 22; field++)
        at = strchr(at + 1, ' ');
    return at == NULL ? 0 : strtoull(at, NULL, 10);
}

int soft_obj_reach(pid_t pid, uint64_t start, int fd)
{
    char path[64];

    if (soft_start_time(pid) != start)
        return -1;
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, fd);
    return open(path, O_RDWR | O_CLOEXEC);
}
