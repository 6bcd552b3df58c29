/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Ranks as child processes, forked before anything of the library that does
 * not survive a fork is opened, and watched until the last has ended.
 */
#ifndef HCE_PERF_PROCS_H
#define HCE_PERF_PROCS_H

#include "launch.h"

/* Forks opts->ranks children that run body, waits for all, and leaves none.
 * Says on standard error which rank ended how. */
int hce_perf_procs_run(const hce_perf_opts_t *opts, hce_perf_body_t body,
                       const hce_perf_entry_t *entries);

#endif
