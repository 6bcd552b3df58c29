/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Settings of the reductions.
 */
#include <config.h>

#include "reduce/reduce.h"
#include "reduce/settings.h"

int hce_reduce_choice = HCE_REDUCE_AUTO;

static const char *const choices[] = {"auto",   "portable",    "avx2",
                                      "avx512", "avx512-bf16", NULL};

/* Not collective: all variants give the same bits. */
static const hce_config_field_t fields[] = {
    {.name = "HCE_REDUCE_KERNEL",
     .dfl = "auto",
     .text = "Instructions that the CPU reduces with: auto takes the widest "
             "that it has; all give the same bits.",
     .type = HCE_CONFIG_ENUM,
     .value = &hce_reduce_choice,
     .choices = choices},
};

const hce_config_table_t hce_reduce_config =
    HCE_CONFIG_TABLE("reduce", fields);
