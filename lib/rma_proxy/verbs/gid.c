/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Verbs transport: which GID of a port names this rank. On RoCE the table has
 * one entry for each address of the interface and each version of RoCE; only
 * version 2 passes routers, and an IPv4 address is most often the one that
 * the fabric routes. On InfiniBand entry 0 is the port itself.
 */
#include "config.h"

#include "rma_proxy/verbs/verbs.h"

#include "rma_proxy/settings.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

static bool is_mapped_ipv4(const uint8_t gid[16])
{
    static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};

    return memcmp(gid, prefix, sizeof(prefix)) == 0;
}

static bool is_link_local(const uint8_t gid[16])
{
    return gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80;
}

/* How well an entry serves; 0 is not at all. */
static int gid_rank(const struct ibv_gid_entry *entry)
{
    static const uint8_t none[16];
    int rank;

    if (memcmp(entry->gid.raw, none, sizeof(none)) == 0)
        return 0;
    rank = is_mapped_ipv4(entry->gid.raw)  ? 3
           : is_link_local(entry->gid.raw) ? 1
                                           : 2;
    return entry->gid_type == IBV_GID_TYPE_ROCE_V2 ? rank + 3 : rank;
}

int hce_verbs_gid_choose(struct ibv_context *context, uint8_t port,
                         bool is_roce)
{
    struct ibv_port_attr attr;
    int best = 0, best_rank = 0;

    if (hce_proxy_settings.verbs_gid_index >= 0)
        return (int)hce_proxy_settings.verbs_gid_index;
    if (!is_roce || ibv_query_port(context, port, &attr) != 0)
        return 0;
    for (int i = 0; i < attr.gid_tbl_len; i++) {
        struct ibv_gid_entry entry;

        /* Empty entries are errors. */
        if (ibv_query_gid_ex(context, port, (uint32_t)i, &entry, 0) != 0)
            continue;
        if (gid_rank(&entry) > best_rank) {
            best_rank = gid_rank(&entry);
            best = i;
        }
    }
    return best;
}

const char *hce_verbs_gid_text(const uint8_t gid[16], char *buf, size_t size)
{
    bool is_ipv4 = is_mapped_ipv4(gid);

    if (inet_ntop(is_ipv4 ? AF_INET : AF_INET6, is_ipv4 ? gid + 12 : gid, buf,
                  (socklen_t)size) == NULL)
        snprintf(buf, size, "?");
    return buf;
}
