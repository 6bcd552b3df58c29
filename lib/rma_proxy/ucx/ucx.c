/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * UCX transport: open, close, progress, sleep, flush.
 */
#include "config.h"

#include "rma_proxy/ucx/ucx.h"

#include "rma_proxy/settings.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/math.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define UCX_SEGMENT    (64 * HCE_KIB) /* one fragment, see context.c */
#define UCX_DEPTH      16
#define UCX_PARCEL     (60 * HCE_KIB) /* one fragment with its mail */
#define UCX_BYE_NS     (500 * HCE_NS_PER_MS) /* for goodbyes to leave */
#define UCX_CLOSE_NS   (500 * HCE_NS_PER_MS) /* for endpoints to close */
#define UCX_MAX_USEFUL 4

static const char *ucx_unusable(void)
{
    const ucx_facts_t *facts = hce_ucx_facts();

    return facts->why[0] != '\0' ? facts->why : NULL;
}

static void ucx_describe(char *buf, size_t size)
{
    const ucx_facts_t *facts = hce_ucx_facts();

    snprintf(buf, size, "UCX %s, devices %s", ucp_get_version_string(),
             facts->devices[0] != '\0' ? facts->devices : "none");
}

static hce_status_t worker_open(ucx_t *ucx, ucx_worker_t *worker)
{
    ucp_worker_params_t params = {.field_mask =
                                      UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                  .thread_mode = UCS_THREAD_MODE_SERIALIZED};
    ucp_worker_attr_t attr = {.field_mask = UCP_WORKER_ATTR_FIELD_THREAD_MODE};
    const char *what = "worker";
    ucs_status_t status = UCS_ERR_NO_MEMORY;

    worker->ucx = ucx;
    worker->answers =
        calloc((size_t)ucx->params.size, sizeof(*worker->answers));
    if (worker->answers == NULL)
        goto err;
    status = ucp_worker_create(ucx->context, &params, &worker->worker);
    if (status != UCS_OK)
        goto err;
    what = "granted thread mode";
    status = ucp_worker_query(worker->worker, &attr);
    if (status == UCS_OK && attr.thread_mode == UCS_THREAD_MODE_SINGLE)
        status = UCS_ERR_UNSUPPORTED;
    if (status != UCS_OK)
        goto err_destroy;
    what = "event descriptor";
    status = ucp_worker_get_efd(worker->worker, &worker->fd);
    if (status != UCS_OK)
        goto err_destroy;
    (void)fcntl(worker->fd, F_SETFD, FD_CLOEXEC);
    if (hce_ucx_handlers_init(worker) == HCE_OK)
        return HCE_OK;
    what = "active messages";
    status = UCS_ERR_UNSUPPORTED;

err_destroy:
    ucp_worker_destroy(worker->worker);
    worker->worker = NULL;
err:
    hce_log(ERROR, PROXY, "ucx: %s: %s", what, ucs_status_string(status));
    return HCE_ERR_TRANSPORT;
}

static hce_status_t inbox_register(ucx_t *ucx)
{
    ucp_mem_map_params_t params = {
        .field_mask =
            UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH,
        .address = ucx->params.inbox,
        .length = ucx->params.inbox_words * sizeof(hce_counter_t),
    };
    ucs_status_t status;

    if (ucx->am_puts)
        return HCE_OK;
    status = ucp_mem_map(ucx->context, &params, &ucx->inbox);
    if (status == UCS_OK)
        return HCE_OK;
    hce_log(ERROR, PROXY, "ucx: registering the inbox: %s",
            ucs_status_string(status));
    return HCE_ERR_TRANSPORT;
}

static void worker_close(ucx_worker_t *worker)
{
    if (worker->worker != NULL)
        ucp_worker_destroy(worker->worker);
    for (int i = 0; worker->answers != NULL && i < worker->ucx->params.size;
         i++)
        free(worker->answers[i].addr);
    free(worker->answers);
}

