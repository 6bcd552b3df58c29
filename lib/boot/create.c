/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Chooses among the bootstraps, and tells why none worked.
 */
#include <config.h>

#include "boot/bootstraps.h"
#include "util/log.h"

#include <stdio.h>

typedef struct way {
    hce_bootstrap_t bootstrap;
    const char *name;
    bool is_auto;
    hce_status_t (*create)(const hce_boot_params_t *params,
                           hce_boot_why_t *why, hce_boot_t **boot_p);
} way_t;

/* In the order of HCE_BOOTSTRAP_AUTO. */
static const way_t ways[] = {
    {HCE_BOOTSTRAP_PMIX, "pmix", true, hce_boot_pmix_create},
    {HCE_BOOTSTRAP_ENV, "env", true, hce_boot_env_create},
    {HCE_BOOTSTRAP_TCP, "tcp", false, hce_boot_tcp_create},
};

#define NUM_WAYS (sizeof(ways) / sizeof(ways[0]))

static hce_status_t one_create(const way_t *way,
                               const hce_boot_params_t *params,
                               hce_boot_t **boot_p)
{
    hce_boot_why_t why = {.text = ""};
    hce_status_t status = way->create(params, &why, boot_p);

    if (status != HCE_OK && why.text[0] != '\0')
        hce_log(ERROR, BOOT, "bootstrap %s: %s", way->name, why.text);
    return status == HCE_ERR_UNSUPPORTED ? HCE_ERR_BOOTSTRAP : status;
}

/* Goes on to the next way only from one that this process was not started
 * by: ranks that failed half-way must not part company. */
static hce_status_t auto_create(const hce_boot_params_t *params,
                                hce_boot_t **boot_p)
{
    hce_boot_why_t why;
    char tried[2 * HCE_BOOT_WHY_LEN];
    size_t len = 0;
    hce_status_t status = HCE_ERR_UNSUPPORTED;

    for (size_t i = 0; i < NUM_WAYS && status == HCE_ERR_UNSUPPORTED; i++) {
        if (!ways[i].is_auto)
            continue;
        why.text[0] = '\0';
        status = ways[i].create(params, &why, boot_p);
        if (status != HCE_OK) {
            len +=
                (size_t)snprintf(tried + len, sizeof(tried) - len, "%s%s: %s",
                                 len > 0 ? "; " : "", ways[i].name, why.text);
        }
    }
    if (status == HCE_ERR_UNSUPPORTED) {
        hce_log(ERROR, BOOT,
                "no bootstrap fits: %s. Start the ranks with mpirun, srun "
                "--mpi=pmix or torchrun, or set RANK, WORLD_SIZE, "
                "MASTER_ADDR and MASTER_PORT, or pass a unique id",
                tried);
        return HCE_ERR_BOOTSTRAP;
    }
    if (status != HCE_OK)
        hce_log(ERROR, BOOT, "bootstrap failed: %s", tried);
    return status;
}

hce_status_t hce_boot_create(const hce_boot_params_t *params,
                             hce_boot_t **boot_p)
{
    hce_status_t status;

    if (params->bootstrap == HCE_BOOTSTRAP_AUTO)
        return auto_create(params, boot_p);
    for (size_t i = 0; i < NUM_WAYS; i++) {
        if (ways[i].bootstrap == params->bootstrap) {
            status = one_create(&ways[i], params, boot_p);
            return status;
        }
    }
    hce_log(ERROR, BOOT, "bootstrap %d does not exist",
            (int)params->bootstrap);
    return HCE_ERR_INVALID_ARG;
}
