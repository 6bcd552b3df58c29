/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Values of this folder's settings. Written by hce_config_init, before
 * anything else runs; read-only from then on.
 */
#ifndef HCE_CE_HOST_SETTINGS_H
#define HCE_CE_HOST_SETTINGS_H

#include <stdint.h>

/* HCE_HOST_COPY, in the order of its choices. */
typedef enum hce_ce_force {
    HCE_CE_FORCE_AUTO,
    HCE_CE_FORCE_MAP,
    HCE_CE_FORCE_VM,
    HCE_CE_FORCE_STAGED
} hce_ce_force_t;

/* HCE_COPY_LOOP, in the order of its choices. */
typedef enum hce_ce_loop_choice {
    HCE_CE_LOOP_AUTO,
    HCE_CE_LOOP_MEMCPY,
    HCE_CE_LOOP_REP,
    HCE_CE_LOOP_VECTOR,
    HCE_CE_LOOP_NT
} hce_ce_loop_choice_t;

typedef struct hce_ce_settings {
    int host_copy; /* hce_ce_force_t */
    int copy_loop; /* hce_ce_loop_choice_t */
    uint64_t nt_threshold;
} hce_ce_settings_t;

extern hce_ce_settings_t hce_ce_settings;

#endif
