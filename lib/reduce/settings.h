/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The value of this folder's setting. Written by hce_config_init, before
 * anything else runs; read-only from then on.
 */
#ifndef HCE_REDUCE_SETTINGS_H
#define HCE_REDUCE_SETTINGS_H

/* HCE_REDUCE_KERNEL, in the order of its choices. */
typedef enum hce_reduce_choice {
    HCE_REDUCE_AUTO,
    HCE_REDUCE_PORTABLE,
    HCE_REDUCE_AVX2,
    HCE_REDUCE_AVX512,
    HCE_REDUCE_AVX512_BF16
} hce_reduce_choice_t;

extern int hce_reduce_choice; /* hce_reduce_choice_t */

#endif
