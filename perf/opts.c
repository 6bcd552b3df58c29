/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The command line: flags as users of collective benchmarks know them, plus
 * where the ranks come from and what is reported. Every refusal names the
 * flag, what was given and what was expected.
 */
#include <config.h>

#include "opts.h"

#include "util/config.h"
#include "util/datatype.h"
#include "util/math.h"

#include <argp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_RANKS    1024
#define MAX_COMMS    64
#define MAX_ITERS    100000000
#define MAX_OFFSET   4095
#define MAX_BYTES    (65536 * HCE_GIB) /* sums of them cannot overflow */
#define DEFAULT_STEP HCE_MIB

enum {
    KEY_PER_RANK = 256,
    KEY_RANKS,
    KEY_NODES,
    KEY_MAP,
    KEY_THREADS,
    KEY_PATH,
    KEY_DIRS,
    KEY_CARRIERS,
    KEY_CONTEXTS,
    KEY_WIDTH,
    KEY_COMMS,
    KEY_BUFFERS,
    KEY_OFFSET,
    KEY_BLOCKING,
    KEY_MILLISECONDS,
    KEY_SINGLE,
    KEY_OUT_OF_PLACE,
    KEY_CHECK_STATS,
    KEY_JSON,
    KEY_PLOT,
    KEY_CALIBRATE,
    KEY_CORRUPT,
    KEY_DELAY,
    KEY_KILL,
    KEY_MISMATCH
};

static const char *const coll_names[] = {
    "all_gather", "reduce_scatter", "all_reduce", "reduce_kernel", NULL};
static const char *const buffers_names[] = {"window", "alloc", "malloc", NULL};
static const char *const map_names[] = {"block", "cyclic", NULL};
static const char *const mismatch_names[] = {"count", "type", "path", NULL};

enum {
    GROUP_SIZES = 1,
    GROUP_RUN,
    GROUP_RANKS,
    GROUP_CALL,
    GROUP_OUT,
    GROUP_TESTING,
    GROUP_HELP
};

