/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Bootstrap through the PMIx server of mpirun or srun. It carries one small
 * value for each communicator, rank 0's address and secret, under a key that
 * was never used before (a key put again may be read stale). Everything else
 * goes over our own connections.
 */
#include <config.h>

#include "boot/bootstraps.h"

#include <stdio.h>

#ifdef HCE_HAVE_PMIX

#include "boot/host.h"
#include "boot/mac.h"
#include "util/log.h"

#include <errno.h>
#include <pmix.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct card {
    uint32_t wire_version;
    int32_t status; /* of rank 0's preparations */
    uint32_t num_addrs;
    uint32_t reserved;
    uint64_t host_id;
    uint8_t key[HCE_BOOT_KEY_LEN];
    hce_boot_addr_t addrs[HCE_BOOT_LISTEN_MAX];
} card_t;

_Static_assert(sizeof(card_t) == 80, "wire");

typedef struct client {
    bool is_ready;  /* PMIx_Init has succeeded; it is done once a process */
    bool is_broken; /* a fence was given up: no other may be started */
    pid_t pid;
    pmix_proc_t me;
    uint32_t size;
    unsigned count; /* communicators so far; all ranks count alike */
} client_t;

/* Protects client, and keeps two fences from running side by side. */
static pthread_mutex_t client_lock = PTHREAD_MUTEX_INITIALIZER;
static client_t client;

/* A launcher takes the end of a process without this for a crash. Left out
 * when a thread is still inside: exit must not wait for it. */
static void client_finalize(void)
{
    if (pthread_mutex_trylock(&client_lock) == 0) {
        if (client.is_ready && client.pid == getpid()) {
            client.is_ready = false;
            PMIx_Finalize(NULL, 0);
        }
        pthread_mutex_unlock(&client_lock);
    }
}

static hce_status_t size_get(uint32_t *size_p, hce_boot_why_t *why)
{
    pmix_value_t *value = NULL;
    pmix_proc_t job;
    pmix_status_t rc;

    PMIX_LOAD_PROCID(&job, client.me.nspace, PMIX_RANK_WILDCARD);
    rc = PMIx_Get(&job, PMIX_JOB_SIZE, NULL, 0, &value);
    if (rc != PMIX_SUCCESS || value->type != PMIX_UINT32 ||
        value->data.uint32 <= client.me.rank ||
        value->data.uint32 > HCE_BOOT_SIZE_MAX) {
        snprintf(why->text, sizeof(why->text), "no usable PMIX_JOB_SIZE: %s",
                 PMIx_Error_string(rc));
        if (rc == PMIX_SUCCESS)
            PMIX_VALUE_RELEASE(value);
        return HCE_ERR_BOOTSTRAP;
    }
    *size_p = value->data.uint32;
    PMIX_VALUE_RELEASE(value);
    return HCE_OK;
}

/* Caller holds client_lock. */
static hce_status_t client_init(hce_boot_why_t *why)
{
    pmix_status_t rc;

    if (client.is_ready && client.pid != getpid()) {
        snprintf(why->text, sizeof(why->text),
                 "this process was forked from a PMIx client");
        return HCE_ERR_UNSUPPORTED;
    }
    if (client.is_ready)
        return HCE_OK;
    if (hce_config_foreign("PMIX_NAMESPACE") == NULL) {
        snprintf(why->text, sizeof(why->text),
                 "not started by a PMIx launcher (PMIX_NAMESPACE is not "
                 "set)");
        return HCE_ERR_UNSUPPORTED;
    }
    rc = PMIx_Init(&client.me, NULL, 0);
    if (rc != PMIX_SUCCESS) {
        snprintf(why->text, sizeof(why->text), "PMIx_Init: %s",
                 PMIx_Error_string(rc));
        return HCE_ERR_UNSUPPORTED;
    }
    client.is_ready = true;
    client.pid = getpid();
    atexit(client_finalize);
    return HCE_OK;
}

typedef struct fence {
    sem_t done;
    pmix_status_t rc;
} fence_t;

static void fence_done(pmix_status_t rc, void *arg)
{
    fence_t *fence = arg;

    fence->rc = rc;
    sem_post(&fence->done);
}

/* sem_clockwait needs a newer C library: the deadline is turned into the
 * wall clock's, which a change of date shifts. */
