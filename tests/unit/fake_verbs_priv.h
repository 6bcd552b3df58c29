/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * What the two halves of the made-up devices share.
 */
#ifndef HCE_TESTS_FAKE_VERBS_PRIV_H
#define HCE_TESTS_FAKE_VERBS_PRIV_H

#include "fake_verbs.h"

#include <infiniband/verbs.h>
#include <pthread.h>

typedef struct fake_cq {
    struct ibv_cq ibv;
    struct ibv_wc *wcs;
    int num, max;
    bool is_armed;
} fake_cq_t;

typedef struct fake_srq {
    struct ibv_srq ibv;
    int num, max;
} fake_srq_t;

typedef struct fake_context {
    struct ibv_context ibv;
    int device;
    struct fake_context *next;
} fake_context_t;

extern pthread_mutex_t fake_lock; /* everything */
extern bool fake_is_down[];       /* ports of devices */

/* fake_verbs.c */
void fake_broken(const char *text);
/* Caller holds the lock. */
bool fake_fails(const char *call);
bool fake_fails_now(const char *call);
/* Counted objects; zero. */
void *fake_make(size_t size);
void fake_unmake(void *object);
/* Where memory lies in this process; NULL if the key does not cover it.
 * Caller holds the lock. */
void *fake_find(uint32_t key, uint64_t addr, uint64_t len);
/* Caller holds the lock. */
void fake_complete(struct ibv_cq *ibv, const struct ibv_wc *wc);

/* fake_verbs_qp.c */
int fake_post_recv(struct ibv_srq *ibv, struct ibv_recv_wr *wr,
                   struct ibv_recv_wr **bad);
int fake_notify_cq(struct ibv_cq *cq, int solicited_only);
int fake_post_send(struct ibv_qp *ibv, struct ibv_send_wr *wr,
                   struct ibv_send_wr **bad);
int fake_poll_cq(struct ibv_cq *ibv, int max, struct ibv_wc *wcs);

#endif
