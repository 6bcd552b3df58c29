/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Table of the bootstrap's settings.
 */
#include <config.h>

#include "boot/settings.h"
#include "boot/boot.h"
#include "util/clock.h"

hce_boot_settings_t hce_boot_settings = {.timeout_ns = 60 * HCE_NS_PER_SEC};

static const hce_config_field_t fields[] = {
    {.name = "HCE_BOOTSTRAP_TIMEOUT",
     .dfl = "60s",
     .type = HCE_CONFIG_TIME,
     .value = &hce_boot_settings.timeout_ns,
     .text = "How long the ranks of a new communicator wait for each other; "
             "0 is for ever."},
    {.name = "HCE_MASTER_PORT",
     .type = HCE_CONFIG_INT,
     .min = 1,
     .max = 65535,
     .value = &hce_boot_settings.master_port,
     .text = "Port on which rank 0 listens with the env bootstrap, instead "
             "of the first free one of MASTER_PORT to MASTER_PORT+16."},
    {.name = "HCE_JOB_SECRET",
     .secret = 1,
     .type = HCE_CONFIG_STRING,
     .value = &hce_boot_settings.job_secret,
     .text = "Any text that the ranks of one job share and nobody else "
             "knows; keeps strangers and other jobs out of the env "
             "bootstrap."},
    {.name = "HCE_SOCKET_IFNAME",
     .type = HCE_CONFIG_STRING,
     .value = &hce_boot_settings.socket_ifname,
     .text = "Network interface that rank 0 listens on with the tcp and "
             "pmix bootstraps, instead of the first that is up."},
};

const hce_config_table_t hce_boot_config = HCE_CONFIG_TABLE("boot", fields);

uint64_t hce_boot_timeout_ns(void)
{
    return hce_boot_settings.timeout_ns;
}
