/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * What a unique id holds.
 */
#ifndef HCE_BOOT_UNIQUE_ID_H
#define HCE_BOOT_UNIQUE_ID_H

#include "boot/net.h"
#include "boot/wire.h"

#define HCE_BOOT_UID_MAGIC   "HCE id"
#define HCE_BOOT_UID_VERSION 1

/* Inside of hce_unique_id_t. The libraries of two ranks may differ: that
 * shows in their hello, so this version is about this struct only. */
typedef struct hce_boot_uid {
    char magic[8];
    uint32_t version;
    uint32_t num_addrs;
    uint64_t job;
    uint64_t host_id; /* the second address is for ranks there only */
    uint8_t key[HCE_BOOT_KEY_LEN];
    hce_boot_addr_t addrs[HCE_BOOT_LISTEN_MAX];
} hce_boot_uid_t;

static_assert(sizeof(hce_boot_uid_t) <= sizeof(hce_unique_id_t), "too long");

#endif
