/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Who writes no more. After an error a node peer goes on copying into this
 * rank's buffers until it has the news. Each rank shows on its board that it
 * has, and a failed call is given back once all node peers have.
 */
#ifndef HCE_CORE_QUIET_H
#define HCE_CORE_QUIET_H

#include <hce/hce.h>
#include <stdbool.h>

/* Owner, or caller when nothing is queued: this rank copies nothing from now
 * on. */
void hce_quiet_set(hce_comm_h comm);

/* True if all node peers are quiet or have ended; else *rank_p is one that
 * is not. */
bool hce_quiet_are_peers(hce_comm_h comm, int *rank_p);

#endif
