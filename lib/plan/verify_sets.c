/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Sets of ranks whose contributions a byte holds, kept once each and named by
 * a small number. Only reductions make sets of more than one rank.
 */
#include "config.h"

#include "plan/verify_priv.h"

#include <stdlib.h>
#include <string.h>

#define SET_WORDS  (HCE_VERIFY_MAX_FULL_RANKS / 64)
#define SETS_FIRST 64 /* a power of two */

typedef struct set {
    uint64_t bits[SET_WORDS];
} set_t;

struct hce_verify_sets {
    set_t *sets; /* the larger ones: number nranks is sets[0] */
    uint32_t num;
    uint32_t cap;
    uint32_t *slots; /* open addressing: index into sets[] + 1 */
    uint32_t num_slots;
    int nranks;
};

hce_verify_sets_t *hce_verify_sets_create(int nranks)
{
    hce_verify_sets_t *s = calloc(1, sizeof(*s));

    if (s == NULL) {
        return NULL;
    }
    s->nranks = nranks;
    s->cap = SETS_FIRST;
    s->num_slots = 2 * SETS_FIRST;
    s->sets = calloc(s->cap, sizeof(*s->sets));
    s->slots = calloc(s->num_slots, sizeof(*s->slots));
    if (s->sets == NULL || s->slots == NULL) {
        hce_verify_sets_destroy(s);
        return NULL;
    }
    return s;
}

void hce_verify_sets_destroy(hce_verify_sets_t *s)
{
    if (s != NULL) {
        free(s->sets);
        free(s->slots);
        free(s);
    }
}

static set_t set_of(const hce_verify_sets_t *s, uint32_t number)
{
    set_t set = {{0}};

    if (number >= (uint32_t)s->nranks) {
        return s->sets[number - s->nranks];
    }
    set.bits[number / 64] = UINT64_C(1) << (number % 64);
    return set;
}

/* Slot that holds the set, or the free one where it belongs. */
static uint32_t *set_slot(hce_verify_sets_t *s, const set_t *set)
{
    uint64_t hash = 0;
    uint32_t at;
    int i;

    for (i = 0; i < SET_WORDS; i++) {
        hash = (hash ^ set->bits[i]) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 32;
    }
    for (at = hash & (s->num_slots - 1); s->slots[at] != 0;
         at = (at + 1) & (s->num_slots - 1)) {
        if (memcmp(&s->sets[s->slots[at] - 1], set, sizeof(*set)) == 0) {
            break;
        }
    }
    return &s->slots[at];
}

static hce_status_t sets_grow(hce_verify_sets_t *s)
{
    set_t *sets = realloc(s->sets, 2 * s->cap * sizeof(*sets));
    uint32_t *slots, i;

    if (sets == NULL) {
        return HCE_ERR_NO_MEMORY;
    }
    s->sets = sets;
    slots = calloc(2 * (size_t)s->num_slots, sizeof(*slots));
    if (slots == NULL) {
        return HCE_ERR_NO_MEMORY;
    }
    free(s->slots);
    s->slots = slots;
    s->num_slots *= 2;
    s->cap *= 2;
    for (i = 0; i < s->num; i++) {
        *set_slot(s, &s->sets[i]) = i + 1;
    }
    return HCE_OK;
}

hce_status_t hce_verify_sets_join(hce_verify_sets_t *s, uint32_t a, uint32_t b,
                                  uint32_t *joined_p, int *twice_p)
{
    set_t set = set_of(s, a), other = set_of(s, b);
    uint32_t *slot;
    uint64_t both;
    int i;

    for (i = 0; i < SET_WORDS; i++) {
        both = set.bits[i] & other.bits[i];
        if (both != 0) {
            *twice_p = i * 64 + __builtin_ctzll(both);
            return HCE_ERR_INVALID_ARG;
        }
        set.bits[i] |= other.bits[i];
    }
    if (s->num == s->cap && sets_grow(s) != HCE_OK) {
        return HCE_ERR_NO_MEMORY;
    }
    slot = set_slot(s, &set);
    if (*slot == 0) {
        s->sets[s->num] = set;
        *slot = ++s->num;
    }
    *joined_p = s->nranks + *slot - 1;
    return HCE_OK;
}
