/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The table of collectives.
 */
#include <config.h>

#include "coll.h"

#include <string.h>

static const hce_perf_coll_t colls[] = {
    {.name = "all_gather",
     .call = "hce_allgather",
     .number = HCE_COLL_ALLGATHER,
     .receives_all = true},
    {.name = "reduce_scatter",
     .call = "hce_reduce_scatter",
     .number = HCE_COLL_REDUCE_SCATTER,
     .sends_all = true,
     .reduces = true},
    {.name = "all_reduce",
     .call = "hce_allreduce",
     .number = HCE_COLL_ALLREDUCE,
     .reduces = true},
};

const hce_perf_coll_t *hce_perf_coll_find(const char *name)
{
    size_t i;

    for (i = 0; i < sizeof(colls) / sizeof(colls[0]); i++)
        if (strcmp(colls[i].name, name) == 0)
            return &colls[i];
    return NULL;
}

int hce_perf_coll_parts(const hce_perf_coll_t *coll, int ranks)
{
    return coll->sends_all || coll->receives_all ? ranks : 1;
}

size_t hce_perf_coll_send_len(const hce_perf_coll_t *coll, size_t len,
                              int ranks)
{
    return coll->sends_all ? len * (size_t)ranks : len;
}

size_t hce_perf_coll_recv_len(const hce_perf_coll_t *coll, size_t len,
                              int ranks)
{
    return coll->receives_all ? len * (size_t)ranks : len;
}

/* An AllReduce is a ReduceScatter and an AllGather. */
double hce_perf_coll_bus_factor(const hce_perf_coll_t *coll, int ranks)
{
    double once = (double)(ranks - 1) / ranks;

    return coll->number == HCE_COLL_ALLREDUCE ? 2 * once : once;
}

hce_status_t hce_perf_coll_run(const hce_perf_coll_t *coll,
                               const hce_perf_coll_args_t *args)
{
    switch (coll->number) {
    case HCE_COLL_ALLGATHER:
        return hce_allgather(args->send, args->recv, args->count, args->type,
                             args->comm, args->stream, args->params);
    case HCE_COLL_REDUCE_SCATTER:
        return hce_reduce_scatter(args->send, args->recv, args->count,
                                  args->type, args->op, args->comm,
                                  args->stream, args->params);
    case HCE_COLL_ALLREDUCE:
        return hce_allreduce(args->send, args->recv, args->count, args->type,
                             args->op, args->comm, args->stream,
                             args->params);
    default:
        return HCE_ERR_INTERNAL;
    }
}
