/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The dispatcher: which path, how many contexts, how wide a chunk. Decides
 * from facts that all ranks share, so that all decide alike.
 */
#ifndef HCE_CORE_DISPATCH_H
#define HCE_CORE_DISPATCH_H

#include <hce/hce.h>
#include <stdbool.h>
#include "plan/plan.h"

/* What is to be chosen for. */
typedef struct hce_dispatch_call {
    hce_coll_t coll;
    hce_datatype_t datatype; /* of reductions; else 0, like op */
    hce_redop_t op;
    uint64_t len; /* as plans count it */
} hce_dispatch_call_t;

typedef struct hce_dispatch_choice {
    const hce_plan_builder_t *builder;
    int contexts;
    int carriers;
    int dirs;
    uint64_t width;
    const char *forced_by; /* "HCE_AG_PATH", ...; NULL: auto chose */
    hce_call_params_t params; /* of the call, without path and name */
} hce_dispatch_choice_t;

/* Caller: the answer to the last question, where the call itself chose
 * nothing. Most calls repeat. */
typedef struct hce_dispatch_memo {
    bool is_set;
    hce_dispatch_call_t call;
    hce_dispatch_choice_t choice;
} hce_dispatch_memo_t;

/* "allgather"; "unknown" for anything else. */
const char *hce_dispatch_coll_name(hce_coll_t coll);

/* params may be NULL. HCE_ERR_INVALID_ARG or HCE_ERR_UNSUPPORTED after a line
 * that says why. */
hce_status_t hce_dispatch_choose(hce_comm_h comm,
                                 const hce_dispatch_call_t *call,
                                 const hce_call_params_t *params,
                                 hce_dispatch_choice_t *choice_p);

/* The kind of network between the nodes, "none" on one: as figures name it. */
const char *hce_dispatch_kind(hce_comm_h comm);

/* Why the path that params name cannot run, or NULL; quiet. */
const char *hce_dispatch_refusal(hce_comm_h comm,
                                 const hce_dispatch_call_t *call,
                                 const hce_call_params_t *params);

/* Why choice was made, and why not the other paths; a stable text. */
void hce_dispatch_reason(hce_comm_h comm, const hce_dispatch_call_t *call,
                         const hce_dispatch_choice_t *choice, char *buf,
                         size_t size);

/* Variables that repeat it: "HCE_AG_PATH=ring HCE_RING_DIRS=1 ..." */
void hce_dispatch_settings(const hce_dispatch_choice_t *choice, char *buf,
                           size_t size);

/* The call that a plan was built for. */
hce_dispatch_call_t hce_dispatch_call_of(const hce_plan_params_t *params);

/* One stable line: "ring path: RMA proxy ring + CE, ... (reason) [settings]" */
void hce_dispatch_line(hce_comm_h comm, const hce_plan_t *plan,
                       const hce_dispatch_choice_t *choice, char *buf,
                       size_t size);

#endif
