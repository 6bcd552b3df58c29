/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Where plans come from: built for what the command line describes, or read
 * from a file. All functions say on standard error what went wrong.
 */
#ifndef HCE_TOOLS_PLAN_SOURCE_H
#define HCE_TOOLS_PLAN_SOURCE_H

#include "opts.h"
#include "plan/read.h"

/* The arguments of a builder: of rank 0, for opts->sizes[size]. Ends the
 * program where the layout does not fit. Destroy params_p->layout. */
void hce_tools_source_params(const hce_tools_opts_t *opts, int size,
                             const hce_plan_builder_t *builder,
                             hce_plan_params_t *params_p);

/* The builder of a name, or NULL after a message. */
const hce_plan_builder_t *
hce_tools_source_builder(const hce_tools_opts_t *opts, const char *path);

/* False after a message if the builder cannot build this. */
bool hce_tools_source_check(const hce_plan_builder_t *builder,
                            const hce_plan_params_t *params);

/* Plans of rank, or of all ranks, by opts->from or the rest of opts. */
bool hce_tools_source_open(const hce_tools_opts_t *opts, int rank,
                           hce_plan_set_t *set_p);

/* Plans of all ranks, each once and in order of rank? Else a message. */
bool hce_tools_source_is_whole(const hce_plan_set_t *set);

/* rank is one of the set's, or not a number; else a message about flag. */
bool hce_tools_source_has_rank(const hce_plan_set_t *set, const char *flag,
                               int rank);

#endif
