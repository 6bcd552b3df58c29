/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Settings: the parsers by hand-picked texts, and hce_config_init() in
 * children, since it runs once a process.
 */
#include "config.h"

#include "child.h"
#include "util/config.h"
#include "util/log.h"

#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#define GARBAGE 0x5a5a5a5a5a5a5a5aull

static const char *const colors[] = {"red", "green", "blue", NULL};

static struct {
    const char *string;
    int64_t integer;
    uint64_t size;
    uint64_t time;
    int color;
    int64_t unset;
    int no_color;
} values = {.unset = 77, .no_color = -1};

static const hce_config_field_t fields[] = {
    {.name = "HCE_T_STRING",
     .dfl = "abc",
     .text = "A text.",
     .type = HCE_CONFIG_STRING,
     .value = &values.string,
     .collective = 1},
    {.name = "HCE_T_INT",
     .dfl = "3",
     .text = "A number.",
     .type = HCE_CONFIG_INT,
     .value = &values.integer,
     .min = -4,
     .max = 16},
    {.name = "HCE_T_SIZE",
     .dfl = "4k",
     .text = "A size | bytes.",
     .type = HCE_CONFIG_SIZE,
     .value = &values.size,
     .collective = 1},
    {.name = "HCE_T_TIME",
     .dfl = "10",
     .text = "A time.",
     .type = HCE_CONFIG_TIME,
     .value = &values.time,
     .collective = 1},
    {.name = "HCE_T_COLOR",
     .dfl = "green",
     .text = "A color.",
     .type = HCE_CONFIG_ENUM,
     .value = &values.color,
     .choices = colors},
    {.name = "HCE_T_NO_COLOR",
     .text = "A color without a default.",
     .type = HCE_CONFIG_ENUM,
     .value = &values.no_color,
     .choices = colors,
     .collective = 1},
    {.name = "HCE_T_UNSET",
     .text = "A number without a default.",
     .type = HCE_CONFIG_INT,
     .value = &values.unset},
};

static const hce_config_table_t table = HCE_CONFIG_TABLE("test", fields);
static const hce_config_table_t *const tables[] = {&hce_util_config, &table,
                                                   NULL};

static void size_texts(void **state)
{
    static const struct {
        const char *text;
        uint64_t size;
    } good[] = {
        {"0", 0},
        {"1", 1},
        {"4096", 4096},
        {"8k", 8192},
        {"8K", 8192},
        {"8M", 8388608},
        {"8m", 8388608},
        {"1G", 1073741824},
        {"2t", 2199023255552},
        {"007", 7},
        {"18446744073709551615", UINT64_MAX},
        {"16777215T", 16777215ull << 40},
    };
    static const char *const bad[] = {"",          "abc",
                                      "8Mx",       "-1",
                                      "+1",        " 8",
                                      "8 ",        "8 M",
                                      "0x10",      "8MM",
                                      "8.5M",      "M",
                                      "8MiB",      "18446744073709551616",
                                      "16777216T", "99999999999999999999999",
                                      "8\n"};
    uint64_t size;

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        size = GARBAGE;
        assert_int_equal(hce_config_parse_size(good[i].text, &size), HCE_OK);
        assert_int_equal(size, good[i].size);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        size = GARBAGE;
        assert_int_equal(hce_config_parse_size(bad[i], &size), HCE_ERR_CONFIG);
        assert_int_equal(size, GARBAGE);
    }
}

static void time_texts(void **state)
{
    static const struct {
        const char *text;
        uint64_t ns;
    } good[] = {
        {"0", 0},
        {"10", 10000000000},
        {"10s", 10000000000},
        {"50ms", 50000000},
        {"20us", 20000},
        {"5ns", 5},
        {"9223372036s", 9223372036000000000},
        {"9223372036854775807ns", INT64_MAX},
    };
    static const char *const bad[] = {
        "",   "s",    "10 s",        "10S", "-1",
        "1m", "1min", "9223372037s", "1.5", "9223372036854775808ns"};
    uint64_t ns;

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        ns = GARBAGE;
        assert_int_equal(hce_config_parse_time(good[i].text, &ns), HCE_OK);
        assert_int_equal(ns, good[i].ns);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        ns = GARBAGE;
        assert_int_equal(hce_config_parse_time(bad[i], &ns), HCE_ERR_CONFIG);
        assert_int_equal(ns, GARBAGE);
    }
}

