/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Topology: which ranks share a node, by the host's identity or by setting.
 */
#ifndef HCE_TOPO_TOPO_H
#define HCE_TOPO_TOPO_H

#include "boot/boot.h"
#include "util/layout.h"

extern const hce_config_table_t hce_topo_config;

/* Collective over boot. node_override >= 0 is this rank's node number (from
 * the caller); else HCE_NODE_ID; else the host's identity: boot id, IPC and
 * network namespace (node peers meet through both) and hostname together.
 * HCE_ERR_CONFIG on all ranks if some have an override and some have none,
 * or if one joins ranks that share no memory. Logs the layout. */
hce_status_t hce_topo_discover(hce_boot_t *boot, int node_override,
                               uint64_t deadline, hce_layout_t **layout_p);

/* One line about sockets, cores and NUMA nodes (hwloc), for hce_info. */
void hce_topo_describe(char *buf, size_t size);

/* Pins the calling thread (the proxy) near the NIC or as HCE_PROXY_CPUS says,
 * within the process' cpuset; does nothing when there is nothing to gain. */
void hce_topo_pin_proxy(void);

#endif
