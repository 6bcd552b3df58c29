/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * How the ranks of a group come together, once a bootstrap has found out who
 * they are and where rank 0 listens. Strangers on the port, and ranks of
 * other jobs, are sent away and disturb nobody.
 */
#ifndef HCE_BOOT_MEET_H
#define HCE_BOOT_MEET_H

#include "boot/group.h"
#include "boot/net.h"

#define HCE_BOOT_WHY_LEN 1024

typedef struct hce_boot_meeting {
    const char *name; /* of the bootstrap */
    int rank, size;
    uint64_t job;                  /* name of the group, no secret */
    uint8_t key[HCE_BOOT_KEY_LEN]; /* what its members know */
    /* Nobody else uses this job's name and key: a rank that fits badly is an
     * error at once. Otherwise it may be another job with the same names,
     * which finds its own rank 0 on another port. */
    bool is_private;
    hce_boot_t *parent; /* of a split, else NULL: its news end this as well */
    uint64_t deadline;
    uint64_t silence_ns;
    hce_boot_listen_t listen;     /* rank 0; closed in any case */
    const hce_boot_addr_t *addrs; /* others: where rank 0 may listen */
    int num_addrs;
    char why[HCE_BOOT_WHY_LEN]; /* why it failed */
} hce_boot_meeting_t;

hce_status_t hce_boot_meet(hce_boot_meeting_t *meeting, hce_boot_t **boot_p);

/* The two sides of it; boot is not known to anybody else yet. */
hce_status_t hce_boot_seat_all(hce_boot_meeting_t *meeting, hce_boot_t *boot);
hce_status_t hce_boot_join(hce_boot_meeting_t *meeting, hce_boot_t *boot);

/* HCE_INPROGRESS as long as there is hope: before the deadline, and while the
 * parent lives. Sets why otherwise. */
hce_status_t hce_boot_meeting_check(hce_boot_meeting_t *meeting);
/* How long to sleep at most, for epoll_wait and poll. */
int hce_boot_meeting_sleep_ms(const hce_boot_meeting_t *meeting,
                              uint64_t then);

/* Proves to the other side that this one knows the key. */
typedef struct hce_boot_nonces {
    uint8_t leaf[HCE_BOOT_NONCE_LEN];
    uint8_t hub[HCE_BOOT_NONCE_LEN];
} hce_boot_nonces_t;
void hce_boot_claim_mac(const hce_boot_meeting_t *meeting,
                        const hce_boot_hello_t *hello,
                        const hce_boot_nonces_t *nonces, hce_boot_type_t type,
                        uint8_t mac[HCE_BOOT_KEY_LEN]);

#endif