static void int_texts(void **state)
{
    int64_t value = 99;

    assert_int_equal(hce_config_parse_int("5", 1, 5, &value), HCE_OK);
    assert_int_equal(value, 5);
    assert_int_equal(hce_config_parse_int("-5", -5, 0, &value), HCE_OK);
    assert_int_equal(value, -5);
    assert_int_equal(
        hce_config_parse_int("-9223372036854775808", 0, 0, &value), HCE_OK);
    assert_true(value == INT64_MIN);
    assert_int_equal(hce_config_parse_int("9223372036854775807", 0, 0, &value),
                     HCE_OK);
    assert_true(value == INT64_MAX);

    value = 99;
    assert_int_equal(hce_config_parse_int("6", 1, 5, &value), HCE_ERR_CONFIG);
    assert_int_equal(hce_config_parse_int("0", 1, 5, &value), HCE_ERR_CONFIG);
    assert_int_equal(hce_config_parse_int("-", 0, 0, &value), HCE_ERR_CONFIG);
    assert_int_equal(hce_config_parse_int("--1", 0, 0, &value),
                     HCE_ERR_CONFIG);
    assert_int_equal(hce_config_parse_int("1k", 0, 0, &value), HCE_ERR_CONFIG);
    assert_int_equal(hce_config_parse_int("9223372036854775808", 0, 0, &value),
                     HCE_ERR_CONFIG);
    assert_int_equal(
        hce_config_parse_int("-9223372036854775809", 0, 0, &value),
        HCE_ERR_CONFIG);
    assert_int_equal(value, 99);
}

/* Everything at its default, nothing on standard error. */
static int init_defaults(void *arg)
{
    if (hce_config_init(tables) != HCE_OK) {
        return 1;
    }
    return strcmp(values.string, "abc") == 0 && values.integer == 3 &&
                   values.size == 4096 && values.time == 10000000000 &&
                   values.color == 1 && values.unset == 77
               ? 0
               : 2;
}

static int init_environment(void *arg)
{
    setenv("HCE_T_STRING", "8Mx", 1);
    setenv("HCE_T_INT", "-4", 1);
    setenv("HCE_T_SIZE", "8M", 1);
    setenv("HCE_T_TIME", "50ms", 1);
    setenv("HCE_T_COLOR", "blue", 1);
    setenv("HCE_T_UNSET", "5", 1);
    if (hce_config_init(tables) != HCE_OK) {
        return 1;
    }
    /* Read once: the environment's later fate does not matter. */
    clearenv();
    if (hce_config_init(tables) != HCE_OK) {
        return 2;
    }
    return strcmp(values.string, "8Mx") == 0 && values.integer == -4 &&
                   values.size == 8388608 && values.time == 50000000 &&
                   values.color == 2 && values.unset == 5
               ? 0
               : 3;
}

static void init_sets_values(void **state)
{
    static child_t child;

    child_run(init_defaults, NULL, &child);
    assert_int_equal(child.exit_status, 0);
    assert_int_equal(child.num_lines, 0);
    child_run(init_environment, NULL, &child);
    assert_int_equal(child.exit_status, 0);
    assert_int_equal(child.num_lines, 0);
}

static int init_with(void *arg)
{
    const char *const *setting = arg;

    setenv(setting[0], setting[1], 1);
    return -hce_config_init(tables);
}

static void assert_has(const char *text, const char *part)
{
    if (strstr(text, part) == NULL) {
        fail_msg("\"%s\" lacks \"%s\"", text, part);
    }
}

