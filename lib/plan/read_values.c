/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Values of JSON objects, each checked for its type and limits; and what is
 * said about one that is not acceptable.
 */
#include "config.h"

#include "plan/read.h"

#ifdef HCE_HAVE_JANSSON

#include "plan/read_priv.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

bool hce_plan_read_fail(hce_plan_reader_t *r, const char *format, ...)
{
    char where[120];
    size_t used = 0;
    va_list args;

    if (r->status != HCE_OK) {
        return false;
    }
    r->status = HCE_ERR_INVALID_ARG;
    where[0] = '\0';
    if (r->plan_index != HCE_PLAN_READ_NO_INDEX) {
        used += (size_t)snprintf(where, sizeof(where), "plan %" PRId64 ": ",
                                 r->plan_index);
    }
    if (r->list != NULL) {
        used += (size_t)snprintf(where + used, sizeof(where) - used,
                                 "%s[%" PRId64 "]: ", r->list, r->list_index);
    }
    if (r->item != NULL) {
        snprintf(where + used, sizeof(where) - used,
                 "%s[%" PRId64 "]: ", r->item, r->item_index);
    }
    used = (size_t)snprintf(r->why, HCE_PLAN_READ_WHY_SIZE, "%s", where);
    va_start(args, format);
    vsnprintf(r->why + used, HCE_PLAN_READ_WHY_SIZE - used, format, args);
    va_end(args);
    return false;
}

bool hce_plan_read_int(hce_plan_reader_t *r, const json_t *object,
                       const char *key, const int64_t limits[2],
                       int64_t *value_p)
{
    const json_t *value = json_object_get(object, key);
    int64_t number = json_integer_value(value);

    if (!json_is_integer(value) || number < limits[0] || number > limits[1]) {
        hce_plan_read_fail(
            r, "\"%s\": expected a whole number from %" PRId64 " to %" PRId64,
            key, limits[0], limits[1]);
        return false; /* so that compilers see what is written */
    }
    *value_p = number;
    return true;
}

bool hce_plan_read_bool(hce_plan_reader_t *r, const json_t *object,
                        const char *key, bool *value_p)
{
    const json_t *value = json_object_get(object, key);

    if (!json_is_boolean(value)) {
        return hce_plan_read_fail(r, "\"%s\": expected true or false", key);
    }
    *value_p = json_is_true(value);
    return true;
}

bool hce_plan_read_array(hce_plan_reader_t *r, const json_t *object,
                         const char *key, size_t max, const json_t **array_p)
{
    const json_t *array = json_object_get(object, key);

    if (!json_is_array(array) || json_array_size(array) > max) {
        return hce_plan_read_fail(r, "\"%s\": expected a list of at most %zu",
                                  key, max);
    }
    *array_p = array;
    return true;
}

bool hce_plan_read_name(hce_plan_reader_t *r, const json_t *object,
                        const char *key, const hce_plan_read_names_t *names,
                        int *value_p)
{
    const char *text = json_string_value(json_object_get(object, key));
    char expected[120];
    size_t used = 0;
    int i;

    for (i = 0; i <= names->last; i++) {
        if (text != NULL && strcmp(text, names->name(i)) == 0) {
            *value_p = i;
            return true;
        }
    }
    expected[0] = '\0';
    for (i = 0; i <= names->last && used < sizeof(expected); i++) {
        used += (size_t)snprintf(expected + used, sizeof(expected) - used,
                                 "%s%s", i > 0 ? ", " : "", names->name(i));
    }
    return hce_plan_read_fail(r, "\"%s\": expected one of %s", key, expected);
}

bool hce_plan_read_rank(hce_plan_reader_t *r, const json_t *object,
                        const char *key, int min, int *rank_p)
{
    int64_t limits[2] = {min, r->layout->nranks - 1}, value;

    if (!hce_plan_read_int(r, object, key, limits, &value)) {
        return false;
    }
    *rank_p = (int)value;
    return true;
}

bool hce_plan_read_slot(hce_plan_reader_t *r, const json_t *object,
                        int *slot_p)
{
    int64_t limits[2] = {0, hce_plan_local_slots(r->layout) - 1}, value;

    if (!hce_plan_read_int(r, object, "slot", limits, &value)) {
        return false;
    }
    *slot_p = (int)value;
    return true;
}

bool hce_plan_read_bytes(hce_plan_reader_t *r, const json_t *object,
                         const char *key, uint64_t *bytes_p)
{
    static const int64_t limits[2] = {0, HCE_PLAN_READ_MAX_BYTES};
    int64_t value;

    if (!hce_plan_read_int(r, object, key, limits, &value)) {
        return false;
    }
    *bytes_p = (uint64_t)value;
    return true;
}

bool hce_plan_read_value(hce_plan_reader_t *r, const json_t *object,
                         const char *key, int64_t *value_p)
{
    static const int64_t limits[2] = {-HCE_PLAN_READ_MAX_VALUE,
                                      HCE_PLAN_READ_MAX_VALUE};

    return hce_plan_read_int(r, object, key, limits, value_p);
}

#endif
