/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * What an architecture must bring: hce_arch_pause() for the body of a spin
 * loop, hce_arch_store_fence() after non-temporal stores. One file each.
 */
#ifndef HCE_UTIL_ARCH_H
#define HCE_UTIL_ARCH_H

#if defined(__x86_64__)
#include "util/arch_x86_64.h"
#elif defined(__aarch64__)
#include "util/arch_aarch64.h"
#else
#error "libhce has no pause and store fence for this architecture"
#endif

#endif
