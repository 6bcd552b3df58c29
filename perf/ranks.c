/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Finding out how many ranks there are to be.
 */
#include <config.h>

#include "ranks.h"

#include "util/config.h"
#include "util/math.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_MIN 2
#define DEFAULT_MAX 8

bool hce_perf_ranks_launched(void)
{
    return hce_config_foreign("PMIX_RANK") != NULL ||
           (hce_config_foreign("RANK") != NULL &&
            hce_config_foreign("WORLD_SIZE") != NULL);
}

static int usable_cores(void)
{
    cpu_set_t cores;

    if (sched_getaffinity(0, sizeof(cores), &cores) != 0)
        return DEFAULT_MIN;
    return CPU_COUNT(&cores);
}

/* Sum of "3,1,2"; what is malformed is refused later, by the layout. */
static int sum_of_nodes(const char *nodes)
{
    const char *at = nodes;
    char *end;
    long sum = 0, size;

    for (;;) {
        size = strtol(at, &end, 10);
        if (end == at || size < 1 || size > 4096)
            return DEFAULT_MIN;
        sum += size;
        if (*end != ',')
            return (int)hce_min(sum, 4096L);
        at = end + 1;
    }
}

int hce_perf_ranks_default(const char *nodes)
{
    int ranks = hce_min(hce_max(usable_cores(), DEFAULT_MIN), DEFAULT_MAX);

    if (nodes == NULL)
        return ranks;
    if (strchr(nodes, ',') != NULL)
        return sum_of_nodes(nodes);
    return (int)hce_round_up((uint64_t)ranks, (uint64_t)sum_of_nodes(nodes));
}
