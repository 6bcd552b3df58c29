/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The public calls on communicators, and the list of all of them.
 */
#include "config.h"

#include "core/comm.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/values.h"
#include "core/create.h"
#include "core/group.h"
#include "core/list.h"
#include "core/quiet.h"
#include "util/clock.h"
#include "util/log.h"

/* How long an orderly end waits for what was put to arrive, and for the
 * others to leave too. */
#define FLUSH_NS (2 * HCE_NS_PER_SEC)
#define GOODBYE_NS (2 * HCE_NS_PER_SEC)

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER; /* list */
static hce_comm_h list;

/* Runs at exit, when main has returned or exit was called: whoever comes here
 * with nothing in flight has left in good order. Others see a rank gone. */
static void leave_at_exit(void)
{
    hce_comm_h comm;

    if (hce_engine_is_forked())
        return;
    while ((comm = list) != NULL) {
        if (hce_queue_head(&comm->queue) != NULL)
            return;
        if (hce_comm_destroy(comm) != HCE_OK)
            return;
    }
}

static void register_exit(void)
{
    if (atexit(leave_at_exit) != 0)
        hce_log(WARN, CORE, "cannot register the goodbye at exit");
}

void hce_comm_list_add(hce_comm_h comm)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, register_exit);
    pthread_mutex_lock(&list_lock);
    comm->next = list;
    list = comm;
    pthread_mutex_unlock(&list_lock);
}

hce_status_t hce_comm_list_remove(hce_comm_h comm)
{
    hce_status_t status = HCE_ERR_INVALID_ARG;
    hce_comm_h *at;

    pthread_mutex_lock(&list_lock);
    for (at = &list; *at != NULL; at = &(*at)->next) {
        if (*at == comm) {
            *at = comm->next;
            status = HCE_OK;
            break;
        }
    }
    pthread_mutex_unlock(&list_lock);
    return status;
}

hce_status_t hce_comm_check(hce_comm_h comm, const char *call)
{
    if (comm == NULL || comm->magic != HCE_COMM_MAGIC) {
        hce_log(ERROR, CORE, "%s: %s", call,
                comm == NULL ? "the communicator is NULL"
                             : "not a communicator, or a destroyed one");
        return HCE_ERR_INVALID_ARG;
    }
    if (hce_engine_is_forked()) {
        hce_log(ERROR, CORE,
                "%s: the communicator was created before this process was "
                "forked",
                call);
        return HCE_ERR_FORKED;
    }
    return HCE_OK;
}

hce_status_t hce_comm_watch(hce_comm_h comm)
{
    hce_status_t status = HCE_OK;
    int i;

    if (comm->proxy == NULL)
        return HCE_OK;
    comm->num_fds = hce_proxy_fds(comm->proxy, comm->fds);
    for (i = 0; i < comm->num_fds && status == HCE_OK; i++)
        status = hce_engine_watch(comm->fds[i]);
    return status;
}

void hce_comm_unwatch(hce_comm_h comm)
{
    int i;

    for (i = 0; i < comm->num_fds; i++)
        hce_engine_unwatch(comm->fds[i]);
    hce_engine_unwatch(hce_boot_fd(comm->boot));
}

/* Often a program's first call. */
hce_status_t hce_get_unique_id(hce_unique_id_t *id_p)
{
    hce_status_t status;

    if (id_p == NULL) {
        hce_log(ERROR, CORE, "hce_get_unique_id: id_p is NULL");
        return HCE_ERR_INVALID_ARG;
    }
    status = hce_core_config_init();
    return status == HCE_OK ? hce_boot_unique_id_create(id_p) : status;
}

