/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Arguments of collectives: the same struct for all of them, and the checks
 * of what a caller passed. Caller's thread.
 */
#ifndef HCE_CORE_ARGS_H
#define HCE_CORE_ARGS_H

#include <hce/hce.h>
#include <stdbool.h>
#include "core/dispatch.h"

typedef struct hce_args {
    hce_coll_t coll;
    const char *call; /* "hce_allgather", for what is logged */
    const void *send;
    void *recv;
    size_t count; /* elements of hce_plan_params_t.len */
    hce_datatype_t datatype;
    hce_redop_t op; /* of reductions */
    hce_stream_h stream;
    hce_call_params_t params;
    hce_dispatch_choice_t choice;
} hce_args_t;

/* Bytes that plans call len; of each rank's input and output; and is the one
 * where the other has its place? After the checks. */
size_t hce_args_len(const hce_args_t *args);
size_t hce_args_send_len(hce_comm_h comm, const hce_args_t *args);
size_t hce_args_recv_len(hce_comm_h comm, const hce_args_t *args);
bool hce_args_is_in_place(hce_comm_h comm, const hce_args_t *args);

/* HCE_ERR_INVALID_ARG after a line that names the call and the argument. */
hce_status_t hce_args_check(hce_comm_h comm, const hce_args_t *args);

#endif
