/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The ways to learn one's rank and where rank 0 is; each ends in a meeting.
 * All of them: HCE_ERR_UNSUPPORTED when this process was not started that
 * way, so that the next may be tried. On failure why tells the reason, or is
 * empty when it has been logged.
 */
#ifndef HCE_BOOT_BOOTSTRAPS_H
#define HCE_BOOT_BOOTSTRAPS_H

#include "boot/boot.h"
#include "boot/meet.h"

/* Ranks of one group: as many connections as one process can have. */
#define HCE_BOOT_SIZE_MAX 65536

typedef struct hce_boot_why {
    char text[HCE_BOOT_WHY_LEN];
} hce_boot_why_t;

hce_status_t hce_boot_env_create(const hce_boot_params_t *params,
                                 hce_boot_why_t *why, hce_boot_t **boot_p);
hce_status_t hce_boot_pmix_create(const hce_boot_params_t *params,
                                  hce_boot_why_t *why, hce_boot_t **boot_p);
hce_status_t hce_boot_tcp_create(const hce_boot_params_t *params,
                                 hce_boot_why_t *why, hce_boot_t **boot_p);

#endif
