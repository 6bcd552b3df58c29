/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The parsers of settings on random texts, beside second descriptions of
 * what they accept: regular expressions and 128-bit arithmetic. Texts are
 * strung together from tokens, so that a good part of them is valid.
 *
 * usage: util_fuzz [SEED [ROUNDS]]
 */
#include "config.h"

#include "util/config.h"
#include "util/layout.h"
#include "util/log.h"
#include "util/math.h"

#include <inttypes.h>
#include <regex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define MAX_TOKENS 6
#define TEXT_SIZE  256
#define GARBAGE    0x5a5a5a5a5a5a5a5aull
#define MAX_RANKS  16

static uint64_t seed = 1;
static int rounds = 20000;

/* Digits of every kind, all units, near misses, bytes nobody expects. */
/* clang-format off */
static const char *const number_tokens[] = {
    "0", "1", "9", "42", "4096", "00", "16777215",
    "9223372036854775807", "9223372036854775808", "18446744073709551615",
    "k", "K", "m", "M", "g", "G", "t", "T", "s", "ms", "us", "ns",
    "-", "+", " ", ".", "x", "B", "\n", "\xff", NULL};
/* clang-format on */

static const char *const log_tokens[] = {
    "error", "warn",  "info", "debug", "trace",  "util", "boot",
    "core",  "fault", "ce",   "proxy", "tuning", ",",    ",",
    ",",     ":",     ":",    "x",     "",       " ",    NULL};

static const char *const layout_tokens[] = {
    "0", "1", "2", "3", "4", "8",           ",", ",",
    ",", ",", "-", "x", " ", "99999999999", NULL};

static const char *const *const token_lists[] = {number_tokens, log_tokens,
                                                 layout_tokens};

static const char *text_make(uint64_t *rng, const char *const *tokens)
{
    static char text[TEXT_SIZE];
    unsigned count = 0, num_tokens;

    while (tokens[count] != NULL) {
        count++;
    }
    text[0] = '\0';
    num_tokens = (unsigned)(hce_rand_next(rng) % (MAX_TOKENS + 1));
    for (unsigned i = 0; i < num_tokens; i++) {
        strcat(text, tokens[hce_rand_next(rng) % count]);
    }
    return text;
}

static regex_t pattern_compile(const char *pattern)
{
    regex_t regex;

    assert_int_equal(regcomp(&regex, pattern, REG_EXTENDED), 0);
    return regex;
}

/* The value of digits and a unit as the tables of the manual say; false if
 * it is above max. */
static bool number_expect(const char *text, const char *const *units,
                          const uint64_t *factors, uint64_t max,
                          uint64_t *value_p)
{
    unsigned __int128 value = 0;
    int unit = 0;

    for (; *text >= '0' && *text <= '9'; text++) {
        value = value * 10 + (unsigned)(*text - '0');
        if (value > (unsigned __int128)UINT64_MAX * 10) {
            return false;
        }
    }
    while (strcmp(units[unit], text) != 0) {
        unit++; /* the pattern has matched: one of them does */
    }
    value *= factors[unit];
    if (value > max) {
        return false;
    }
    *value_p = (uint64_t)value;
    return true;
}

typedef hce_status_t (*number_fn_t)(const char *text, uint64_t *value_p);

typedef struct number_case {
    const char *pattern;
    number_fn_t parse;
    uint64_t max;
    const char *units[10];
    uint64_t factors[10];
} number_case_t;

static void numbers_check(const number_case_t *number)
{
    regex_t regex = pattern_compile(number->pattern);
    uint64_t rng = seed;
    int num_good = 0;

    for (int i = 0; i < rounds; i++) {
        const char *text = text_make(&rng, number_tokens);
        uint64_t value = GARBAGE, expected = GARBAGE;
        bool good = regexec(&regex, text, 0, NULL, 0) == 0 &&
                    number_expect(text, number->units, number->factors,
                                  number->max, &expected);
        hce_status_t status = number->parse(text, &value);

        if (status != (good ? HCE_OK : HCE_ERR_CONFIG) || value != expected) {
            fail_msg("\"%s\": %s, %" PRIu64, text, hce_status_string(status),
                     value);
        }
        num_good += good;
    }
    regfree(&regex);
    printf("%d of %d were valid\n", num_good, rounds);
    assert_true(num_good > rounds / 50);
}

