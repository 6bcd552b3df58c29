/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Errors of a communicator: raised here or heard of, first one kept.
 */
#include "config.h"

#include "core/fault.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/comm.h"
#include "util/clock.h"
#include "util/log.h"

/* How long an error of the network waits for news of who began. The control
 * connections tell of an ended process within milliseconds. */
#define SUSPECT_NS (1 * HCE_NS_PER_SEC)

/* How long an abort waits for rank 0 to say that it is known. */
#define VERDICT_NS (3 * HCE_NS_PER_SEC)

void hce_fault_init(hce_fault_t *fault)
{
    memset(fault, 0, sizeof(*fault));
    pthread_mutex_init(&fault->lock, NULL);
    fault->suspect = -1;
    fault->error.rank = -1;
    fault->error.node = -1;
}

void hce_fault_cleanup(hce_fault_t *fault)
{
    pthread_mutex_destroy(&fault->lock);
}

hce_status_t hce_fault_status(const hce_fault_t *fault)
{
    /* Acquire: pairs with the release in hce_fault_on_news; error is
     * complete when status is seen. */
    return (hce_status_t)atomic_load_explicit(
        (atomic_int *)&fault->status, memory_order_acquire);
}

void hce_fault_raise(hce_comm_h comm, hce_status_t status, int rank,
                     const char *format, ...)
{
    hce_boot_news_t news = {.status = status, .rank = rank};
    va_list args;

    va_start(args, format);
    vsnprintf(news.text, sizeof(news.text), format, args);
    va_end(args);
    hce_boot_abort(comm->boot, &news);
}

void hce_fault_on_news(void *arg, const struct hce_boot_news *news)
{
    hce_comm_h comm = arg;
    hce_fault_t *fault = &comm->fault;
    hce_comm_error_t *error = &fault->error;

    pthread_mutex_lock(&fault->lock);
    if (error->status == HCE_OK) {
        error->status = (hce_status_t)news->status;
        error->rank = news->rank;
        if (news->rank >= 0 && news->rank < hce_comm_size(comm))
            error->node = comm->layout->node[news->rank];
        snprintf(error->text, sizeof(error->text), "%s", news->text);
        hce_log(WARN, FAULT, "%s: %s", hce_status_string(error->status),
                error->text);
        /* Release: error before status; pairs with hce_fault_status. */
        atomic_store_explicit(&fault->status, news->status,
                              memory_order_release);
    }
    pthread_mutex_unlock(&fault->lock);
}

void hce_fault_on_transport(void *arg, int peer, hce_status_t status,
                            const char *text)
{
    hce_comm_h comm = arg;
    hce_fault_t *fault = &comm->fault;

    hce_log(DEBUG, FAULT, "network error with rank %d: %s", peer, text);
    if (fault->suspect >= 0)
        return;
    fault->suspect = peer;
    fault->suspect_status = status;
    fault->suspect_ns = hce_clock_ns();
    snprintf(fault->suspect_text, sizeof(fault->suspect_text), "%s", text);
}

void hce_fault_check_suspect(hce_comm_h comm, uint64_t now_ns,
                             uint64_t idle_ns)
{
    hce_fault_t *fault = &comm->fault;

    if (fault->suspect < 0 || now_ns < fault->suspect_ns + SUSPECT_NS ||
        now_ns < idle_ns + SUSPECT_NS)
        return;
    hce_fault_raise(comm, fault->suspect_status, fault->suspect,
                    "rank %d cannot reach rank %d: %s", comm->rank,
                    fault->suspect, fault->suspect_text);
    fault->suspect = -1;
}

typedef struct settle {
    hce_comm_h comm;
    uint64_t deadline;
} settle_t;

static bool is_settled(void *arg)
{
    settle_t *settle = arg;

    return hce_fault_status(&settle->comm->fault) != HCE_OK ||
           hce_clock_ns() >= settle->deadline;
}

static void settle(hce_comm_h comm, uint64_t len_ns)
{
    settle_t state = {comm, hce_clock_deadline(len_ns)};

    hce_engine_wait(is_settled, &state);
}

hce_status_t hce_fault_settle(hce_comm_h comm, int peer, hce_status_t status)
{
    settle(comm, SUSPECT_NS);
    if (hce_fault_status(&comm->fault) == HCE_OK)
        hce_fault_raise(comm, status, peer,
                        "rank %d cannot connect to rank %d: %s", comm->rank,
                        peer, hce_status_string(status));
    return hce_fault_status(&comm->fault);
}

hce_status_t hce_comm_get_async_error(hce_comm_h comm,
                                      hce_comm_error_t *error_p)
{
    hce_status_t status = hce_comm_check(comm, "hce_comm_get_async_error");

    if (status != HCE_OK)
        return status;
    if (error_p == NULL) {
        hce_log(ERROR, CORE, "hce_comm_get_async_error: error_p is NULL");
        return HCE_ERR_INVALID_ARG;
    }
    pthread_mutex_lock(&comm->fault.lock);
    *error_p = comm->fault.error;
    pthread_mutex_unlock(&comm->fault.lock);
    return HCE_OK;
}

hce_status_t hce_comm_abort(hce_comm_h comm)
{
    hce_status_t status = hce_comm_check(comm, "hce_comm_abort");

    if (status != HCE_OK)
        return status;
    hce_fault_raise(comm, HCE_ERR_ABORTED, comm->rank,
                    "rank %d called hce_comm_abort", comm->rank);
    settle(comm, VERDICT_NS); /* rank 0 decides whose news came first */
    return HCE_OK;
}
