/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Verifies the plans of fixed large jobs, up to 256 ranks replayed in
 * full and some beyond, which are checked by rank.
 */
#include "config.h"

#include "shapes.h"

#include "direct/direct.h"
#include "flat/flat.h"
#include "plan/verify.h"
#include "ring/ring.h"
#include "util/clock.h"
#include "util/math.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define DIRECT (&hce_direct_allgather)
#define EAGER  (&hce_eager_allgather)
#define FLAT   (&hce_flat_allgather)
#define RING   (&hce_ring_allgather)
#define SHORT  (&hce_ring_short_allgather)
#define BLOCK  HCE_LAYOUT_BLOCK
#define CYCLIC HCE_LAYOUT_CYCLIC

typedef struct large {
    const hce_plan_builder_t *builder;
    const char *nodes;
    int nranks;
    hce_layout_map_t map;
    uint64_t len;
    uint64_t width;
    int contexts;
    int carriers;
    int dirs;
} large_t;

static const large_t larges[] = {
    {DIRECT, "24", 192, BLOCK, 4 * HCE_GIB, 64 * HCE_MIB, 4, 0, 0},
    {DIRECT, "24", 192, CYCLIC, 4 * HCE_GIB, 64 * HCE_MIB, 4, 0, 0},
    {DIRECT, "24", 192, BLOCK, 4 * HCE_GIB / 192, 8 * HCE_MIB, 4, 0, 0},
    {FLAT, "24", 192, BLOCK, 4 * HCE_GIB, 128 * HCE_MIB, 4, 0, 0},
    {FLAT, "24", 192, CYCLIC, 4 * HCE_GIB / 192, 8 * HCE_MIB, 1, 0, 0},
    {DIRECT, "32", 256, BLOCK, HCE_GIB, 64 * HCE_MIB, 4, 0, 0},
    {DIRECT, "32", 256, CYCLIC, HCE_GIB + 1, 64 * HCE_MIB, 16, 0, 0},
    {DIRECT, "256", 256, BLOCK, 64 * HCE_MIB, 16 * HCE_MIB, 4, 0, 0},
    {DIRECT, "1", 256, BLOCK, 64 * HCE_MIB, 16 * HCE_MIB, 1, 0, 0},
    {DIRECT, "2", 256, BLOCK, 3 * HCE_MIB + 5, HCE_MIB, 2, 0, 0},
    {DIRECT, "128,64,32,16,8,4,2,1,1", 256, BLOCK, HCE_MIB - 1, 512 * HCE_KIB,
     2, 0, 0},
    {DIRECT, "128,64,32,16,8,4,2,1,1", 256, CYCLIC, 0, 1, 4, 0, 0},
    {FLAT, "32", 256, BLOCK, 16 * HCE_MIB, 4 * HCE_MIB, 4, 0, 0},
    {FLAT, "1", 256, BLOCK, 16 * HCE_MIB, 8 * HCE_MIB, 1, 0, 0},
    {FLAT, "128,64,32,16,8,4,2,1,1", 256, CYCLIC, 17, 4 * HCE_MIB, 2, 0, 0},
    {DIRECT, "2", 16, BLOCK, 64 * HCE_GIB, 1, 16, 0, 0},
    {FLAT, "5,4,3,2,1", 15, CYCLIC, 64 * HCE_GIB + 3, 1, 16, 0, 0},
    {DIRECT, "64", 512, BLOCK, 256 * HCE_MIB, 64 * HCE_MIB, 4, 0, 0},
    {DIRECT, "64", 512, CYCLIC, 100 * HCE_MIB + 7, 64 * HCE_MIB, 4, 0, 0},
    {FLAT, "40", 320, BLOCK, 4 * HCE_MIB, 2 * HCE_MIB, 4, 0, 0},
    {DIRECT, "32", 256, BLOCK, HCE_GIB, 64 * HCE_MIB, 4, 1, 0},
    {DIRECT, "128,64,32,16,8,4,2,1,1", 256, CYCLIC, HCE_MIB - 1, 512 * HCE_KIB,
     2, 3, 0},
    {EAGER, "24", 192, BLOCK, 1024, 8 * HCE_KIB, 1, 0, 0},
    {EAGER, "24", 192, CYCLIC, 1023, 8 * HCE_KIB, 1, 0, 0},
    {EAGER, "1", 256, BLOCK, 17, 8 * HCE_KIB, 4, 0, 0},
    {EAGER, "256", 256, BLOCK, 4096, 8 * HCE_KIB, 1, 0, 0},
    {EAGER, "128,64,32,16,8,4,2,1,1", 256, CYCLIC, 3, 1, 1, 0, 0},
    {RING, "24", 192, BLOCK, 4 * HCE_GIB, 64 * HCE_MIB, 4, 0, 0},
    {RING, "24", 192, CYCLIC, 4 * HCE_GIB / 192, 8 * HCE_MIB, 4, 1, 1},
    {RING, "8", 256, BLOCK, HCE_GIB, 64 * HCE_MIB, 4, 2, 0},
    {RING, "256", 256, BLOCK, 64 * HCE_MIB, 16 * HCE_MIB, 1, 0, 0},
    {RING, "128,64,32,16,8,4,2,1,1", 256, CYCLIC, HCE_MIB - 1, 512 * HCE_KIB,
     2, 3, 0},
    {RING, "8", 512, BLOCK, 256 * HCE_MIB, 64 * HCE_MIB, 4, 0, 0},
    {SHORT, "24", 192, BLOCK, 4 * HCE_GIB, 64 * HCE_MIB, 4, 0, 0},
    {SHORT, "4", 252, CYCLIC, HCE_GIB + 1, 64 * HCE_MIB, 16, 2, 0},
    {SHORT, "255", 255, BLOCK, 64 * HCE_MIB, 16 * HCE_MIB, 1, 0, 0},
    {SHORT, "128,64,32,16,8,4,2,1,1", 256, BLOCK, 17, 1, 2, 0, 0},
    {SHORT, "8", 512, BLOCK, 256 * HCE_MIB, 64 * HCE_MIB, 4, 1, 0},
};

static bool verify_one(const large_t *large)
{
    uint64_t start = hce_clock_ns();
    hce_verify_report_t report;
    hce_status_t status;
    shape_t shape;

    shape_make(large->builder, large->nodes, large->nranks, large->map,
               &shape);
    shape.params.len = large->len;
    shape.params.width = large->width;
    shape.params.contexts = large->contexts;
    shape.params.carriers = large->carriers;
    shape.params.dirs = large->dirs;
    status = hce_plan_verify_builder(shape.builder, &shape.params, &report);
    printf("%s%s, %.1f s\n", status == HCE_OK ? "" : "FAILED: ", report.text,
           (hce_clock_ns() - start) / 1e9);
    fflush(stdout);
    shape_free(&shape);
    return status == HCE_OK &&
           report.full == (large->nranks <= HCE_VERIFY_MAX_FULL_RANKS);
}

int main(void)
{
    bool ok = true;
    size_t i;

    for (i = 0; i < sizeof(larges) / sizeof(larges[0]); i++) {
        ok = verify_one(&larges[i]) && ok;
    }
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
