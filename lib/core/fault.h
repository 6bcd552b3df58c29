/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The first error of a communicator, and how it becomes everybody's. Errors
 * of the network name a neighbour, who may only be a victim: they wait a
 * while for better news before they are believed.
 */
#ifndef HCE_CORE_FAULT_H
#define HCE_CORE_FAULT_H

#include <hce/hce.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

typedef struct hce_fault {
    atomic_int status;      /* hce_status_t; set after error */
    pthread_mutex_t lock;   /* error */
    hce_comm_error_t error; /* complete once status is set */
    /* Owner only: */
    int suspect; /* rank, or -1 */
    hce_status_t suspect_status;
    uint64_t suspect_ns;
    char suspect_text[200];
} hce_fault_t;

void hce_fault_init(hce_fault_t *fault);
void hce_fault_cleanup(hce_fault_t *fault);

/* Any thread, cheap. */
hce_status_t hce_fault_status(const hce_fault_t *fault);

/* Tell all ranks that rank is to blame (-1: nobody known). Any thread. */
void hce_fault_raise(hce_comm_h comm, hce_status_t status, int rank,
                     const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Callbacks for boot and for transports. */
struct hce_boot_news;
void hce_fault_on_news(void *arg, const struct hce_boot_news *news);
void hce_fault_on_transport(void *arg, int peer, hce_status_t status,
                            const char *text);

/* Caller, after a network error with peer outside of a launch: waits a while
 * for news of who began, else blames peer. Returns the communicator's error,
 * which there is then. */
hce_status_t hce_fault_settle(hce_comm_h comm, int peer,
                              hce_status_t status);

/* Owner, now and then while a launch makes no progress since idle_ns. */
void hce_fault_check_suspect(hce_comm_h comm, uint64_t now_ns,
                             uint64_t idle_ns);

#endif
