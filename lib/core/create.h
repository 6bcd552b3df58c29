/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Making communicators and taking them apart: the blocking work of create and
 * split, after their arguments were checked.
 */
#ifndef HCE_CORE_CREATE_H
#define HCE_CORE_CREATE_H

#include <hce/hce.h>

/* Frees what comm has, complete or not; the engine must not see it. */
void hce_comm_close(hce_comm_h comm);

hce_status_t hce_comm_open(const hce_comm_params_t *params,
                           hce_comm_h *comm_p);
hce_status_t hce_comm_open_split(hce_comm_h parent, int color, int key,
                                 const hce_comm_params_t *params,
                                 hce_comm_h *comm_p);

#endif
