/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * From what each rank says of its host to a layout. All ranks get the same
 * cards and so come to the same result, errors included.
 */
#include <config.h>

#include "topo/topo.h"
#include "boot/host.h"
#include "boot/mac.h"
#include "topo/pin.h"
#include "topo/settings.h"
#include "util/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct card {
    uint64_t identity;
    int32_t node;         /* override, or -1 */
    uint32_t is_mistaken; /* its HCE_PROXY_CPUS is malformed */
    char host[HCE_BOOT_HOST_LEN];
} card_t;

_Static_assert(sizeof(card_t) == 80, "wire");

static void card_fill(card_t *card, int node_override)
{
    char text[256], boot_id[64];
    int len;

    memset(card, 0, sizeof(*card));
    hce_boot_host_name(card->host, sizeof(card->host));
    hce_boot_host_boot_id(boot_id, sizeof(boot_id));
    len = snprintf(text, sizeof(text), "%s %llu %llu %s", boot_id,
                   (unsigned long long)hce_boot_host_namespace("ipc"),
                   (unsigned long long)hce_boot_host_namespace("net"),
                   card->host);
    card->identity = hce_boot_hash(text, (size_t)len);
    card->node = node_override >= 0 ? node_override
                                    : (int32_t)hce_topo_settings.node_id;
    card->is_mistaken = !hce_topo_proxy_cpus_check();
}

/* One rank's mistake is an error of all. */
static hce_status_t settings_check(const card_t *cards, int size)
{
    for (int r = 0; r < size; r++) {
        if (cards[r].is_mistaken) {
            hce_log(ERROR, TOPO,
                    "rank %d on %.63s has a malformed HCE_PROXY_CPUS", r,
                    cards[r].host);
            return HCE_ERR_CONFIG;
        }
    }
    return HCE_OK;
}

/* One rank of each kind, for the error's text. */
static hce_status_t overrides_check(const card_t *cards, int size)
{
    for (int r = 1; r < size; r++) {
        int with = cards[r].node >= 0 ? r : 0;
        int without = with == 0 ? r : 0;

        if ((cards[r].node >= 0) != (cards[0].node >= 0)) {
            hce_log(ERROR, TOPO,
                    "rank %d on %.63s has node %d by setting (HCE_NODE_ID or "
                    "a parameter), rank %d on %.63s has none: all ranks must "
                    "have one, or none",
                    with, cards[with].host, cards[with].node, without,
                    cards[without].host);
            return HCE_ERR_CONFIG;
        }
    }
    return HCE_OK;
}

/* color[r]: the first rank on r's node. */
static hce_status_t colors_fill(const card_t *cards, int size, int *color)
{
    for (int r = 0; r < size; r++) {
        bool is_set = cards[r].node >= 0;
        int first = 0;

        while (is_set ? cards[first].node != cards[r].node
                      : cards[first].identity != cards[r].identity)
            first++;
        if (cards[first].identity != cards[r].identity) {
            hce_log(ERROR, TOPO,
                    "rank %d on %.63s and rank %d on %.63s share no memory, "
                    "but both have node %d by setting",
                    first, cards[first].host, r, cards[r].host, cards[r].node);
            return HCE_ERR_CONFIG;
        }
        color[r] = first;
    }
    return HCE_OK;
}

/* "8 ranks on 2 nodes: 0-3 4-7"; cut where it is long. */
static void layout_log(const hce_layout_t *layout, const char *host)
{
    char text[512];
    size_t len = 0;

    text[0] = '\0';
    for (int n = 0; n < layout->nnodes && len < sizeof(text) - 32; n++) {
        int first = layout->node_first[n], size = layout->node_size[n];

        len += (size_t)snprintf(text + len, sizeof(text) - len, " ");
        for (int i = 0; i < size && len < sizeof(text) - 32; i++) {
            int from = layout->ranks[first + i], to = from;

            while (i + 1 < size && layout->ranks[first + i + 1] == to + 1)
                to = layout->ranks[first + ++i];
            len += (size_t)snprintf(text + len, sizeof(text) - len,
                                    from == to ? "%s%d" : "%s%d-%d",
                                    text[len - 1] == ' ' ? "" : ",", from, to);
        }
    }
    hce_log(INFO, TOPO, "%d ranks on %d node%s:%s%s (this one on %s)",
            layout->nranks, layout->nnodes, layout->nnodes == 1 ? "" : "s",
            text, len >= sizeof(text) - 32 ? " ..." : "", host);
}

static hce_status_t layout_make(const card_t *cards, int size, int me,
                                hce_layout_t **layout_p)
{
    int *color = calloc((size_t)size, sizeof(*color));
    hce_status_t status;

    if (color == NULL) {
        hce_log(ERROR, TOPO, "no memory for %d ranks", size);
        return HCE_ERR_NO_MEMORY;
    }
    status = settings_check(cards, size);
    if (status == HCE_OK)
        status = overrides_check(cards, size);
    if (status == HCE_OK)
        status = colors_fill(cards, size, color);
    if (status == HCE_OK)
        status = hce_layout_create(size, color, layout_p);
    if (status == HCE_OK)
        layout_log(*layout_p, cards[me].host);
    free(color);
    return status;
}

hce_status_t hce_topo_discover(hce_boot_t *boot, int node_override,
                               uint64_t deadline, hce_layout_t **layout_p)
{
    int size = hce_boot_size(boot);
    card_t *cards = calloc((size_t)size, sizeof(*cards));
    card_t mine;
    hce_status_t status;

    if (cards == NULL) {
        hce_log(ERROR, TOPO, "no memory for %d ranks", size);
        return HCE_ERR_NO_MEMORY;
    }
    card_fill(&mine, node_override);
    status = hce_boot_allgather(boot, &mine, sizeof(mine), cards, deadline);
    if (status == HCE_OK)
        status = layout_make(cards, size, hce_boot_rank(boot), layout_p);
    free(cards);
    return status;
}
