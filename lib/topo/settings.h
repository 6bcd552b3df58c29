/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The folder's settings, as parsed by hce_config_init.
 */
#ifndef HCE_TOPO_SETTINGS_H
#define HCE_TOPO_SETTINGS_H

#include <stdint.h>

typedef struct hce_topo_settings {
    int64_t node_id;        /* -1 when unset */
    const char *proxy_cpus; /* "auto", "none" or a list */
} hce_topo_settings_t;

extern hce_topo_settings_t hce_topo_settings;

#endif
