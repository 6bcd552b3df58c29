/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The one parser of numbers, sizes and times: for settings and for flags of
 * the tools. Strict: what is not wholly understood is an error.
 */
#include <config.h>

#include "util/config_priv.h"
#include "util/log.h"

#include <inttypes.h>
#include <string.h>

typedef struct unit {
    const char *suffix;
    uint64_t factor;
} unit_t;

static const unit_t size_units[] = {
    {"", 1},           {"k", 1ull << 10}, {"K", 1ull << 10}, {"m", 1ull << 20},
    {"M", 1ull << 20}, {"g", 1ull << 30}, {"G", 1ull << 30}, {"t", 1ull << 40},
    {"T", 1ull << 40}, {NULL, 0}};

static const unit_t time_units[] = {{"", 1000000000}, {"s", 1000000000},
                                    {"ms", 1000000},  {"us", 1000},
                                    {"ns", 1},        {NULL, 0}};

static const unit_t no_units[] = {{"", 1}, {NULL, 0}};

/* Digits up to something else; where that is comes back. NULL if there are
 * none or the number does not fit. */
static const char *digits_parse(const char *text, uint64_t *number_p)
{
    uint64_t number = 0;
    const char *p = text;

    while (*p >= '0' && *p <= '9') {
        if (__builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, (uint64_t)(*p - '0'), &number))
            return NULL;
        p++;
    }
    if (p == text)
        return NULL;
    *number_p = number;
    return p;
}

static hce_status_t number_parse(const char *text, const unit_t *units,
                                 uint64_t max, uint64_t *number_p)
{
    uint64_t number = 0;
    const char *suffix = digits_parse(text, &number);

    if (suffix == NULL)
        return HCE_ERR_CONFIG;
    while (units->suffix != NULL && strcmp(units->suffix, suffix) != 0)
        units++;
    if (units->suffix == NULL || number > max / units->factor)
        return HCE_ERR_CONFIG;
    *number_p = number * units->factor;
    return HCE_OK;
}

hce_status_t hce_config_parse_size(const char *text, uint64_t *size_p)
{
    return number_parse(text, size_units, UINT64_MAX, size_p);
}

/* At most half of the range, so that "now + time" cannot wrap. */
hce_status_t hce_config_parse_time(const char *text, uint64_t *ns_p)
{
    return number_parse(text, time_units, INT64_MAX, ns_p);
}

hce_status_t hce_config_parse_int(const char *text, int64_t min, int64_t max,
                                  int64_t *value_p)
{
    int negative = text[0] == '-';
    uint64_t limit = (uint64_t)INT64_MAX + (uint64_t)negative;
    uint64_t number;
    int64_t value;

    if (number_parse(text + negative, no_units, limit, &number) != HCE_OK)
        return HCE_ERR_CONFIG;
    value = (int64_t)(negative ? 0 - number : number);
    if ((min != 0 || max != 0) && (value < min || value > max))
        return HCE_ERR_CONFIG;
    *value_p = value;
    return HCE_OK;
}

static hce_status_t enum_parse(const hce_config_field_t *field,
                               const char *text)
{
    for (int i = 0; field->choices[i] != NULL; i++) {
        if (strcmp(field->choices[i], text) == 0) {
            *(int *)field->value = i;
            return HCE_OK;
        }
    }
    return HCE_ERR_CONFIG;
}

/* The copy lives as long as the process: setenv may move the original, and
 * users of the value keep no count. */
static hce_status_t string_parse(const hce_config_field_t *field,
                                 const char *text)
{
    char *copy;

    if (text[0] == '\0')
        return HCE_ERR_CONFIG;
    copy = strdup(text);
    if (copy == NULL)
        return HCE_ERR_NO_MEMORY;
    *(const char **)field->value = copy;
    return HCE_OK;
}

static hce_status_t field_parse(const hce_config_field_t *field,
                                const char *text)
{
    switch (field->type) {
    case HCE_CONFIG_STRING:
        return string_parse(field, text);
    case HCE_CONFIG_INT:
        return hce_config_parse_int(text, field->min, field->max,
                                    field->value);
    case HCE_CONFIG_SIZE:
        return hce_config_parse_size(text, field->value);
    case HCE_CONFIG_TIME:
        return hce_config_parse_time(text, field->value);
    case HCE_CONFIG_ENUM:
        return enum_parse(field, text);
    }
    return HCE_ERR_INTERNAL;
}

hce_status_t hce_config_parse(const hce_config_field_t *field,
                              const char *text)
{
    hce_status_t status = field_parse(field, text);
    char expected[256];

    if (status == HCE_ERR_CONFIG) {
        hce_config_expected(field, expected, sizeof(expected));
        hce_log(ERROR, UTIL, "%s=\"%s\": expected %s", field->name,
                field->secret ? "***" : text, expected);
    } else if (status != HCE_OK) {
        hce_log(ERROR, UTIL, "%s=\"%s\": %s", field->name, text,
                hce_status_string(status));
    }
    return status;
}
