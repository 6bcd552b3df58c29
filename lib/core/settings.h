/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * All settings of the library: the list that hce_config_init() is given and
 * that hce_info prints. Every folder brings its own table.
 */
#ifndef HCE_CORE_SETTINGS_H
#define HCE_CORE_SETTINGS_H

#include "util/config.h"

/* Ends with NULL. */
extern const hce_config_table_t *const hce_settings[];

#endif
