/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Collectives: from checked arguments to a launch in the queue. Caller.
 */
#ifndef HCE_CORE_COLL_H
#define HCE_CORE_COLL_H

#include "core/group.h"

/* Chooses, plans, registers, pushes; waits too where the call is blocking. */
hce_status_t hce_coll_enqueue(const hce_group_job_t *job);

#endif
