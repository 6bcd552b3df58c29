/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * RDMA devices of this process. These definitions take the place of those of
 * libibverbs. One lock for all: nothing here is meant to be fast.
 */
#include "config.h"

#include "fake_verbs.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#undef ibv_query_port
#undef ibv_reg_mr

#define DEVICES 2
#define QPS     256
#define MRS     1024
#define INLINE  64
#define STEPS   3 /* requests done for a poll, of each queue pair */

/* Device memory is written through a mapping of its descriptor. */
typedef struct fake_mr {
    struct ibv_mr ibv;
    char *map, *at;
    size_t map_len;
} fake_mr_t;

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

typedef struct fake_context {
    struct ibv_context ibv;
    int device;
    struct fake_context *next;
} fake_context_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct ibv_device devices[DEVICES];
static bool is_down[DEVICES];
static fake_context_t *contexts;
static fake_qp_t *qps[QPS];
static fake_mr_t *mrs[MRS];
static uint64_t device_base, device_len;
static uint32_t next_qp = 7, next_mr = 3;
static int objects;
static const char *fail_call;
static int fail_nth, break_nth;
static fake_break_t break_kind;

const char *const fake_verbs_calls[] = {
    "ibv_get_device_list", "ibv_open_device",   "ibv_query_device",
    "ibv_query_port",      "ibv_query_gid",     "ibv_query_gid_ex",
    "ibv_alloc_pd",        "ibv_reg_mr",        "ibv_create_comp_channel",
    "ibv_create_cq",       "ibv_create_srq",    "ibv_create_qp",
    "ibv_modify_qp",       "ibv_post_send",     "ibv_post_srq_recv",
    "ibv_poll_cq",         "ibv_req_notify_cq", "ibv_get_cq_event",
    "ibv_dereg_mr",        "ibv_destroy_qp",    NULL};

static void broken(const char *text)
{
    fprintf(stderr, "fake verbs: %s\n", text);
    abort();
}

void fake_verbs_fail(const char *call, int nth)
{
    pthread_mutex_lock(&lock);
    fail_call = call;
    fail_nth = nth;
    pthread_mutex_unlock(&lock);
}

bool fake_verbs_failed(void)
{
    return fail_call != NULL && fail_nth <= 0;
}

void fake_verbs_break(fake_break_t kind, int nth)
{
    pthread_mutex_lock(&lock);
    break_kind = kind;
    break_nth = nth;
    pthread_mutex_unlock(&lock);
}

bool fake_verbs_broke(void)
{
    return break_kind != FAKE_BREAK_NONE && break_nth <= 0;
}

int fake_verbs_objects(void)
{
    return objects;
}

/* Caller holds the lock. */
static bool fails(const char *call)
{
    if (fail_call == NULL || strcmp(call, fail_call) != 0 || fail_nth <= 0)
        return false;
    errno = EIO;
    return --fail_nth == 0;
}

static bool fails_now(const char *call)
{
    bool hit;

    pthread_mutex_lock(&lock);
    hit = fails(call);
    pthread_mutex_unlock(&lock);
    return hit;
}

static void *make(size_t size)
{
    void *object = calloc(1, size);

    if (object == NULL)
        broken("no memory");
    pthread_mutex_lock(&lock);
    objects++;
    pthread_mutex_unlock(&lock);
    return object;
}

static void unmake(void *object)
{
    pthread_mutex_lock(&lock);
    objects--;
    pthread_mutex_unlock(&lock);
    free(object);
}

/* Devices and ports */

struct ibv_device **ibv_get_device_list(int *num)
{
    struct ibv_device **list;

    if (fails_now("ibv_get_device_list"))
        return NULL;
    list = make((DEVICES + 1) * sizeof(*list));
    for (int i = 0; i < DEVICES; i++)
        list[i] = &devices[i];
    if (num != NULL)
        *num = DEVICES;
    return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
    unmake(list);
}

const char *ibv_get_device_name(struct ibv_device *device)
{
    return device == &devices[0] ? "fake0" : "fake1";
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
    if (fails_now("ibv_query_device"))
        return EIO;
    memset(attr, 0, sizeof(*attr));
    attr->phys_port_cnt = 1;
    return 0;
}

int ibv_query_port(struct ibv_context *context, uint8_t port,
                   struct _compat_ibv_port_attr *compat)
{
    struct ibv_port_attr *attr = (struct ibv_port_attr *)compat;

    if (fails_now("ibv_query_port"))
        return EIO;
    pthread_mutex_lock(&lock);
    attr->state = is_down[((fake_context_t *)context)->device]
                      ? IBV_PORT_DOWN
                      : IBV_PORT_ACTIVE;
    pthread_mutex_unlock(&lock);
    attr->active_mtu = IBV_MTU_4096;
    attr->gid_tbl_len = 2;
    attr->link_layer = IBV_LINK_LAYER_ETHERNET;
    return 0;
}

