/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Settings: one table a folder, read once from the environment, parsed
 * strictly, listed by hce_info. The only user of getenv.
 */
#ifndef HCE_UTIL_CONFIG_H
#define HCE_UTIL_CONFIG_H

#include <hce/hce.h>
#include <stdint.h>
#include <stdio.h>

typedef enum hce_config_type {
    HCE_CONFIG_STRING, /* const char * */
    HCE_CONFIG_INT,    /* int64_t; min..max of the field */
    HCE_CONFIG_SIZE,   /* uint64_t bytes: 4096, 8k, 8M, 1G, 1T; by 1024 */
    HCE_CONFIG_TIME,   /* uint64_t ns: 10, 10s, 50ms, 20us, 5ns; bare is s */
    HCE_CONFIG_ENUM    /* int: index into the field's choices */
} hce_config_type_t;

typedef struct hce_config_field {
    const char *name; /* "HCE_SILENCE" */
    const char *dfl;  /* default as text; NULL is "unset": value
                         keeps what it was initialised with */
    const char *text; /* one sentence for people */
    hce_config_type_t type;
    void *value;                /* where the parsed value goes */
    int64_t min, max;           /* HCE_CONFIG_INT; both 0 is any */
    const char *const *choices; /* HCE_CONFIG_ENUM; ends with NULL */
    /* Compared across ranks at create: a difference is an error. */
    int collective;
    int secret; /* the value is never shown */
} hce_config_field_t;

typedef struct hce_config_table {
    const char *folder; /* "rma_proxy" */
    const hce_config_field_t *fields;
    unsigned num_fields;
} hce_config_table_t;

/* HCE_LOG and HCE_LOG_FILE. */
extern const hce_config_table_t hce_util_config;

/* Defines the folder's table; each folder's config.c does this once and
 * lib/core/settings.c lists all tables. */
#define HCE_CONFIG_TABLE(_folder, _fields)                                    \
    {                                                                         \
        .folder = _folder, .fields = _fields,                                 \
        .num_fields = sizeof(_fields) / sizeof((_fields)[0])                  \
    }

/* Sets every field of the tables (NULL-terminated list) from the environment
 * or its default, starts the log, warns of unknown HCE_* names with the
 * nearest known one. HCE_ERR_CONFIG after an error line for each malformed
 * variable that names it, its value and what was expected. Once for a
 * process: later calls return the first result. Thread-safe. */
hce_status_t hce_config_init(const hce_config_table_t *const *tables);

/* The same parser on given text, for flags such as "-b 8M". No sign but a
 * leading '-' of an integer, no white space, nothing after the unit. Output
 * only on success, else HCE_ERR_CONFIG. Only hce_config_parse() logs. */
hce_status_t hce_config_parse_size(const char *text, uint64_t *size_p);
hce_status_t hce_config_parse_time(const char *text, uint64_t *ns_p);
hce_status_t hce_config_parse_int(const char *text, int64_t min, int64_t max,
                                  int64_t *value_p);
hce_status_t hce_config_parse(const hce_config_field_t *field,
                              const char *text);

/* Prints "NAME=value  # origin" and the text below; with HCE_CONFIG_DOC the
 * markdown of docs/ENV.md (defaults only, no values). */
typedef enum { HCE_CONFIG_VALUES, HCE_CONFIG_DOC } hce_config_print_t;
void hce_config_print(const hce_config_table_t *const *tables, FILE *out,
                      hce_config_print_t what);

/* Text "NAME=value\n..." of all collective fields, to compare across ranks.
 * Returns the length without the final NUL, like snprintf. */
int hce_config_signature(const hce_config_table_t *const *tables, char *buf,
                         size_t size);

/* A variable of others (RANK, MASTER_ADDR, ...): not a setting of ours.
 * NULL when unset. */
const char *hce_config_foreign(const char *name);

#endif