static void ucx_free(ucx_t *ucx)
{
    for (int i = 0; i < ucx->params.contexts; i++)
        worker_close(&ucx->workers[i]);
    /* With the workers gone no callback can name a peer any more. */
    for (int i = 0; ucx->peers != NULL && i < ucx->params.size; i++)
        free(ucx->peers[i]);
    if (ucx->inbox != NULL)
        (void)ucp_mem_unmap(ucx->context, ucx->inbox);
    if (ucx->context != NULL)
        ucp_cleanup(ucx->context);
    hce_regions_cleanup(&ucx->regions);
    free(ucx->peers);
    free(ucx->refused);
    free(ucx->addr);
    free(ucx);
}

static bool choose_am(void)
{
    switch (hce_proxy_settings.ucx_put) {
    case HCE_UCX_PUT_AM:
        return true;
    case HCE_UCX_PUT_RMA:
        return false;
    default:
        return !hce_ucx_facts()->rma;
    }
}

static size_t choose_sockbuf(const ucx_t *ucx)
{
    uint64_t mbit = hce_ucx_link_mbit(hce_ucx_facts()->devices);
    size_t size =
        hce_ucx_sockbuf(ucx->params.flows * ucx->params.contexts, mbit);

    hce_log(DEBUG, PROXY,
            "ucx: send buffers of %zu bytes for %d flows x %d contexts, link "
            "of %llu Mbit/s (0: unknown)",
            size, ucx->params.flows, ucx->params.contexts,
            (unsigned long long)mbit);
    return size;
}

static hce_status_t ucx_open(const hce_transport_params_t *params,
                             hce_transport_t **transport_p)
{
    ucx_t *ucx = calloc(1, sizeof(*ucx));
    hce_status_t status = HCE_ERR_NO_MEMORY;
    ucs_status_t result;

    if (ucx == NULL)
        return status;
    hce_regions_init(&ucx->regions);
    ucx->params = *params;
    ucx->am_puts = choose_am();
    if (params->contexts == 0)
        ucx->params.contexts =
            hce_min(hce_ucx_facts()->contexts, UCX_MAX_USEFUL);
    ucx->params.contexts = hce_min(ucx->params.contexts, UCX_MAX_CONTEXTS);
    ucx->peers = calloc((size_t)params->size, sizeof(*ucx->peers));
    ucx->refused = calloc((size_t)params->size, sizeof(*ucx->refused));
    if (ucx->peers == NULL || ucx->refused == NULL)
        goto err;
    result = hce_ucx_context_create(!ucx->am_puts, choose_sockbuf(ucx),
                                    &ucx->context);
    if (result != UCS_OK) {
        hce_log(ERROR, PROXY, "ucx: context: %s", ucs_status_string(result));
        status = HCE_ERR_TRANSPORT;
        goto err;
    }
    status = inbox_register(ucx);
    for (int i = 0; i < ucx->params.contexts && status == HCE_OK; i++) {
        ucx->workers[i].context = i;
        status = worker_open(ucx, &ucx->workers[i]);
    }
    if (status == HCE_OK)
        status = hce_ucx_address_create(ucx, &ucx->addr, &ucx->addr_len);
    if (status != HCE_OK)
        goto err;
    *transport_p = (hce_transport_t *)ucx;
    return HCE_OK;

err:
    ucx_free(ucx);
    return status;
}

static bool workers_progress(ucx_t *ucx)
{
    bool moved = false;

    for (int i = 0; i < ucx->params.contexts; i++)
        moved |= ucp_worker_progress(ucx->workers[i].worker) != 0;
    return moved;
}

/* Closes the endpoints of peers that have failed: outside of callbacks. */
static void close_failed(ucx_t *ucx)
{
    ucx->failing = false;
    for (int i = 0; i < ucx->params.size; i++) {
        if (ucx->peers[i] != NULL && ucx->peers[i]->status != HCE_OK)
            hce_ucx_peer_close(ucx->peers[i]);
    }
}

static bool ucx_progress(hce_transport_t *transport)
{
    ucx_t *ucx = ucx_of(transport);
    bool moved = workers_progress(ucx);

    for (int i = 0; i < ucx->params.contexts; i++) {
        if (ucx->workers[i].answering)
            hce_ucx_answer(&ucx->workers[i]);
    }
    if (ucx->failing)
        close_failed(ucx);
    return moved;
}

