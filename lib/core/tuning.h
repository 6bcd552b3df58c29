/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Figures of cost: those of a tuning file, else the built-in ones. The file
 * is read once, with the settings; all ranks must have the same.
 *
 * {"version": 1, "figures": [{"collective": "allgather", "transport": "tcp",
 *   "nodes": 4, "ranks": 8, "path": "ring", "dirs": 1, "alpha_us": 130.0,
 *   "beta_mbps": 57.5}, ...]}
 */
#ifndef HCE_CORE_TUNING_H
#define HCE_CORE_TUNING_H

#include <hce/hce.h>
#include <stdbool.h>
#include <stdint.h>
#include "model/cost.h"
#include "util/layout.h"

#define HCE_TUNING_VERSION 1

/* HCE_ERR_CONFIG after a line that says what is wrong with the file. Not
 * thread-safe: called while settings are read. */
hce_status_t hce_tuning_load(const char *file);
void hce_tuning_unload(void);

/* The same for all files that say the same byte by byte; 0: none loaded. */
uint64_t hce_tuning_digest(void);

/* The figure of a path on a kind of network; dirs is 0 where the path is no
 * ring. If the file knows this network, only its figures count, those of the
 * layout most like this one; else the built-in ones. False: none. */
bool hce_tuning_find(const char *kind, const hce_layout_t *layout,
                     const char *path, int dirs,
                     hce_cost_figure_t *figure_p);

/* "tuning file" or "built-in figures": where those of kind come from. */
const char *hce_tuning_origin(const char *kind);

#endif
