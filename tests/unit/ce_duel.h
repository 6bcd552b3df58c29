/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Duels: two threads meet again and again at one narrow moment, and the one
 * that can aim corrects itself by what became of the last round.
 */
#ifndef HCE_TESTS_UNIT_CE_DUEL_H
#define HCE_TESTS_UNIT_CE_DUEL_H

#include "util/clock.h"
#include "util/math.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define DUELS    300000
#define DUELS_NS (3 * HCE_NS_PER_SEC) /* fewer where threads are slow */

/* For as long as it takes, but not for a whole time slice on one core. */
static inline void hce_duel_await(const _Atomic int *word, int value)
{
    int spins = 0;

    while (atomic_load(word) < value) {
        if (++spins % 2000 == 0)
            sched_yield();
    }
}

/* The second thread sees the start of a round late. The first aims at that
 * moment: it waits longer after a round in which it was the earlier. */
typedef struct hce_duel_aim {
    uint64_t state;
    int64_t spins;
} hce_duel_aim_t;

static inline void hce_duel_aim_wait(hce_duel_aim_t *aim)
{
    int64_t n = aim->spins + (int64_t)(hce_rand_next(&aim->state) % 64);

    while (n-- > 0)
        __asm__ volatile("" ::: "memory");
}

static inline void hce_duel_aim_correct(hce_duel_aim_t *aim, bool was_early)
{
    aim->spins += was_early ? 8 : -8;
    aim->spins = hce_min(hce_max(aim->spins, 0), 20000);
}

#endif