static const struct argp_option options[] = {
    {NULL, 0, NULL, 0, "Sizes (4096, 8K, 32M, 1G):", GROUP_SIZES},
    {"minbytes", 'b', "SIZE", 0,
     "first size (32M): the bytes of the whole output, of a reduction's "
     "input, cut down to whole elements a rank",
     0},
    {"maxbytes", 'e', "SIZE", 0, "last size (32M, or -b if larger)", 0},
    {"stepbytes", 'i', "SIZE", 0, "add SIZE from size to size (1M)", 0},
    {"stepfactor", 'f', "N", 0, "multiply by N instead (1: off)", 0},
    {"per-rank", KEY_PER_RANK, NULL, 0, "sizes are bytes of each rank", 0},
    {"datatype", 'd', "TYPE", 0,
     "float, int8, ... or all (float); with int8 a size can be any number", 0},

    {NULL, 0, NULL, 0, "Measuring:", GROUP_RUN},
    {"iters", 'n', "N", 0, "timed calls a size, queued on a stream (20)", 0},
    {"warmup_iters", 'w', "N", 0, "calls before them (1)", 0},
    {"check", 'c', "N", 0,
     "further calls whose every byte is checked; 0 also leaves the last timed "
     "calls unchecked (1)",
     0},
    {"average", 'a', "0..3", 0,
     "time shown: 0 rank 0's, 1 mean of the ranks, 2 least, 3 greatest (1)",
     0},
    {"op", 'o', "OP", 0,
     "of reductions: sum, prod, min, max, avg or all (sum)", 0},
    {"root", 'r', "RANK", 0, "accepted for compatibility", 0},
    {"blocking", KEY_BLOCKING, NULL, 0, "calls return when they are done", 0},
    {"milliseconds", KEY_MILLISECONDS, "N", 0,
     "as many timed calls as take about so long, instead of -n", 0},
    {"single", KEY_SINGLE, NULL, 0,
     "also time calls one by one, a barrier before each: the median of the "
     "slowest rank's times, in --json only",
     0},
    {"out-of-place", KEY_OUT_OF_PLACE, NULL, 0, "measure nothing in place", 0},

    {NULL, 0, NULL, 0,
     "Ranks (else those of mpirun, srun or torchrun; else one a core, 2 to "
     "8):",
     GROUP_RANKS},
    {"ranks", KEY_RANKS, "R", 0, "start R ranks on this machine", 0},
    {"threads", KEY_THREADS, NULL, 0, "as threads of one process", 0},
    {"nodes", KEY_NODES, "LAYOUT", 0,
     "make believe there are nodes: 4 is four equal ones; 3,1,2 are three "
     "with so many ranks",
     0},
    {"map", KEY_MAP, "block|cyclic", 0,
     "how ranks are laid over the nodes (block)", 0},

    {NULL, 0, NULL, 0, "Calls:", GROUP_CALL},
    {"path", KEY_PATH, "NAME", 0,
     "auto, direct, ring, ring_short, eager or flat; each measures all that "
     "can run, one after the other at each size",
     0},
    {"dirs", KEY_DIRS, "1|2", 0, "directions in which rings send", 0},
    {"carriers", KEY_CARRIERS, "N", 0,
     "ranks of a node that send and receive for it; 0 is all", 0},
    {"contexts", KEY_CONTEXTS, "N", 0,
     "connections a peer, at most HCE_NUM_CTX", 0},
    {"width", KEY_WIDTH, "SIZE", 0, "bytes of a chunk", 0},
    {"comms", KEY_COMMS, "N", 0,
     "use N communicators at once, each on its own stream; times are for a "
     "call on each, bandwidths add up (1)",
     0},
    {"buffers", KEY_BUFFERS, "window|alloc|malloc", 0,
     "registered windows, the library's memory unregistered, or any memory "
     "(window)",
     0},
    {"offset", KEY_OFFSET, "BYTES", 0,
     "start buffers so many bytes after a page's start (0)", 0},

    {NULL, 0, NULL, 0, "Reports:", GROUP_OUT},
    {"check-stats", KEY_CHECK_STATS, NULL, 0,
     "fail unless the puts, copies and bytes counted are those planned", 0},
    {"json", KEY_JSON, "FILE", 0, "write configuration and results", 0},
    {"plot", KEY_PLOT, "FILE", 0,
     "draw bus bandwidth over size into a .png or .svg file (needs gnuplot)",
     0},
    {"calibrate", KEY_CALIBRATE, "FILE", 0,
     "as --path each, over 64K to 64M unless sizes are given; then write what "
     "each path costs here into a file for HCE_TUNING_FILE, beside what it "
     "says of other layouts",
     0},

    {NULL, 0, NULL, 0,
     "Planted faults, for tests of the checks:", GROUP_TESTING},
    {"corrupt", KEY_CORRUPT, "RANK", 0,
     "flip a received byte before each check", 0},
    {"delay", KEY_DELAY, "RANK:MS", 0, "sleep before each call", 0},
    {"kill", KEY_KILL, "RANK:N", 0, "SIGKILL itself before call N", 0},
    {"mismatch", KEY_MISMATCH, "RANK:WHAT", 0,
     "make the first call with another count, type or path", 0},

    {NULL, 'h', NULL, OPTION_HIDDEN, NULL, GROUP_HELP},
    {NULL, 0, NULL, 0, NULL, 0}};

static const char doc[] =
    "Times a collective of libhce and checks its data."
    "\v"
    "Examples:\n"
    "  hce_perf all_gather --ranks 8 --nodes 2 -b 1K -e 64M -f 4\n"
    "  hce_perf all_reduce --ranks 4 -d bfloat16 -o avg -b 1M -e 64M -f 4\n"
    "  hce_perf all_gather --ranks 6 --nodes 3,1,2 --threads -d int8 -b 1\n"
    "  mpirun.openmpi -n 4 hce_perf all_gather -b 8M -e 8M --plot ag.svg\n"
    "  hce_perf reduce_kernel --help\n"
    "\n"
    "Exit status: 0 if all went well, 1 on wrong data or an error, 2 on a "
    "wrong argument.";

/* How the argument of a flag is read, and the type it is stored as. */
typedef enum field_type {
    FIELD_FLAG,   /* bool: true, no argument */
    FIELD_INT,    /* int: min to max */
    FIELD_SIZE,   /* uint64_t or size_t: bytes */
    FIELD_CHOICE, /* int or enum: index into names */
    FIELD_TEXT    /* const char *: any */
} field_type_t;

