/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Which machine and which process this is.
 */
#ifndef HCE_BOOT_HOST_H
#define HCE_BOOT_HOST_H

#include "boot/wire.h"

#include <stdbool.h>
#include <stddef.h>

/* Text that differs for each boot of each machine; "" if there is none. */
void hce_boot_host_boot_id(char *buf, size_t size);

/* Inode of /proc/self/ns/<name>, 0 if there is none. */
uint64_t hce_boot_host_namespace(const char *name);

/* hostname, cut to size, never empty. */
void hce_boot_host_name(char *buf, size_t size);

/* Of the calling process. */
void hce_boot_who_self(hce_boot_who_t *who_p);

/* Makes what a peer has sent printable. */
void hce_boot_who_clean(hce_boot_who_t *who);

/* False when the two run on one host and were started by different hands. */
bool hce_boot_who_related(const hce_boot_who_t *a, const hce_boot_who_t *b);

#endif
