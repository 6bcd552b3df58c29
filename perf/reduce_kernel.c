/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Measures the reduction kernels of this CPU, taking turns with memcpy and
 * with the loops of reduce_loops.c, so that all see the same machine. A rate
 * is the bytes of one source over the least time; the first result is
 * compared with that of the portable kernels.
 */
#include <config.h>

#include "reduce_kernel.h"

#include "core/settings.h"
#include "reduce/variant.h"
#include "reduce_loops.h"
#include "util/clock.h"
#include "util/datatype.h"
#include "util/math.h"

#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SRCS_MAX   64
#define DSTS_MAX   64
#define BYTES_MAX  (16 * HCE_GIB)
#define TURN_NS    (2 * HCE_NS_PER_MS) /* one contestant's turn */
#define ALIGNMENT  4096

enum { KEY_STREAMING = 256, KEY_IN_PLACE };

typedef struct kernel_opts {
    uint64_t min_bytes, max_bytes, factor;
    hce_redop_t op;
    hce_datatype_t types[HCE_DATATYPE_LAST];
    int num_types;
    int64_t num_srcs, num_dsts, rounds;
    bool streaming, in_place;
} kernel_opts_t;

static const struct argp_option options[] = {
    {"minbytes", 'b', "SIZE", 0, "bytes of a source, first (16K)", 0},
    {"maxbytes", 'e', "SIZE", 0, "last (64M, or -b if larger)", 0},
    {"stepfactor", 'f', "N", 0, "multiply by N from size to size (4)", 0},
    {"datatype", 'd', "TYPE", 0, "float, int8, ... or all (float)", 0},
    {"op", 'o', "OP", 0, "sum, prod, min, max or avg (sum)", 0},
    {"sources", 'k', "K", 0, "sources (2)", 0},
    {"destinations", 'm', "M", 0, "destinations (1)", 0},
    {"in-place", KEY_IN_PLACE, NULL, 0,
     "the first source is the first destination, too", 0},
    {"streaming", KEY_STREAMING, NULL, 0, "stores go past the caches", 0},
    {"rounds", 'n', "N", 0, "turns of each, of which the best counts (10)", 0},
    {NULL, 0, NULL, 0, NULL, 0}};

static uint64_t read_size(struct argp_state *state, int key, const char *arg)
{
    uint64_t size = 0;

    if (hce_config_parse_size(arg, &size) != HCE_OK || size == 0 ||
        size > BYTES_MAX)
        argp_error(state,
                   "-%c: '%s' is not a size: expected bytes such as 4096, 8K "
                   "or 32M, at most 16G",
                   key, arg);
    return size;
}

static int64_t read_int(struct argp_state *state, int key, const char *arg,
                        int max)
{
    int64_t value = 1;

    if (hce_config_parse_int(arg, 1, max, &value) != HCE_OK)
        argp_error(state,
                   "-%c: '%s' is not acceptable: expected a whole number from "
                   "1 to %d",
                   key, arg, max);
    return value;
}

static void read_type(struct argp_state *state, const char *arg,
                      kernel_opts_t *opts)
{
    opts->num_types = 1;
    if (hce_datatype_find(arg, &opts->types[0]) == HCE_OK)
        return;
    if (strcmp(arg, "all") != 0)
        argp_error(state, "-d: '%s' is unknown: expected a datatype or all",
                   arg);
    opts->num_types = HCE_DATATYPE_LAST;
    for (int i = 0; i < HCE_DATATYPE_LAST; i++)
        opts->types[i] = (hce_datatype_t)i;
}

