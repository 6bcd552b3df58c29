/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Chooses path, contexts, carriers, directions and width.
 */
#include "config.h"

#include "core/dispatch.h"

#include <stdio.h>
#include <string.h>

#include "core/candidate.h"
#include "core/comm.h"
#include "core/paths.h"
#include "core/tuning.h"
#include "core/values.h"
#include "util/log.h"

/* Bits of a call's own choices. */
#define CHOICE_BITS                                                           \
    (HCE_CALL_PARAM_PATH | HCE_CALL_PARAM_CONTEXTS | HCE_CALL_PARAM_WIDTH |   \
     HCE_CALL_PARAM_DIRS | HCE_CALL_PARAM_CARRIERS)

const char *hce_dispatch_coll_name(hce_coll_t coll)
{
    static const char *const names[HCE_COLL_LAST] = {
        [HCE_COLL_ALLGATHER] = "allgather",
        [HCE_COLL_REDUCE_SCATTER] = "reduce_scatter",
        [HCE_COLL_ALLREDUCE] = "allreduce",
    };

    return (unsigned)coll < HCE_COLL_LAST ? names[coll] : "unknown";
}

/* A number of the call's own; false after a line that says what it may be. */
static bool check_number(const hce_call_params_t *params, uint64_t bit,
                         const char *name, int value, int min, int max)
{
    if (!(params->field_mask & bit) || (value >= min && value <= max))
        return true;
    hce_log(ERROR, TUNING, "%s is %d, expected %d..%d%s", name, value, min,
            max,
            bit == HCE_CALL_PARAM_CONTEXTS ? " (HCE_NUM_CTX opens more)"
                                           : "");
    return false;
}

static hce_status_t check_params(hce_comm_h comm,
                                 const hce_call_params_t *params)
{
    if (!check_number(params, HCE_CALL_PARAM_CONTEXTS, "contexts",
                      params->contexts, 1, comm->stats.contexts) ||
        !check_number(params, HCE_CALL_PARAM_DIRS, "dirs", params->dirs, 1,
                      2) ||
        !check_number(params, HCE_CALL_PARAM_CARRIERS, "carriers",
                      params->carriers, 0, HCE_CORE_MAX_CARRIERS))
        return HCE_ERR_INVALID_ARG;
    if ((params->field_mask & HCE_CALL_PARAM_WIDTH) && params->width == 0) {
        hce_log(ERROR, TUNING, "width is 0, expected bytes of a chunk");
        return HCE_ERR_INVALID_ARG;
    }
    if ((params->field_mask & HCE_CALL_PARAM_PATH) && params->path == NULL) {
        hce_log(ERROR, TUNING, "path is NULL, expected the name of a path");
        return HCE_ERR_INVALID_ARG;
    }
    return HCE_OK;
}

const char *hce_dispatch_kind(hce_comm_h comm)
{
    hce_transport_attr_t attr = {.kind = "none"};

    if (comm->proxy != NULL)
        hce_proxy_query(comm->proxy, &attr);
    return attr.kind;
}

hce_dispatch_call_t hce_dispatch_call_of(const hce_plan_params_t *params)
{
    return (hce_dispatch_call_t){
        .coll = params->coll,
        .datatype = params->datatype,
        .op = params->op,
        .len = params->len,
    };
}

static bool is_same(const hce_dispatch_call_t *a, const hce_dispatch_call_t *b)
{
    return a->coll == b->coll && a->datatype == b->datatype &&
           a->op == b->op && a->len == b->len;
}

static void describe_call(hce_comm_h comm, const hce_dispatch_call_t *of,
                          const hce_call_params_t *params,
                          hce_candidate_call_t *call)
{
    *call = (hce_candidate_call_t){
        .layout = comm->layout,
        .limits = comm->limits,
        .kind = hce_dispatch_kind(comm),
        .params = params,
        .len = of->len,
        .coll = of->coll,
        .datatype = of->datatype,
        .op = of->op,
        .rank = comm->rank,
        .contexts = comm->stats.contexts,
    };
}

/* None of the candidates can run: why. */
static void log_refusals(const hce_candidate_t *list, unsigned num,
                         const char *path, const char *origin)
{
    unsigned i;

    if (num == 0)
        hce_log(ERROR, TUNING, "this build has no path for the collective");
    for (i = 0; i < num; i++)
        if (path == NULL || strcmp(list[i].builder->path, path) == 0)
            hce_log(ERROR, TUNING, "path %s (%s) cannot run here: %s",
                    list[i].builder->path, origin, list[i].refusal);
}

