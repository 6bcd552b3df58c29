/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Values of the settings that concern CUDA devices; constant once read.
 */
#ifndef HCE_CE_CUDA_SETTINGS_H
#define HCE_CE_CUDA_SETTINGS_H

#include <stdint.h>

/* HCE_CUDA_MULTICAST, in the order of its choices. */
typedef enum hce_ce_cuda_multicast {
    HCE_CE_CUDA_AUTO,
    HCE_CE_CUDA_OFF
} hce_ce_cuda_multicast_t;

typedef struct hce_ce_cuda_settings {
    int64_t num_queues;
    uint64_t copy_limit;
    int multicast; /* hce_ce_cuda_multicast_t */
} hce_ce_cuda_settings_t;

extern hce_ce_cuda_settings_t hce_ce_cuda_settings;

#endif
