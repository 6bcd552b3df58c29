/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * A counter-based generator: the word at an index follows from the key and
 * the index alone, so any part can be made or checked without the rest.
 */
#include <config.h>

#include "pattern.h"

#include "util/math.h"

#include <string.h>

/* Checked through a block that stays in the first-level cache. A multiple of
 * every element size. */
#define BLOCK_LEN 8192u

#define WORD_STEP 0x9e3779b97f4a7c15ull
#define WORD_MIX  0xbf58476d1ce4e5b9ull

uint64_t hce_perf_pattern_key(int rank, int comm, uint64_t call)
{
    uint64_t state = call;

    state = hce_rand_next(&state) ^ (uint64_t)(uint32_t)rank;
    state = hce_rand_next(&state) ^ (uint64_t)(uint32_t)comm;
    return hce_rand_next(&state);
}

/* One multiplication a word: filling must not take longer than the copies
 * that are tested. */
static inline uint64_t pattern_word(uint64_t key, uint64_t index)
{
    uint64_t z = key + index * WORD_STEP;

    z = (z ^ (z >> 32)) * WORD_MIX;
    return z ^ (z >> 29);
}

uint64_t hce_perf_pattern_word(uint64_t key, uint64_t index)
{
    return pattern_word(key, index);
}

/* first: index of the first word. */
static void fill_words(uint64_t key, uint64_t first, void *buf, size_t len)
{
    size_t words = len / sizeof(uint64_t);
    unsigned char *out = buf;
    uint64_t word;
    size_t i;

    /* memcpy: buf need not be aligned. */
    for (i = 0; i < words; i++) {
        word = pattern_word(key, first + i);
        memcpy(out + i * sizeof(word), &word, sizeof(word));
    }
    if (len % sizeof(word) != 0) {
        word = pattern_word(key, first + words);
        memcpy(out + words * sizeof(word), &word, len % sizeof(word));
    }
}

void hce_perf_pattern_fill(uint64_t key, void *buf, size_t len)
{
    fill_words(key, 0, buf, len);
}

static uint64_t count_wrong(const unsigned char *have,
                            const unsigned char *want, size_t len,
                            size_t elt_size)
{
    uint64_t wrong = 0;
    size_t at;

    for (at = 0; at < len; at += elt_size)
        wrong += memcmp(have + at, want + at, elt_size) != 0;
    return wrong;
}

uint64_t hce_perf_pattern_check(uint64_t key, const void *buf, size_t len,
                                size_t elt_size)
{
    unsigned char want[BLOCK_LEN];
    const unsigned char *have = buf;
    uint64_t wrong = 0;
    size_t at, part;

    for (at = 0; at < len; at += part) {
        part = hce_min(len - at, (size_t)BLOCK_LEN);
        fill_words(key, at / sizeof(uint64_t), want, part);
        if (memcmp(have + at, want, part) != 0)
            wrong += count_wrong(have + at, want, part, elt_size);
    }
    return wrong;
}