static void init_names_errors(void **state)
{
    static const char *const bad[][3] = {
        {"HCE_T_SIZE", "abc", "such as 4096, 8k, 8M or 1G"},
        {"HCE_T_SIZE", "8Mx", "such as 4096, 8k, 8M or 1G"},
        {"HCE_T_SIZE", "-1", "such as 4096, 8k, 8M or 1G"},
        {"HCE_T_SIZE", "", "such as 4096, 8k, 8M or 1G"},
        {"HCE_T_SIZE", "16777216T", "such as 4096, 8k, 8M or 1G"},
        {"HCE_T_TIME", "soon", "such as 10s, 50ms or 20us"},
        {"HCE_T_INT", "17", "an integer from -4 to 16"},
        {"HCE_T_COLOR", "Red", "one of red, green, blue"},
        {"HCE_T_STRING", "", "a text that is not empty"},
        {"HCE_T_UNSET", "x", "an integer"},
        {"HCE_LOG", "loud", "tuning, graph) or area:level"},
        {"HCE_LOG", "", "a text that is not empty"},
    };
    static child_t child;
    char start[128];

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        child_run(init_with, (void *)bad[i], &child);
        assert_int_equal(child.exit_status, -HCE_ERR_CONFIG);
        assert_int_equal(child.num_lines, 1);
        snprintf(start, sizeof(start), "] ERROR util: %s=\"%s\": expected ",
                 bad[i][0], bad[i][1]);
        assert_has(child.lines[0], start);
        assert_has(child.lines[0], bad[i][2]);
    }
}

static int init_many_errors(void *arg)
{
    setenv("HCE_T_SIZE", "abc", 1);
    setenv("HCE_T_COLOR", "pink", 1);
    if (hce_config_init(tables) != HCE_ERR_CONFIG) {
        return 1;
    }
    setenv("HCE_T_SIZE", "8M", 1);
    setenv("HCE_T_COLOR", "red", 1);
    return hce_config_init(tables) == HCE_ERR_CONFIG ? 0 : 2;
}

/* All are named, once, and the first result stays. */
static void init_names_all_errors(void **state)
{
    static child_t child;

    child_run(init_many_errors, NULL, &child);
    assert_int_equal(child.exit_status, 0);
    assert_int_equal(child.num_lines, 2);
    assert_has(child.lines[0], "HCE_T_SIZE=\"abc\"");
    assert_has(child.lines[1], "HCE_T_COLOR=\"pink\"");
}

static void init_warns_of_unknown(void **state)
{
    static const char *const unknown[][3] = {
        {"HCE_T_COLOUR", "red", "HCE_T_COLOR"},
        {"HCE_T_SIZ", "", "HCE_T_SIZE"},
        {"HCE_LOGFILE", "x", "HCE_LOG_FILE"},
        {"HCE_TT_IME", "x", "HCE_T_TIME"},
    };
    static child_t child;
    char long_name[300] = "HCE_T_";
    const char *const long_setting[] = {long_name, "1"};
    char text[128];

    for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
        child_run(init_with, (void *)unknown[i], &child);
        assert_int_equal(child.exit_status, 0);
        assert_int_equal(child.num_lines, 1);
        snprintf(text, sizeof(text),
                 "] WARN util: %s is not a setting; the nearest one is %s\n",
                 unknown[i][0], unknown[i][2]);
        assert_has(child.lines[0], text);
    }
    memset(long_name + 6, 'A', sizeof(long_name) - 7);
    child_run(init_with, (void *)long_setting, &child);
    assert_int_equal(child.exit_status, 0);
    assert_int_equal(child.num_lines, 1);
}

#define NUM_THREADS 8

static void *init_thread(void *arg)
{
    pthread_barrier_wait(arg);
    /* Whoever comes second must find the values of the first. */
    return hce_config_init(tables) == HCE_OK && values.size == 8388608 ? NULL
                                                                       : arg;
}

