/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * From a meeting to a started group. A group of one rank needs no network.
 */
#include <config.h>

#include "boot/meet.h"
#include "boot/mac.h"
#include "util/math.h"

#include <stdio.h>
#include <string.h>

#define PARENT_LOOK_MS 50
#define SLEEP_MAX_MS   60000

hce_status_t hce_boot_meeting_check(hce_boot_meeting_t *meeting)
{
    hce_boot_t *parent = meeting->parent;
    hce_status_t status = HCE_INPROGRESS;

    if (parent != NULL) {
        hce_boot_lock(parent);
        hce_boot_turn(parent);
        if (parent->verdict.have) {
            status = (hce_status_t)parent->verdict.news.status;
            snprintf(meeting->why, sizeof(meeting->why), "%s",
                     parent->verdict.news.text);
        }
        hce_boot_unlock(parent);
    }
    if (status == HCE_INPROGRESS && hce_clock_ns() >= meeting->deadline)
        status = HCE_ERR_BOOTSTRAP;
    return status;
}

int hce_boot_meeting_sleep_ms(const hce_boot_meeting_t *meeting, uint64_t then)
{
    uint64_t now = hce_clock_ns();
    uint64_t ms = SLEEP_MAX_MS;

    if (then <= now)
        return 0;
    if (then != HCE_TIME_NEVER)
        ms = hce_min(ms, hce_div_up(then - now, HCE_NS_PER_MS));
    if (meeting->parent != NULL)
        ms = hce_min(ms, (uint64_t)PARENT_LOOK_MS);
    return (int)ms;
}

void hce_boot_claim_mac(const hce_boot_meeting_t *meeting,
                        const hce_boot_hello_t *hello,
                        const hce_boot_nonces_t *nonces, hce_boot_type_t type,
                        uint8_t mac[HCE_BOOT_KEY_LEN])
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

    if (until.deadline != HCE_TIME_NEVER)
        until.deadline += HCE_BOOT_VERDICT_NS;
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

/* Those who have come are told why. */
static void meet_fail(hce_boot_meeting_t *meeting, hce_boot_t *boot,
                      hce_status_t status)
{
    hce_boot_lock(boot);
    if (boot->verdict.have) {
        snprintf(meeting->why, sizeof(meeting->why), "%s",
                 boot->verdict.news.text);
    } else if (hce_boot_is_hub(boot)) {
        hce_boot_news_tell(boot, status, -1,
                           "the group was not formed: %.400s", meeting->why);
    }
    hce_boot_unlock(boot);
}

hce_status_t hce_boot_meet(hce_boot_meeting_t *meeting, hce_boot_t **boot_p)
{
    hce_boot_t *boot;
    hce_status_t status = hce_boot_group_create(meeting->name, meeting->rank,
                                                meeting->size, &boot);

    if (status != HCE_OK)
        goto err_listen;
    boot->watch.silence_ns = meeting->silence_ns;
    if (meeting->size == 1) {
        status = meet_alone(boot);
    } else if (meeting->rank == 0) {
        status = hce_boot_seat_all(meeting, boot);
    } else {
        status = hce_boot_join(meeting, boot);
        if (status == HCE_OK)
            status = start_await(meeting, boot);
    }
    if (status != HCE_OK)
        goto err_boot;
    hce_boot_listen_close(&meeting->listen);
    *boot_p = boot;
    return HCE_OK;

err_boot:
    meet_fail(meeting, boot, status);
    hce_boot_destroy(boot);
err_listen:
    hce_boot_listen_close(&meeting->listen);
    return status;
}
