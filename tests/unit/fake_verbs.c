/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * RDMA devices of this process: ports, memory and queues. These definitions
 * take the place of those of libibverbs. One lock for all: nothing here is
 * meant to be fast.
 */
#include "config.h"

#include "fake_verbs_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#undef ibv_query_port
#undef ibv_reg_mr

#define DEVICES 2
#define MRS     1024

/* Device memory is written through a mapping of its descriptor. */
typedef struct fake_mr {
    struct ibv_mr ibv;
    char *map, *at;
    size_t map_len;
} fake_mr_t;

pthread_mutex_t fake_lock = PTHREAD_MUTEX_INITIALIZER;
static struct ibv_device devices[DEVICES];
bool fake_is_down[DEVICES];
static fake_context_t *contexts;
static fake_mr_t *mrs[MRS];
static uint64_t device_base, device_len;
static uint32_t next_mr = 3;
static int objects;
static const char *fail_call;
static int fail_nth;

const char *const fake_verbs_calls[] = {
    "ibv_get_device_list", "ibv_open_device",   "ibv_query_device",
    "ibv_query_port",      "ibv_query_gid",     "ibv_query_gid_ex",
    "ibv_alloc_pd",        "ibv_reg_mr",        "ibv_create_comp_channel",
    "ibv_create_cq",       "ibv_create_srq",    "ibv_create_qp",
    "ibv_modify_qp",       "ibv_post_send",     "ibv_post_srq_recv",
    "ibv_poll_cq",         "ibv_req_notify_cq", "ibv_get_cq_event",
    "ibv_dereg_mr",        "ibv_destroy_qp",    NULL};

void fake_broken(const char *text)
{
    fprintf(stderr, "fake verbs: %s\n", text);
    abort();
}

void fake_verbs_fail(const char *call, int nth)
{
    pthread_mutex_lock(&fake_lock);
    fail_call = call;
    fail_nth = nth;
    pthread_mutex_unlock(&fake_lock);
}

bool fake_verbs_failed(void)
{
    return fail_call != NULL && fail_nth <= 0;
}

int fake_verbs_objects(void)
{
    return objects;
}

/* Caller holds the lock. */
bool fake_fails(const char *call)
{
    if (fail_call == NULL || strcmp(call, fail_call) != 0 || fail_nth <= 0)
        return false;
    errno = EIO;
    return --fail_nth == 0;
}

bool fake_fails_now(const char *call)
{
    bool hit;

    pthread_mutex_lock(&fake_lock);
    hit = fake_fails(call);
    pthread_mutex_unlock(&fake_lock);
    return hit;
}

void *fake_make(size_t size)
{
    void *object = calloc(1, size);

    if (object == NULL)
        fake_broken("no memory");
    pthread_mutex_lock(&fake_lock);
    objects++;
    pthread_mutex_unlock(&fake_lock);
    return object;
}

void fake_unmake(void *object)
{
    pthread_mutex_lock(&fake_lock);
    objects--;
    pthread_mutex_unlock(&fake_lock);
    free(object);
}

/* Devices and ports */

struct ibv_device **ibv_get_device_list(int *num)
{
    struct ibv_device **list;

    if (fake_fails_now("ibv_get_device_list"))
        return NULL;
    list = fake_make((DEVICES + 1) * sizeof(*list));
    for (int i = 0; i < DEVICES; i++)
        list[i] = &devices[i];
    if (num != NULL)
        *num = DEVICES;
    return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
    fake_unmake(list);
}

const char *ibv_get_device_name(struct ibv_device *device)
{
    return device == &devices[0] ? "fake0" : "fake1";
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
    if (fake_fails_now("ibv_query_device"))
        return EIO;
    memset(attr, 0, sizeof(*attr));
    attr->phys_port_cnt = 1;
    return 0;
}

int ibv_query_port(struct ibv_context *context, uint8_t port,
                   struct _compat_ibv_port_attr *compat)
{
    struct ibv_port_attr *attr = (struct ibv_port_attr *)compat;

    if (fake_fails_now("ibv_query_port"))
        return EIO;
    pthread_mutex_lock(&fake_lock);
    attr->state = fake_is_down[((fake_context_t *)context)->device]
                      ? IBV_PORT_DOWN
                      : IBV_PORT_ACTIVE;
    pthread_mutex_unlock(&fake_lock);
    attr->active_mtu = IBV_MTU_4096;
    attr->gid_tbl_len = 2;
    attr->link_layer = IBV_LINK_LAYER_ETHERNET;
    return 0;
}

int ibv_query_gid(struct ibv_context *context, uint8_t port, int index,
                  union ibv_gid *gid)
{
    static const uint8_t mapped[16] = {[10] = 0xff, 0xff, 192, 0, 2, 1};

    if (fake_fails_now("ibv_query_gid"))
        return -1;
    memcpy(gid->raw, mapped, sizeof(mapped));
    return 0;
}

int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port,
                      uint32_t index, struct ibv_gid_entry *entry,
                      uint32_t flags, size_t size)
{
    if (fake_fails_now("ibv_query_gid_ex"))
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

    pthread_mutex_lock(&fake_lock);
    fake_is_down[device] = !is_active;
    for (fake_context_t *c = contexts; c != NULL; c = c->next) {
        if (c->device != device)
            continue;
        if (write(c->ibv.async_fd, &one, sizeof(one)) != sizeof(one))
            fake_broken("eventfd");
    }
    pthread_mutex_unlock(&fake_lock);
}

int ibv_get_async_event(struct ibv_context *context,
                        struct ibv_async_event *event)
{
    fake_context_t *fake = (fake_context_t *)context;
    uint64_t n;

