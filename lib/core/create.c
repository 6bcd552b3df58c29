/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * A new communicator, bottom to top: ranks, layout, settings that must agree,
 * copy engine, proxy, engine. Undone in reverse order.
 */
#include "config.h"

#include "core/create.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/comm.h"
#include "core/values.h"
#include "core/list.h"
#include "core/pollable.h"
#include "core/settings.h"
#include "core/tuning.h"
#include "reduce/reduce.h"
#include "topo/topo.h"
#include "util/clock.h"
#include "util/log.h"

#define SIGNATURE_SIZE 2048

/* Length of the line at text, without its end. */
static int line_len(const char *text)
{
    return (int)strcspn(text, "\n");
}

/* Both are the same list of names: the first line that differs. */
static void log_difference(int rank, const char *theirs, const char *mine)
{
    while (*mine != '\0' && *theirs != '\0') {
        int a = line_len(mine), b = line_len(theirs);

        if (a != b || memcmp(mine, theirs, (size_t)a) != 0) {
            hce_log(ERROR, CORE,
                    "settings differ: rank 0 has %.*s, rank %d has %.*s; "
                    "they must be the same on all ranks",
                    a, mine, rank, b, theirs);
            return;
        }
        mine += a + (mine[a] == '\n');
        theirs += b + (theirs[b] == '\n');
    }
}

/* Every rank sees all texts, so that all fail alike and name the same rank. */
static hce_status_t compare_settings(hce_boot_t *boot, uint64_t deadline)
{
    size_t size = (size_t)hce_boot_size(boot);
    char mine[SIGNATURE_SIZE] = {0};
    char *all = calloc(size, SIGNATURE_SIZE);
    hce_status_t status = HCE_ERR_NO_MEMORY;
    int mine_len;
    size_t r;

    if (all == NULL)
        return status;
    mine_len = hce_config_signature(hce_settings, mine, sizeof(mine));
    /* Files may lie anywhere: what they say is to be the same. */
    if (mine_len >= 0 && mine_len < SIGNATURE_SIZE)
        snprintf(mine + mine_len, sizeof(mine) - (size_t)mine_len,
                 "digest of HCE_TUNING_FILE=%016" PRIx64 "\n",
                 hce_tuning_digest());
    status = hce_boot_allgather(boot, mine, SIGNATURE_SIZE, all, deadline);
    for (r = 1; r < size && status == HCE_OK; r++) {
        all[(r + 1) * SIGNATURE_SIZE - 1] = '\0';
        if (memcmp(all, all + r * SIGNATURE_SIZE, SIGNATURE_SIZE) == 0)
            continue;
        log_difference((int)r, all + r * SIGNATURE_SIZE, all);
        status = HCE_ERR_CONFIG;
    }
    free(all);
    return status;
}

static hce_status_t open_ce(hce_comm_h comm, uint64_t deadline)
{
    hce_ce_params_t params = {
        .layout = comm->layout,
        .boot = comm->boot,
        .deadline = deadline,
        .num_counters = hce_plan_num_counters(comm->layout),
        .rank = comm->rank,
        .doorbell = hce_engine_doorbell(),
    };

    return hce_ce_open(&params, &comm->ce);
}

static hce_status_t open_proxy(hce_comm_h comm, uint64_t deadline)
{
    hce_proxy_params_t params = {
        .layout = comm->layout,
        .boot = comm->boot,
        .deadline = deadline,
        .rank = comm->rank,
        .silence_ns = hce_core_values.silence_ns,
        .words = HCE_SLOT_NET,
        .error_cb = hce_fault_on_transport,
        .error_arg = comm,
    };

    return hce_proxy_open(&params, &comm->proxy);
}

static hce_status_t open_layout(hce_comm_h comm,
                                const hce_comm_params_t *params,
                                uint64_t deadline)
{
    int node = params->field_mask & HCE_COMM_PARAM_NODE ? params->node : -1;
    hce_status_t status =
        hce_topo_discover(comm->boot, node, deadline, &comm->layout);

    if (status == HCE_OK && comm->layout->max_node_size > HCE_RUN_MAX_DSTS) {
        hce_log(ERROR, CORE, "a node has %d ranks, at most %d are supported",
                comm->layout->max_node_size, HCE_RUN_MAX_DSTS);
        status = HCE_ERR_UNSUPPORTED;
    }
    return status;
}

static hce_status_t open_stats(hce_comm_h comm)
{
    hce_transport_attr_t attr = {.contexts = 1};

    if (comm->proxy != NULL)
        hce_proxy_query(comm->proxy, &attr);
    return hce_stats_init(&comm->stats, hce_comm_size(comm), attr.contexts);
}

void hce_comm_close(hce_comm_h comm)
{
    hce_scratch_close(comm);
    if (comm->proxy != NULL)
        hce_proxy_close(comm->proxy, 0);
    hce_run_cleanup(comm);
    hce_plans_cleanup(&comm->plans);
    hce_queue_cleanup(&comm->queue);
    hce_stats_cleanup(&comm->stats);
    if (comm->ce != NULL)
        hce_ce_close(comm->ce);
    hce_boot_destroy(comm->boot);
    if (comm->layout != NULL)
        hce_layout_destroy(comm->layout);
    hce_fault_cleanup(&comm->fault);
    free(comm);
}

