/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Checks of arguments, and what follows from them.
 */
#include "config.h"

#include "core/args.h"

#include <stdint.h>

#include "core/comm.h"
#include "core/group.h"
#include "util/log.h"

static hce_plan_params_t plan_params(hce_comm_h comm, const hce_args_t *args)
{
    return (hce_plan_params_t){
        .layout = comm->layout,
        .len = hce_args_len(args),
        .coll = args->coll,
    };
}

size_t hce_args_len(const hce_args_t *args)
{
    return args->count * hce_datatype_size(args->datatype);
}

size_t hce_args_send_len(hce_comm_h comm, const hce_args_t *args)
{
    hce_plan_params_t params = plan_params(comm, args);

    return hce_plan_send_len(&params);
}

size_t hce_args_recv_len(hce_comm_h comm, const hce_args_t *args)
{
    hce_plan_params_t params = plan_params(comm, args);

    return hce_plan_recv_len(&params);
}

/* Where the shorter of both lies in the longer one. */
static size_t own_offset(hce_comm_h comm, const hce_args_t *args)
{
    return args->coll == HCE_COLL_ALLREDUCE
               ? 0
               : (size_t)comm->rank * hce_args_len(args);
}

bool hce_args_is_in_place(hce_comm_h comm, const hce_args_t *args)
{
    const char *send = args->send, *recv = args->recv;

    if (args->coll == HCE_COLL_REDUCE_SCATTER)
        return recv == send + own_offset(comm, args);
    return send == recv + own_offset(comm, args);
}

static hce_status_t check_params(const hce_args_t *args)
{
    const hce_call_params_t *params = &args->params;

    if ((params->field_mask & HCE_CALL_PARAM_NAME) && params->name == NULL) {
        hce_log(ERROR, CORE, "%s: params.name is NULL", args->call);
        return HCE_ERR_INVALID_ARG;
    }
    if ((params->field_mask & HCE_CALL_PARAM_TIMEOUT) &&
        !(params->timeout >= 0 && params->timeout < 1e9)) {
        hce_log(ERROR, CORE,
                "%s: params.timeout is %g, expected seconds from 0 to 1e9",
                args->call, params->timeout);
        return HCE_ERR_INVALID_ARG;
    }
    if ((params->field_mask & HCE_CALL_PARAM_BLOCKING) && params->blocking &&
        hce_group_is_open()) {
        hce_log(ERROR, CORE,
                "%s: params.blocking inside a group would never return",
                args->call);
        return HCE_ERR_INVALID_ARG;
    }
    return HCE_OK;
}

static bool overlaps(const char *a, size_t a_len, const char *b, size_t b_len)
{
    return a_len > 0 && b_len > 0 && a < b + b_len && b < a + a_len;
}

static hce_status_t check_buffers(hce_comm_h comm, const hce_args_t *args)
{
    size_t send_len = hce_args_send_len(comm, args);
    size_t recv_len = hce_args_recv_len(comm, args);

    if (args->count > 0 && (args->send == NULL || args->recv == NULL)) {
        hce_log(ERROR, CORE, "%s: %s is NULL with %zu bytes a rank",
                args->call, args->send == NULL ? "sendbuf" : "recvbuf",
                hce_args_len(args));
        return HCE_ERR_INVALID_ARG;
    }
    if (!hce_args_is_in_place(comm, args) &&
        overlaps(args->send, send_len, args->recv, recv_len)) {
        hce_log(ERROR, CORE,
                "%s: sendbuf %p (%zu bytes) overlaps recvbuf %p (%zu bytes) "
                "but does not lie at offset %zu of the other, as in place",
                args->call, args->send, send_len, args->recv, recv_len,
                own_offset(comm, args));
        return HCE_ERR_INVALID_ARG;
    }
    return HCE_OK;
}

static hce_status_t check_count(hce_comm_h comm, const hce_args_t *args)
{
    size_t size = hce_datatype_size(args->datatype);

    if (size == 0) {
        hce_log(ERROR, CORE, "%s: datatype %d is not one", args->call,
                (int)args->datatype);
        return HCE_ERR_INVALID_ARG;
    }
    if (hce_redop_string(args->op) == NULL) {
        hce_log(ERROR, CORE, "%s: op %d is not one", args->call,
                (int)args->op);
        return HCE_ERR_INVALID_ARG;
    }
    if (args->count > (size_t)PTRDIFF_MAX / size /
                          (size_t)hce_comm_size(comm)) {
        hce_log(ERROR, CORE,
                "%s: count %zu of %s on %d ranks is more than the address "
                "space",
                args->call, args->count, hce_datatype_string(args->datatype),
                hce_comm_size(comm));
        return HCE_ERR_INVALID_ARG;
    }
    return HCE_OK;
}

hce_status_t hce_args_check(hce_comm_h comm, const hce_args_t *args)
{
    hce_status_t status = check_count(comm, args);

    if (status == HCE_OK)
        status = check_buffers(comm, args);
    if (status == HCE_OK)
        status = check_params(args);
    return status;
}
