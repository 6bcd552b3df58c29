/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The tables of datatypes and reductions. The names are those that users of
 * collective benchmarks type after -d and -o.
 */
#include <config.h>

#include "util/datatype.h"

#include <string.h>

static const struct {
    const char *name;
    size_t size;
} datatypes[HCE_DATATYPE_LAST] = {
    [HCE_INT8] = {"int8", 1},         [HCE_UINT8] = {"uint8", 1},
    [HCE_INT32] = {"int32", 4},       [HCE_UINT32] = {"uint32", 4},
    [HCE_INT64] = {"int64", 8},       [HCE_UINT64] = {"uint64", 8},
    [HCE_FLOAT16] = {"half", 2},      [HCE_FLOAT32] = {"float", 4},
    [HCE_FLOAT64] = {"double", 8},    [HCE_BFLOAT16] = {"bfloat16", 2},
    [HCE_FLOAT8E4M3] = {"f8e4m3", 1}, [HCE_FLOAT8E5M2] = {"f8e5m2", 1},
};

static const char *const redops[HCE_REDOP_LAST] = {
    [HCE_SUM] = "sum", [HCE_PROD] = "prod", [HCE_MIN] = "min",
    [HCE_MAX] = "max", [HCE_AVG] = "avg",
};

/* The compiler may give the enum a signed or an unsigned type: callers pass
 * any number, so compare as unsigned. */
static int is_known(hce_datatype_t datatype)
{
    return (unsigned)datatype < HCE_DATATYPE_LAST;
}

const char *hce_datatype_string(hce_datatype_t datatype)
{
    return is_known(datatype) ? datatypes[datatype].name : NULL;
}

size_t hce_datatype_size(hce_datatype_t datatype)
{
    return is_known(datatype) ? datatypes[datatype].size : 0;
}

hce_status_t hce_datatype_find(const char *name, hce_datatype_t *datatype_p)
{
    for (unsigned i = 0; i < HCE_DATATYPE_LAST; i++) {
        if (strcmp(name, datatypes[i].name) == 0) {
            *datatype_p = (hce_datatype_t)i;
            return HCE_OK;
        }
    }
    return HCE_ERR_INVALID_ARG;
}

const char *hce_redop_string(hce_redop_t op)
{
    return (unsigned)op < HCE_REDOP_LAST ? redops[op] : NULL;
}

hce_status_t hce_redop_find(const char *name, hce_redop_t *op_p)
{
    for (unsigned i = 0; i < HCE_REDOP_LAST; i++) {
        if (strcmp(name, redops[i]) == 0) {
            *op_p = (hce_redop_t)i;
            return HCE_OK;
        }
    }
    return HCE_ERR_INVALID_ARG;
}
