/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The kernels for any CPU: vectors of 16 bytes, which every architecture has
 * or the compiler takes apart. What the others are compared with.
 */
#include <config.h>

#define WIDTH 16
#define TARGET

#include "reduce/kernels.h"

static bool always_usable(void)
{
    return true;
}

const hce_reduce_variant_t hce_reduce_portable = {
    .name = "portable",
    .is_usable = always_usable,
    .rows = ROWS,
};
