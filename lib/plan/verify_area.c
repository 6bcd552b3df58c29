/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Sorted segments: found by bisection from where the last one was found, cut
 * where an access begins or ends, replaced by a write.
 */
#include "config.h"

#include "plan/verify_area.h"

#include "plan/verify_priv.h"
#include "util/math.h"

#include <stdlib.h>
#include <string.h>

bool hce_verify_area_init(hce_verify_area_t *area, uint64_t len)
{
    area->cap = 2;
    area->segments = malloc(area->cap * sizeof(*area->segments));
    if (area->segments == NULL) {
        return false;
    }
    area->segments[0] = (hce_verify_segment_t){
        .value = {.set = HCE_VERIFY_NONE},
        .writer = HCE_VERIFY_NONE,
    };
    area->num = 1;
    area->len = len;
    return true;
}

void hce_verify_area_cleanup(hce_verify_area_t *area)
{
    free(area->segments);
}

/* The segment that holds a byte; accesses mostly come in order. */
static uint32_t area_find(hce_verify_area_t *area, uint64_t at)
{
    const hce_verify_segment_t *s = area->segments;
    uint32_t lo = area->hint, hi;

    if (lo < area->num && s[lo].start <= at) {
        if (lo + 1 == area->num || at < s[lo + 1].start) {
            return lo;
        }
        lo++;
        if (lo + 1 == area->num || at < s[lo + 1].start) {
            return area->hint = lo;
        }
    } else {
        lo = 0;
    }
    hi = area->num;
    while (hi - lo > 1) {
        uint32_t mid = lo + (hi - lo) / 2;

        if (s[mid].start <= at) {
            lo = mid;
        } else {
            hi = mid;
        }
    }
    return area->hint = lo;
}

bool hce_verify_area_resize(hce_verify_area_t *area, uint32_t index,
                            uint32_t old, uint32_t num)
{
    uint32_t need = area->num - old + num, cap = area->cap;
    hce_verify_segment_t *segments;

    if (need > cap) {
        cap = hce_max(2 * cap, need);
        segments = realloc(area->segments, cap * sizeof(*segments));
        if (segments == NULL) {
            return false;
        }
        area->segments = segments;
        area->cap = cap;
    }
    memmove(&area->segments[index + num], &area->segments[index + old],
            (area->num - index - old) * sizeof(*area->segments));
    area->num = need;
    return true;
}

uint32_t hce_verify_area_cut(hce_verify_area_t *area, uint64_t at)
{
    hce_verify_segment_t *s;
    uint32_t i;

    if (at == area->len) {
        return area->num;
    }
    i = area_find(area, at);
    if (area->segments[i].start == at) {
        return i;
    }
    if (!hce_verify_area_resize(area, i, 1, 2)) {
        return HCE_VERIFY_NONE;
    }
    s = &area->segments[i];
    s[1] = s[0];
    s[1].start = at;
    s[1].value.offset += at - s[0].start;
    return i + 1;
}
