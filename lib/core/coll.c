/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Collectives: dispatch, plan, launch.
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
                           const hce_args_t *args)
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
    entry->call.datatype = (int32_t)args->datatype;
    entry->call.op = (int32_t)args->op;
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
                            const hce_args_t *args)
{
    const hce_call_params_t *params = &args->params;

    launch->stream = args->stream == NULL ? &comm->stream : args->stream;
    launch->timeout_ns = comm->timeout_ns;
    if (params->field_mask & HCE_CALL_PARAM_TIMEOUT)
        launch->timeout_ns =
            (uint64_t)(params->timeout * (double)HCE_NS_PER_SEC);
    launch->name[0] = '\0';
    if (params->field_mask & HCE_CALL_PARAM_NAME)
        snprintf(launch->name, sizeof(launch->name), "%s", params->name);
    describe_entry(comm, launch, args);
}

static hce_dispatch_call_t dispatch_call(const hce_args_t *args)
{
    bool reduces = args->coll != HCE_COLL_ALLGATHER;

    return (hce_dispatch_call_t){
        .coll = args->coll,
        .datatype = reduces ? args->datatype : 0,
        .op = reduces ? args->op : 0,
        .len = hce_args_len(args),
    };
}

static hce_status_t make_launch(hce_comm_h comm, const hce_args_t *args,
                                hce_launch_t *launch)
{
    hce_dispatch_call_t call = dispatch_call(args);
    hce_status_t status;
    uint32_t net_bufs;

    status = hce_plans_get(comm, &call, hce_args_is_in_place(comm, args),
                           &args->choice, &launch->item);
    if (status != HCE_OK)
        return status;
    launch->plan = launch->item->plan;
    hce_stats_set_choice(&comm->stats, launch->item->line);
    net_bufs = launch->plan->net_bufs;
    status = prepare_buf(comm, args->send, hce_args_send_len(comm, args),
                         net_bufs >> HCE_BUF_SEND & 1, &launch->send);
    if (status != HCE_OK)
        goto err_plan;
    status = prepare_buf(comm, args->recv, hce_args_recv_len(comm, args),
                         net_bufs >> HCE_BUF_RECV & 1, &launch->recv);
    if (status != HCE_OK)
        goto err_send;
    describe_launch(comm, launch, args);
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
    const hce_call_params_t *params = &job->coll.params;
    hce_comm_h comm = job->comm;
    hce_launch_t *launch;
    hce_status_t status;

    launch = hce_queue_acquire(comm);
    status = make_launch(comm, &job->coll, launch);
    if (status != HCE_OK)
        return status;
    launch->ticket = hce_stream_take_ticket(launch->stream);
    hce_queue_push(&comm->queue);
    if ((params->field_mask & HCE_CALL_PARAM_BLOCKING) && params->blocking)
        return hce_stream_synchronize(comm, launch->stream);
    hce_engine_kick();
    return HCE_OK;
}

/* From arguments to the thread's group, or to a launch. */
static hce_status_t submit(hce_comm_h comm, hce_args_t *args,
                           const hce_call_params_t *params)
{
    hce_group_job_t job = {.kind = HCE_GROUP_COLL, .comm = comm};
    hce_status_t status = hce_comm_check(comm, args->call);
    hce_dispatch_call_t call;

    if (params != NULL)
        args->params = *params;
    if (status == HCE_OK)
        status = hce_args_check(comm, args);
    if (status == HCE_OK) {
        call = dispatch_call(args);
        status = hce_dispatch_choose(comm, &call, &args->params,
                                     &args->choice);
    }
    if (status == HCE_OK)
        status = hce_fault_status(&comm->fault);
    job.coll = *args;
    return hce_group_submit(&job, status, args->call);
}

hce_status_t hce_allgather(const void *sendbuf, void *recvbuf, size_t count,
                           hce_datatype_t datatype, hce_comm_h comm,
                           hce_stream_h stream,
                           const hce_call_params_t *params)
{
    hce_args_t args = {
        .coll = HCE_COLL_ALLGATHER,
        .call = "hce_allgather",
        .send = sendbuf,
        .recv = recvbuf,
        .count = count,
        .datatype = datatype,
        .stream = stream,
    };

    return submit(comm, &args, params);
}

hce_status_t hce_reduce_scatter(const void *sendbuf, void *recvbuf,
                                size_t count, hce_datatype_t datatype,
                                hce_redop_t op, hce_comm_h comm,
                                hce_stream_h stream,
                                const hce_call_params_t *params)
{
    hce_args_t args = {
        .coll = HCE_COLL_REDUCE_SCATTER,
        .call = "hce_reduce_scatter",
        .send = sendbuf,
        .recv = recvbuf,
        .count = count,
        .datatype = datatype,
        .op = op,
        .stream = stream,
    };

    return submit(comm, &args, params);
}

hce_status_t hce_allreduce(const void *sendbuf, void *recvbuf, size_t count,
                           hce_datatype_t datatype, hce_redop_t op,
                           hce_comm_h comm, hce_stream_h stream,
                           const hce_call_params_t *params)
{
    hce_args_t args = {
        .coll = HCE_COLL_ALLREDUCE,
        .call = "hce_allreduce",
        .send = sendbuf,
        .recv = recvbuf,
        .count = count,
        .datatype = datatype,
        .op = op,
        .stream = stream,
    };

    return submit(comm, &args, params);
}