static bool fence_await(fence_t *fence, uint64_t deadline)
{
    struct timespec wall;
    uint64_t now = hce_clock_ns(), then;
    int rc;

    clock_gettime(CLOCK_REALTIME, &wall);
    then = (uint64_t)wall.tv_sec * HCE_NS_PER_SEC + (uint64_t)wall.tv_nsec +
           (deadline > now ? deadline - now : 0);
    wall.tv_sec = (time_t)(then / HCE_NS_PER_SEC);
    wall.tv_nsec = (long)(then % HCE_NS_PER_SEC);
    do {
        rc = deadline == HCE_TIME_NEVER ? sem_wait(&fence->done)
                                        : sem_timedwait(&fence->done, &wall);
    } while (rc != 0 && errno == EINTR);
    return rc == 0;
}

/* All ranks of the job, whose values have come when it is over. A fence
 * that is given up stays with the PMIx library, with its memory. */
static hce_status_t fence_run(uint64_t deadline, hce_boot_why_t *why)
{
    fence_t *fence = calloc(1, sizeof(*fence));
    pmix_info_t info;
    bool collect = true;
    pmix_status_t rc;

    if (fence == NULL) {
        snprintf(why->text, sizeof(why->text), "no memory");
        return HCE_ERR_NO_MEMORY;
    }
    sem_init(&fence->done, 0, 0);
    PMIX_INFO_CONSTRUCT(&info);
    PMIX_INFO_LOAD(&info, PMIX_COLLECT_DATA, &collect, PMIX_BOOL);
    rc = PMIx_Fence_nb(NULL, 0, &info, 1, fence_done, fence);
    if (rc == PMIX_SUCCESS && !fence_await(fence, deadline)) {
        client.is_broken = true;
        snprintf(why->text, sizeof(why->text),
                 "rank %u: not all of the %u ranks have come in time",
                 client.me.rank, client.size);
        return HCE_ERR_BOOTSTRAP;
    }
    if (rc == PMIX_SUCCESS)
        rc = fence->rc;
    PMIX_INFO_DESTRUCT(&info);
    sem_destroy(&fence->done);
    free(fence);
    if (rc != PMIX_SUCCESS && rc != PMIX_OPERATION_SUCCEEDED) {
        snprintf(why->text, sizeof(why->text), "PMIx_Fence: %s",
                 PMIx_Error_string(rc));
        return HCE_ERR_BOOTSTRAP;
    }
    return HCE_OK;
}

static hce_status_t card_make(hce_boot_meeting_t *meeting, card_t *card)
{
    hce_boot_addr_t primary;
    hce_boot_who_t who;
    hce_status_t status = hce_boot_random(card->key, sizeof(card->key));

    if (status == HCE_OK)
        status = hce_boot_net_primary(&primary);
    if (status == HCE_OK)
        status = hce_boot_listen_open(&primary, &meeting->listen);
    hce_boot_who_self(&who);
    card->wire_version = HCE_BOOT_WIRE_VERSION;
    card->status = status;
    card->host_id = who.host_id;
    card->num_addrs = (uint32_t)meeting->listen.num;
    memcpy(card->addrs, meeting->listen.addr, sizeof(card->addrs));
    return status;
}

static hce_status_t card_put(const char *key, card_t *card,
                             hce_boot_why_t *why)
{
    pmix_value_t value = {
        .type = PMIX_BYTE_OBJECT,
        .data.bo = {.bytes = (char *)card, .size = sizeof(*card)}};
    pmix_status_t rc = PMIx_Put(PMIX_GLOBAL, key, &value);

    if (rc == PMIX_SUCCESS)
        rc = PMIx_Commit();
    if (rc != PMIX_SUCCESS) {
        snprintf(why->text, sizeof(why->text), "PMIx_Put: %s",
                 PMIx_Error_string(rc));
        return HCE_ERR_BOOTSTRAP;
    }
    return HCE_OK;
}

static hce_status_t card_check(const card_t *card, hce_boot_why_t *why)
{
    if (card->wire_version != HCE_BOOT_WIRE_VERSION) {
        snprintf(why->text, sizeof(why->text),
                 "rank %u speaks wire version %d, rank 0 speaks version %u",
                 client.me.rank, HCE_BOOT_WIRE_VERSION, card->wire_version);
        return HCE_ERR_VERSION;
    }
    if (card->status != HCE_OK || card->num_addrs < 1 ||
        card->num_addrs > HCE_BOOT_LISTEN_MAX) {
        snprintf(why->text, sizeof(why->text), "rank 0 cannot listen: %s",
                 hce_status_string((hce_status_t)card->status));
        return HCE_ERR_BOOTSTRAP;
    }
    return HCE_OK;
}

