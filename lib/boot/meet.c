/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * From a meeting to a started group. A group of one rank needs no network.
 */
#include <config.h>

#include "boot/meet.h"
#include "boot/mac.h"

#include <stdio.h>
#include <string.h>

void hce_boot_claim_mac(const hce_boot_meeting_t *meeting,
                        const hce_boot_hello_t *hello,
                        const hce_boot_nonces_t *nonces,
                        hce_boot_type_t type, uint8_t mac[HCE_BOOT_KEY_LEN])
{
    hce_boot_claim_t claim = {.job = meeting->job,
                              .rank = hello->rank,
                              .size = hello->size,
                              .type = type};

    memcpy(claim.leaf_nonce, nonces->leaf, sizeof(claim.leaf_nonce));
    memcpy(claim.hub_nonce, nonces->hub, sizeof(claim.hub_nonce));
    hce_boot_mac(meeting->key, &claim, sizeof(claim), mac);
}

static bool has_started(const hce_boot_t *boot)
{
    return boot->has_started;
}

/* The hub's deadline is about the same, and it knows better who is missing. */
static hce_status_t start_await(hce_boot_meeting_t *meeting, hce_boot_t *boot)
{
    hce_boot_until_t until = {.done = has_started,
                              .deadline = meeting->deadline};
    hce_status_t status;
    char name[128];

    if (until.deadline != HCE_TIME_NEVER) {
        until.deadline += HCE_BOOT_VERDICT_NS;
    }
    hce_boot_lock(boot);
    status = hce_boot_wait(boot, &until);
    if (status == HCE_ERR_TIMEOUT && !boot->verdict.have) {
        snprintf(meeting->why, sizeof(meeting->why),
                 "%s did not say in time whether all ranks have come",
                 hce_boot_rank_text(boot, 0, name, sizeof(name)));
        status = HCE_ERR_BOOTSTRAP;
    }
    hce_boot_unlock(boot);
    return status;
}

static hce_status_t meet_alone(hce_boot_t *boot)
{
    boot->has_started = true;
    return hce_boot_random(boot->secret, sizeof(boot->secret));
}

hce_status_t hce_boot_meet(hce_boot_meeting_t *meeting, hce_boot_t **boot_p)
{
    hce_boot_t *boot;
    hce_status_t status = hce_boot_group_create(meeting->name, meeting->rank,
                                                meeting->size, &boot);

    if (status != HCE_OK) {
        goto err_listen;
    }
    boot->watch.silence_ns = meeting->silence_ns;
    if (meeting->size == 1) {
        status = meet_alone(boot);
    } else if (meeting->rank == 0) {
        status = hce_boot_seat_all(meeting, boot);
    } else {
        status = hce_boot_join(meeting, boot);
        if (status == HCE_OK) {
            status = start_await(meeting, boot);
        }
    }
    if (status != HCE_OK) {
        goto err_boot;
    }
    hce_boot_listen_close(&meeting->listen);
    *boot_p = boot;
    return HCE_OK;

err_boot:
    if (boot->verdict.have) {
        snprintf(meeting->why, sizeof(meeting->why), "%s",
                 boot->verdict.news.text);
    }
    hce_boot_destroy(boot);
err_listen:
    hce_boot_listen_close(&meeting->listen);
    return status;
}