static hce_status_t check_params(const hce_comm_params_t *params,
                                 hce_comm_h *comm_p)
{
    uint64_t mask = params->field_mask;

    if (comm_p == NULL) {
        hce_log(ERROR, CORE, "comm_p is NULL");
        return HCE_ERR_INVALID_ARG;
    }
    if ((mask & HCE_COMM_PARAM_DEVICE) &&
        params->device != HCE_DEVICE_HOST) {
        hce_log(ERROR, CORE, "device %d is not known here, expected 0 (host)",
                (int)params->device);
        return HCE_ERR_UNSUPPORTED;
    }
    if ((mask & HCE_COMM_PARAM_NODE) && params->node < 0) {
        hce_log(ERROR, CORE, "node is %d, expected 0 or more", params->node);
        return HCE_ERR_INVALID_ARG;
    }
    if ((mask & HCE_COMM_PARAM_TIMEOUT) &&
        !(params->timeout >= 0 && params->timeout < 1e9)) {
        hce_log(ERROR, CORE, "timeout is %g, expected seconds from 0 to 1e9",
                params->timeout);
        return HCE_ERR_INVALID_ARG;
    }
    return HCE_OK;
}

static hce_status_t check_bootstrap(const hce_comm_params_t *params)
{
    uint64_t mask = params->field_mask;
    bool is_tcp = (mask & HCE_COMM_PARAM_BOOTSTRAP) &&
                  params->bootstrap == HCE_BOOTSTRAP_TCP;

    if ((mask & HCE_COMM_PARAM_BOOTSTRAP) &&
        (unsigned)params->bootstrap > HCE_BOOTSTRAP_TCP) {
        hce_log(ERROR, CORE, "bootstrap %d is not known",
                (int)params->bootstrap);
        return HCE_ERR_INVALID_ARG;
    }
    if (is_tcp != ((mask & HCE_COMM_PARAM_RANK) != 0)) {
        hce_log(ERROR, CORE,
                "rank, size and unique_id belong to HCE_BOOTSTRAP_TCP, and "
                "only to it");
        return HCE_ERR_INVALID_ARG;
    }
    if (is_tcp && (params->unique_id == NULL || params->size < 1 ||
                   params->rank < 0 || params->rank >= params->size)) {
        hce_log(ERROR, CORE,
                "rank %d of size %d: expected 0 <= rank < size, and a "
                "unique_id",
                params->rank, params->size);
        return HCE_ERR_INVALID_ARG;
    }
    return HCE_OK;
}

hce_status_t hce_comm_create(const hce_comm_params_t *params,
                             hce_comm_h *comm_p)
{
    hce_group_job_t job = {.kind = HCE_GROUP_CREATE,
                           .create = {.comm_p = comm_p}};
    hce_status_t status;

    if (params != NULL)
        job.create.params = *params;
    status = hce_core_config_init();
    if (status == HCE_OK && hce_engine_is_forked())
        status = HCE_ERR_FORKED;
    if (status == HCE_OK)
        status = check_params(&job.create.params, comm_p);
    if (status == HCE_OK)
        status = check_bootstrap(&job.create.params);
    return hce_group_submit(&job, status, "hce_comm_create");
}

hce_status_t hce_comm_split(hce_comm_h comm, int color, int key,
                            const hce_comm_params_t *params,
                            hce_comm_h *comm_p)
{
    hce_group_job_t job = {
        .kind = HCE_GROUP_SPLIT,
        .comm = comm,
        .create = {.color = color, .key = key, .comm_p = comm_p},
    };
    hce_status_t status = hce_comm_check(comm, "hce_comm_split");

    if (params != NULL)
        job.create.params = *params;
    if (status == HCE_OK && color < 0 && color != HCE_SPLIT_NONE) {
        hce_log(ERROR, CORE,
                "hce_comm_split: color is %d, expected 0 or more, or "
                "HCE_SPLIT_NONE",
                color);
        status = HCE_ERR_INVALID_ARG;
    }
    if (status == HCE_OK)
        status = check_params(&job.create.params, comm_p);
    if (status == HCE_OK)
        status = hce_fault_status(&comm->fault);
    return hce_group_submit(&job, status, "hce_comm_split");
}

