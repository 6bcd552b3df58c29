/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * For tests of the CUDA copy engines over the soft GPU.
 */
#ifndef HCE_TESTS_UNIT_CE_CUDA_H
#define HCE_TESTS_UNIT_CE_CUDA_H

#include "ce/cuda/settings.h"
#include "ce/dev.h"
#include "softgpu/rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OPS (&hce_ce_cuda_ops)

/* In processes that cmocka does not know of. */
#define CUDA_CHECK(_what)                                                     \
    do {                                                                      \
        if (!(_what)) {                                                       \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__,      \
                    #_what);                                                  \
            _exit(1);                                                         \
        }                                                                     \
    } while (0)

/* What differs by place and by seed. */
void cuda_fill(unsigned char *at, size_t len, unsigned seed);
bool cuda_is_filled(const unsigned char *at, size_t len, unsigned seed);

/* Moves bytes between host and device by the test's own stream. */
void cuda_put(int dev, hce_ce_dev_ptr_t ptr, size_t len, unsigned seed);
bool cuda_holds(int dev, hce_ce_dev_ptr_t ptr, size_t len, unsigned seed);

/* A launch of one copy or of some memops; ends the process if it fails. */
void cuda_copy(hce_ce_dev_t *dev, void *user, hce_ce_dev_copy_t copy);
void cuda_drained(hce_ce_dev_t *dev);

/* Runs a function in a child and returns its status as wait gives it. */
int cuda_child(int (*fn)(void *arg), void *arg);

#endif
