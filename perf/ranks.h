/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Where the ranks of a job come from when the command line does not say.
 */
#ifndef HCE_PERF_RANKS_H
#define HCE_PERF_RANKS_H

#include <stdbool.h>

/* Has a launcher (PMIx, or one that sets RANK and WORLD_SIZE) started this
 * process as a rank? */
bool hce_perf_ranks_launched(void);

/* Ranks to start on this machine: the sum of nodes such as "3,1,2", else one
 * a core, at least 2 and at most 8, in a multiple of the number of nodes.
 * nodes may be NULL. */
int hce_perf_ranks_default(const char *nodes);

#endif
