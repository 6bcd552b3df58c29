/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Windows: buffers known to node peers (copy engine) and to the network
 * (proxy). A list in the communicator, touched by the caller only.
 */
#ifndef HCE_CORE_WINDOW_H
#define HCE_CORE_WINDOW_H

#include <hce/hce.h>
#include "rma_proxy/proxy.h"

struct hce_window {
    hce_comm_h comm;
    char *addr;
    size_t len;
    uint32_t id;
    hce_proxy_mem_t *mem; /* NULL without a network, or when empty */
    hce_window_h next;
};

/* The window that covers [addr, addr + len), or NULL. */
hce_window_h hce_window_find(hce_comm_h comm, const void *addr, size_t len);

/* The work of hce_window_register, after its arguments were checked. */
hce_status_t hce_window_open(hce_comm_h comm, void *buf, size_t size,
                             hce_window_h *win_p);
/* All that are left, when the communicator is destroyed. */
void hce_window_close_all(hce_comm_h comm);

#endif