/* In this process, as the last test: TSan starts no threads after a fork. The
 * one warning shows that the environment was scanned once. */
static void init_runs_once(void **state)
{
    pthread_t threads[NUM_THREADS];
    pthread_barrier_t start;
    char path[PATH_MAX], text[1024];
    FILE *file;

    snprintf(path, sizeof(path), "%s/hce-config.%d",
             getenv("TMPDIR") != NULL ? getenv("TMPDIR") : "/tmp", getpid());
    setenv("HCE_LOG_FILE", path, 1);
    setenv("HCE_T_SIZE", "8M", 1);
    setenv("HCE_T_SIZZE", "1", 1);
    pthread_barrier_init(&start, NULL, NUM_THREADS);
    for (int i = 0; i < NUM_THREADS; i++) {
        assert_int_equal(
            pthread_create(&threads[i], NULL, init_thread, &start), 0);
    }
    for (int i = 0; i < NUM_THREADS; i++) {
        void *result;

        pthread_join(threads[i], &result);
        assert_null(result);
    }
    pthread_barrier_destroy(&start);
    file = fopen(path, "r");
    unlink(path);
    assert_non_null(file);
    assert_non_null(fgets(text, sizeof(text), file));
    assert_has(text, "HCE_T_SIZZE is not a setting");
    assert_null(fgets(text, sizeof(text), file));
    fclose(file);
}

static int print_values(void *arg)
{
    setenv("HCE_T_SIZE", "2097152", 1);
    setenv("HCE_T_TIME", "1500ms", 1);
    setenv("HCE_T_COLOR", "green", 1);
    if (hce_config_init(tables) != HCE_OK) {
        return 1;
    }
    setvbuf(stderr, NULL, _IOFBF, 4000);
    hce_config_print(tables + 1, stderr, HCE_CONFIG_VALUES);
    return 0;
}

/* What people paste into reports. */
static int print_secret(void *arg)
{
    static int64_t pin;
    static const hce_config_field_t secrets[] = {
        {.name = "HCE_T_PIN",
         .text = "A secret.",
         .type = HCE_CONFIG_INT,
         .value = &pin,
         .secret = 1},
    };
    static const hce_config_table_t hidden =
        HCE_CONFIG_TABLE("hidden", secrets);
    const hce_config_table_t *const list[] = {&hce_util_config, &hidden, NULL};

    setenv("HCE_T_PIN", arg, 1);
    if (hce_config_init(list) != HCE_OK) {
        return 1;
    }
    setvbuf(stderr, NULL, _IOFBF, 4000);
    hce_config_print(list + 1, stderr, HCE_CONFIG_VALUES);
    return pin == 4711 ? 0 : 2;
}

static void print_hides_secrets(void **state)
{
    static child_t child;

    child_run(print_secret, "4711", &child);
    assert_int_equal(child.exit_status, 0);
    assert_int_equal(child.num_lines, 1);
    assert_string_equal(child.lines[0],
                        "HCE_T_PIN=***  # environment\n"
                        "    # A secret.\n");
    child_run(print_secret, "47x11", &child);
    assert_int_equal(child.exit_status, 1);
    assert_int_equal(child.num_lines, 1);
    assert_has(child.lines[0], "HCE_T_PIN=\"***\": expected an integer\n");
}

static void print_shows_values(void **state)
{
    static child_t child;

    child_run(print_values, NULL, &child);
    assert_int_equal(child.exit_status, 0);
    assert_int_equal(child.num_lines, 1);
    assert_string_equal(
        child.lines[0],
        "HCE_T_STRING=abc  # default\n"
        "    # A text.\n"
        "HCE_T_INT=3  # default\n"
        "    # A number.\n"
        "HCE_T_SIZE=2M  # environment\n"
        "    # A size | bytes.\n"
        "HCE_T_TIME=1500ms  # environment\n"
        "    # A time.\n"
        "HCE_T_COLOR=green  # environment\n"
        "    # A color.\n"
        "HCE_T_NO_COLOR=  # default\n"
        "    # A color without a default.\n"
        "HCE_T_UNSET=  # default\n"
        "    # A number without a default.\n");
}

