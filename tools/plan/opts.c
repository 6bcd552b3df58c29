/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * hce_plan's command line. Every refusal names the flag, what was given and
 * what was expected.
 */
#include "config.h"

#include "opts.h"

#include "core/paths.h"
#include "plan/show.h"
#include "util/config.h"
#include "util/math.h"

#include <argp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_RANKS     16384
#define MAX_BYTES     (65536 * HCE_GIB) /* sums of them cannot overflow */
#define MAX_STEPS     1000000
#define DEFAULT_RANKS 32
#define DEFAULT_NODES "8"
#define DEFAULT_BYTES HCE_MIB
#define NAMES_SIZE    200

enum {
    KEY_COLL = 256,
    KEY_PATH,
    KEY_RANKS,
    KEY_NODES,
    KEY_MAP,
    KEY_BYTES,
    KEY_PER_RANK,
    KEY_CONTEXTS,
    KEY_CARRIERS,
    KEY_DIRS,
    KEY_WIDTH,
    KEY_IN_PLACE,
    KEY_RANK,
    KEY_JSON,
    KEY_FROM,
    KEY_LATE
};

enum { GROUP_CALL = 1, GROUP_RANKS, GROUP_OUT };

/* argp finds it by name: hidden, as all else is, it would not count. */
__attribute__((visibility("default"))) const char *argp_program_version =
    "hce_plan (" PACKAGE_STRING ")";

static const char *const command_names[] = {"show", "verify", "draw", "chunks",
                                            NULL};
static const char *const map_names[] = {"block", "cyclic", NULL};

static const struct argp_option options[] = {
    {NULL, 0, NULL, 0, "The call:", GROUP_CALL},
    {"coll", KEY_COLL, "NAME", 0, "collective (all_gather)", 0},
    {"path", KEY_PATH, "NAME", 0,
     "algorithm, see below (direct; chunks: ring); verify also takes all", 0},
    {"bytes", KEY_BYTES, "SIZE", 0,
     "bytes of the whole output (1M of each rank); chunks takes a list such "
     "as 64M,128M",
     0},
    {"per-rank", KEY_PER_RANK, NULL, 0, "SIZE is of each rank", 0},
    {"contexts", KEY_CONTEXTS, "N", 0, "connections a peer, 1 to 16 (4)", 0},
    {"carriers", KEY_CARRIERS, "N", 0,
     "ranks of a node that send and receive; 0 is all (0)", 0},
    {"dirs", KEY_DIRS, "1|2", 0, "directions in which a ring sends (2)", 0},
    {"width", KEY_WIDTH, "rule|auto|SIZE", 0,
     "bytes of a chunk: as the path's rule says, that but at most 1M, or so "
     "many (rule)",
     0},
    {"in-place", KEY_IN_PLACE, NULL, 0,
     "the input is part of the output; verify tries both unless plans come "
     "--from a file",
     0},

    {NULL, 0, NULL, 0, "The ranks:", GROUP_RANKS},
    {"ranks", KEY_RANKS, "R", 0,
     "how many there are (32, or what --nodes adds up to)", 0},
    {"nodes", KEY_NODES, "LAYOUT", 0,
     "4 is four nodes of equal size; 3,1,2 are three with so many ranks (8; 1 "
     "where only --ranks is given)",
     0},
    {"map", KEY_MAP, "block|cyclic", 0,
     "how ranks are laid over the nodes (block)", 0},

    {NULL, 0, NULL, 0, "Input and output:", GROUP_OUT},
    {"rank", KEY_RANK, "RANK|all", 0,
     "whose ops: of show (0), draw (all), verify (all) or chunks (0)", 0},
    {"from", KEY_FROM, "FILE", 0,
     "read plans that show --json wrote, or others of that format, instead "
     "of building them; - is standard input",
     0},
    {"json", KEY_JSON, NULL, 0, "write JSON: show, verify and chunks", 0},
    {"output", 'o', "FILE", 0, "write there, not to standard output", 0},
    {"late", KEY_LATE, "RANK:STEPS", 0,
     "draw: this rank starts so many steps after the others", 0},
    {NULL, 0, NULL, 0, NULL, 0}};

