/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Groups: jobs that a thread collects between hce_group_start and the
 * outermost hce_group_end. Outside a group a job runs at once.
 */
#ifndef HCE_CORE_GROUP_H
#define HCE_CORE_GROUP_H

#include <hce/hce.h>
#include <stdbool.h>
#include "core/args.h"

typedef enum hce_group_kind {
    HCE_GROUP_CREATE,
    HCE_GROUP_SPLIT,
    HCE_GROUP_WINDOW,
    HCE_GROUP_COLL
} hce_group_kind_t;

typedef struct hce_group_job {
    hce_group_kind_t kind;
    hce_comm_h comm; /* NULL: create */
    union {
        struct {
            hce_comm_params_t params;
            hce_unique_id_t id;
            int color, key;
            hce_comm_h *comm_p;
        } create; /* and split */
        struct {
            void *buf;
            size_t size;
            hce_window_h *win_p;
        } window;
        hce_args_t coll;
    };
} hce_group_job_t;

/* Runs job, or keeps a copy of it when this thread is in a group. check is
 * what the look at its arguments gave: an error is returned at once and makes
 * the group fail as a whole. */
hce_status_t hce_group_submit(hce_group_job_t *job, hce_status_t check,
                              const char *call);

bool hce_group_is_open(void);

#endif