/* The page does not depend on the environment it was made in. */
static int print_doc(void *arg)
{
    setenv("HCE_T_SIZE", "2097152", 1);
    if (hce_config_init(tables) != HCE_OK) {
        return 1;
    }
    setvbuf(stderr, NULL, _IOFBF, 4000);
    hce_config_print(tables + 1, stderr, HCE_CONFIG_DOC);
    return 0;
}

static void print_shows_doc(void **state)
{
    static child_t child;

    child_run(print_doc, NULL, &child);
    assert_int_equal(child.exit_status, 0);
    assert_int_equal(child.num_lines, 1);
    assert_has(child.lines[0], "# Settings\n\n");
    assert_has(child.lines[0],
               "\n## test\n\n"
               "| Setting | Default | Values | Meaning |\n"
               "|---|---|---|---|\n"
               "| `HCE_T_STRING` | `abc` | a text that is not empty | "
               "A text. The same on all ranks. |\n"
               "| `HCE_T_INT` | `3` | an integer from -4 to 16 | "
               "A number. |\n"
               "| `HCE_T_SIZE` | `4k` | bytes, such as 4096, 8k, 8M or 1G | "
               "A size \\| bytes. The same on all ranks. |\n");
    assert_has(child.lines[0], "| `HCE_T_UNSET` | unset | an integer | ");
}

static int signature(void *arg)
{
    static const char expected[] =
        "HCE_T_STRING=abc\nHCE_T_SIZE=8M\nHCE_T_TIME=10s\nHCE_T_NO_COLOR=\n";
    const int len = (int)sizeof(expected) - 1;
    char buf[sizeof(expected)];

    setenv("HCE_T_SIZE", arg, 1);
    if (hce_config_init(tables) != HCE_OK ||
        hce_config_signature(tables, NULL, 0) != len) {
        return 1;
    }
    memset(buf, 'x', sizeof(buf));
    if (hce_config_signature(tables, buf, 20) != len ||
        memcmp(buf, expected, 19) != 0 || buf[19] != 0 || buf[20] != 'x') {
        return 2;
    }
    if (hce_config_signature(tables, buf, sizeof(buf)) != len ||
        strcmp(buf, expected) != 0) {
        return 3;
    }
    return 0;
}

/* Only collective fields, and equal for equal values however written. */
static void signature_is_canonical(void **state)
{
    static const char *const texts[] = {"8M", "8192k", "8388608"};
    static child_t child;

    for (int i = 0; i < 3; i++) {
        child_run(signature, (void *)texts[i], &child);
        assert_int_equal(child.exit_status, 0);
    }
}

static void foreign_is_plain(void **state)
{
    setenv("LIBHCE_T_FOREIGN", "", 1);
    assert_string_equal(hce_config_foreign("LIBHCE_T_FOREIGN"), "");
    unsetenv("LIBHCE_T_FOREIGN");
    assert_null(hce_config_foreign("LIBHCE_T_FOREIGN"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(size_texts),
        cmocka_unit_test(time_texts),
        cmocka_unit_test(int_texts),
        cmocka_unit_test(init_sets_values),
        cmocka_unit_test(init_names_errors),
        cmocka_unit_test(init_names_all_errors),
        cmocka_unit_test(init_warns_of_unknown),
        cmocka_unit_test(print_shows_values),
        cmocka_unit_test(print_hides_secrets),
        cmocka_unit_test(print_shows_doc),
        cmocka_unit_test(signature_is_canonical),
        cmocka_unit_test(foreign_is_plain),
        cmocka_unit_test(init_runs_once),
    };

    child_clean_env();
    return cmocka_run_group_tests_name("util_config", tests, NULL, NULL);
}