int ibv_query_gid(struct ibv_context *context, uint8_t port, int index,
                  union ibv_gid *gid)
{
    static const uint8_t mapped[16] = {[10] = 0xff, 0xff, 192, 0, 2, 1};

    if (fails_now("ibv_query_gid"))
        return -1;
    memcpy(gid->raw, mapped, sizeof(mapped));
    return 0;
}

int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port,
                      uint32_t index, struct ibv_gid_entry *entry,
                      uint32_t flags, size_t size)
{
    if (fails_now("ibv_query_gid_ex"))
        return ENODATA;
    memset(entry, 0, sizeof(*entry));
    entry->gid.raw[0] = 0xfe;
    entry->gid.raw[1] = 0x80;
    entry->gid.raw[15] = (uint8_t)(index + 1);
    entry->gid_type = index == 0 ? IBV_GID_TYPE_ROCE_V1 : IBV_GID_TYPE_ROCE_V2;
    return 0;
}

void fake_verbs_port(int device, bool is_active)
{
    static const uint64_t one = 1;

    pthread_mutex_lock(&lock);
    is_down[device] = !is_active;
    for (fake_context_t *c = contexts; c != NULL; c = c->next) {
        if (c->device != device)
            continue;
        if (write(c->ibv.async_fd, &one, sizeof(one)) != sizeof(one))
            broken("eventfd");
    }
    pthread_mutex_unlock(&lock);
}

int ibv_get_async_event(struct ibv_context *context,
                        struct ibv_async_event *event)
{
    fake_context_t *fake = (fake_context_t *)context;
    uint64_t n;

    if (read(context->async_fd, &n, sizeof(n)) < 0)
        return -1;
    memset(event, 0, sizeof(*event));
    event->event_type =
        is_down[fake->device] ? IBV_EVENT_PORT_ERR : IBV_EVENT_PORT_ACTIVE;
    return 0;
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
}

/* Memory */

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
    struct ibv_pd *pd;

    if (fails_now("ibv_alloc_pd"))
        return NULL;
    pd = make(sizeof(*pd));
    pd->context = context;
    return pd;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
    unmake(pd);
    return 0;
}

void fake_verbs_device_memory(uint64_t base, uint64_t len)
{
    device_base = base;
    device_len = len;
}

static fake_mr_t *mr_make(struct ibv_pd *pd, uint64_t iova, size_t len)
{
    fake_mr_t *mr = make(sizeof(*mr));

    mr->ibv = (struct ibv_mr){.context = pd->context,
                              .pd = pd,
                              .addr = (void *)(uintptr_t)iova,
                              .length = len};
    pthread_mutex_lock(&lock);
    while (mrs[next_mr % MRS] != NULL)
        next_mr++;
    mr->ibv.lkey = mr->ibv.rkey = next_mr;
    mrs[next_mr++ % MRS] = mr;
    pthread_mutex_unlock(&lock);
    return mr;
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t len,
                                uint64_t iova, unsigned int access)
{
    if (fails_now("ibv_reg_mr"))
        return NULL;
    if (iova - device_base < device_len) {
        errno = EFAULT;
        return NULL;
    }
    return &mr_make(pd, iova, len)->ibv;
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t len,
                          int access)
{
    return ibv_reg_mr_iova2(pd, addr, len, (uintptr_t)addr,
                            (unsigned int)access);
}

struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset,
                                 size_t len, uint64_t iova, int fd, int access)
{
    fake_mr_t *mr = mr_make(pd, iova, len);

    mr->map_len = offset + len;
    mr->map =
        mmap(NULL, mr->map_len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mr->map == MAP_FAILED)
        broken("a descriptor cannot be mapped");
    mr->at = mr->map + offset;
    return &mr->ibv;
}

/* What a device refuses to forget is leaked by its owner: not here. */
int ibv_dereg_mr(struct ibv_mr *ibv)
{
    fake_mr_t *mr = (fake_mr_t *)ibv;
    bool hit = fails_now("ibv_dereg_mr");

    pthread_mutex_lock(&lock);
    mrs[ibv->rkey % MRS] = NULL;
    pthread_mutex_unlock(&lock);
    if (mr->map != NULL)
        munmap(mr->map, mr->map_len);
    unmake(mr);
    return hit ? EIO : 0;
}

/* Where it lies in this process; NULL if the key does not cover it. */
static void *find(uint32_t key, uint64_t addr, uint64_t len)
{
    const fake_mr_t *mr = mrs[key % MRS];
    uint64_t at;

    if (mr == NULL || mr->ibv.rkey != key || addr < (uintptr_t)mr->ibv.addr)
        return NULL;
    at = addr - (uintptr_t)mr->ibv.addr;
    if (at > mr->ibv.length || len > mr->ibv.length - at)
        return NULL;
    return mr->map != NULL ? mr->at + at : (void *)(uintptr_t)addr;
}

