/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Loop transport: faults made on purpose, by seed. They stay within what a
 * network may do: puts have no order among themselves, messages none against
 * puts and signals, but a signal never overtakes a put.
 */
#include "config.h"

#include "rma_proxy/loop/loop.h"

#include "rma_proxy/settings.h"
#include "util/config.h"
#include "util/log.h"
#include "util/math.h"

#include <stdlib.h>
#include <string.h>

#define FAULTS_EXPECTED                                                       \
    "a list of delay=P, reorder=P, refuse=P, pieces=P, twice=P (P 0 to "      \
    "100), "                                                                  \
    "break=N@R, lose=N@R (N >= 1)"

bool hce_loop_faults_hit(loop_faults_t *faults, int64_t percent)
{
    return percent > 0 &&
           hce_rand_next(&faults->rng) % 100 < (uint64_t)percent;
}

uint32_t hce_loop_faults_below(loop_faults_t *faults, uint32_t limit)
{
    return (uint32_t)(hce_rand_next(&faults->rng) % limit);
}

/* "N@R": *value_p becomes N on rank R and stays on others. */
static hce_status_t parse_at(const char *text, int rank, int64_t *value_p)
{
    const char *at = strchr(text, '@');
    char number[24];
    int64_t n, r;

    if (at == NULL || (size_t)(at - text) >= sizeof(number))
        return HCE_ERR_CONFIG;
    memcpy(number, text, (size_t)(at - text));
    number[at - text] = '\0';
    if (hce_config_parse_int(number, 1, INT64_MAX, &n) != HCE_OK ||
        hce_config_parse_int(at + 1, 0, INT32_MAX, &r) != HCE_OK)
        return HCE_ERR_CONFIG;
    if (r == rank)
        *value_p = n;
    return HCE_OK;
}

static hce_status_t parse_fault(loop_faults_t *faults, char *text, int rank)
{
    const struct {
        const char *name;
        int64_t *value;
        bool at;
    } names[] = {
        {"delay", &faults->delay, false},
        {"reorder", &faults->reorder, false},
        {"refuse", &faults->refuse, false},
        {"pieces", &faults->pieces, false},
        {"twice", &faults->twice, false},
        {"break", &faults->break_at, true},
        {"lose", &faults->lose_at, true},
    };
    char *value = strchr(text, '=');

    if (value == NULL)
        return HCE_ERR_CONFIG;
    *value++ = '\0';
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(text, names[i].name) != 0)
            continue;
        if (names[i].at)
            return parse_at(value, rank, names[i].value);
        return hce_config_parse_int(value, 0, 100, names[i].value);
    }
    return HCE_ERR_CONFIG;
}

hce_status_t hce_loop_faults_init(loop_faults_t *faults, int rank)
{
    const char *text = hce_proxy_settings.loop_faults;
    uint64_t mix = (uint64_t)hce_proxy_settings.loop_seed;
    char *copy, *save, *item;
    hce_status_t status = HCE_OK;

    if (text == NULL || text[0] == '\0')
        return HCE_OK;
    copy = strdup(text);
    if (copy == NULL)
        return HCE_ERR_NO_MEMORY;
    for (item = strtok_r(copy, ",", &save); item != NULL && status == HCE_OK;
         item = strtok_r(NULL, ",", &save))
        status = parse_fault(faults, item, rank);
    free(copy);
    if (status != HCE_OK) {
        hce_log(ERROR, PROXY, "HCE_LOOP_FAULTS=%s: expected %s", text,
                FAULTS_EXPECTED);
        return HCE_ERR_CONFIG;
    }
    faults->rng = hce_rand_next(&mix) + (uint64_t)rank;
    faults->on = true;
    hce_log(WARN, PROXY, "loop: HCE_LOOP_FAULTS=%s, seed %lld", text,
            (long long)hce_proxy_settings.loop_seed);
    return HCE_OK;
}

/* How many entries from the head on may change places with it: the first of
 * a run of puts is any of them; the first message may overtake all. */
static uint32_t find_candidate(loop_faults_t *faults, loop_out_t *out)
{
    uint32_t puts = 0, i;

    for (i = 0; i < out->count; i++) {
        uint32_t kind = out->queue[(out->head + i) % LOOP_QUEUE].frame.kind;

        if (kind == LOOP_FLUSH)
            break;
        if (kind == LOOP_MESSAGE && hce_loop_faults_hit(faults, 50))
            return i;
        if (kind == LOOP_MESSAGE)
            break;
        if (kind == LOOP_PUT && puts == i)
            puts++;
    }
    return puts > 0 ? hce_loop_faults_below(faults, puts) : 0;
}

void hce_loop_faults_reorder(loop_faults_t *faults, loop_out_t *out)
{
    uint32_t i = find_candidate(faults, out);
    loop_entry_t chosen = out->queue[(out->head + i) % LOOP_QUEUE];

    for (; i > 0; i--)
        out->queue[(out->head + i) % LOOP_QUEUE] =
            out->queue[(out->head + i - 1) % LOOP_QUEUE];
    out->queue[out->head] = chosen;
}
