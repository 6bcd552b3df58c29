/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Settings as text: for people (hce_info), for docs/ENV.md, and in a
 * canonical form to compare between ranks.
 */
#include <config.h>

#include "util/config_priv.h"

#include <inttypes.h>
#include <string.h>

#define COMMENT_START "    #"
#define COMMENT_WIDTH 79

static int enum_names_print(const hce_config_field_t *field, char *buf,
                            size_t size)
{
    size_t len = 0;

    buf[0] = '\0';
    for (int i = 0; field->choices[i] != NULL && len < size; i++) {
        int part = snprintf(buf + len, size - len, "%s%s", i == 0 ? "" : ", ",
                            field->choices[i]);

        len += (size_t)part;
    }
    return (int)len;
}

void hce_config_expected(const hce_config_field_t *field, char *buf,
                         size_t size)
{
    char names[192];

    switch (field->type) {
    case HCE_CONFIG_STRING:
        snprintf(buf, size, "a text that is not empty");
        return;
    case HCE_CONFIG_INT:
        if (field->min == 0 && field->max == 0) {
            snprintf(buf, size, "an integer");
        } else if (field->max == INT64_MAX) {
            snprintf(buf, size, "an integer, at least %" PRId64, field->min);
        } else {
            snprintf(buf, size, "an integer from %" PRId64 " to %" PRId64,
                     field->min, field->max);
        }
        return;
    case HCE_CONFIG_SIZE:
        snprintf(buf, size, "bytes, such as 4096, 8k, 8M or 1G");
        return;
    case HCE_CONFIG_TIME:
        snprintf(buf, size, "a time, such as 10s, 50ms or 20us");
        return;
    case HCE_CONFIG_ENUM:
        enum_names_print(field, names, sizeof(names));
        snprintf(buf, size, "one of %s", names);
        return;
    }
}

/* With the largest unit that leaves nothing over, so that the text means the
 * same when it is parsed again. */
static int unit_print(uint64_t value, uint64_t step, const char *const *units,
                      char *buf, size_t size)
{
    int i = 0;

    while (value != 0 && value % step == 0 && units[i + 1] != NULL) {
        value /= step;
        i++;
    }
    return snprintf(buf, size, "%" PRIu64 "%s", value, units[i]);
}

static int value_print(const hce_config_field_t *field, char *buf, size_t size)
{
    static const char *const size_units[] = {"", "k", "M", "G", "T", NULL};
    static const char *const time_units[] = {"ns", "us", "ms", "s", NULL};
    const char *text;
    int choice;

    switch (field->type) {
    case HCE_CONFIG_STRING:
        text = *(const char **)field->value;
        return snprintf(buf, size, "%s", text != NULL ? text : "");
    case HCE_CONFIG_INT:
        return snprintf(buf, size, "%" PRId64, *(int64_t *)field->value);
    case HCE_CONFIG_SIZE:
        return unit_print(*(uint64_t *)field->value, 1024, size_units, buf,
                          size);
    case HCE_CONFIG_TIME:
        return unit_print(*(uint64_t *)field->value, 1000, time_units, buf,
                          size);
    case HCE_CONFIG_ENUM:
        choice = *(int *)field->value; /* negative where unset may be */
        return snprintf(buf, size, "%s",
                        choice < 0 ? "" : field->choices[choice]);
    }
    return 0;
}

/* In lines of a comment, broken at spaces. */
static void comment_print(const char *text, FILE *out)
{
    size_t column = strlen(COMMENT_START), len;

    fputs(COMMENT_START, out);
    for (; *text != '\0'; text += len + strspn(text + len, " ")) {
        len = strcspn(text, " ");
        if (column + 1 + len > COMMENT_WIDTH) {
            fputs("\n" COMMENT_START, out);
            column = strlen(COMMENT_START);
        }
        fprintf(out, " %.*s", (int)len, text);
        column += 1 + len;
    }
    fputc('\n', out);
}

static void values_print(const hce_config_table_t *table, FILE *out)
{
    char value[1024];

    for (unsigned i = 0; i < table->num_fields; i++) {
        const hce_config_field_t *field = &table->fields[i];
        int given = hce_config_is_given(field);

        value[0] = '\0';
        if (field->secret)
            snprintf(value, sizeof(value), "%s", given ? "***" : "");
        else if (given || field->dfl != NULL)
            value_print(field, value, sizeof(value));
        fprintf(out, "%s=%s  # %s\n", field->name, value,
                given ? "environment" : "default");
        comment_print(field->text, out);
    }
}

/* A cell of a markdown table: a bar would end it. */
static void cell_print(const char *text, FILE *out)
{
    for (const char *p = text; *p != '\0'; p++) {
        if (*p == '|')
            fputc('\\', out);
        fputc(*p, out);
    }
}

static void doc_print(const hce_config_table_t *table, FILE *out)
{
    char expected[256];

    fprintf(out,
            "\n## %s\n\n"
            "| Setting | Default | Values | Meaning |\n"
            "|---|---|---|---|\n",
            table->folder);
    for (unsigned i = 0; i < table->num_fields; i++) {
        const hce_config_field_t *field = &table->fields[i];

        fprintf(out, "| `%s` | ", field->name);
        if (field->dfl != NULL)
            fprintf(out, "`%s`", field->dfl);
        else
            fprintf(out, "unset");
        hce_config_expected(field, expected, sizeof(expected));
        fprintf(out, " | %s | ", expected);
        cell_print(field->text, out);
        fprintf(out, "%s |\n",
                field->collective ? " The same on all ranks." : "");
    }
}

void hce_config_print(const hce_config_table_t *const *tables, FILE *out,
                      hce_config_print_t what)
{
    if (what == HCE_CONFIG_DOC) {
        fprintf(out,
                "# Settings\n\n"
                "All settings are environment variables, read once, at the "
                "first call. A malformed one\n"
                "is an error that names the variable, its value and what was "
                "expected; an unknown\n"
                "`HCE_*` name is a warning with the nearest known one. "
                "`hce_info -c` prints the values\n"
                "in force and where they come from.\n\n"
                "Sizes are bytes, with `k`, `M`, `G` or `T` for powers of "
                "1024. Times take `s`, `ms`, `us`\n"
                "or `ns`; without a unit they are seconds. This page is "
                "printed by `hce_info --doc`.\n");
    }
    for (int i = 0; tables[i] != NULL; i++)
        if (what == HCE_CONFIG_DOC)
            doc_print(tables[i], out);
        else
            values_print(tables[i], out);
}

int hce_config_signature(const hce_config_table_t *const *tables, char *buf,
                         size_t size)
{
    size_t len = 0;

    if (size > 0)
        buf[0] = '\0';
    for (int t = 0; tables[t] != NULL; t++) {
        for (unsigned i = 0; i < tables[t]->num_fields; i++) {
            const hce_config_field_t *field = &tables[t]->fields[i];
            char value[1024];

            if (!field->collective)
                continue;
            value_print(field, value, sizeof(value));
            len += (size_t)snprintf(len < size ? buf + len : NULL,
                                    len < size ? size - len : 0, "%s=%s\n",
                                    field->name, value);
        }
    }
    return (int)len;
}
