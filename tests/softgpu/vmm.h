/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Allocation handles of this process. The caller holds soft_lock.
 */
#ifndef HCE_TESTS_SOFTGPU_VMM_H
#define HCE_TESTS_SOFTGPU_VMM_H

#include "soft.h"

typedef struct soft_handle {
    soft_obj_t *obj;
    unsigned refs;
    struct soft_handle *next;
} soft_handle_t;

soft_handle_t *soft_handle_find(hce_cu_mem_t id);
/* Takes the reference to obj over. */
hce_cu_mem_t soft_handle_add(soft_obj_t *obj);

#endif