hce_status_t hce_comm_query(hce_comm_h comm, hce_comm_attr_t *attr_p)
{
    hce_status_t status = hce_comm_check(comm, "hce_comm_query");
    const hce_layout_t *layout;
    int node, peer;

    if (status != HCE_OK)
        return status;
    if (attr_p == NULL) {
        hce_log(ERROR, CORE, "hce_comm_query: attr_p is NULL");
        return HCE_ERR_INVALID_ARG;
    }
    layout = comm->layout;
    node = layout->node[comm->rank];
    peer = layout->node_size[node] == 1 || layout->lrank[comm->rank] > 0;
    *attr_p = (hce_comm_attr_t){
        .rank = comm->rank,
        .size = layout->nranks,
        .node = node,
        .num_nodes = layout->nnodes,
        .local_rank = layout->lrank[comm->rank],
        .local_size = layout->node_size[node],
        .device = comm->device,
        .transport = comm->proxy ? hce_proxy_name(comm->proxy) : "none",
        .host_copy = hce_ce_how_string(
            hce_ce_peer_how(comm->ce, peer ? 0 : 1)),
    };
    return HCE_OK;
}

static bool is_queue_empty(void *arg)
{
    return hce_queue_head(arg) == NULL;
}

/* What is in flight ends with an error on all ranks. */
static void abort_launches(hce_comm_h comm)
{
    if (is_queue_empty(&comm->queue))
        return;
    hce_fault_raise(comm, HCE_ERR_ABORTED, comm->rank,
                    "rank %d destroyed its communicator with calls in flight",
                    comm->rank);
    hce_engine_wait(is_queue_empty, &comm->queue);
}

typedef struct flush {
    hce_comm_h comm;
    uint64_t deadline;
} flush_t;

static bool is_flushed(void *arg)
{
    flush_t *state = arg;

    return atomic_load_explicit(&state->comm->leaving,
                                memory_order_acquire) == HCE_COMM_LEAVES ||
           hce_fault_status(&state->comm->fault) != HCE_OK ||
           hce_clock_ns() >= state->deadline;
}

/* Until what this rank has put is at its targets. */
static void flush(hce_comm_h comm)
{
    flush_t state = {comm, hce_clock_deadline(FLUSH_NS)};

    if (comm->proxy == NULL)
        return;
    atomic_store_explicit(&comm->leaving, HCE_COMM_FLUSHES,
                          memory_order_release);
    hce_engine_wait(is_flushed, &state);
}

/* Does this process still have another rank of the group? One thread that
 * drives several ranks destroys them one by one, and must not wait for
 * itself. */
static bool has_sibling(hce_comm_h comm)
{
    hce_comm_h other;
    bool found = false;

    pthread_mutex_lock(&list_lock);
    for (other = list; other != NULL && !found; other = other->next)
        found = memcmp(hce_boot_secret(other->boot),
                       hce_boot_secret(comm->boot),
                       HCE_BOOT_SECRET_SIZE) == 0;
    pthread_mutex_unlock(&list_lock);
    return found;
}

hce_status_t hce_comm_destroy(hce_comm_h comm)
{
    hce_status_t status = hce_comm_check(comm, "hce_comm_destroy");
    bool is_well;

    if (status == HCE_OK)
        status = hce_comm_list_remove(comm);
    if (status != HCE_OK)
        return status;
    abort_launches(comm);
    hce_queue_reap(comm);
    hce_window_close_all(comm);
    is_well = hce_fault_status(&comm->fault) == HCE_OK;
    if (is_well)
        flush(comm);
    hce_scratch_settle(comm);
    hce_quiet_set(comm); /* for those whose calls fail later */
    hce_boot_goodbye(comm->boot, is_well && !has_sibling(comm) ? GOODBYE_NS
                                                               : 0);
    hce_engine_remove(&comm->pollable);
    hce_comm_unwatch(comm);
    comm->magic = 0;
    hce_comm_close(comm);
    hce_engine_put();
    return HCE_OK;
}
