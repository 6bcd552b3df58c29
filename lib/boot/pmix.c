/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Bootstrap through the PMIx server of mpirun or srun.
 */
#include <config.h>

#include "boot/bootstraps.h"

#include <stdio.h>

hce_status_t hce_boot_pmix_create(const hce_boot_params_t *params,
                                  hce_boot_why_t *why, hce_boot_t **boot_p)
{
    snprintf(why->text, sizeof(why->text), "this library was built without "
                                           "PMIx");
    return HCE_ERR_UNSUPPORTED;
}
