/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Unique ids and the bootstrap that goes by them. Who makes an id listens at
 * once: the sockets wait in a table of the process until its rank 0 takes
 * them.
 */
#include <config.h>

#include "boot/bootstraps.h"
#include "boot/host.h"
#include "boot/local.h"
#include "boot/mac.h"
#include "boot/unique_id.h"
#include "util/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct pending {
    struct pending *next;
    uint64_t job;
    pid_t pid; /* who made the id; a forked child has another */
    hce_boot_listen_t listen;
} pending_t;

/* Protects the list. */
static pthread_mutex_t pending_lock = PTHREAD_MUTEX_INITIALIZER;
static pending_t *pending_first;

static bool id_read(const hce_unique_id_t *unique_id, hce_boot_uid_t *id)
{
    memcpy(id, unique_id->data, sizeof(*id));
    return memcmp(id->magic, HCE_BOOT_UID_MAGIC, sizeof(HCE_BOOT_UID_MAGIC)) ==
               0 &&
           id->version == HCE_BOOT_UID_VERSION && id->num_addrs >= 1 &&
           id->num_addrs <= HCE_BOOT_LISTEN_MAX;
}

/* Out of the list; the caller frees it. NULL if it is not there. */
static pending_t *pending_take(uint64_t job, bool foreign_only)
{
    pending_t **at, *found = NULL;

    pthread_mutex_lock(&pending_lock);
    for (at = &pending_first; *at != NULL; at = &(*at)->next) {
        if ((*at)->job == job && (!foreign_only || (*at)->pid != getpid())) {
            found = *at;
            *at = found->next;
            break;
        }
    }
    pthread_mutex_unlock(&pending_lock);
    return found;
}

static void pending_drop(uint64_t job, bool foreign_only)
{
    pending_t *pending = pending_take(job, foreign_only);

    if (pending != NULL) {
        hce_boot_listen_close(&pending->listen);
        free(pending);
    }
}

static hce_status_t id_make(const hce_boot_addr_t *primary,
                            hce_unique_id_t *unique_id)
{
    hce_boot_uid_t id = {.magic = HCE_BOOT_UID_MAGIC,
                         .version = HCE_BOOT_UID_VERSION};
    pending_t *pending = calloc(1, sizeof(*pending));
    hce_boot_who_t who;
    hce_status_t status = HCE_ERR_NO_MEMORY;

    if (pending == NULL) {
        hce_log(ERROR, BOOT, "no memory for a unique id");
        return status;
    }
    status = hce_boot_random(id.key, sizeof(id.key));
    if (status == HCE_OK)
        status = hce_boot_random(&id.job, sizeof(id.job));
    if (status == HCE_OK)
        status = hce_boot_listen_open(primary, &pending->listen);
    if (status != HCE_OK) {
        free(pending);
        return status;
    }
    hce_boot_who_self(&who);
    id.host_id = who.host_id;
    id.num_addrs = (uint32_t)pending->listen.num;
    memcpy(id.addrs, pending->listen.addr, sizeof(id.addrs));
    pending->job = id.job;
    pending->pid = getpid();
    pthread_mutex_lock(&pending_lock);
    pending->next = pending_first;
    pending_first = pending;
    pthread_mutex_unlock(&pending_lock);
    memset(unique_id, 0, sizeof(*unique_id));
    memcpy(unique_id->data, &id, sizeof(id));
    return HCE_OK;
}

hce_status_t hce_boot_unique_id_create(hce_unique_id_t *id_p)
{
    hce_boot_addr_t primary;
    hce_status_t status = hce_boot_net_primary(&primary);

    return status == HCE_OK ? id_make(&primary, id_p) : status;
}

hce_status_t hce_boot_local_prepare(hce_unique_id_t *id_p)
{
    hce_boot_addr_t loopback;

    hce_boot_addr_loopback(&loopback);
    return id_make(&loopback, id_p);
}

void hce_boot_local_release(const hce_unique_id_t *unique_id)
{
    hce_boot_uid_t id;

    if (id_read(unique_id, &id))
        pending_drop(id.job, false);
}

static hce_status_t hub_prepare(hce_boot_meeting_t *meeting,
                                hce_boot_why_t *why)
{
    pending_t *pending = pending_take(meeting->job, false);

    if (pending == NULL) {
        snprintf(why->text, sizeof(why->text),
                 "rank 0 must be in the process that made the unique id, and "
                 "an id is good for one communicator");
        return HCE_ERR_INVALID_ARG;
    }
    meeting->listen = pending->listen;
    free(pending);
    return HCE_OK;
}

/* Loopback leads to rank 0 only from its own host. */
static void leaf_prepare(hce_boot_meeting_t *meeting, const hce_boot_uid_t *id)
{
    hce_boot_who_t who;

    hce_boot_who_self(&who);
    meeting->addrs = id->addrs;
    meeting->num_addrs = who.host_id == id->host_id ? (int)id->num_addrs : 1;
    pending_drop(id->job, true);
}

static hce_status_t params_check(const hce_boot_params_t *params,
                                 hce_boot_uid_t *id, hce_boot_why_t *why)
{
    if (params->unique_id == NULL || !id_read(params->unique_id, id)) {
        snprintf(why->text, sizeof(why->text),
                 "the unique id is not one of hce_get_unique_id of this "
                 "version");
        return HCE_ERR_INVALID_ARG;
    }
    if (params->size < 1 || params->size > HCE_BOOT_SIZE_MAX ||
        params->rank < 0 || params->rank >= params->size) {
        snprintf(why->text, sizeof(why->text), "rank %d of %d is not possible",
                 params->rank, params->size);
        return HCE_ERR_INVALID_ARG;
    }
    return HCE_OK;
}

hce_status_t hce_boot_tcp_create(const hce_boot_params_t *params,
                                 hce_boot_why_t *why, hce_boot_t **boot_p)
{
    hce_boot_meeting_t meeting = {.name = "tcp",
                                  .rank = params->rank,
                                  .size = params->size,
                                  .is_private = true,
                                  .deadline = params->deadline,
                                  .silence_ns = params->silence_ns};
    hce_status_t status;
    hce_boot_uid_t id;

    status = params_check(params, &id, why);
    if (status != HCE_OK)
        return status;
    meeting.job = id.job;
    memcpy(meeting.key, id.key, sizeof(meeting.key));
    if (params->rank == 0)
        status = hub_prepare(&meeting, why);
    else
        leaf_prepare(&meeting, &id);
    if (status == HCE_OK) {
        status = hce_boot_meet(&meeting, boot_p);
        memcpy(why->text, meeting.why, sizeof(why->text));
    }
    return status;
}
