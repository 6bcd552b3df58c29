/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Ranks that one parent process forks. The parent prepares an id, forks, and
 * releases the id; each child creates its communicator with HCE_BOOTSTRAP_TCP
 * and that id. The listening socket is inherited: the child that is rank 0
 * takes it over, the others close it when they create. Loopback only.
 *
 *     hce_boot_local_prepare(&id);
 *     for (rank = 0; rank < size; rank++)
 *         if (fork() == 0)
 *             child(rank, &id);
 *     hce_boot_local_release(&id);
 */
#ifndef HCE_BOOT_LOCAL_H
#define HCE_BOOT_LOCAL_H

#include <hce/hce.h>

/* Before fork, with no other library calls made yet. */
hce_status_t hce_boot_local_prepare(hce_unique_id_t *id_p);

/* In the parent, once all children are forked. */
void hce_boot_local_release(const hce_unique_id_t *id);

#endif