/* Queues */

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
    struct ibv_comp_channel *channel;

    if (fails_now("ibv_create_comp_channel"))
        return NULL;
    channel = make(sizeof(*channel));
    channel->context = context;
    channel->fd = eventfd(0, EFD_SEMAPHORE);
    return channel;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
    close(channel->fd);
    unmake(channel);
    return 0;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int max,
                             void *cq_context,
                             struct ibv_comp_channel *channel, int vector)
{
    fake_cq_t *cq;

    if (fails_now("ibv_create_cq"))
        return NULL;
    cq = make(sizeof(*cq));
    cq->ibv.context = context;
    cq->ibv.channel = channel;
    cq->wcs = calloc((size_t)max, sizeof(*cq->wcs));
    cq->max = max;
    return &cq->ibv;
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
    free(((fake_cq_t *)cq)->wcs);
    unmake(cq);
    return 0;
}

/* One queue at a time has events here: whichever is asked is right. */
int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq,
                     void **cq_context)
{
    uint64_t n;

    if (fails_now("ibv_get_cq_event"))
        return -1;
    if (read(channel->fd, &n, sizeof(n)) < 0)
        return -1;
    *cq = NULL;
    return 0;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int num)
{
}

/* Caller holds the lock. */
static void complete(struct ibv_cq *ibv, const struct ibv_wc *wc)
{
    fake_cq_t *cq = (fake_cq_t *)ibv;
    static const uint64_t one = 1;

    if (cq->num == cq->max)
        broken("a completion queue overflows");
    cq->wcs[cq->num++] = *wc;
    if (cq->is_armed && write(ibv->channel->fd, &one, sizeof(one)) < 0)
        broken("eventfd");
    cq->is_armed = false;
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd,
                               struct ibv_srq_init_attr *attr)
{
    fake_srq_t *srq;

    if (fails_now("ibv_create_srq"))
        return NULL;
    srq = make(sizeof(*srq));
    srq->ibv.context = pd->context;
    srq->max = (int)attr->attr.max_wr;
    return &srq->ibv;
}

int ibv_destroy_srq(struct ibv_srq *srq)
{
    unmake(srq);
    return 0;
}

/* Queue pairs */

static fake_qp_t *qp_find(uint32_t num)
{
    fake_qp_t *qp = qps[num % QPS];

    return qp != NULL && qp->ibv.qp_num == num ? qp : NULL;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
    fake_qp_t *qp;

    if (fails_now("ibv_create_qp"))
        return NULL;
    qp = make(sizeof(*qp));
    qp->max = attr->cap.max_send_wr;
    qp->wrs = calloc(qp->max, sizeof(*qp->wrs));
    attr->cap.max_inline_data = INLINE;
    qp->ibv = (struct ibv_qp){.context = pd->context,
                              .send_cq = attr->send_cq,
                              .recv_cq = attr->recv_cq,
                              .srq = attr->srq,
                              .state = IBV_QPS_RESET};
    pthread_mutex_lock(&lock);
    while (qps[next_qp % QPS] != NULL)
        next_qp++;
    qp->ibv.qp_num = next_qp;
    qps[next_qp++ % QPS] = qp;
    pthread_mutex_unlock(&lock);
    return &qp->ibv;
}

int ibv_modify_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int mask)
{
    static const enum ibv_qp_state before[] = {[IBV_QPS_INIT] = IBV_QPS_RESET,
                                               [IBV_QPS_RTR] = IBV_QPS_INIT,
                                               [IBV_QPS_RTS] = IBV_QPS_RTR};
    fake_qp_t *qp = (fake_qp_t *)ibv;
    int rc = 0;

    pthread_mutex_lock(&lock);
    if (fails("ibv_modify_qp"))
        rc = EIO;
    else if (attr->qp_state == IBV_QPS_RESET)
        qp->num = qp->held = 0;
    else if (ibv->state != before[attr->qp_state])
        rc = EINVAL;
    if (rc == 0)
        ibv->state = attr->qp_state;
    if (rc == 0 && attr->qp_state == IBV_QPS_RTR)
        qp->dest = attr->dest_qp_num;
    pthread_mutex_unlock(&lock);
    return rc;
}