static int ucx_fds(hce_transport_t *transport, int *fds)
{
    ucx_t *ucx = ucx_of(transport);

    for (int i = 0; i < ucx->params.contexts; i++)
        fds[i] = ucx->workers[i].fd;
    return ucx->params.contexts;
}

static bool ucx_arm(hce_transport_t *transport)
{
    ucx_t *ucx = ucx_of(transport);

    for (int i = 0; i < ucx->params.contexts; i++) {
        if (ucp_worker_arm(ucx->workers[i].worker) != UCS_OK)
            return false; /* UCS_ERR_BUSY: events to progress */
    }
    return true;
}

static void flush_start(ucx_t *ucx)
{
    ucp_request_param_t param = {.op_attr_mask = 0};

    for (int i = 0; !ucx->am_puts && i < ucx->params.contexts; i++)
        ucx->workers[i].flush =
            ucp_worker_flush_nbx(ucx->workers[i].worker, &param);
    for (int i = 0; i < ucx->params.size; i++) {
        ucx_peer_t *peer = ucx->peers[i];

        for (int k = 0; peer != NULL && k < ucx->params.contexts; k++) {
            ucx_ep_t *ep = &peer->eps[k];

            if (!ep->dirty)
                continue;
            ep->dirty = false;
            ep->flush_due = true;
            ep->flush++;
        }
    }
    ucx->flushing = true;
}

static hce_status_t workers_flushed(ucx_t *ucx)
{
    hce_status_t status = HCE_OK;

    for (int i = 0; i < ucx->params.contexts; i++) {
        ucs_status_ptr_t *flush = &ucx->workers[i].flush;

        if (UCS_PTR_IS_PTR(*flush)) {
            ucs_status_t result = ucp_request_check_status(*flush);

            if (result == UCS_INPROGRESS)
                return HCE_INPROGRESS;
            ucp_request_free(*flush);
            *flush = UCS_STATUS_PTR(result);
        }
        if (UCS_PTR_IS_ERR(*flush))
            status = hce_ucx_status(UCS_PTR_STATUS(*flush));
    }
    return status;
}

static hce_status_t peer_flushed(ucx_peer_t *peer)
{
    for (int i = 0; i < peer->ucx->params.contexts; i++) {
        ucx_ep_t *ep = &peer->eps[i];

        if (peer->status != HCE_OK)
            return peer->left ? HCE_OK : peer->status;
        if (ep->flush_due)
            ep->flush_due = hce_ucx_am_flush(ep) != HCE_OK;
        if (ep->acked != ep->flush)
            return HCE_INPROGRESS;
    }
    return HCE_OK;
}

static hce_status_t peers_flushed(ucx_t *ucx)
{
    hce_status_t status = HCE_OK;

    for (int i = 0; i < ucx->params.size; i++) {
        hce_status_t result =
            ucx->peers[i] != NULL ? peer_flushed(ucx->peers[i]) : HCE_OK;

        if (result == HCE_INPROGRESS)
            return HCE_INPROGRESS;
        if (result != HCE_OK)
            status = result;
    }
    return status;
}

/* A peer that has failed has lost what was on its way: an error, once the
 * others are through. One that has left wants nothing more. */
static hce_status_t ucx_flush(hce_transport_t *transport)
{
    ucx_t *ucx = ucx_of(transport);
    hce_status_t workers, peers;

    if (!ucx->flushing)
        flush_start(ucx);
    workers = workers_flushed(ucx);
    peers = peers_flushed(ucx);
    if (workers == HCE_INPROGRESS || peers == HCE_INPROGRESS)
        return HCE_INPROGRESS;
    ucx->flushing = false;
    return peers; /* what a worker reports is some peer's failure */
}

/* True if the goodbye, and so all before it, has left this process. */
static bool bye_is_out(ucx_ep_t *ep)
{
    if (ep->peer->status != HCE_OK)
        return true;
    if (ep->bye_due)
        ep->bye_due =
            hce_ucx_am_tell(ep, UCX_AM_BYE, 0, 0) == HCE_ERR_NO_RESOURCE;
    return !ep->bye_due && ep->num_free == UCX_OPS &&
           (!ep->peer->ucx->am_puts || hce_ucx_am_ring(ep));
}

