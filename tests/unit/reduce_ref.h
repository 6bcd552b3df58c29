/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Reductions as docs/REDUCE.md defines them, one element at a time and by
 * arithmetic rather than by bits: what the kernels are compared with.
 */
#ifndef HCE_TESTS_UNIT_REDUCE_REF_H
#define HCE_TESTS_UNIT_REDUCE_REF_H

#include <hce/hce.h>
#include <stdbool.h>
#include <stdint.h>

#include "reduce/reduce.h"

bool ref_is_float(hce_datatype_t type);

/* Codes that are NaN, infinite, the greatest, the smallest, and so on. */
#define REF_SPECIALS_MAX 40
int ref_specials(hce_datatype_t type, uint64_t *codes);

/* Value of a code of a float type; nearest code of a value, which float (for
 * 64 bits: double) can hold. */
double ref_decode(hce_datatype_t type, uint64_t code);
uint64_t ref_encode(hce_datatype_t type, double value);

/* Greatest relative error of one rounding, and half of the smallest
 * subnormal number. */
double ref_unit(hce_datatype_t type);
double ref_tiny(hce_datatype_t type);

uint64_t ref_get(const void *buf, size_t at, size_t size);
void ref_put(void *buf, size_t at, size_t size, uint64_t code);

/* The code of element at. */
uint64_t ref_element(const hce_reduce_args_t *args, hce_redop_t op,
                     hce_datatype_t type, size_t at);

#endif
