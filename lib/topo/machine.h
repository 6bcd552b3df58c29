/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The machine as hwloc sees it.
 */
#ifndef HCE_TOPO_MACHINE_H
#define HCE_TOPO_MACHINE_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>

/* CPUs next to the adapter that traffic to other nodes most likely takes, and
 * the adapter's name. False if all CPUs are alike, or without hwloc. */
bool hce_topo_machine_nic_cpus(cpu_set_t *cpus_p, char *name, size_t size);

#endif