typedef struct field {
    int key;
    field_type_t type;
    size_t at; /* offset in hce_perf_opts_t */
    int min, max;
    const char *const *names;
    uint64_t call_bit; /* to be set in call.field_mask */
    size_t rank_at;    /* argument is RANK:REST; 0 is not */
} field_t;

#define AT(_member) offsetof(hce_perf_opts_t, _member)

static const field_t fields[] = {
    {'b', FIELD_SIZE, AT(min_bytes), 0, 0, NULL, 0, 0},
    {'e', FIELD_SIZE, AT(max_bytes), 0, 0, NULL, 0, 0},
    {'i', FIELD_SIZE, AT(step_bytes), 0, 0, NULL, 0, 0},
    {'f', FIELD_INT, AT(step_factor), 1, 1 << 20, NULL, 0, 0},
    {KEY_PER_RANK, FIELD_FLAG, AT(per_rank), 0, 0, NULL, 0, 0},
    {'n', FIELD_INT, AT(iters), 1, MAX_ITERS, NULL, 0, 0},
    {'w', FIELD_INT, AT(warmup), 0, MAX_ITERS, NULL, 0, 0},
    {'c', FIELD_INT, AT(checks), 0, MAX_ITERS, NULL, 0, 0},
    {'a', FIELD_INT, AT(average), 0, 3, NULL, 0, 0},
    {'r', FIELD_INT, AT(root), -1, MAX_RANKS - 1, NULL, 0, 0},
    {KEY_BLOCKING, FIELD_FLAG, AT(blocking), 0, 0, NULL, 0, 0},
    {KEY_MILLISECONDS, FIELD_INT, AT(milliseconds), 1, 3600000, NULL, 0, 0},
    {KEY_SINGLE, FIELD_FLAG, AT(single), 0, 0, NULL, 0, 0},
    {KEY_OUT_OF_PLACE, FIELD_FLAG, AT(out_of_place), 0, 0, NULL, 0, 0},
    {KEY_RANKS, FIELD_INT, AT(ranks), 1, MAX_RANKS, NULL, 0, 0},
    {KEY_THREADS, FIELD_FLAG, AT(threads), 0, 0, NULL, 0, 0},
    {KEY_NODES, FIELD_TEXT, AT(nodes), 0, 0, NULL, 0, 0},
    {KEY_MAP, FIELD_CHOICE, AT(map), 0, 0, map_names, 0, 0},
    {KEY_PATH, FIELD_TEXT, AT(call.path), 0, 0, NULL, HCE_CALL_PARAM_PATH, 0},
    {KEY_DIRS, FIELD_INT, AT(call.dirs), 1, 2, NULL, HCE_CALL_PARAM_DIRS, 0},
    {KEY_CARRIERS, FIELD_INT, AT(call.carriers), 0, 256, NULL,
     HCE_CALL_PARAM_CARRIERS, 0},
    {KEY_CONTEXTS, FIELD_INT, AT(call.contexts), 1, 16, NULL,
     HCE_CALL_PARAM_CONTEXTS, 0},
    {KEY_WIDTH, FIELD_SIZE, AT(call.width), 0, 0, NULL, HCE_CALL_PARAM_WIDTH,
     0},
    {KEY_COMMS, FIELD_INT, AT(num_comms), 1, MAX_COMMS, NULL, 0, 0},
    {KEY_BUFFERS, FIELD_CHOICE, AT(buffers), 0, 0, buffers_names, 0, 0},
    {KEY_OFFSET, FIELD_INT, AT(offset), 0, MAX_OFFSET, NULL, 0, 0},
    {KEY_CHECK_STATS, FIELD_FLAG, AT(check_stats), 0, 0, NULL, 0, 0},
    {KEY_JSON, FIELD_TEXT, AT(json), 0, 0, NULL, 0, 0},
    {KEY_PLOT, FIELD_TEXT, AT(plot), 0, 0, NULL, 0, 0},
    {KEY_CALIBRATE, FIELD_TEXT, AT(calibrate), 0, 0, NULL, 0, 0},
    {KEY_CORRUPT, FIELD_INT, AT(faults.corrupt_rank), 0, MAX_RANKS - 1, NULL,
     0, 0},
    {KEY_DELAY, FIELD_INT, AT(faults.delay_ms), 0, 3600000, NULL, 0,
     AT(faults.delay_rank)},
    {KEY_KILL, FIELD_INT, AT(faults.kill_call), 1, MAX_ITERS, NULL, 0,
     AT(faults.kill_rank)},
    {KEY_MISMATCH, FIELD_CHOICE, AT(faults.mismatch), 0, 0, mismatch_names, 0,
     AT(faults.mismatch_rank)},
};