static hce_status_t choose_from(const hce_candidate_call_t *call,
                                const char *path, const char *origin,
                                hce_dispatch_choice_t *choice_p)
{
    hce_candidate_t list[HCE_CANDIDATES_MAX], *it;
    unsigned num = hce_candidates_list(call, list);
    char known[HCE_PATHS_NAMES_SIZE];
    int best;

    if (path != NULL && hce_paths_find(call->coll, path) == NULL) {
        hce_log(ERROR, TUNING, "%s is '%s', expected auto, %s", origin, path,
                hce_paths_names(call->coll, known));
        return HCE_ERR_INVALID_ARG;
    }
    best = hce_candidates_best(call, list, num, path);
    if (best < 0) {
        log_refusals(list, num, path, origin);
        return HCE_ERR_UNSUPPORTED;
    }
    it = &list[best];
    *choice_p = (hce_dispatch_choice_t){
        .builder = it->builder,
        .contexts = it->params.contexts,
        .carriers = it->params.carriers,
        .dirs = it->params.dirs,
        .width = it->params.width,
        .forced_by = path == NULL ? NULL : origin,
        .params = *call->params,
    };
    choice_p->params.path = NULL;
    choice_p->params.name = NULL;
    return HCE_OK;
}

hce_status_t hce_dispatch_choose(hce_comm_h comm,
                                 const hce_dispatch_call_t *call,
                                 const hce_call_params_t *params,
                                 hce_dispatch_choice_t *choice_p)
{
    const hce_core_path_t *asked = &hce_core_values.paths[call->coll];
    const char *path = asked->name, *origin = asked->origin;
    const hce_call_params_t none = {0};
    hce_dispatch_memo_t *memo = &comm->memo;
    hce_candidate_call_t all;
    hce_status_t status;

    if (params == NULL)
        params = &none;
    if (memo->is_set && is_same(&memo->call, call) &&
        !(params->field_mask & CHOICE_BITS)) {
        *choice_p = memo->choice;
        return HCE_OK;
    }
    status = check_params(comm, params);
    if (status != HCE_OK)
        return status;
    if (params->field_mask & HCE_CALL_PARAM_PATH) {
        path = params->path;
        origin = "params.path";
    }
    if (strcmp(path, "auto") == 0) {
        path = NULL;
        origin = "auto";
    }
    describe_call(comm, call, params, &all);
    status = choose_from(&all, path, origin, choice_p);
    if (status == HCE_OK && !(params->field_mask & CHOICE_BITS))
        *memo = (hce_dispatch_memo_t){true, *call, *choice_p};
    return status;
}

const char *hce_dispatch_refusal(hce_comm_h comm,
                                 const hce_dispatch_call_t *call,
                                 const hce_call_params_t *params)
{
    hce_candidate_t list[HCE_CANDIDATES_MAX];
    hce_candidate_call_t all;
    const char *why = "there is no such path";
    unsigned i, num;

    describe_call(comm, call, params, &all);
    num = hce_candidates_list(&all, list);
    for (i = 0; i < num; i++) {
        if (strcmp(list[i].builder->path, params->path) != 0)
            continue;
        why = list[i].refusal;
        if (why == NULL)
            break;
    }
    return why;
}

/* Bytes used of size, however much was wanted. */
static size_t used_of(size_t used, int wanted, size_t size)
{
    used += wanted > 0 ? (size_t)wanted : 0;
    return used < size ? used : size - 1;
}

static size_t print_other(const hce_candidate_t *it, bool is_auto, char *buf,
                          size_t size)
{
    char name[32];
    int wanted;

    hce_candidate_name(it, name, sizeof(name));
    if (it->refusal != NULL)
        wanted = snprintf(buf, size, "; not %s: %s", name, it->refusal);
    else if (!is_auto)
        return 0; /* nobody asked for it */
    else if (it->seconds < 0)
        wanted = snprintf(buf, size, "; not %s: its cost is not known", name);
    else
        wanted = snprintf(buf, size, "; not %s: %.0f us", name,
                          it->seconds * 1e6);
    return used_of(0, wanted, size);
}

static bool is_chosen(const hce_candidate_t *it,
                      const hce_dispatch_choice_t *choice)
{
    return it->builder == choice->builder && it->params.dirs == choice->dirs;
}

void hce_dispatch_reason(hce_comm_h comm, const hce_dispatch_call_t *call,
                         const hce_dispatch_choice_t *choice, char *buf,
                         size_t size)
{
    hce_candidate_t list[HCE_CANDIDATES_MAX];
    hce_candidate_call_t all;
    unsigned i, num;
    size_t used = 0;
    int wanted;

    describe_call(comm, call, &choice->params, &all);
    num = hce_candidates_list(&all, list);
    if (choice->forced_by != NULL) {
        wanted = snprintf(buf, size, "asked for by %s", choice->forced_by);
        used = used_of(used, wanted, size);
    }
    for (i = 0; i < num && choice->forced_by == NULL; i++) {
        if (!is_chosen(&list[i], choice))
            continue;
        wanted = list[i].seconds < 0
                     ? snprintf(buf, size, "auto, the first that can run")
                     : snprintf(buf, size, "auto by %s, %.0f us",
                                hce_tuning_origin(all.kind),
                                list[i].seconds * 1e6);
        used = used_of(used, wanted, size);
    }
    for (i = 0; i < num; i++)
        if (!is_chosen(&list[i], choice))
            used += print_other(&list[i], choice->forced_by == NULL,
                                buf + used, size - used);
}