static hce_status_t card_get(const char *key, card_t *card,
                             hce_boot_why_t *why)
{
    pmix_value_t *value = NULL;
    pmix_proc_t hub;
    pmix_status_t rc;
    bool is_card;

    PMIX_LOAD_PROCID(&hub, client.me.nspace, 0);
    rc = PMIx_Get(&hub, key, NULL, 0, &value);
    if (rc != PMIX_SUCCESS) {
        snprintf(why->text, sizeof(why->text), "PMIx_Get of rank 0's %s: %s",
                 key, PMIx_Error_string(rc));
        return HCE_ERR_BOOTSTRAP;
    }
    is_card = value->type == PMIX_BYTE_OBJECT &&
              value->data.bo.size == sizeof(*card);
    if (is_card)
        memcpy(card, value->data.bo.bytes, sizeof(*card));
    PMIX_VALUE_RELEASE(value);
    if (!is_card) {
        snprintf(why->text, sizeof(why->text),
                 "rank 0's %s comes from another version of this library",
                 key);
        return HCE_ERR_VERSION;
    }
    return card_check(card, why);
}

/* Rank 0 takes part in the fence even if it cannot listen: the others learn
 * it from the card. */
static hce_status_t card_exchange(hce_boot_meeting_t *meeting, card_t *card,
                                  hce_boot_why_t *why)
{
    hce_status_t own = HCE_OK, status = HCE_OK;
    char key[64];

    snprintf(key, sizeof(key), "hce.%u", client.count++);
    if (meeting->rank == 0) {
        own = card_make(meeting, card);
        status = card_put(key, card, why);
    }
    if (status == HCE_OK)
        status = fence_run(meeting->deadline, why);
    if (status == HCE_OK && meeting->rank != 0)
        status = card_get(key, card, why);
    return status == HCE_OK ? own : status;
}

static hce_status_t meeting_prepare(hce_boot_meeting_t *meeting, card_t *card,
                                    hce_boot_why_t *why)
{
    hce_status_t status = client_init(why);
    char job[PMIX_MAX_NSLEN + 32];
    int len;

    if (status == HCE_OK)
        status = size_get(&client.size, why);
    if (status == HCE_OK && client.is_broken) {
        snprintf(why->text, sizeof(why->text),
                 "an earlier creation has timed out");
        status = HCE_ERR_BOOTSTRAP;
    }
    if (status != HCE_OK)
        return status;
    len = snprintf(job, sizeof(job), "%u %s", client.count, client.me.nspace);
    meeting->job = hce_boot_hash(job, (size_t)len);
    meeting->rank = (int)client.me.rank;
    meeting->size = (int)client.size;
    return meeting->size > 1 ? card_exchange(meeting, card, why) : HCE_OK;
}

hce_status_t hce_boot_pmix_create(const hce_boot_params_t *params,
                                  hce_boot_why_t *why, hce_boot_t **boot_p)
{
    hce_boot_meeting_t meeting = {.name = "pmix",
                                  .is_private = true,
                                  .deadline = params->deadline,
                                  .silence_ns = params->silence_ns};
    card_t card = {.status = HCE_OK};
    hce_boot_who_t who;
    hce_status_t status;

    pthread_mutex_lock(&client_lock);
    status = meeting_prepare(&meeting, &card, why);
    pthread_mutex_unlock(&client_lock);
    if (status != HCE_OK) {
        hce_boot_listen_close(&meeting.listen);
        return status;
    }
    hce_boot_who_self(&who);
    memcpy(meeting.key, card.key, sizeof(meeting.key));
    meeting.addrs = card.addrs;
    meeting.num_addrs = who.host_id == card.host_id ? (int)card.num_addrs : 1;
    status = hce_boot_meet(&meeting, boot_p);
    memcpy(why->text, meeting.why, sizeof(why->text));
    return status;
}

#else

hce_status_t hce_boot_pmix_create(const hce_boot_params_t *params,
                                  hce_boot_why_t *why, hce_boot_t **boot_p)
{
    snprintf(why->text, sizeof(why->text),
             "this library was built without PMIx");
    return HCE_ERR_UNSUPPORTED;
}

#endif
