/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Names and sizes of datatypes; the public calls are thin over this table.
 */
#ifndef HCE_UTIL_DATATYPE_H
#define HCE_UTIL_DATATYPE_H

#include <hce/hce.h>

/* "float", "int8", ... as hce_datatype_string prints them.
 * HCE_ERR_INVALID_ARG if the name is unknown. */
hce_status_t hce_datatype_find(const char *name, hce_datatype_t *datatype_p);

#endif
