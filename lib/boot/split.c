/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Groups made from a group. Who will be a hub is known after a first
 * exchange, where it listens after a second; then each colour meets by
 * itself.
 */
#include <config.h>

#include "boot/mac.h"
#include "boot/meet.h"
#include "util/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a rank tells first. */
typedef struct choice {
    int32_t color;
    int32_t key;
    uint64_t host_id;
} choice_t;

/* And then; filled by hubs only. */
typedef struct place {
    int32_t status;
    uint32_t num_addrs;
    uint8_t nonce[HCE_BOOT_NONCE_LEN];
    hce_boot_addr_t addrs[HCE_BOOT_LISTEN_MAX];
} place_t;

_Static_assert(sizeof(choice_t) == 16, "wire");
_Static_assert(sizeof(place_t) == 64, "wire");

typedef struct split {
    hce_boot_t *parent;
    int size;
    choice_t *choices; /* [size of the parent] */
    place_t *places;
    int hub; /* rank in the parent of my group's rank 0 */
    bool is_one_host;
    hce_boot_meeting_t meeting;
} split_t;

/* Rank a comes before rank b of the same colour. */
static bool comes_before(const split_t *split, int a, int b)
{
    int32_t key_a = split->choices[a].key, key_b = split->choices[b].key;

    return key_a < key_b || (key_a == key_b && a < b);
}

/* My rank and size in the new group, and who its hub is. */
static void members_count(split_t *split)
{
    int me = hce_boot_rank(split->parent);
    int32_t color = split->choices[me].color;

    split->hub = me;
    split->is_one_host = true;
    for (int r = 0; r < split->size; r++) {
        if (split->choices[r].color != color)
            continue;
        split->meeting.size++;
        split->meeting.rank += comes_before(split, r, me);
        split->is_one_host =
            split->is_one_host &&
            split->choices[r].host_id == split->choices[me].host_id;
        if (comes_before(split, r, split->hub))
            split->hub = r;
    }
}

/* An address of this host that the parent's connections use is known to
 * work between the ranks' hosts. */
static hce_status_t own_addr_find(split_t *split, hce_boot_addr_t *addr_p)
{
    hce_boot_t *parent = split->parent;
    hce_boot_addr_t addr;
    bool is_found = false;

    if (split->is_one_host) {
        hce_boot_addr_loopback(addr_p);
        return HCE_OK;
    }
    hce_boot_lock(parent);
    for (int i = 0; i < parent->num_links && !is_found; i++) {
        int fd = parent->links[i].conn.fd;

        is_found = fd >= 0 && hce_boot_net_own_addr(fd, &addr) == 0 &&
                   !hce_boot_addr_is_loopback(&addr);
    }
    hce_boot_unlock(parent);
    if (!is_found)
        return hce_boot_net_primary(addr_p);
    addr.port = 0;
    *addr_p = addr;
    return HCE_OK;
}

static hce_status_t place_open(split_t *split, place_t *place)
{
    hce_boot_addr_t addr;
    hce_status_t status = hce_boot_random(place->nonce, sizeof(place->nonce));

    if (status == HCE_OK && split->meeting.size > 1) {
        status = own_addr_find(split, &addr);
        if (status == HCE_OK)
            status = hce_boot_listen_open(&addr, &split->meeting.listen);
        place->num_addrs = (uint32_t)split->meeting.listen.num;
        memcpy(place->addrs, split->meeting.listen.addr, sizeof(place->addrs));
    }
    place->status = status;
    return status;
}

/* Loopback leads to the hub only from its own host. */
static hce_status_t place_use(split_t *split)
{
    const place_t *place = &split->places[split->hub];
    int me = hce_boot_rank(split->parent);
    bool is_same_host =
        split->choices[me].host_id == split->choices[split->hub].host_id;
    hce_boot_meeting_t *meeting = &split->meeting;
    char name[128];

    if (place->status != HCE_OK ||
        (meeting->size > 1 &&
         (place->num_addrs < 1 || place->num_addrs > HCE_BOOT_LISTEN_MAX))) {
        hce_log(
            ERROR, BOOT, "split: %s cannot be the new group's rank 0: %s",
            hce_boot_rank_text(split->parent, split->hub, name, sizeof(name)),
            hce_status_string((hce_status_t)place->status));
        return place->status < 0 ? (hce_status_t)place->status
                                 : HCE_ERR_TRANSPORT;
    }
    meeting->job = hce_boot_hash(place->nonce, sizeof(place->nonce));
    hce_boot_mac(split->parent->secret, place->nonce, sizeof(place->nonce),
                 meeting->key);
    meeting->addrs = place->addrs;
    meeting->num_addrs = is_same_host ? (int)place->num_addrs : 1;
    return HCE_OK;
}

/* After the first exchange all ranks take part in the second, whatever
 * happens to them: otherwise the others would wait. */
static hce_status_t split_meet(split_t *split, uint64_t deadline,
                               hce_boot_t **boot_p)
{
    int me = hce_boot_rank(split->parent);
    place_t mine = {.status = HCE_OK};
    hce_boot_t *boot = NULL;
    hce_status_t status;

    if (split->choices[me].color != HCE_SPLIT_NONE) {
        members_count(split);
        if (split->hub == me)
            (void)place_open(split, &mine);
    }
    status = hce_boot_allgather(split->parent, &mine, sizeof(mine),
                                split->places, deadline);
    if (status == HCE_OK && split->choices[me].color != HCE_SPLIT_NONE) {
        status = place_use(split);
        if (status == HCE_OK) {
            status = hce_boot_meet(&split->meeting, &boot);
            if (status != HCE_OK && split->meeting.why[0] != '\0')
                hce_log(ERROR, BOOT, "split: %s", split->meeting.why);
        }
    }
    hce_boot_listen_close(&split->meeting.listen);
    if (status == HCE_OK)
        *boot_p = boot;
    return status;
}

hce_status_t hce_boot_split(hce_boot_t *boot, int color, int key,
                            uint64_t deadline, hce_boot_t **boot_p)
{
    split_t split = {.parent = boot,
                     .size = hce_boot_size(boot),
                     .meeting = {.name = boot->name,
                                 .is_private = true,
                                 .parent = boot,
                                 .deadline = deadline,
                                 .silence_ns = boot->watch.silence_ns}};
    choice_t choice = {
        .color = color, .key = key, .host_id = boot->who.host_id};
    hce_status_t status;

    split.choices = calloc((size_t)split.size, sizeof(*split.choices));
    split.places = calloc((size_t)split.size, sizeof(*split.places));
    if (split.choices != NULL && split.places != NULL) {
        status = hce_boot_allgather(boot, &choice, sizeof(choice),
                                    split.choices, deadline);
        if (status == HCE_OK)
            status = split_meet(&split, deadline, boot_p);
    } else {
        hce_log(ERROR, BOOT, "split: no memory for %d ranks", split.size);
        status = HCE_ERR_NO_MEMORY;
    }
    free(split.choices);
    free(split.places);
    return status;
}
