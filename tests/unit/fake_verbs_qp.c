/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * RDMA devices of this process: queue pairs, and how their requests fare.
 */
#include "config.h"

#include "fake_verbs_priv.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define QPS    256
#define INLINE 64
#define STEPS  3 /* requests done for a poll, of each queue pair */

typedef struct fake_wr {
    struct ibv_send_wr wr;
    struct ibv_sge sge;
    bool is_inline;
    char data[INLINE];
} fake_wr_t;

typedef struct fake_qp {
    struct ibv_qp ibv;
    uint32_t dest;
    fake_wr_t *wrs;
    uint32_t num, max; /* posted and not done */
    uint32_t held;     /* done, and not yet covered by a completion */
} fake_qp_t;

static fake_qp_t *qps[QPS];
static uint32_t next_qp = 7;
static int break_nth;
static fake_break_t break_kind;

void fake_verbs_break(fake_break_t kind, int nth)
{
    pthread_mutex_lock(&fake_lock);
    break_kind = kind;
    break_nth = nth;
    pthread_mutex_unlock(&fake_lock);
}

bool fake_verbs_broke(void)
{
    return break_kind != FAKE_BREAK_NONE && break_nth <= 0;
}

static fake_qp_t *qp_find(uint32_t num)
{
    fake_qp_t *qp = qps[num % QPS];

    return qp != NULL && qp->ibv.qp_num == num ? qp : NULL;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
    fake_qp_t *qp;

    if (fake_fails_now("ibv_create_qp"))
        return NULL;
    qp = fake_make(sizeof(*qp));
    qp->max = attr->cap.max_send_wr;
    qp->wrs = calloc(qp->max, sizeof(*qp->wrs));
    attr->cap.max_inline_data = INLINE;
    qp->ibv = (struct ibv_qp){.context = pd->context,
                              .send_cq = attr->send_cq,
                              .recv_cq = attr->recv_cq,
                              .srq = attr->srq,
                              .state = IBV_QPS_RESET};
    pthread_mutex_lock(&fake_lock);
    while (qps[next_qp % QPS] != NULL)
        next_qp++;
    qp->ibv.qp_num = next_qp;
    qps[next_qp++ % QPS] = qp;
    pthread_mutex_unlock(&fake_lock);
    return &qp->ibv;
}

int ibv_modify_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int mask)
{
    static const enum ibv_qp_state before[] = {[IBV_QPS_INIT] = IBV_QPS_RESET,
                                               [IBV_QPS_RTR] = IBV_QPS_INIT,
                                               [IBV_QPS_RTS] = IBV_QPS_RTR};
    fake_qp_t *qp = (fake_qp_t *)ibv;
    int rc = 0;

    pthread_mutex_lock(&fake_lock);
    if (fake_fails("ibv_modify_qp"))
        rc = EIO;
    else if (attr->qp_state == IBV_QPS_RESET)
        qp->num = qp->held = 0;
    else if (ibv->state != before[attr->qp_state])
        rc = EINVAL;
    if (rc == 0)
        ibv->state = attr->qp_state;
    if (rc == 0 && attr->qp_state == IBV_QPS_RTR)
        qp->dest = attr->dest_qp_num;
    pthread_mutex_unlock(&fake_lock);
    return rc;
}

int ibv_destroy_qp(struct ibv_qp *ibv)
{
    fake_qp_t *qp = (fake_qp_t *)ibv;
    bool hit;

    pthread_mutex_lock(&fake_lock);
    hit = fake_fails("ibv_destroy_qp");
    qps[ibv->qp_num % QPS] = NULL;
    pthread_mutex_unlock(&fake_lock);
    free(qp->wrs);
    fake_unmake(qp);
    return hit ? EIO : 0;
}

/* Counters are read without the lock. */
static void deliver(void *to, const void *from, size_t len)
{
    if (len == 8 && ((uintptr_t)to & 7) == 0) {
        uint64_t value;

        memcpy(&value, from, sizeof(value));
        atomic_store_explicit((_Atomic(uint64_t) *)to, value,
                              memory_order_release);
    } else {
        memcpy(to, from, len);
    }
}

static enum ibv_wc_status write_one(const fake_qp_t *qp, const fake_wr_t *wr,
                                    size_t len)
{
    const fake_qp_t *peer = qp_find(qp->dest);
    const void *from = wr->data;
    void *to;

    if (peer == NULL || peer->dest != qp->ibv.qp_num ||
        (peer->ibv.state != IBV_QPS_RTR && peer->ibv.state != IBV_QPS_RTS) ||
        fake_is_down[((fake_context_t *)qp->ibv.context)->device] ||
        fake_is_down[((fake_context_t *)peer->ibv.context)->device])
        return IBV_WC_RETRY_EXC_ERR;
    if (!wr->is_inline)
        from = fake_find(wr->sge.lkey, wr->sge.addr, wr->sge.length);
    if (from == NULL)
        return IBV_WC_LOC_PROT_ERR;
    to = fake_find(wr->wr.wr.rdma.rkey, wr->wr.wr.rdma.remote_addr,
                   wr->sge.length);
    if (to == NULL)
        return IBV_WC_REM_ACCESS_ERR;
    deliver(to, from, len);
    return IBV_WC_SUCCESS;
}