    if (read(context->async_fd, &n, sizeof(n)) < 0)
        return -1;
    memset(event, 0, sizeof(*event));
    event->event_type = fake_is_down[fake->device] ? IBV_EVENT_PORT_ERR
                                                   : IBV_EVENT_PORT_ACTIVE;
    return 0;
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
}

/* Memory */

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
    struct ibv_pd *pd;

    if (fake_fails_now("ibv_alloc_pd"))
        return NULL;
    pd = fake_make(sizeof(*pd));
    pd->context = context;
    return pd;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
    fake_unmake(pd);
    return 0;
}

void fake_verbs_device_memory(uint64_t base, uint64_t len)
{
    device_base = base;
    device_len = len;
}

static fake_mr_t *mr_make(struct ibv_pd *pd, uint64_t iova, size_t len)
{
    fake_mr_t *mr = fake_make(sizeof(*mr));

    mr->ibv = (struct ibv_mr){.context = pd->context,
                              .pd = pd,
                              .addr = (void *)(uintptr_t)iova,
                              .length = len};
    pthread_mutex_lock(&fake_lock);
    while (mrs[next_mr % MRS] != NULL)
        next_mr++;
    mr->ibv.lkey = mr->ibv.rkey = next_mr;
    mrs[next_mr++ % MRS] = mr;
    pthread_mutex_unlock(&fake_lock);
    return mr;
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t len,
                                uint64_t iova, unsigned int access)
{
    if (fake_fails_now("ibv_reg_mr"))
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
        fake_broken("a descriptor cannot be mapped");
    mr->at = mr->map + offset;
    return &mr->ibv;
}

/* What a device refuses to forget is leaked by its owner: not here. */
int ibv_dereg_mr(struct ibv_mr *ibv)
{
    fake_mr_t *mr = (fake_mr_t *)ibv;
    bool hit = fake_fails_now("ibv_dereg_mr");

    pthread_mutex_lock(&fake_lock);
    mrs[ibv->rkey % MRS] = NULL;
    pthread_mutex_unlock(&fake_lock);
    if (mr->map != NULL)
        munmap(mr->map, mr->map_len);
    fake_unmake(mr);
    return hit ? EIO : 0;
}

/* Where it lies in this process; NULL if the key does not cover it. */
void *fake_find(uint32_t key, uint64_t addr, uint64_t len)
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

    if (fake_fails_now("ibv_create_comp_channel"))
        return NULL;
    channel = fake_make(sizeof(*channel));
    channel->context = context;
    channel->fd = eventfd(0, EFD_SEMAPHORE);
    return channel;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
    close(channel->fd);
    fake_unmake(channel);
    return 0;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int max,
                             void *cq_context,
                             struct ibv_comp_channel *channel, int vector)
{
    fake_cq_t *cq;

    if (fake_fails_now("ibv_create_cq"))
        return NULL;
    cq = fake_make(sizeof(*cq));
    cq->ibv.context = context;
    cq->ibv.channel = channel;
    cq->wcs = calloc((size_t)max, sizeof(*cq->wcs));
    cq->max = max;
    return &cq->ibv;
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
    free(((fake_cq_t *)cq)->wcs);
    fake_unmake(cq);
    return 0;
}

/* One queue at a time has events here: whichever is asked is right. */
int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq,
                     void **cq_context)
{
    uint64_t n;

    if (fake_fails_now("ibv_get_cq_event"))
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
void fake_complete(struct ibv_cq *ibv, const struct ibv_wc *wc)
{
    fake_cq_t *cq = (fake_cq_t *)ibv;
    static const uint64_t one = 1;

    if (cq->num == cq->max)
        fake_broken("a completion queue overflows");
    cq->wcs[cq->num++] = *wc;
    if (cq->is_armed && write(ibv->channel->fd, &one, sizeof(one)) < 0)
        fake_broken("eventfd");
    cq->is_armed = false;
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd,
                               struct ibv_srq_init_attr *attr)
{
    fake_srq_t *srq;

    if (fake_fails_now("ibv_create_srq"))
        return NULL;
    srq = fake_make(sizeof(*srq));
    srq->ibv.context = pd->context;
    srq->max = (int)attr->attr.max_wr;
    return &srq->ibv;
}

int ibv_destroy_srq(struct ibv_srq *srq)
{
    fake_unmake(srq);
    return 0;
}

/* Contexts */

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
    fake_context_t *context;

    if (fake_fails_now("ibv_open_device"))
        return NULL;
    context = fake_make(sizeof(*context));
    context->ibv.device = device;
    context->device = (int)(device - devices);
    context->ibv.async_fd = eventfd(0, 0);
    context->ibv.cmd_fd = -1;
    context->ibv.ops.post_send = fake_post_send;
    context->ibv.ops.post_srq_recv = fake_post_recv;
    context->ibv.ops.poll_cq = fake_poll_cq;
    context->ibv.ops.req_notify_cq = fake_notify_cq;
    pthread_mutex_lock(&fake_lock);
    context->next = contexts;
    contexts = context;
    pthread_mutex_unlock(&fake_lock);
    return &context->ibv;
}

int ibv_close_device(struct ibv_context *ibv)
{
    fake_context_t **at;

    pthread_mutex_lock(&fake_lock);
    for (at = &contexts; *at != (fake_context_t *)ibv; at = &(*at)->next)
        ;
    *at = (*at)->next;
    pthread_mutex_unlock(&fake_lock);
    close(ibv->async_fd);
    fake_unmake(ibv);
    return 0;
}
