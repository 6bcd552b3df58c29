/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * All communicators of the process, so that an orderly exit says goodbye for
 * those that were not destroyed.
 */
#ifndef HCE_CORE_LIST_H
#define HCE_CORE_LIST_H

#include <hce/hce.h>

void hce_comm_list_add(hce_comm_h comm);
/* HCE_ERR_INVALID_ARG if it is not (or no longer) in the list. */
hce_status_t hce_comm_list_remove(hce_comm_h comm);

#endif
