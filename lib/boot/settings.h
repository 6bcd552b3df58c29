/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The folder's settings, as parsed by hce_config_init.
 */
#ifndef HCE_BOOT_SETTINGS_H
#define HCE_BOOT_SETTINGS_H

#include <stdint.h>

typedef struct hce_boot_settings {
    uint64_t timeout_ns;
    int64_t master_port; /* 0 when unset */
    const char *job_secret;
    const char *socket_ifname;
} hce_boot_settings_t;

extern hce_boot_settings_t hce_boot_settings;

#endif