static error_t parse_one(int key, char *arg, struct argp_state *state)
{
    kernel_opts_t *opts = state->input;

    switch (key) {
    case 'b':
        opts->min_bytes = read_size(state, key, arg);
        return 0;
    case 'e':
        opts->max_bytes = read_size(state, key, arg);
        return 0;
    case 'f':
        opts->factor = (uint64_t)read_int(state, key, arg, 1 << 20);
        return 0;
    case 'd':
        read_type(state, arg, opts);
        return 0;
    case 'o':
        if (hce_redop_find(arg, &opts->op) != HCE_OK)
            argp_error(state,
                       "-o: '%s' is unknown: expected sum, prod, min, max or "
                       "avg",
                       arg);
        return 0;
    case 'k':
        opts->num_srcs = read_int(state, key, arg, SRCS_MAX);
        return 0;
    case 'm':
        opts->num_dsts = read_int(state, key, arg, DSTS_MAX);
        return 0;
    case 'n':
        opts->rounds = read_int(state, key, arg, 1000000);
        return 0;
    case KEY_STREAMING:
        opts->streaming = true;
        return 0;
    case KEY_IN_PLACE:
        opts->in_place = true;
        return 0;
    case ARGP_KEY_ARG:
        argp_error(state, "'%s' is one argument too many: expected flags",
                   arg);
        return 0;
    case ARGP_KEY_END:
        if (opts->max_bytes == 0)
            opts->max_bytes = hce_max(opts->min_bytes, 64 * HCE_MIB);
        if (opts->min_bytes > opts->max_bytes)
            argp_error(state,
                       "-b: %llu is more than -e: expected at most %llu",
                       (unsigned long long)opts->min_bytes,
                       (unsigned long long)opts->max_bytes);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* What takes turns. */
typedef struct bench {
    const kernel_opts_t *opts;
    const void *srcs[SRCS_MAX];
    void *dsts[DSTS_MAX];
    hce_reduce_args_t args;
    hce_reduce_kernel_t kernel;
    hce_perf_plain_fn plain;
    size_t len;
} bench_t;

enum { KERNEL, MEMCPY, TRAFFIC, PLAIN, CONTESTANTS };

static void contestant_run(const bench_t *bench, int which)
{
    switch (which) {
    case KERNEL:
        hce_reduce_run(&bench->kernel, &bench->args);
        break;
    case MEMCPY:
        memcpy(bench->dsts[0], bench->srcs[bench->args.num_srcs - 1],
               bench->len);
        break;
    case TRAFFIC:
        hce_perf_traffic_loop(&bench->args, bench->len);
        break;
    default:
        bench->plain(&bench->args);
        break;
    }
    __asm__ __volatile__("" ::: "memory"); /* the copy is wanted */
}

/* ns of one run, the mean over a turn. */
static double turn_time(const bench_t *bench, int which)
{
    uint64_t start = hce_clock_ns(), took;
    uint64_t runs = 0, batch = 1;

    do {
        for (uint64_t i = 0; i < batch; i++)
            contestant_run(bench, which);
        runs += batch;
        batch *= 2;
        took = hce_clock_ns() - start;
    } while (took < TURN_NS);
    return (double)took / (double)runs;
}

/* GB/s of each; 0 for one that there is not. */
static void turns_take(const bench_t *bench, double *rates)
{
    double times[CONTESTANTS] = {0.0}, took;
    int64_t round;
    int i;

    for (round = 0; round < bench->opts->rounds; round++) {
        for (i = 0; i < CONTESTANTS; i++) {
            if (i == PLAIN && bench->plain == NULL)
                continue;
            took = turn_time(bench, i);
            times[i] = round == 0 ? took : hce_min(times[i], took);
        }
    }
    for (i = 0; i < CONTESTANTS; i++)
        rates[i] = times[i] > 0.0 ? (double)bench->len / times[i] : 0.0;
}

/* Numbers near 1: nothing overflows, and nothing is subnormal, which would
 * be slow on some CPUs. */
static void sources_fill(const bench_t *bench, hce_datatype_t type)
{
    static const uint64_t ones[HCE_DATATYPE_LAST] = {
        [HCE_INT8] = 1,
        [HCE_UINT8] = 1,
        [HCE_INT32] = 1,
        [HCE_UINT32] = 1,
        [HCE_INT64] = 1,
        [HCE_UINT64] = 1,
        [HCE_FLOAT16] = 0x3c00,
        [HCE_BFLOAT16] = 0x3f80,
        [HCE_FLOAT32] = 0x3f800000,
        [HCE_FLOAT64] = 0x3ff0000000000000,
        [HCE_FLOAT8E4M3] = 0x38,
        [HCE_FLOAT8E5M2] = 0x3c,
    };
    size_t size = hce_datatype_size(type), at;
    uint64_t code, seed = 1;

    for (int s = 0; s < bench->args.num_srcs; s++) {
        for (at = 0; at + size <= bench->len; at += size) {
            code = ones[type] + hce_rand_next(&seed) % 4;
            memcpy((char *)bench->srcs[s] + at, &code, size);
        }
    }
}

/* Is the kernel's result the portable one's, in every destination? */
static bool result_check(bench_t *bench, hce_datatype_t type, char *want)
{
    hce_reduce_kernel_t portable =
        hce_reduce_kernel_get(&hce_reduce_portable, bench->opts->op, type);
    void *wanted[] = {want};
    hce_reduce_args_t args = bench->args;

    args.dsts = wanted;
    args.num_dsts = 1;
    hce_reduce_run(&portable, &args);
    hce_reduce_run(&bench->kernel, &bench->args);
    for (int d = 0; d < bench->args.num_dsts; d++) {
        if (memcmp(bench->dsts[d], want,
                   bench->args.end * bench->kernel.elem_size) != 0)
            return false;
    }
    return true;
}

static void row_print(const bench_t *bench, hce_datatype_t type,
                      const double *rates, bool is_right)
{
    printf("%12zu %9s %5s %4d %4d %9.2f %9.2f %6.0f %9.2f %6.0f", bench->len,
           hce_datatype_string(type), hce_redop_string(bench->opts->op),
           bench->args.num_srcs, bench->args.num_dsts, rates[KERNEL],
           rates[MEMCPY], 100.0 * rates[KERNEL] / rates[MEMCPY],
           rates[TRAFFIC], 100.0 * rates[KERNEL] / rates[TRAFFIC]);
    if (rates[PLAIN] > 0.0)
        printf(" %9.2f %6.1f", rates[PLAIN], rates[KERNEL] / rates[PLAIN]);
    else
        printf(" %9s %6s", "-", "-");
    printf(" %6s\n", is_right ? "yes" : "NO");
    fflush(stdout);
}

static void bench_init(bench_t *bench, const kernel_opts_t *opts, char *memory,
                       size_t stride)
{
    int64_t i;

    memset(bench, 0, sizeof(*bench));
    bench->opts = opts;
    for (i = 0; i < opts->num_srcs; i++)
        bench->srcs[i] = memory + (size_t)i * stride;
    for (i = 0; i < opts->num_dsts; i++)
        bench->dsts[i] = memory + (size_t)(opts->num_srcs + i) * stride;
    if (opts->in_place)
        bench->dsts[0] = (void *)bench->srcs[0];
    bench->args.srcs = bench->srcs;
    bench->args.num_srcs = (int)opts->num_srcs;
    bench->args.dsts = bench->dsts;
    bench->args.num_dsts = (int)opts->num_dsts;
    bench->args.streaming = opts->streaming;
    bench->args.divisor = opts->op == HCE_AVG ? (uint32_t)opts->num_srcs : 0;
}

/* All sizes of one datatype; false if a result was wrong. */
static bool type_measure(bench_t *bench, hce_datatype_t type, char *want)
{
    const kernel_opts_t *opts = bench->opts;
    double rates[CONTESTANTS];
    bool is_right, all_right = true;
    uint64_t len;

    hce_reduce_kernel_find(opts->op, type, &bench->kernel);
    bench->plain = hce_perf_plain_find(opts->op, type);
    for (len = opts->min_bytes; len <= opts->max_bytes; len *= opts->factor) {
        bench->len = (size_t)len;
        bench->args.end = bench->len / bench->kernel.elem_size;
        sources_fill(bench, type);
        is_right = result_check(bench, type, want);
        turns_take(bench, rates);
        row_print(bench, type, rates, is_right);
        all_right = all_right && is_right;
        if (opts->factor == 1)
            break;
    }
    return all_right;
}

static int measure(const kernel_opts_t *opts)
{
    /* Buffers start pages, as those of hce_mem_alloc do. Where loads are a
     * little ahead of stores to other pages, CPUs take one for the other. */
    size_t stride = (size_t)hce_round_up(opts->max_bytes, ALIGNMENT);
    size_t num = (size_t)(opts->num_srcs + opts->num_dsts + 1);
    char *memory = aligned_alloc(ALIGNMENT, num * stride);
    bool all_right = true;
    bench_t bench;

    if (memory == NULL) {
        fprintf(stderr, "hce_perf: no memory for %zu buffers of %llu bytes\n",
                num, (unsigned long long)opts->max_bytes);
        return 1;
    }
    memset(memory, 0, num * stride);
    bench_init(&bench, opts, memory, stride);
    printf("# reduce_kernel: instructions of %s, one thread, %s stores, %s\n"
           "# rates are 10^9 bytes of one source a second; traffic: the same "
           "loads and stores; plain: C, an element at a time\n"
           "#%11s %9s %5s %4s %4s %9s %9s %6s %9s %6s %9s %6s %6s\n",
           hce_reduce_variant_name(), opts->streaming ? "streaming" : "plain",
           opts->in_place ? "in place" : "out of place", "bytes", "type",
           "redop", "srcs", "dsts", "kernel", "memcpy", "%", "traffic", "%",
           "plain", "times", "right");
    for (int i = 0; i < opts->num_types; i++)
        all_right = type_measure(&bench, opts->types[i],
                                 memory + (num - 1) * stride) &&
                    all_right;
    free(memory);
    return all_right ? 0 : 1;
}

int hce_perf_reduce_kernel(int argc, char **argv)
{
    static const struct argp argp = {
        .options = options,
        .parser = parse_one,
        .doc = "Times the reduction kernels of this CPU on one thread, beside "
               "memcpy.",
    };
    kernel_opts_t opts = {
        .min_bytes = 16 * HCE_KIB,
        .factor = 4,
        .op = HCE_SUM,
        .types = {HCE_FLOAT32},
        .num_types = 1,
        .num_srcs = 2,
        .num_dsts = 1,
        .rounds = 10,
    };
    static char name[] = "hce_perf reduce_kernel";

    argv[0] = name;
    argp_parse(&argp, argc, argv, 0, NULL, &opts);
    if (hce_config_init(hce_settings) != HCE_OK || hce_reduce_init() != HCE_OK)
        return 1;
    return measure(&opts);
}
