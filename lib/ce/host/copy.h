/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The CPU's copy loops: one source to k destinations. The generic part picks
 * a loop once for the process; an architecture adds its own loops in a file
 * of its own. Stores of every loop are ordered before a later release.
 */
#ifndef HCE_CE_HOST_COPY_H
#define HCE_CE_HOST_COPY_H

#include <hce/hce.h>
#include <stdbool.h>

#include "ce/host/settings.h"

#define HCE_CE_LINE 64 /* bytes of a cache line */

/* Most destinations that hce_ce_loop_t.lines is given: more streams than the
 * core has write-combining buffers (10 to 12) would flush them half full. */
#define HCE_CE_LINES_MAX 8

typedef struct hce_ce_loop {
    const char *name;
    hce_ce_loop_choice_t choice;
    bool (*is_usable)(void); /* on this CPU */
    /* One destination; NULL in a loop that has lines. */
    void (*block)(void *dst, const void *src, size_t len);
    /* Reads the source once: every dsts[i] is aligned to a line, len is a
     * multiple of a line. Ends with the fence that its stores need. NULL in
     * other loops. */
    void (*lines)(char *const *dsts, int num_dsts, const char *src,
                  size_t len);
} hce_ce_loop_t;

/* Best first within a choice; ends with NULL. */
extern const hce_ce_loop_t *const hce_ce_arch_loops[];

/* Chooses, at the first call in the process (a probe of a few ms). An error,
 * which has been logged, if HCE_COPY_LOOP names a loop that this CPU has
 * not. Thread-safe. */
hce_status_t hce_ce_loops_init(void);

/* Source and destinations do not overlap. Only after hce_ce_loops_init. */
void hce_ce_loop_copy(char *const *dsts, int num_dsts, const char *src,
                      size_t len, bool streaming);

/* The same with a given loop, for the probe and for tests. */
void hce_ce_loop_run(const hce_ce_loop_t *loop, char *const *dsts,
                     int num_dsts, const char *src, size_t len);

/* i-th loop that this CPU can use, memcpy first; NULL at the end. */
const hce_ce_loop_t *hce_ce_loop_usable(int i);

#endif