_Static_assert(sizeof(size_t) == sizeof(uint64_t), "FIELD_SIZE is either");
_Static_assert(sizeof(hce_layout_map_t) == sizeof(int), "FIELD_CHOICE");

const char *hce_perf_buffers_name(hce_perf_buffers_t buffers)
{
    return buffers_names[buffers];
}

const char *hce_perf_map_name(hce_layout_map_t map)
{
    return map_names[map];
}

/* "-b" or "--ranks": how users know the flag of a key. */
static const char *flag_name(int key, char *buf, size_t size)
{
    const struct argp_option *option = options;

    while (option->key != key)
        option++;
    if (key < KEY_PER_RANK)
        snprintf(buf, size, "-%c", key);
    else
        snprintf(buf, size, "--%s", option->name);
    return buf;
}

/* "a, b, c" */
static void join_names(const char *const *names, char *buf, size_t size)
{
    size_t len = 0;
    int i;

    buf[0] = '\0';
    for (i = 0; names[i] != NULL && len < size; i++)
        len += (size_t)snprintf(buf + len, size - len, "%s%s",
                                i > 0 ? ", " : "", names[i]);
}

/* The readers below end the program on a wrong argument; what they return
 * after argp_error is for the case that argp was told not to exit. */
static int read_int(struct argp_state *state, const char *flag,
                    const char *arg, int min, int max)
{
    int64_t value = min;

    if (hce_config_parse_int(arg, min, max, &value) != HCE_OK)
        argp_error(state,
                   "%s: '%s' is not acceptable: expected a whole number from "
                   "%d to %d",
                   flag, arg, min, max);
    return (int)value;
}

static uint64_t read_size(struct argp_state *state, const char *flag,
                          const char *arg)
{
    uint64_t size = 0;

    if (hce_config_parse_size(arg, &size) != HCE_OK || size > MAX_BYTES)
        argp_error(state,
                   "%s: '%s' is not a size: expected bytes such as 4096, 8K, "
                   "32M or 1G, at most 65536G",
                   flag, arg);
    return size;
}

static int read_choice(struct argp_state *state, const char *flag,
                       const char *arg, const char *const *names)
{
    char expected[200];
    int i;

    for (i = 0; names[i] != NULL; i++) {
        if (strcmp(arg, names[i]) == 0)
            return i;
    }
    join_names(names, expected, sizeof(expected));
    argp_error(state, "%s: '%s' is unknown: expected one of %s", flag, arg,
               expected);
    return 0;
}

/* "RANK:REST": stores the rank, returns where REST starts. */
static const char *read_rank(struct argp_state *state, const char *flag,
                             const char *arg, int *rank_p)
{
    const char *colon = strchr(arg, ':');
    char rank[16];

    if (colon == NULL || (size_t)(colon - arg) >= sizeof(rank)) {
        argp_error(state, "%s: '%s' is incomplete: expected RANK:VALUE", flag,
                   arg);
        return arg;
    }
    memcpy(rank, arg, (size_t)(colon - arg));
    rank[colon - arg] = '\0';
    *rank_p = read_int(state, flag, rank, 0, MAX_RANKS - 1);
    return colon + 1;
}

static void read_field(struct argp_state *state, const field_t *field,
                       const char *arg, hce_perf_opts_t *opts)
{
    char *base = (char *)opts;
    void *value = base + field->at;
    char flag[24];

    flag_name(field->key, flag, sizeof(flag));
    opts->call.field_mask |= field->call_bit;
    if (field->rank_at != 0)
        arg = read_rank(state, flag, arg, (int *)(base + field->rank_at));

    switch (field->type) {
    case FIELD_FLAG:
        *(bool *)value = true;
        break;
    case FIELD_INT:
        *(int *)value = read_int(state, flag, arg, field->min, field->max);
        break;
    case FIELD_SIZE:
        *(uint64_t *)value = read_size(state, flag, arg);
        break;
    case FIELD_CHOICE:
        *(int *)value = read_choice(state, flag, arg, field->names);
        break;
    case FIELD_TEXT:
        *(const char **)value = arg;
        break;
    }
}
static void parse_types(struct argp_state *state, const char *arg,
                        hce_perf_opts_t *opts)
{
    const char *names[HCE_DATATYPE_LAST + 2] = {"all"};
    char expected[200];
    int i;

    opts->num_types = 1;
    if (hce_datatype_find(arg, &opts->types[0]) == HCE_OK)
        return;
    opts->num_types = HCE_DATATYPE_LAST;
    for (i = 0; i < HCE_DATATYPE_LAST; i++) {
        opts->types[i] = (hce_datatype_t)i;
        names[i + 1] = hce_datatype_string((hce_datatype_t)i);
    }
    join_names(names, expected, sizeof(expected));
    if (strcmp(arg, "all") != 0)
        argp_error(state, "-d: '%s' is unknown: expected one of %s", arg,
                   expected);
}

