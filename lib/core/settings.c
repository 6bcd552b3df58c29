/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The list of all tables of settings, bottom layer first.
 */
#include "config.h"

#include "core/settings.h"
#include "boot/boot.h"
#include "ce/ce.h"
#include "core/values.h"
#include "reduce/reduce.h"
#include "rma_proxy/proxy.h"
#include "topo/topo.h"

const hce_config_table_t *const hce_settings[] = {
    &hce_util_config,
    &hce_boot_config,
    &hce_topo_config,
    &hce_ce_config,
    &hce_reduce_config,
    &hce_rma_proxy_config,
    &hce_core_config,
    NULL,
};
