/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * A communicator as the engine sees it.
 */
#ifndef HCE_CORE_POLLABLE_H
#define HCE_CORE_POLLABLE_H

#include "core/engine.h"

extern const hce_pollable_ops_t hce_comm_pollable_ops;

#endif
