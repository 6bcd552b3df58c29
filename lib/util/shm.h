/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Anonymous shared memory (memfd): nothing has a name, so nothing is left
 * behind however a process ends.
 */
#ifndef HCE_UTIL_SHM_H
#define HCE_UTIL_SHM_H

#include <hce/hce.h>

typedef struct hce_shm {
    void *addr;
    size_t size; /* whole pages */
    int fd;      /* CLOEXEC; -1 once given away or closed */
} hce_shm_t;

/* Zero-filled. name is for /proc only. */
hce_status_t hce_shm_create(const char *name, size_t size, hce_shm_t *shm_p);

/* Maps what fd names, after checking that it is at least size bytes and
 * sealed against shrinking (a peer could SIGBUS us). Takes fd over on
 * success. */
hce_status_t hce_shm_map(int fd, size_t size, hce_shm_t *shm_p);
void hce_shm_destroy(hce_shm_t *shm);

#endif