static bool byes_are_out(ucx_t *ucx)
{
    bool out = true;

    for (int i = 0; i < ucx->params.size; i++) {
        ucx_peer_t *peer = ucx->peers[i];

        for (int k = 0; peer != NULL && k < ucx->params.contexts; k++)
            out &= bye_is_out(&peer->eps[k]);
    }
    return out;
}

/* So that nobody takes the end of my connections for my death: last on each
 * of them. */
static void say_bye(ucx_t *ucx)
{
    uint64_t end = hce_clock_ns() + UCX_BYE_NS;

    for (int i = 0; i < ucx->params.size; i++) {
        for (int k = 0; ucx->peers[i] != NULL && k < ucx->params.contexts; k++)
            ucx->peers[i]->eps[k].bye_due = true;
    }
    while (!byes_are_out(ucx) && hce_clock_ns() < end)
        workers_progress(ucx);
}

static void wait_request(ucx_t *ucx, ucs_status_ptr_t request, uint64_t end)
{
    if (!UCS_PTR_IS_PTR(request))
        return;
    while (ucp_request_check_status(request) == UCS_INPROGRESS &&
           hce_clock_ns() < end)
        workers_progress(ucx);
    ucp_request_free(request);
}

/* Requests that are still out end when their endpoint is closed. */
static void ucx_close(hce_transport_t *transport)
{
    ucx_t *ucx = ucx_of(transport);
    ucp_request_param_t param = {.op_attr_mask = 0};
    uint64_t end;

    say_bye(ucx);
    for (int i = 0; i < ucx->params.size; i++) {
        if (ucx->peers[i] != NULL)
            hce_ucx_peer_close(ucx->peers[i]);
    }
    end = hce_clock_ns() + UCX_CLOSE_NS;
    for (int i = 0; i < ucx->params.contexts; i++) {
        ucx_worker_t *worker = &ucx->workers[i];

        if (ucx->flushing)
            wait_request(ucx, worker->flush, end);
        wait_request(ucx, ucp_worker_flush_nbx(worker->worker, &param), end);
    }
    ucx_free(ucx);
}

static hce_status_t ucx_address(hce_transport_t *transport, void **addr_p,
                                size_t *len_p)
{
    ucx_t *ucx = ucx_of(transport);
    void *addr = malloc(ucx->addr_len);

    if (addr == NULL)
        return HCE_ERR_NO_MEMORY;
    memcpy(addr, ucx->addr, ucx->addr_len);
    *addr_p = addr;
    *len_p = ucx->addr_len;
    return HCE_OK;
}

static void ucx_query(hce_transport_t *transport, hce_transport_attr_t *attr_p)
{
    attr_p->contexts = ucx_of(transport)->params.contexts;
    attr_p->segment = UCX_SEGMENT;
    attr_p->depth = UCX_DEPTH;
    attr_p->parcel = UCX_PARCEL;
    attr_p->kind = hce_ucx_facts()->rma ? "rdma" : "tcp";
}

/* UCX keeps its sockets to itself; these are all that can be closed. */
static void ucx_forked(hce_transport_t *transport)
{
    ucx_t *ucx = ucx_of(transport);

    for (int i = 0; i < ucx->params.contexts; i++)
        close(ucx->workers[i].fd);
}

const hce_transport_ops_t hce_transport_ucx = {
    .name = "ucx",
    .automatic = true,
    .unusable = ucx_unusable,
    .describe = ucx_describe,
    .open = ucx_open,
    .close = ucx_close,
    .query = ucx_query,
    .address = ucx_address,
    .connect = hce_ucx_connect,
    .mem_register = hce_ucx_mem_register,
    .mem_deregister = hce_ucx_mem_deregister,
    .mem_pack = hce_ucx_mem_pack,
    .key_unpack = hce_ucx_key_unpack,
    .key_destroy = hce_ucx_key_destroy,
    .put = hce_ucx_put,
    .signal = hce_ucx_signal,
    .message = hce_ucx_message,
    .parcel = hce_ucx_parcel,
    .progress = ucx_progress,
    .fds = ucx_fds,
    .arm = ucx_arm,
    .flush = ucx_flush,
    .forked = ucx_forked,
};
