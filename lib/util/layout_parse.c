/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Layouts as users write them: "4" or "3,1,2", block or cyclic.
 */
#include <config.h>

#include "util/layout.h"
#include "util/config.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Sizes of nodes while they are dealt out. */
typedef struct sizes {
    int *left; /* [count] ranks that a node still takes */
    int count;
} sizes_t;

/* "4": count equal nodes. */
static const char *sizes_equal(const char *text, int nranks, sizes_t *sizes)
{
    int64_t count;

    if (hce_config_parse_int(text, 1, INT32_MAX, &count) != HCE_OK)
        return "expected a number of nodes, or sizes such as 3,1,2";
    if (count > nranks)
        return "there are more nodes than ranks";
    if (nranks % count != 0)
        return "the ranks do not divide evenly; give sizes such as 3,1,2";
    sizes->count = (int)count;
    for (int n = 0; n < sizes->count; n++)
        sizes->left[n] = nranks / sizes->count;
    return NULL;
}

/* "3,1,2": every size at least 1, the sum is nranks. text is cut up. */
static const char *sizes_listed(char *text, int nranks, sizes_t *sizes)
{
    int64_t sum = 0;

    sizes->count = 0;
    for (char *next = text; next != NULL;) {
        char *item = strsep(&next, ",");
        int64_t size;

        if (hce_config_parse_int(item, 1, INT32_MAX, &size) != HCE_OK)
            return "expected sizes of at least 1 between commas";
        sum += size;
        if (sum > nranks)
            return "the sizes add up to more than the ranks";
        sizes->left[sizes->count++] = (int)size;
    }
    return sum < nranks ? "the sizes add up to less than the ranks" : NULL;
}

static void deal(hce_layout_map_t map, int nranks, sizes_t *sizes, int *color)
{
    int node = 0;

    for (int r = 0; r < nranks; r++) {
        while (sizes->left[node] == 0)
            node = (node + 1) % sizes->count;
        color[r] = node;
        sizes->left[node]--;
        if (map == HCE_LAYOUT_CYCLIC)
            node = (node + 1) % sizes->count;
    }
}

hce_status_t hce_layout_parse(const char *nodes, hce_layout_map_t map,
                              int nranks, int *color, const char **why_p)
{
    hce_status_t status = HCE_ERR_INVALID_ARG;
    sizes_t sizes = {NULL, 0};
    const char *why;
    char *text;

    if (nranks < 1) {
        *why_p = "there are no ranks";
        return HCE_ERR_INVALID_ARG;
    }
    text = strdup(nodes);
    sizes.left = calloc((size_t)nranks, sizeof(*sizes.left));
    if (text == NULL || sizes.left == NULL) {
        why = "out of memory";
        status = HCE_ERR_NO_MEMORY;
    } else if (strchr(text, ',') == NULL) {
        why = sizes_equal(text, nranks, &sizes);
    } else {
        why = sizes_listed(text, nranks, &sizes);
    }
    if (why == NULL) {
        deal(map, nranks, &sizes, color);
        status = HCE_OK;
    } else {
        *why_p = why;
    }
    free(sizes.left);
    free(text);
    return status;
}
