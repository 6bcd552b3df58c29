/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The settings of lib/core itself. Read once, before the first communicator.
 */
#ifndef HCE_CORE_VALUES_H
#define HCE_CORE_VALUES_H

#include "util/config.h"

#define HCE_CORE_WIDTH_AUTO 0 /* of hce_core_values.width */
#define HCE_CORE_WIDTH_RULE 1

typedef struct hce_core_values {
    const char *ag_path;          /* HCE_AG_PATH */
    const char *chunk_width;      /* HCE_CHUNK_WIDTH, as text */
    uint64_t width;               /* the same as bytes, or one of the above */
    uint64_t multi_ctx_threshold; /* HCE_MULTI_CTX_THRESHOLD, bytes */
    uint64_t scratch;             /* HCE_SCRATCH, bytes */
    uint64_t spin_ns;             /* HCE_SPIN */
    uint64_t timeout_ns;          /* HCE_TIMEOUT */
    uint64_t silence_ns;          /* HCE_SILENCE */
} hce_core_values_t;

extern hce_core_values_t hce_core_values;

/* Reads all settings of the library, once for a process. */
hce_status_t hce_core_config_init(void);

extern const hce_config_table_t hce_core_config;

#endif
