/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Table of the topology's settings.
 */
#include <config.h>

#include "topo/settings.h"
#include "topo/topo.h"

hce_topo_settings_t hce_topo_settings = {.node_id = -1, .proxy_cpus = "auto"};

static const hce_config_field_t fields[] = {
    {.name = "HCE_NODE_ID",
     .type = HCE_CONFIG_INT,
     .min = 0,
     .max = INT32_MAX,
     .value = &hce_topo_settings.node_id,
     .text = "Number of this rank's node, in place of the host's identity: "
             "ranks with one number form a node. All ranks must have it, or "
             "none."},
    {.name = "HCE_PROXY_CPUS",
     .dfl = "auto",
     .type = HCE_CONFIG_STRING,
     .value = &hce_topo_settings.proxy_cpus,
     .text = "CPUs of the progress thread: a list such as 0-3,8, or auto "
             "(near the network adapter, on machines with several NUMA "
             "nodes), or none (it is not pinned)."},
};

const hce_config_table_t hce_topo_config = HCE_CONFIG_TABLE("topo", fields);