static void sizes(void **state)
{
    static const number_case_t number = {
        .pattern = "^[0-9]+[kKmMgGtT]?$",
        .parse = hce_config_parse_size,
        .max = UINT64_MAX,
        .units = {"", "k", "K", "m", "M", "g", "G", "t", "T"},
        .factors = {1, HCE_KIB, HCE_KIB, HCE_MIB, HCE_MIB, HCE_GIB, HCE_GIB,
                    HCE_GIB * 1024, HCE_GIB * 1024},
    };

    numbers_check(&number);
}

static void times(void **state)
{
    static const number_case_t number = {
        .pattern = "^[0-9]+(s|ms|us|ns)?$",
        .parse = hce_config_parse_time,
        .max = INT64_MAX,
        .units = {"", "s", "ms", "us", "ns"},
        .factors = {1000000000, 1000000000, 1000000, 1000, 1},
    };

    numbers_check(&number);
}

static void integers(void **state)
{
    regex_t regex = pattern_compile("^-?[0-9]+$");
    const char *const units[] = {""};
    const uint64_t factors[] = {1};
    uint64_t rng = seed;

    for (int i = 0; i < rounds; i++) {
        const char *text = text_make(&rng, number_tokens);
        bool negative = text[0] == '-';
        int64_t min = (int64_t)(hce_rand_next(&rng) % 100) - 50;
        int64_t max = min + (int64_t)(hce_rand_next(&rng) % 5000);
        int64_t value = 77, expected = 77;
        uint64_t number;
        bool good =
            regexec(&regex, text, 0, NULL, 0) == 0 &&
            number_expect(text + negative, units, factors, INT64_MAX, &number);

        if (good) {
            int64_t signed_number =
                negative ? -(int64_t)number : (int64_t)number;

            good = (min == 0 && max == 0) ||
                   (signed_number >= min && signed_number <= max);
            expected = good ? signed_number : 77;
        }
        assert_int_equal(hce_config_parse_int(text, min, max, &value),
                         good ? HCE_OK : HCE_ERR_CONFIG);
        assert_int_equal(value, expected);
    }
    regfree(&regex);
}

/* What is printed means the same when it is parsed. */
static void printed_values(void **state)
{
    static uint64_t size, ns;
    static const hce_config_field_t fields[] = {
        {.name = "S",
         .type = HCE_CONFIG_SIZE,
         .value = &size,
         .collective = 1},
        {.name = "T", .type = HCE_CONFIG_TIME, .value = &ns, .collective = 1},
    };
    static const hce_config_table_t table = HCE_CONFIG_TABLE("t", fields);
    const hce_config_table_t *const tables[] = {&table, NULL};
    uint64_t rng = seed;

    for (int i = 0; i < rounds; i++) {
        int shift = (int)(hce_rand_next(&rng) % 64);
        char text[TEXT_SIZE], *time_text;
        uint64_t size_before, ns_before;

        size = size_before = hce_rand_next(&rng) >> shift << shift / 2;
        ns = ns_before = (hce_rand_next(&rng) >> shift) % 1000000 * 1000000;
        assert_true(hce_config_signature(tables, text, sizeof(text)) <
                    (int)sizeof(text));
        time_text = strchr(text, '\n');
        *time_text++ = '\0';
        time_text[strlen(time_text) - 1] = '\0';
        size = ns = GARBAGE;
        assert_int_equal(hce_config_parse_size(text + 2, &size), HCE_OK);
        assert_int_equal(hce_config_parse_time(time_text + 2, &ns), HCE_OK);
        assert_true(size == size_before && ns == ns_before);
    }
}

#define LEVELS "(error|warn|info|debug|trace)"
#define AREAS  "(util|boot|topo|plan|ce|proxy|core|fault|tuning|graph)"
#define ITEM   "(" LEVELS "|" AREAS "|" AREAS ":" LEVELS ")"

static void log_limits(unsigned char *limits)
{
    for (int a = 0; a < HCE_LOG_AREA_LAST; a++) {
        limits[a] = (unsigned char)atomic_load(&hce_log_limit[a]);
    }
}