static void sent(fake_qp_t *qp, const fake_wr_t *wr, enum ibv_wc_status status)
{
    struct ibv_wc wc = {.wr_id = wr->wr.wr_id,
                        .status = status,
                        .qp_num = qp->ibv.qp_num,
                        .opcode = IBV_WC_RDMA_WRITE};

    if (status != IBV_WC_SUCCESS)
        qp->ibv.state = IBV_QPS_ERR;
    qp->held++;
    if (status == IBV_WC_SUCCESS && !(wr->wr.send_flags & IBV_SEND_SIGNALED))
        return;
    qp->held = 0;
    fake_complete(qp->ibv.send_cq, &wc);
}

/* The first request; false: the target has no receive for it. */
static bool step(fake_qp_t *qp)
{
    fake_wr_t wr = qp->wrs[0];
    bool has_imm = wr.wr.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
    fake_qp_t *peer = qp_find(qp->dest);
    fake_break_t how = FAKE_BREAK_NONE;
    enum ibv_wc_status status = IBV_WC_WR_FLUSH_ERR;

    if (qp->ibv.state == IBV_QPS_RTS) {
        if (has_imm && peer != NULL && ((fake_srq_t *)peer->ibv.srq)->num == 0)
            return false;
        if (break_kind != FAKE_BREAK_NONE && break_nth > 0 && --break_nth == 0)
            how = break_kind;
        status = how == FAKE_BREAK_LOST
                     ? IBV_WC_RETRY_EXC_ERR
                     : write_one(qp, &wr,
                                 how == FAKE_BREAK_HALF && wr.sge.length != 8
                                     ? wr.sge.length / 2
                                     : wr.sge.length);
    }
    if (status == IBV_WC_SUCCESS && has_imm && how != FAKE_BREAK_HALF) {
        struct ibv_wc came = {.qp_num = peer->ibv.qp_num,
                              .opcode = IBV_WC_RECV_RDMA_WITH_IMM};

        ((fake_srq_t *)peer->ibv.srq)->num--;
        fake_complete(peer->ibv.recv_cq, &came);
    }
    if (how != FAKE_BREAK_NONE)
        status = IBV_WC_RETRY_EXC_ERR;
    memmove(qp->wrs, qp->wrs + 1, --qp->num * sizeof(*qp->wrs));
    sent(qp, &wr, status);
    return true;
}

/* So much of what was posted; cq: by its queue pairs, NULL: by all. */
static void work(const struct ibv_cq *cq, int steps)
{
    for (int i = 0; i < QPS; i++) {
        fake_qp_t *qp = qps[i];

        if (qp == NULL || (cq != NULL && qp->ibv.send_cq != cq))
            continue;
        for (int k = 0; k < steps && qp->num > 0 && step(qp); k++)
            ;
    }
}

int fake_post_recv(struct ibv_srq *ibv, struct ibv_recv_wr *wr,
                   struct ibv_recv_wr **bad)
{
    fake_srq_t *srq = (fake_srq_t *)ibv;
    int rc = 0;

    pthread_mutex_lock(&fake_lock);
    if (fake_fails("ibv_post_srq_recv"))
        rc = EIO;
    for (; rc == 0 && wr != NULL; wr = wr->next) {
        if (srq->num++ == srq->max)
            fake_broken("a receive queue overflows");
    }
    work(NULL, 1); /* somebody may have waited for it, and sleep */
    pthread_mutex_unlock(&fake_lock);
    return rc;
}

/* Whoever asks for events may sleep: nothing is left to be done in polls. */
int fake_notify_cq(struct ibv_cq *cq, int solicited_only)
{
    int rc;

    pthread_mutex_lock(&fake_lock);
    rc = fake_fails("ibv_req_notify_cq") ? EIO : 0;
    ((fake_cq_t *)cq)->is_armed = rc == 0;
    work(cq, 1 << 20);
    pthread_mutex_unlock(&fake_lock);
    return rc;
}

int fake_post_send(struct ibv_qp *ibv, struct ibv_send_wr *wr,
                   struct ibv_send_wr **bad)
{
    fake_qp_t *qp = (fake_qp_t *)ibv;
    int rc = 0;

    pthread_mutex_lock(&fake_lock);
    *bad = wr;
    if (fake_fails("ibv_post_send"))
        rc = EIO;
    if (ibv->state != IBV_QPS_RTS && ibv->state != IBV_QPS_ERR)
        fake_broken("a post before the queue pair is connected");
    for (; rc == 0 && wr != NULL; wr = wr->next) {
        fake_wr_t *copy = &qp->wrs[qp->num];

        if (qp->num + qp->held >= qp->max)
            fake_broken("a send queue overflows");
        copy->wr = *wr;
        copy->sge = wr->sg_list[0];
        copy->is_inline = (wr->send_flags & IBV_SEND_INLINE) != 0;
        if (copy->is_inline && copy->sge.length > INLINE)
            fake_broken("too much inline data");
        if (copy->is_inline)
            memcpy(copy->data, (void *)(uintptr_t)copy->sge.addr,
                   copy->sge.length);
        qp->num++;
    }
    pthread_mutex_unlock(&fake_lock);
    return rc;
}

int fake_poll_cq(struct ibv_cq *ibv, int max, struct ibv_wc *wcs)
{
    fake_cq_t *cq = (fake_cq_t *)ibv;
    int num = 0;

    pthread_mutex_lock(&fake_lock);
    work(ibv, STEPS);
    if (fake_fails("ibv_poll_cq"))
        num = -1;
    for (; num >= 0 && num < max && num < cq->num; num++)
        wcs[num] = cq->wcs[num];
    if (num > 0) {
        cq->num -= num;
        memmove(cq->wcs, cq->wcs + num, (size_t)cq->num * sizeof(*wcs));
    }
    pthread_mutex_unlock(&fake_lock);
    return num;
}
