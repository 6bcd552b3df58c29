/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * hce_plan: what the command line asks for.
 */
#ifndef HCE_TOOLS_PLAN_OPTS_H
#define HCE_TOOLS_PLAN_OPTS_H

#include "plan/plan.h"

#define HCE_TOOLS_MAX_SIZES 64
#define HCE_TOOLS_ALL_RANKS (-1)
#define HCE_TOOLS_NOT_GIVEN (-2) /* a rank */

#define HCE_TOOLS_EXIT_FAULT  1  /* a fault found, or an error */
#define HCE_TOOLS_EXIT_PARTLY 2  /* no fault found, but not all proved */
#define HCE_TOOLS_EXIT_USAGE  64 /* wrong arguments */

typedef enum hce_tools_command {
    HCE_TOOLS_SHOW,
    HCE_TOOLS_VERIFY,
    HCE_TOOLS_DRAW,
    HCE_TOOLS_CHUNKS,
    HCE_TOOLS_NO_COMMAND
} hce_tools_command_t;

typedef enum hce_tools_width {
    HCE_TOOLS_WIDTH_RULE,
    HCE_TOOLS_WIDTH_AUTO,
    HCE_TOOLS_WIDTH_BYTES
} hce_tools_width_t;

typedef struct hce_tools_opts {
    hce_tools_command_t command;
    hce_coll_t coll;
    const char *path; /* NULL: the command's default */
    int ranks;        /* 0 until all is read */
    const char *nodes;
    hce_layout_map_t map;
    uint64_t sizes[HCE_TOOLS_MAX_SIZES]; /* bytes a rank, once all is read */
    int num_sizes;
    bool per_rank;
    int contexts;
    int carriers; /* of a node; 0: all ranks */
    int dirs;     /* of a ring; 0: the path's default */
    hce_tools_width_t width_by;
    uint64_t width; /* with HCE_TOOLS_WIDTH_BYTES */
    bool in_place;
    int rank; /* or HCE_TOOLS_ALL_RANKS, HCE_TOOLS_NOT_GIVEN */
    bool json;
    const char *out;  /* NULL: standard output */
    const char *from; /* plans to read, instead of building them */
    bool has_call;    /* a flag describes the call or the ranks */
    int late_rank;    /* of draw; or HCE_TOOLS_NOT_GIVEN */
    int late_steps;
} hce_tools_opts_t;

/* Ends the program on a wrong argument and after --help. */
void hce_tools_opts_parse(int argc, char **argv, hce_tools_opts_t *opts_p);

/* Says on standard error what is wrong with a flag and ends the program. */
void hce_tools_opts_refuse(const char *format, ...)
    __attribute__((noreturn, format(printf, 1, 2)));

#endif