static void log_settings(void **state)
{
    regex_t regex = pattern_compile("^" ITEM "(," ITEM ")*$");
    unsigned char before[HCE_LOG_AREA_LAST], after[HCE_LOG_AREA_LAST];
    uint64_t rng = seed;
    int num_good = 0;

    for (int i = 0; i < rounds; i++) {
        const char *text = text_make(&rng, log_tokens);
        bool good = regexec(&regex, text, 0, NULL, 0) == 0;

        log_limits(before);
        if ((hce_log_init(text, NULL) == NULL) != good) {
            fail_msg("\"%s\" should %sbe valid", text, good ? "" : "not ");
        }
        log_limits(after);
        if (!good) {
            assert_memory_equal(before, after, sizeof(before));
        }
        num_good += good;
    }
    assert_null(hce_log_init(NULL, NULL));
    regfree(&regex);
    assert_true(num_good > rounds / 50);
}

/* Sizes of nodes as text means them; their number, or 0 if it is wrong. */
static int layout_sizes(const char *text, int nranks, long *sizes)
{
    int count = 0;
    long sum = 0;
    char *end = (char *)text - 1;

    if (strchr(text, ',') == NULL) {
        long nodes = strtol(text, NULL, 10);

        if (nodes < 1 || nodes > nranks || nranks % nodes != 0) {
            return 0;
        }
        for (; count < nodes; count++) {
            sizes[count] = nranks / nodes;
        }
        return count;
    }
    do {
        long size = strtol(end + 1, &end, 10);

        if (size < 1 || size > nranks - sum) {
            return 0;
        }
        sum += size;
        sizes[count++] = size;
    } while (*end == ',');
    return sum == nranks ? count : 0;
}

/* Block: node by node. Cyclic: round j takes the rank j of every node that
 * has so many. */
static void layout_colors(const long *sizes, int count, hce_layout_map_t map,
                          int *color)
{
    int rank = 0;

    if (map == HCE_LAYOUT_BLOCK) {
        for (int n = 0; n < count; n++) {
            for (int j = 0; j < sizes[n]; j++) {
                color[rank++] = n;
            }
        }
        return;
    }
    for (int j = 0; j < MAX_RANKS; j++) {
        for (int n = 0; n < count; n++) {
            if (j < sizes[n]) {
                color[rank++] = n;
            }
        }
    }
}

static void layouts(void **state)
{
    regex_t regex = pattern_compile("^[0-9]+(,[0-9]+)*$");
    uint64_t rng = seed;
    int num_good = 0;

    for (int i = 0; i < rounds; i++) {
        const char *text = text_make(&rng, layout_tokens), *why = NULL;
        int nranks = 1 + (int)(hce_rand_next(&rng) % MAX_RANKS);
        hce_layout_map_t map =
            hce_rand_next(&rng) % 2 ? HCE_LAYOUT_BLOCK : HCE_LAYOUT_CYCLIC;
        int color[MAX_RANKS] = {0}, expected[MAX_RANKS] = {0};
        long sizes[MAX_RANKS];
        int count = 0;

        if (regexec(&regex, text, 0, NULL, 0) == 0) {
            count = layout_sizes(text, nranks, sizes);
        }
        if (count > 0) {
            layout_colors(sizes, count, map, expected);
        }
        assert_int_equal(hce_layout_parse(text, map, nranks, color, &why),
                         count > 0 ? HCE_OK : HCE_ERR_INVALID_ARG);
        assert_int_equal(why == NULL, count > 0);
        assert_memory_equal(color, expected, sizeof(color));
        num_good += count > 0;
    }
    regfree(&regex);
    assert_true(num_good > rounds / 100);
}

/* Texts must fit, however the tokens fall. */
static void tokens_fit(void **state)
{
    for (int t = 0; t < 3; t++) {
        for (int i = 0; token_lists[t][i] != NULL; i++) {
            assert_true(strlen(token_lists[t][i]) * MAX_TOKENS < TEXT_SIZE);
        }
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_fit),     cmocka_unit_test(sizes),
        cmocka_unit_test(times),          cmocka_unit_test(integers),
        cmocka_unit_test(printed_values), cmocka_unit_test(log_settings),
        cmocka_unit_test(layouts),
    };

    if (argc > 1) {
        seed = strtoull(argv[1], NULL, 0);
    }
    if (argc > 2) {
        rounds = atoi(argv[2]);
    }
    printf("seed %" PRIu64 ", %d rounds\n", seed, rounds);
    return cmocka_run_group_tests_name("util_fuzz", tests, NULL, NULL);
}
