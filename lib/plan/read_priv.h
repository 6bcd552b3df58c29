/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Private to the reader of plans: checked values of JSON objects.
 */
#ifndef HCE_PLAN_READ_PRIV_H
#define HCE_PLAN_READ_PRIV_H

#include <jansson.h>
#include "plan/read.h"

#define HCE_PLAN_READ_NO_INDEX (-1)

/* Where the reader is, for messages, and what it fills. */
typedef struct hce_plan_reader {
    char *why;
    hce_status_t status;
    const hce_layout_t *layout;
    hce_plan_t *plan;
    int64_t plan_index;
    const char *list; /* "ops", or NULL */
    int64_t list_index;
    const char *item; /* "src", or NULL */
    int64_t item_index;
} hce_plan_reader_t;

/* False, with where and what; the first message stays. */
bool hce_plan_read_fail(hce_plan_reader_t *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The value of a key; false after hce_plan_read_fail if there is none, or it
 * is of another type or beyond its limits. Object may be NULL. */
bool hce_plan_read_int(hce_plan_reader_t *r, const json_t *object,
                       const char *key, const int64_t limits[2],
                       int64_t *value_p);
bool hce_plan_read_bool(hce_plan_reader_t *r, const json_t *object,
                        const char *key, bool *value_p);
bool hce_plan_read_array(hce_plan_reader_t *r, const json_t *object,
                         const char *key, size_t max, const json_t **array_p);

/* One of the names of 0 to last. */
typedef struct hce_plan_read_names {
    const char *(*name)(int i);
    int last;
} hce_plan_read_names_t;
bool hce_plan_read_name(hce_plan_reader_t *r, const json_t *object,
                        const char *key, const hce_plan_read_names_t *names,
                        int *value_p);

/* Numbers of a plan, with their limits; min is 0, or -1 for "none". */
bool hce_plan_read_rank(hce_plan_reader_t *r, const json_t *object,
                        const char *key, int min, int *rank_p);
bool hce_plan_read_slot(hce_plan_reader_t *r, const json_t *object,
                        int *slot_p);
bool hce_plan_read_bytes(hce_plan_reader_t *r, const json_t *object,
                         const char *key, uint64_t *bytes_p);
bool hce_plan_read_value(hce_plan_reader_t *r, const json_t *object,
                         const char *key, int64_t *value_p);

#endif
