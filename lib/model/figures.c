/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Built-in figures. They need only be right in relation to each other; a
 * tuning file has those of the machine at hand.
 */
#include "config.h"

#include "model/cost.h"

#include <string.h>

#define US 1e-6
#define GB 1e9

/* rdma: from the published bus bandwidths of 8 nodes of 4 ranks (direct 9.3
 * GB/s at 1 MiB and 277 at 8 GiB, ring 5.3 and 381), as what enters a node;
 * by distance and in one direction assumed to be as good a use of the port,
 * and eager as one hop without the wait for an entry, through one port a node.
 * tcp: relations as measured with four nodes of two ranks on 500 Mbit/s links
 * of one machine; the port's rate there was 60 MB/s. loop and none: 2 cores.
 */
static const struct {
    const char *kind, *path;
    int dirs; /* 0: any */
    hce_cost_figure_t figure;
} figures[] = {
    {"rdma", "eager", 0, {60 * US, 60 * GB}},
    {"rdma", "direct", 0, {105 * US, 250 * GB}},
    {"rdma", "ring", 2, {26 * US, 345 * GB}},
    {"rdma", "ring", 1, {26 * US, 172 * GB}},
    {"rdma", "ring_short", 0, {26 * US, 345 * GB}},
    {"rdma", "flat", 0, {26 * US, 172 * GB}},
    {"tcp", "eager", 0, {120 * US, 0.0547 * GB}},
    {"tcp", "direct", 0, {250 * US, 0.0547 * GB}},
    {"tcp", "ring", 2, {130 * US, 0.0562 * GB}},
    {"tcp", "ring", 1, {130 * US, 0.0583 * GB}},
    {"tcp", "ring_short", 0, {130 * US, 0.0560 * GB}},
    {"tcp", "flat", 0, {130 * US, 0.0590 * GB}},
    {"loop", "eager", 0, {40 * US, 2.0 * GB}},
    {"loop", "direct", 0, {60 * US, 3.0 * GB}},
    {"loop", "ring", 2, {50 * US, 3.0 * GB}},
    {"loop", "ring", 1, {50 * US, 3.0 * GB}},
    {"loop", "ring_short", 0, {50 * US, 3.0 * GB}},
    {"loop", "flat", 0, {50 * US, 3.0 * GB}},
    {"none", "eager", 0, {12 * US, 3.0 * GB}},
    {"none", "direct", 0, {18 * US, 5.0 * GB}},
    {"none", "flat", 0, {20 * US, 2.0 * GB}},
};

bool hce_cost_builtin(const char *kind, const char *path, int dirs,
                      hce_cost_figure_t *figure_p)
{
    size_t i;

    for (i = 0; i < sizeof(figures) / sizeof(figures[0]); i++) {
        if (strcmp(figures[i].kind, kind) == 0 &&
            strcmp(figures[i].path, path) == 0 &&
            (figures[i].dirs == 0 || figures[i].dirs == dirs)) {
            *figure_p = figures[i].figure;
            return true;
        }
    }
    return false;
}
