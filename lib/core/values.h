/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The settings of lib/core itself. Read once, before the first communicator.
 */
#ifndef HCE_CORE_VALUES_H
#define HCE_CORE_VALUES_H

#include <hce/hce.h>
#include "util/config.h"
#include "util/math.h"

#define HCE_CORE_WIDTH_AUTO 0 /* of hce_core_values.width */
#define HCE_CORE_WIDTH_RULE 1

#define HCE_CORE_CARRIERS_AUTO (-1) /* of hce_core_values.carriers */
#define HCE_CORE_CARRIERS_RAILS 0   /* all ranks of a node */
#define HCE_CORE_MAX_CARRIERS   256
#define HCE_CORE_MAX_SCRATCH    (1024 * HCE_GIB)

/* The path that all calls of a collective are to take. */
typedef struct hce_core_path {
    const char *name;   /* "auto" where nothing is set */
    const char *origin; /* the variable that asks for it, NULL: none */
} hce_core_path_t;

typedef struct hce_core_values {
    hce_core_path_t paths[HCE_COLL_LAST];
    const char *carriers_text;    /* HCE_CARRIERS, as text */
    int carriers;          /* the same as a number, or one of the above */
    int ring_dirs;                /* HCE_RING_DIRS; 0: auto */
    const char *tuning_file;      /* HCE_TUNING_FILE, or NULL */
    const char *chunk_width;      /* HCE_CHUNK_WIDTH, as text */
    uint64_t width;               /* the same as bytes, or one of the above */
    uint64_t multi_ctx_threshold; /* HCE_MULTI_CTX_THRESHOLD, bytes */
    uint64_t scratch;             /* HCE_SCRATCH, bytes */
    uint64_t spin_ns;             /* HCE_SPIN */
    uint64_t timeout_ns;          /* HCE_TIMEOUT */
    uint64_t silence_ns;          /* HCE_SILENCE */
} hce_core_values_t;

extern hce_core_values_t hce_core_values;

/* "HCE_AG_PATH": the variable for the paths of a collective. */
const char *hce_core_path_variable(hce_coll_t coll);

/* Reads all settings of the library, once for a process. */
hce_status_t hce_core_config_init(void);

extern const hce_config_table_t hce_core_config;

#endif