static void parse_ops(struct argp_state *state, const char *arg,
                      hce_perf_opts_t *opts)
{
    const char *names[HCE_REDOP_LAST + 2] = {NULL};
    int i;

    for (i = 0; i < HCE_REDOP_LAST; i++) {
        names[i] = hce_redop_string((hce_redop_t)i);
        opts->ops[i] = (hce_redop_t)i;
    }
    names[HCE_REDOP_LAST] = "all";
    i = read_choice(state, "-o", arg, names);
    opts->num_ops = i == HCE_REDOP_LAST ? HCE_REDOP_LAST : 1;
    if (opts->num_ops == 1)
        opts->ops[0] = (hce_redop_t)i;
}

static void set_coll(struct argp_state *state, const char *arg,
                     hce_perf_opts_t *opts)
{
    if (opts->coll != NULL)
        argp_error(state,
                   "'%s' is one argument too many: expected flags after %s",
                   arg, opts->coll->name);
    read_choice(state, "what to run", arg, coll_names);
    opts->coll = hce_perf_coll_find(arg);
    if (opts->coll == NULL)
        argp_error(state, "reduce_kernel: expected as the first argument");
}

static error_t parse_one(int key, char *arg, struct argp_state *state)
{
    hce_perf_opts_t *opts = state->input;
    char why[200];
    size_t i;

    switch (key) {
    case 'd':
        parse_types(state, arg, opts);
        return 0;
    case 'o':
        parse_ops(state, arg, opts);
        return 0;
    case 'h':
        argp_state_help(state, stdout, ARGP_HELP_STD_HELP);
        return 0;
    case ARGP_KEY_ARG:
        set_coll(state, arg, opts);
        return 0;
    case ARGP_KEY_END:
        if (!hce_perf_opts_finish(opts, why, sizeof(why)))
            argp_error(state, "%s", why);
        return 0;
    default:
        break;
    }
    for (i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        if (fields[i].key == key) {
            read_field(state, &fields[i], arg, opts);
            return 0;
        }
    }
    return ARGP_ERR_UNKNOWN;
}

static void print_version(FILE *out, struct argp_state *state)
{
    int major, minor, patch;

    hce_get_version(&major, &minor, &patch);
    fprintf(out, "hce_perf %s, libhce %d.%d.%d\n", PACKAGE_VERSION, major,
            minor, patch);
}

void hce_perf_opts_parse(int argc, char **argv, hce_perf_opts_t *opts_p)
{
    static const struct argp argp = {
        .options = options,
        .parser = parse_one,
        .args_doc = "all_gather\nreduce_scatter\nall_reduce\nreduce_kernel",
        .doc = doc,
    };
    hce_perf_opts_t opts = {
        .min_bytes = HCE_PERF_DEFAULT_BYTES,
        .max_bytes = HCE_PERF_NOT_GIVEN,
        .step_bytes = DEFAULT_STEP,
        .step_factor = 1,
        .iters = 20,
        .warmup = 1,
        .checks = 1,
        .average = HCE_PERF_AVERAGE_MEAN,
        .ops = {HCE_SUM},
        .num_ops = 1,
        .types = {HCE_FLOAT32},
        .num_types = 1,
        .num_comms = 1,
        .faults = {-1, -1, 0, -1, 0, -1, HCE_PERF_MISMATCH_COUNT},
    };

    argp_program_version_hook = print_version;
    argp_parse(&argp, argc, argv, 0, NULL, &opts);
    *opts_p = opts;
}
