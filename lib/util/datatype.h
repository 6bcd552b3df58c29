/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Names and sizes of datatypes, names of reductions; the public calls are thin
 * over these tables.
 */
#ifndef HCE_UTIL_DATATYPE_H
#define HCE_UTIL_DATATYPE_H

#include <hce/hce.h>

/* "float", "int8", ... as hce_datatype_string prints them.
 * HCE_ERR_INVALID_ARG if the name is unknown. */
hce_status_t hce_datatype_find(const char *name, hce_datatype_t *datatype_p);

/* "sum", "avg", ... as hce_redop_string prints them; otherwise alike. */
hce_status_t hce_redop_find(const char *name, hce_redop_t *op_p);

#endif