static const char doc[] =
    "Shows, proves and draws plans: all that each rank does for one "
    "collective, computed from the very ops that the library would run. No "
    "job is started and no communicator made.\n"
    "\n"
    "  show    the ops of one rank or of all, as a table or as JSON\n"
    "  verify  proves that the plans of all ranks are right together\n"
    "  draw    an SVG picture: time to the right, ranks downwards\n"
    "  chunks  how the slice of a rank is cut, for several sizes"
    "\v"
    "Examples:\n"
    "  hce_plan show --ranks 4 --nodes 2 --bytes 64K --rank 1\n"
    "  hce_plan verify --path all --nodes 3,1,2 --bytes 100003\n"
    "  hce_plan draw --ranks 8 --nodes 4 --bytes 16M -o plan.svg\n"
    "  hce_plan show --ranks 6 --rank all --json -o plans.json\n"
    "  hce_plan verify --from plans.json\n"
    "\n"
    "Exit status: 0 if all went well, for verify if all was proved; 1 if "
    "verify found a fault, or on an error; 2 if verify found no fault but "
    "did not prove all; 64 on a wrong argument.";

void hce_tools_opts_refuse(const char *format, ...)
{
    va_list args;

    fputs("hce_plan: ", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputs("\nTry `hce_plan --help' or `hce_plan --usage' for more "
          "information.\n",
          stderr);
    exit(HCE_TOOLS_EXIT_USAGE);
}

/* ---- reading one argument ---- */

static int read_int(const char *flag, const char *arg, int min, int max)
{
    int64_t value;

    if (hce_config_parse_int(arg, min, max, &value) != HCE_OK) {
        hce_tools_opts_refuse("%s: '%s' is not acceptable: expected a whole "
                              "number from %d to %d",
                              flag, arg, min, max);
    }
    return (int)value;
}

static uint64_t read_size(const char *flag, const char *arg)
{
    uint64_t size;

    if (hce_config_parse_size(arg, &size) != HCE_OK || size > MAX_BYTES) {
        hce_tools_opts_refuse("%s: '%s' is not a size: expected bytes such "
                              "as 4096, 8K, 32M or 1G, at most 65536G",
                              flag, arg);
    }
    return size;
}

static int read_choice(const char *flag, const char *arg,
                       const char *const *names)
{
    char expected[NAMES_SIZE];
    size_t used = 0;
    int i;

    for (i = 0; names[i] != NULL; i++) {
        if (strcmp(arg, names[i]) == 0) {
            return i;
        }
        used += (size_t)snprintf(expected + used, sizeof(expected) - used,
                                 "%s%s", i > 0 ? ", " : "", names[i]);
    }
    hce_tools_opts_refuse("%s: '%s' is unknown: expected one of %s", flag, arg,
                          expected);
}

static void read_coll(const char *arg, hce_tools_opts_t *opts)
{
    const char *names[HCE_COLL_LAST + 1] = {NULL};
    int i;

    for (i = 0; i < HCE_COLL_LAST; i++) {
        names[i] = hce_plan_coll_string((hce_coll_t)i);
    }
    opts->coll = (hce_coll_t)read_choice("--coll", arg, names);
}

/* "64M" or "64M,128M" */
static void read_sizes(const char *arg, hce_tools_opts_t *opts)
{
    char *text = strdup(arg), *next = text;

    if (text == NULL) {
        hce_tools_opts_refuse("--bytes: out of memory");
    }
    opts->num_sizes = 0;
    while (next != NULL) {
        if (opts->num_sizes == HCE_TOOLS_MAX_SIZES) {
            hce_tools_opts_refuse("--bytes: expected at most %d sizes",
                                  HCE_TOOLS_MAX_SIZES);
        }
        opts->sizes[opts->num_sizes++] =
            read_size("--bytes", strsep(&next, ","));
    }
    free(text);
}

static void read_width(const char *arg, hce_tools_opts_t *opts)
{
    if (strcmp(arg, "rule") == 0) {
        opts->width_by = HCE_TOOLS_WIDTH_RULE;
    } else if (strcmp(arg, "auto") == 0) {
        opts->width_by = HCE_TOOLS_WIDTH_AUTO;
    } else if (hce_config_parse_size(arg, &opts->width) == HCE_OK &&
               opts->width >= 1 && opts->width <= MAX_BYTES) {
        opts->width_by = HCE_TOOLS_WIDTH_BYTES;
    } else {
        hce_tools_opts_refuse("--width: '%s' is not acceptable: expected "
                              "rule, auto, or bytes such as 8K, from 1 to "
                              "65536G",
                              arg);
    }
}

static void read_rank(const char *arg, hce_tools_opts_t *opts)
{
    if (strcmp(arg, "all") == 0) {
        opts->rank = HCE_TOOLS_ALL_RANKS;
        return;
    }
    opts->rank = read_int("--rank", arg, 0, MAX_RANKS - 1);
}

static void read_late(const char *arg, hce_tools_opts_t *opts)
{
    const char *colon = strchr(arg, ':');
    char rank[16];

    if (colon == NULL || (size_t)(colon - arg) >= sizeof(rank)) {
        hce_tools_opts_refuse("--late: '%s' is incomplete: expected "
                              "RANK:STEPS",
                              arg);
    }
    snprintf(rank, sizeof(rank), "%.*s", (int)(colon - arg), arg);
    opts->late_rank = read_int("--late", rank, 0, MAX_RANKS - 1);
    opts->late_steps = read_int("--late", colon + 1, 0, MAX_STEPS);
}

/* ---- what fits together ---- */

/* "3,1,2" adds up to 6; a single number does not say. */
static int ranks_of_nodes(const char *nodes)
{
    int64_t sum = 0;
    const char *at = nodes;

    if (strchr(nodes, ',') == NULL) {
        return DEFAULT_RANKS;
    }
    while (at != NULL && sum <= MAX_RANKS) {
        sum += strtol(at, NULL, 10);
        at = strchr(at, ',');
        at = at == NULL ? NULL : at + 1;
    }
    /* What is malformed hce_layout_parse refuses. */
    return sum < 1 || sum > MAX_RANKS ? DEFAULT_RANKS : (int)sum;
}

static void finish_sizes(hce_tools_opts_t *opts)
{
    int i;

    if (opts->num_sizes > 1 && opts->command != HCE_TOOLS_CHUNKS) {
        hce_tools_opts_refuse("--bytes: %d sizes are too many: expected one, "
                              "except for chunks",
                              opts->num_sizes);
    }
    if (opts->num_sizes == 0 && opts->command == HCE_TOOLS_CHUNKS) {
        opts->per_rank = true;
        for (i = 0; i < 5; i++) {
            opts->sizes[opts->num_sizes++] = (64 * HCE_MIB) << i;
        }
    } else if (opts->num_sizes == 0) {
        opts->per_rank = true;
        opts->sizes[opts->num_sizes++] = DEFAULT_BYTES;
    }
    for (i = 0; i < opts->num_sizes && !opts->per_rank; i++) {
        opts->sizes[i] /= (uint64_t)opts->ranks;
    }
    opts->per_rank = true;
}

static void finish_ranks(hce_tools_opts_t *opts)
{
    if (opts->ranks == 0 && opts->nodes == NULL) {
        opts->ranks = DEFAULT_RANKS;
        opts->nodes = DEFAULT_NODES;
    } else if (opts->ranks == 0) {
        opts->ranks = ranks_of_nodes(opts->nodes);
    } else if (opts->nodes == NULL) {
        opts->nodes = "1";
    }
    if (opts->from == NULL && opts->rank >= opts->ranks) {
        hce_tools_opts_refuse("--rank: %d is not a rank: expected less than "
                              "%d, or all",
                              opts->rank, opts->ranks);
    }
    if (opts->from == NULL && opts->late_rank >= opts->ranks) {
        hce_tools_opts_refuse("--late: %d is not a rank: expected less than "
                              "%d",
                              opts->late_rank, opts->ranks);
    }
}

static void finish_path(const hce_tools_opts_t *opts)
{
    char names[HCE_PATHS_NAMES_SIZE];

    if (opts->path == NULL || hce_paths_find(opts->coll, opts->path) != NULL ||
        (opts->command == HCE_TOOLS_VERIFY &&
         strcmp(opts->path, "all") == 0)) {
        return;
    }
    hce_tools_opts_refuse("--path: '%s' is unknown: expected one of %s%s",
                          opts->path, hce_paths_names(opts->coll, names),
                          opts->command == HCE_TOOLS_VERIFY ? ", all" : "");
}

/* Flags that a command would silently ignore. */
static void finish_command(const hce_tools_opts_t *opts)
{
    if (opts->command == HCE_TOOLS_NO_COMMAND) {
        hce_tools_opts_refuse("the command is missing: expected show, "
                              "verify, draw or chunks");
    }
    if (opts->json && opts->command == HCE_TOOLS_DRAW) {
        hce_tools_opts_refuse("--json: draw writes SVG: expected show, "
                              "verify or chunks");
    }
    if (opts->from != NULL && opts->command == HCE_TOOLS_CHUNKS) {
        hce_tools_opts_refuse("--from: chunks builds its plans: expected "
                              "show, verify or draw");
    }
    if (opts->from != NULL && opts->has_call) {
        hce_tools_opts_refuse("--from: the file says what the call and the "
                              "ranks are: expected no flags that do");
    }
    if (opts->from != NULL && opts->rank >= 0 &&
        opts->command == HCE_TOOLS_VERIFY) {
        hce_tools_opts_refuse("--rank: the plans of a file are verified all "
                              "together: expected with show or draw");
    }
    if (opts->late_rank != HCE_TOOLS_NOT_GIVEN &&
        opts->command != HCE_TOOLS_DRAW) {
        hce_tools_opts_refuse("--late: expected with draw only");
    }
}

static void set_command(const char *arg, hce_tools_opts_t *opts)
{
    if (opts->command != HCE_TOOLS_NO_COMMAND) {
        hce_tools_opts_refuse("'%s' is one argument too many: expected flags "
                              "after %s",
                              arg, command_names[opts->command]);
    }
    opts->command =
        (hce_tools_command_t)read_choice("command", arg, command_names);
}

/* What the plans are made for; a file of plans says it itself. */
static error_t parse_call(int key, const char *arg, hce_tools_opts_t *opts)
{
    switch (key) {
    case KEY_RANKS:
        opts->ranks = read_int("--ranks", arg, 1, MAX_RANKS);
        return 0;
    case KEY_NODES:
        opts->nodes = arg;
        return 0;
    case KEY_MAP:
        opts->map = (hce_layout_map_t)read_choice("--map", arg, map_names);
        return 0;
    case KEY_COLL:
        read_coll(arg, opts);
        return 0;
    case KEY_PATH:
        opts->path = arg;
        return 0;
    case KEY_BYTES:
        read_sizes(arg, opts);
        return 0;
    case KEY_PER_RANK:
        opts->per_rank = true;
        return 0;
    case KEY_CONTEXTS:
        opts->contexts = read_int("--contexts", arg, 1, HCE_PLAN_MAX_CONTEXTS);
        return 0;
    case KEY_CARRIERS:
        opts->carriers = read_int("--carriers", arg, 0, MAX_RANKS);
        return 0;
    case KEY_DIRS:
        opts->dirs = read_int("--dirs", arg, 1, 2);
        return 0;
    case KEY_WIDTH:
        read_width(arg, opts);
        return 0;
    case KEY_IN_PLACE:
        opts->in_place = true;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static error_t parse_one(int key, char *arg, struct argp_state *state)
{
    hce_tools_opts_t *opts = state->input;
    error_t error;

    switch (key) {
    case KEY_RANK:
        read_rank(arg, opts);
        return 0;
    case KEY_JSON:
        opts->json = true;
        return 0;
    case KEY_FROM:
        opts->from = arg;
        return 0;
    case KEY_LATE:
        read_late(arg, opts);
        return 0;
    case 'o':
        opts->out = arg;
        return 0;
    case ARGP_KEY_ARG:
        set_command(arg, opts);
        return 0;
    case ARGP_KEY_END:
        finish_command(opts);
        finish_ranks(opts);
        finish_sizes(opts);
        finish_path(opts);
        return 0;
    default:
        error = parse_call(key, arg, opts);
        opts->has_call = opts->has_call || error == 0;
        return error;
    }
}

/* Adds the paths of this build to the end of --help. */
static char *add_paths(int key, const char *text, void *input)
{
    char names[HCE_PATHS_NAMES_SIZE], *longer;
    int coll;

    if (key != ARGP_KEY_HELP_POST_DOC || text == NULL) {
        return (char *)text;
    }
    longer = strdup(text);
    for (coll = 0; coll < HCE_COLL_LAST && longer != NULL; coll++) {
        char *shorter = longer;

        hce_paths_names((hce_coll_t)coll, names);
        if (asprintf(&longer, "%s\n\nPaths of %s: %s.", shorter,
                     hce_plan_coll_string((hce_coll_t)coll), names) < 0) {
            longer = NULL;
        }
        free(shorter);
    }
    return longer == NULL ? (char *)text : longer;
}

void hce_tools_opts_parse(int argc, char **argv, hce_tools_opts_t *opts_p)
{
    static const struct argp argp = {
        .options = options,
        .parser = parse_one,
        .args_doc = "show|verify|draw|chunks",
        .doc = doc,
        .help_filter = add_paths,
    };
    hce_tools_opts_t opts = {
        .command = HCE_TOOLS_NO_COMMAND,
        .coll = HCE_COLL_ALLGATHER,
        .contexts = 4,
        .rank = HCE_TOOLS_NOT_GIVEN,
        .late_rank = HCE_TOOLS_NOT_GIVEN,
    };

    argp_err_exit_status = HCE_TOOLS_EXIT_USAGE;
    argp_parse(&argp, argc, argv, 0, NULL, &opts);
    *opts_p = opts;
}