/* A communicator that has its ranks and nothing else; it owns boot. */
static hce_comm_h comm_alloc(hce_boot_t *boot,
                             const hce_comm_params_t *params)
{
    hce_comm_h comm = calloc(1, sizeof(*comm));

    if (comm == NULL)
        return NULL;
    comm->boot = boot;
    comm->rank = hce_boot_rank(boot);
    comm->pollable.ops = &hce_comm_pollable_ops;
    comm->timeout_ns = hce_core_values.timeout_ns;
    if (params->field_mask & HCE_COMM_PARAM_TIMEOUT)
        comm->timeout_ns =
            (uint64_t)(params->timeout * (double)HCE_NS_PER_SEC);
    hce_fault_init(&comm->fault);
    return comm;
}

/* What needs the other ranks, bottom to top; hce_comm_close undoes what there
 * is of it. */
static hce_status_t open_parts(hce_comm_h comm,
                               const hce_comm_params_t *params,
                               uint64_t deadline)
{
    hce_status_t status = compare_settings(comm->boot, deadline);

    if (status == HCE_OK)
        status = open_layout(comm, params, deadline);
    if (status != HCE_OK)
        return status;
    hce_boot_set_news_cb(comm->boot, hce_fault_on_news, comm);
    status = open_ce(comm, deadline);
    if (status == HCE_OK)
        status = open_proxy(comm, deadline);
    if (status == HCE_OK)
        status = hce_scratch_open(comm, deadline);
    if (status == HCE_OK)
        status = open_stats(comm);
    if (status == HCE_OK)
        status = hce_queue_init(&comm->queue);
    if (status == HCE_OK)
        status = hce_reduce_init();
    if (status == HCE_OK)
        status = hce_run_init(comm);
    if (status == HCE_OK)
        status = hce_boot_barrier(comm->boot, deadline);
    return status;
}

/* The last step: progress begins. */
static hce_status_t publish(hce_comm_h comm)
{
    hce_status_t status = hce_engine_watch(hce_boot_fd(comm->boot));

    if (status == HCE_OK) {
        hce_engine_acquire();
        status = hce_comm_watch(comm);
        hce_engine_release();
    }
    if (status != HCE_OK) {
        hce_comm_unwatch(comm);
        return status;
    }
    comm->magic = HCE_COMM_MAGIC;
    hce_comm_list_add(comm);
    hce_engine_add(&comm->pollable);
    hce_log(INFO, CORE, "rank %d of %d on node %d of %d, by %s, transport %s",
            comm->rank, hce_comm_size(comm), comm->layout->node[comm->rank],
            comm->layout->nnodes, hce_boot_name(comm->boot),
            comm->proxy == NULL ? "none" : hce_proxy_name(comm->proxy));
    return HCE_OK;
}

/* The others are waiting for this rank: they fail with it. */
static void tell_failure(hce_boot_t *boot, hce_status_t status)
{
    hce_boot_news_t news = {.status = status, .rank = hce_boot_rank(boot)};

    hce_boot_set_news_cb(boot, NULL, NULL);
    snprintf(news.text, sizeof(news.text),
             "rank %d could not create its communicator: %s", news.rank,
             hce_status_string(status));
    hce_boot_abort(boot, &news);
}

/* Takes boot over, also when it fails. */
static hce_status_t finish(hce_boot_t *boot, const hce_comm_params_t *params,
                           uint64_t deadline, hce_comm_h *comm_p)
{
    hce_comm_h comm = comm_alloc(boot, params);
    hce_status_t status;

    if (comm == NULL) {
        tell_failure(boot, HCE_ERR_NO_MEMORY);
        hce_boot_destroy(boot);
        return HCE_ERR_NO_MEMORY;
    }
    status = open_parts(comm, params, deadline);
    if (status == HCE_OK)
        status = publish(comm);
    if (status != HCE_OK) {
        tell_failure(boot, status);
        hce_comm_close(comm);
        return status;
    }
    *comm_p = comm;
    return HCE_OK;
}

hce_status_t hce_comm_open(const hce_comm_params_t *params,
                           hce_comm_h *comm_p)
{
    uint64_t deadline = hce_clock_deadline(hce_boot_timeout_ns());
    hce_boot_params_t boot_params = {
        .bootstrap = params->field_mask & HCE_COMM_PARAM_BOOTSTRAP
                         ? params->bootstrap
                         : HCE_BOOTSTRAP_AUTO,
        .rank = params->rank,
        .size = params->size,
        .unique_id = params->unique_id,
        .deadline = deadline,
        .silence_ns = hce_core_values.silence_ns,
    };
    hce_boot_t *boot;
    hce_status_t status = hce_engine_get();

    if (status != HCE_OK)
        return status;
    status = hce_boot_create(&boot_params, &boot);
    if (status == HCE_OK)
        status = finish(boot, params, deadline, comm_p);
    if (status != HCE_OK)
        hce_engine_put();
    return status;
}

hce_status_t hce_comm_open_split(hce_comm_h parent, int color, int key,
                                 const hce_comm_params_t *params,
                                 hce_comm_h *comm_p)
{
    uint64_t deadline = hce_clock_deadline(hce_boot_timeout_ns());
    hce_comm_params_t inherited = *params;
    hce_boot_t *boot;
    hce_status_t status = hce_engine_get();

    if (status != HCE_OK)
        return status;
    if (!(params->field_mask & HCE_COMM_PARAM_NODE)) {
        inherited.field_mask |= HCE_COMM_PARAM_NODE;
        inherited.node = parent->layout->node[parent->rank];
    }
    status = hce_boot_split(parent->boot, color, key, deadline, &boot);
    if (status == HCE_OK && boot != NULL)
        status = finish(boot, &inherited, deadline, comm_p);
    else if (status == HCE_OK)
        *comm_p = NULL;
    if (status != HCE_OK || boot == NULL)
        hce_engine_put();
    return status;
}
