/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Parts of the settings that config.c, config_parse.c and config_print.c
 * share; nobody else includes this.
 */
#ifndef HCE_UTIL_CONFIG_PRIV_H
#define HCE_UTIL_CONFIG_PRIV_H

#include "util/config.h"

#include <stdbool.h>

/* What a field accepts, to follow "expected ". */
void hce_config_expected(const hce_config_field_t *field, char *buf,
                         size_t size);

/* Was the field set by the environment in hce_config_init()? */
bool hce_config_is_given(const hce_config_field_t *field);

#endif
