/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Which frames a seated peer may send, and who handles them. A peer that
 * breaks the rules is named and its link closed.
 */
#include <config.h>

#include "boot/group.h"

#include <stdio.h>

#define READ_FRAMES 64 /* of one link in one go, so that others get a turn */

static hce_status_t on_start(hce_boot_t *boot, hce_boot_link_t *link,
                             const void *body, size_t len)
{
    boot->has_started = true;
    hce_boot_watch_start(boot, boot->watch.silence_ns);
    return HCE_OK;
}

typedef enum { TO_HUB = 1, TO_LEAF = 2 } direction_t;

typedef struct rule {
    int direction; /* whom it may be sent to */
    size_t min_len, max_len;
    hce_boot_handler_t handler;
} rule_t;

static const rule_t rules[HCE_BOOT_TYPE_LAST] = {
    [HCE_BOOT_START] = {TO_LEAF, 0, 0, on_start},
    [HCE_BOOT_HEARTBEAT] = {TO_HUB | TO_LEAF, sizeof(hce_boot_heartbeat_t),
                            sizeof(hce_boot_heartbeat_t),
                            hce_boot_on_heartbeat},
    [HCE_BOOT_PART] = {TO_HUB, sizeof(hce_boot_part_t),
                       sizeof(hce_boot_part_t) + HCE_BOOT_PART_MAX,
                       hce_boot_on_part},
    [HCE_BOOT_RESULT] = {TO_LEAF, sizeof(hce_boot_part_t), HCE_BOOT_FRAME_MAX,
                         hce_boot_on_result},
    [HCE_BOOT_LATE] = {TO_HUB, sizeof(hce_boot_part_t),
                       sizeof(hce_boot_part_t), hce_boot_on_late},
    [HCE_BOOT_NEWS] = {TO_HUB | TO_LEAF, sizeof(hce_boot_news_msg_t),
                       sizeof(hce_boot_news_msg_t), hce_boot_on_news},
    [HCE_BOOT_STUCK] = {TO_HUB, sizeof(hce_boot_stuck_msg_t),
                        sizeof(hce_boot_stuck_msg_t), hce_boot_on_stuck},
    [HCE_BOOT_ASK] = {TO_LEAF, sizeof(hce_boot_heartbeat_t),
                      sizeof(hce_boot_heartbeat_t), hce_boot_on_ask},
    [HCE_BOOT_GOODBYE] = {TO_HUB | TO_LEAF, 0, 0, hce_boot_on_goodbye},
    [HCE_BOOT_END] = {TO_LEAF, 0, 0, hce_boot_on_end},
    [HCE_BOOT_APPOINT] = {TO_LEAF, sizeof(hce_boot_appoint_msg_t),
                          sizeof(hce_boot_appoint_msg_t), hce_boot_on_appoint},
    [HCE_BOOT_PLACE] = {TO_HUB, sizeof(hce_boot_place_msg_t),
                        sizeof(hce_boot_place_msg_t), hce_boot_on_place},
    [HCE_BOOT_HANDOVER] = {TO_LEAF, sizeof(hce_boot_handover_msg_t),
                           HCE_BOOT_PART_MAX, hce_boot_on_handover},
    [HCE_BOOT_ADOPT] = {TO_LEAF, sizeof(hce_boot_adopt_msg_t),
                        sizeof(hce_boot_adopt_msg_t), hce_boot_on_adopt},
};

static void link_broken(hce_boot_t *boot, hce_boot_link_t *link,
                        const char *what)
{
    const hce_boot_frame_t *frame = &link->conn.frame;
    char name[128], why[256];

    snprintf(why, sizeof(why), "%s %s (type %u, %u bytes, version %u)",
             hce_boot_rank_text(boot, link->rank, name, sizeof(name)), what,
             frame->type, frame->len, frame->version);
    hce_boot_link_lost(boot, link, why);
}

static void frame_handle(hce_boot_t *boot, hce_boot_link_t *link,
                         const hce_boot_frame_t *frame, const void *body)
{
    int direction = hce_boot_is_hub(boot) ? TO_HUB : TO_LEAF;
    const rule_t *rule;

    if (link->is_unproved && frame->type != HCE_BOOT_ADOPT) {
        hce_boot_link_lost(boot, link, NULL); /* not our new hub */
        return;
    }
    if (frame->version != HCE_BOOT_WIRE_VERSION ||
        frame->type >= HCE_BOOT_TYPE_LAST ||
        (rules[frame->type].direction & direction) == 0) {
        link_broken(boot, link, "sent an unexpected frame");
        return;
    }
    rule = &rules[frame->type];
    if (frame->len < rule->min_len || frame->len > rule->max_len ||
        rule->handler(boot, link, body, frame->len) != HCE_OK)
        link_broken(boot, link, "sent a malformed frame");
}

void hce_boot_link_read(hce_boot_t *boot, hce_boot_link_t *link)
{
    for (int i = 0; i < READ_FRAMES && hce_boot_link_is_open(link); i++) {
        const hce_boot_frame_t *frame;
        const void *body;
        hce_status_t status;

        status = hce_boot_conn_next(&link->conn, &frame, &body);
        hce_boot_link_heard(link);
        if (status == HCE_INPROGRESS)
            return;
        if (status == HCE_OK)
            frame_handle(boot, link, frame, body);
        else if (status == HCE_ERR_NO_MEMORY)
            link_broken(boot, link, "sent more than there is memory for");
        else if (status == HCE_ERR_TRANSPORT)
            link_broken(boot, link, "sent garbage");
        else
            hce_boot_link_lost(boot, link, NULL);
    }
}
