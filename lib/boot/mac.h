/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * SipHash-2-4: keyed hash of short messages. Proves that a peer has the key
 * without sending it, and names jobs.
 */
#ifndef HCE_BOOT_MAC_H
#define HCE_BOOT_MAC_H

#include "boot/wire.h"

#include <hce/hce.h>
#include <stdbool.h>
#include <stddef.h>

/* The variant with 128 bits of output. */
void hce_boot_mac(const uint8_t key[HCE_BOOT_KEY_LEN], const void *data,
                  size_t len, uint8_t mac[HCE_BOOT_KEY_LEN]);

/* Its first 64 bits under a fixed key: a name, not a proof. */
uint64_t hce_boot_hash(const void *data, size_t len);

/* Takes the same time wherever they differ. */
bool hce_boot_mac_equal(const uint8_t a[HCE_BOOT_KEY_LEN],
                        const uint8_t b[HCE_BOOT_KEY_LEN]);

/* From the kernel's generator. */
hce_status_t hce_boot_random(void *buf, size_t len);

#endif
