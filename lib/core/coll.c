/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * hce_allgather: arguments, dispatch, plan, launch.
 */
#include "config.h"

#include "core/coll.h"

#include <stdio.h>
#include <string.h>

#include "core/comm.h"
#include "core/dispatch.h"
#include "util/log.h"

/* The window's registration, or one for this call, if puts need it. */
static hce_status_t prepare_buf(hce_comm_h comm, const void *addr, size_t len,
                                bool is_put, hce_launch_buf_t *buf)
{
    hce_window_h win = hce_window_find(comm, addr, len);
    hce_status_t status;

    *buf = (hce_launch_buf_t){.addr = (char *)addr, .len = len};
    if (comm->proxy == NULL || len == 0 || !is_put)
        return HCE_OK;
    if (win != NULL && win->mem != NULL) {
        buf->mem = win->mem;
        return HCE_OK;
    }
    status = hce_proxy_register(comm->proxy, buf->addr, len, &buf->mem);
    buf->is_own_mem = status == HCE_OK;
    return status;
}

static void describe_entry(hce_comm_h comm, hce_launch_t *launch,
                           const hce_group_job_t *job)
{
    const hce_plan_params_t *params = &launch->plan->params;
    hce_entry_t *entry = &launch->entry;
    const void *key;
    size_t key_len;

    memset(entry, 0, sizeof(*entry)); /* compared and sent as bytes */
    entry->version = HCE_ENTRY_VERSION;
    entry->call.number = comm->queue.calls + 1;
    entry->call.len = params->len;
    entry->call.width = params->width;
    entry->call.coll = (int32_t)params->coll;
    entry->call.datatype = (int32_t)job->allgather.datatype;
    entry->call.root = params->root;
    entry->call.contexts = (uint8_t)params->contexts;
    entry->call.dirs = (uint8_t)params->dirs;
    entry->call.carriers = (uint16_t)params->carriers;
    memcpy(entry->call.path, launch->plan->path,
           strnlen(launch->plan->path, sizeof(entry->call.path)));
    hce_ce_describe(comm->ce, launch->send.addr, launch->send.len,
                    &entry->send);
    hce_ce_describe(comm->ce, launch->recv.addr, launch->recv.len,
                    &entry->recv);
    if (launch->recv.mem == NULL)
        return;
    key = hce_proxy_key(launch->recv.mem, &key_len);
    memcpy(entry->key, key, key_len);
    entry->key_len = (uint32_t)key_len;
}

static void describe_launch(hce_comm_h comm, hce_launch_t *launch,
                            const hce_group_job_t *job)
{
    const hce_call_params_t *params = &job->allgather.params;

    launch->stream = job->allgather.stream == NULL ? &comm->stream
                                                   : job->allgather.stream;
    launch->timeout_ns = comm->timeout_ns;
    if (params->field_mask & HCE_CALL_PARAM_TIMEOUT)
        launch->timeout_ns =
            (uint64_t)(params->timeout * (double)HCE_NS_PER_SEC);
    launch->name[0] = '\0';
    if (params->field_mask & HCE_CALL_PARAM_NAME)
        snprintf(launch->name, sizeof(launch->name), "%s", params->name);
    describe_entry(comm, launch, job);
}

static hce_status_t make_launch(hce_comm_h comm, const hce_group_job_t *job,
                                hce_launch_t *launch)
{
    size_t len = job->allgather.count *
                 hce_datatype_size(job->allgather.datatype);
    const char *own = (const char *)job->allgather.recv +
                      (size_t)comm->rank * len;
    hce_status_t status;
    uint32_t net_bufs;

    status = hce_plans_get(comm, HCE_COLL_ALLGATHER, len,
                           job->allgather.send == own,
                           &job->allgather.choice,
                           &launch->item);
    if (status != HCE_OK)
        return status;
    launch->plan = launch->item->plan;
    hce_stats_set_choice(&comm->stats, launch->item->line);
    net_bufs = launch->plan->net_bufs;
    status = prepare_buf(comm, job->allgather.send, len,
                         net_bufs >> HCE_BUF_SEND & 1, &launch->send);
    if (status != HCE_OK)
        goto err_plan;
    status = prepare_buf(comm, job->allgather.recv,
                         len * (size_t)hce_comm_size(comm),
                         net_bufs >> HCE_BUF_RECV & 1, &launch->recv);
    if (status != HCE_OK)
        goto err_send;
    describe_launch(comm, launch, job);
    return HCE_OK;
err_send:
    if (launch->send.is_own_mem)
        hce_proxy_deregister(comm->proxy, launch->send.mem);
err_plan:
    hce_plans_put(launch->item);
    return status;
}

