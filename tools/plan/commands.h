/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * hce_plan's commands. Each returns the exit status of the program, having
 * said on standard error what went wrong; that out took all is up to the
 * caller to check.
 */
#ifndef HCE_TOOLS_PLAN_COMMANDS_H
#define HCE_TOOLS_PLAN_COMMANDS_H

#include <stdio.h>
#include "opts.h"

int hce_tools_show(const hce_tools_opts_t *opts, FILE *out);
int hce_tools_verify(const hce_tools_opts_t *opts, FILE *out);
int hce_tools_draw(const hce_tools_opts_t *opts, FILE *out);
int hce_tools_chunks(const hce_tools_opts_t *opts, FILE *out);

#endif
