/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * For tests of groups that form: one rank in a thread of its own, and what
 * speaks with it by hand, frame by frame.
 */
#ifndef TESTS_BOOT_PART_H
#define TESTS_BOOT_PART_H

#include "boot_ranks.h"

#include "boot/unique_id.h"
#include "boot/wire.h"

#include <pthread.h>

typedef struct part {
    pthread_t thread;
    ranks_self_t self;
    hce_boot_params_t params;
} part_t;

/* Creates the group, meets the others in a barrier, and leaves. */
void part_start(part_t *part, int rank, int size, const hce_unique_id_t *id);
/* Waits; the status of the creation. */
hce_status_t part_end(part_t *part);

hce_boot_uid_t *part_id_inside(hce_unique_id_t *id);

/* A socket to where the id's maker listens. */
int part_connect(const hce_unique_id_t *id);

hce_boot_frame_t part_frame_make(hce_boot_type_t type, size_t len);
/* A whole frame of that type and length. */
void part_frame_await(int fd, hce_boot_type_t type, void *body, size_t len);
void part_frame_send(int fd, hce_boot_type_t type, const void *body,
                     size_t len);
void part_recv(int fd, void *data, size_t len);

#endif