hce_status_t hce_coll_enqueue(const hce_group_job_t *job)
{
    const hce_call_params_t *params = &job->allgather.params;
    hce_comm_h comm = job->comm;
    hce_launch_t *launch;
    hce_status_t status;

    launch = hce_queue_acquire(comm);
    status = make_launch(comm, job, launch);
    if (status != HCE_OK)
        return status;
    launch->ticket = hce_stream_take_ticket(launch->stream);
    hce_queue_push(&comm->queue);
    if ((params->field_mask & HCE_CALL_PARAM_BLOCKING) && params->blocking)
        return hce_stream_synchronize(comm, launch->stream);
    hce_engine_kick();
    return HCE_OK;
}

static hce_status_t check_params(const hce_call_params_t *params)
{
    if ((params->field_mask & HCE_CALL_PARAM_NAME) && params->name == NULL) {
        hce_log(ERROR, CORE, "hce_allgather: params.name is NULL");
        return HCE_ERR_INVALID_ARG;
    }
    if ((params->field_mask & HCE_CALL_PARAM_TIMEOUT) &&
        !(params->timeout >= 0 && params->timeout < 1e9)) {
        hce_log(ERROR, CORE,
                "hce_allgather: params.timeout is %g, expected seconds from "
                "0 to 1e9",
                params->timeout);
        return HCE_ERR_INVALID_ARG;
    }
    if ((params->field_mask & HCE_CALL_PARAM_BLOCKING) && params->blocking &&
        hce_group_is_open()) {
        hce_log(ERROR, CORE,
                "hce_allgather: params.blocking inside a group would never "
                "return");
        return HCE_ERR_INVALID_ARG;
    }
    return HCE_OK;
}

static bool overlaps(const char *a, size_t a_len, const char *b, size_t b_len)
{
    return a_len > 0 && b_len > 0 && a < b + b_len && b < a + a_len;
}

static hce_status_t check_buffers(hce_comm_h comm, const void *send,
                                  void *recv, size_t len)
{
    const char *own = (const char *)recv + (size_t)comm->rank * len;
    size_t total = len * (size_t)hce_comm_size(comm);

    if (len > 0 && (send == NULL || recv == NULL)) {
        hce_log(ERROR, CORE, "hce_allgather: %s is NULL with %zu bytes a rank",
                send == NULL ? "sendbuf" : "recvbuf", len);
        return HCE_ERR_INVALID_ARG;
    }
    if (send != own && overlaps(send, len, recv, total)) {
        hce_log(ERROR, CORE,
                "hce_allgather: sendbuf %p (%zu bytes) overlaps recvbuf %p "
                "(%zu bytes) but is not its slice %d",
                send, len, recv, total, comm->rank);
        return HCE_ERR_INVALID_ARG;
    }
    return HCE_OK;
}

static hce_status_t check_count(hce_comm_h comm, size_t count,
                                hce_datatype_t datatype)
{
    size_t size = hce_datatype_size(datatype);

    if (size == 0) {
        hce_log(ERROR, CORE, "hce_allgather: datatype %d is not one",
                (int)datatype);
        return HCE_ERR_INVALID_ARG;
    }
    if (count > (size_t)PTRDIFF_MAX / size / (size_t)hce_comm_size(comm)) {
        hce_log(ERROR, CORE,
                "hce_allgather: count %zu of %s on %d ranks is more than the "
                "address space",
                count, hce_datatype_string(datatype), hce_comm_size(comm));
        return HCE_ERR_INVALID_ARG;
    }
    return HCE_OK;
}

hce_status_t hce_allgather(const void *sendbuf, void *recvbuf, size_t count,
                           hce_datatype_t datatype, hce_comm_h comm,
                           hce_stream_h stream,
                           const hce_call_params_t *params)
{
    hce_group_job_t job = {
        .kind = HCE_GROUP_ALLGATHER,
        .comm = comm,
        .allgather = {.send = sendbuf,
                      .recv = recvbuf,
                      .count = count,
                      .datatype = datatype,
                      .stream = stream},
    };
    hce_status_t status = hce_comm_check(comm, "hce_allgather");

    if (params != NULL)
        job.allgather.params = *params;
    if (status == HCE_OK)
        status = check_count(comm, count, datatype);
    if (status == HCE_OK)
        status = check_buffers(comm, sendbuf, recvbuf,
                               count * hce_datatype_size(datatype));
    if (status == HCE_OK)
        status = check_params(&job.allgather.params);
    if (status == HCE_OK)
        status = hce_dispatch_choose(comm, HCE_COLL_ALLGATHER,
                                     count * hce_datatype_size(datatype),
                                     &job.allgather.params,
                                     &job.allgather.choice);
    if (status == HCE_OK)
        status = hce_fault_status(&comm->fault);
    return hce_group_submit(&job, status, "hce_allgather");
}