int ibv_destroy_qp(struct ibv_qp *ibv)
{
    fake_qp_t *qp = (fake_qp_t *)ibv;
    bool hit;

    pthread_mutex_lock(&lock);
    hit = fails("ibv_destroy_qp");
    qps[ibv->qp_num % QPS] = NULL;
    pthread_mutex_unlock(&lock);
    free(qp->wrs);
    unmake(qp);
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
        is_down[((fake_context_t *)qp->ibv.context)->device] ||
        is_down[((fake_context_t *)peer->ibv.context)->device])
        return IBV_WC_RETRY_EXC_ERR;
    if (!wr->is_inline)
        from = find(wr->sge.lkey, wr->sge.addr, wr->sge.length);
    if (from == NULL)
        return IBV_WC_LOC_PROT_ERR;
    to = find(wr->wr.wr.rdma.rkey, wr->wr.wr.rdma.remote_addr, wr->sge.length);
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
    complete(qp->ibv.send_cq, &wc);
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
        complete(peer->ibv.recv_cq, &came);
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

static int post_recv(struct ibv_srq *ibv, struct ibv_recv_wr *wr,
                     struct ibv_recv_wr **bad)
{
    fake_srq_t *srq = (fake_srq_t *)ibv;
    int rc = 0;

    pthread_mutex_lock(&lock);
    if (fails("ibv_post_srq_recv"))
        rc = EIO;
    for (; rc == 0 && wr != NULL; wr = wr->next) {
        if (srq->num++ == srq->max)
            broken("a receive queue overflows");
    }
    work(NULL, 1); /* somebody may have waited for it, and sleep */
    pthread_mutex_unlock(&lock);
    return rc;
}

/* Whoever asks for events may sleep: nothing is left to be done in polls. */
static int notify_cq(struct ibv_cq *cq, int solicited_only)
{
    int rc;

    pthread_mutex_lock(&lock);
    rc = fails("ibv_req_notify_cq") ? EIO : 0;
    ((fake_cq_t *)cq)->is_armed = rc == 0;
    work(cq, 1 << 20);
    pthread_mutex_unlock(&lock);
    return rc;
}

static int post_send(struct ibv_qp *ibv, struct ibv_send_wr *wr,
                     struct ibv_send_wr **bad)
{
    fake_qp_t *qp = (fake_qp_t *)ibv;
    int rc = 0;

    pthread_mutex_lock(&lock);
    *bad = wr;
    if (fails("ibv_post_send"))
        rc = EIO;
    if (ibv->state != IBV_QPS_RTS && ibv->state != IBV_QPS_ERR)
        broken("a post before the queue pair is connected");
    for (; rc == 0 && wr != NULL; wr = wr->next) {
        fake_wr_t *copy = &qp->wrs[qp->num];

        if (qp->num + qp->held >= qp->max)
            broken("a send queue overflows");
        copy->wr = *wr;
        copy->sge = wr->sg_list[0];
        copy->is_inline = (wr->send_flags & IBV_SEND_INLINE) != 0;
        if (copy->is_inline && copy->sge.length > INLINE)
            broken("too much inline data");
        if (copy->is_inline)
            memcpy(copy->data, (void *)(uintptr_t)copy->sge.addr,
                   copy->sge.length);
        qp->num++;
    }
    pthread_mutex_unlock(&lock);
    return rc;
}

static int poll_cq(struct ibv_cq *ibv, int max, struct ibv_wc *wcs)
{
    fake_cq_t *cq = (fake_cq_t *)ibv;
    int num = 0;

    pthread_mutex_lock(&lock);
    work(ibv, STEPS);
    if (fails("ibv_poll_cq"))
        num = -1;
    for (; num >= 0 && num < max && num < cq->num; num++)
        wcs[num] = cq->wcs[num];
    if (num > 0) {
        cq->num -= num;
        memmove(cq->wcs, cq->wcs + num, (size_t)cq->num * sizeof(*wcs));
    }
    pthread_mutex_unlock(&lock);
    return num;
}

/* Contexts */

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
    fake_context_t *context;

    if (fails_now("ibv_open_device"))
        return NULL;
    context = make(sizeof(*context));
    context->ibv.device = device;
    context->device = (int)(device - devices);
    context->ibv.async_fd = eventfd(0, 0);
    context->ibv.cmd_fd = -1;
    context->ibv.ops.post_send = post_send;
    context->ibv.ops.post_srq_recv = post_recv;
    context->ibv.ops.poll_cq = poll_cq;
    context->ibv.ops.req_notify_cq = notify_cq;
    pthread_mutex_lock(&lock);
    context->next = contexts;
    contexts = context;
    pthread_mutex_unlock(&lock);
    return &context->ibv;
}

int ibv_close_device(struct ibv_context *ibv)
{
    fake_context_t **at;

    pthread_mutex_lock(&lock);
    for (at = &contexts; *at != (fake_context_t *)ibv; at = &(*at)->next)
        ;
    *at = (*at)->next;
    pthread_mutex_unlock(&lock);
    close(ibv->async_fd);
    unmake(ibv);
    return 0;
}
