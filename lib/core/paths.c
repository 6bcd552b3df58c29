/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The one table of builders, and the published geometry of chunks.
 */
#include "config.h"

#include "core/paths.h"

#include "direct/direct.h"
#include "flat/flat.h"
#include "ring/ring.h"
#include "util/math.h"

#include <stdio.h>
#include <string.h>

#define WIDTH_MAX      (64 * HCE_MIB)
#define WIDTH_HALF_MIN (8 * HCE_MIB)

/* Below either of these, a path of half slices uses the rule of whole ones. */
#define HALF_MIN_LEN      (128 * HCE_MIB)
#define HALF_MIN_CONTEXTS 4

/* The CPU spreads a chunk while the next one arrives: a chunk as wide as the
 * slice would leave nothing to overlap. */
#define WIDTH_AUTO_MAX (1 * HCE_MIB)

const hce_plan_builder_t *const hce_paths[] = {
    &hce_direct_allgather,
    &hce_ring_allgather,
    &hce_ring_short_allgather,
    &hce_eager_allgather,
    &hce_flat_allgather,
    &hce_direct_reduce_scatter,
    &hce_direct_allreduce,
    NULL,
};

const hce_plan_builder_t *hce_paths_find(hce_coll_t coll, const char *path)
{
    int i;

    for (i = 0; hce_paths[i] != NULL; i++) {
        if (hce_paths[i]->coll == coll &&
            strcmp(hce_paths[i]->path, path) == 0) {
            return hce_paths[i];
        }
    }
    return NULL;
}

const char *hce_paths_names(hce_coll_t coll, char buf[HCE_PATHS_NAMES_SIZE])
{
    size_t used = 0;
    int i;

    buf[0] = '\0';
    for (i = 0; hce_paths[i] != NULL && used < HCE_PATHS_NAMES_SIZE; i++) {
        if (hce_paths[i]->coll == coll) {
            used += (size_t)snprintf(buf + used, HCE_PATHS_NAMES_SIZE - used,
                                     "%s%s", used == 0 ? "" : ", ",
                                     hce_paths[i]->path);
        }
    }
    return buf;
}

const char *hce_paths_means(const char *path, bool has_proxy)
{
    if (!has_proxy) {
        return "CE";
    }
    return strncmp(path, "ring", 4) == 0 ? "RMA proxy ring + CE"
                                         : "RMA proxy + CE";
}

/* Chunks are never empty, however small the slice. */
static uint64_t round_width(uint64_t width)
{
    return hce_round_up(hce_max(width, 1u), HCE_PATHS_WIDTH_UNIT);
}

uint64_t hce_paths_width_whole(uint64_t len, int contexts)
{
    uint64_t width = hce_div_up(len, (uint64_t)contexts);

    return round_width(hce_min(width, WIDTH_MAX));
}

uint64_t hce_paths_width_half(uint64_t len, int contexts)
{
    uint64_t width = hce_div_up(len / 2, (uint64_t)contexts);

    return round_width(hce_min(hce_max(width, WIDTH_HALF_MIN), WIDTH_MAX));
}

uint64_t hce_paths_width(const char *path, uint64_t len, int contexts)
{
    if (strcmp(path, "ring") == 0 && len >= HALF_MIN_LEN &&
        contexts >= HALF_MIN_CONTEXTS) {
        return hce_paths_width_half(len, contexts);
    }
    return hce_paths_width_whole(len, contexts);
}

uint64_t hce_paths_width_auto(const char *path, uint64_t len, int contexts)
{
    return hce_min(hce_paths_width(path, len, contexts), WIDTH_AUTO_MAX);
}
