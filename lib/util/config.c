/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Reads the settings from the environment, once. The only place that calls
 * getenv: it is not safe against a setenv of another thread, so nothing is
 * read later than in the first call of the library.
 */
#include <config.h>

#include "util/config_priv.h"
#include "util/log.h"
#include "util/math.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PREFIX    "HCE_"
#define NAME_SIZE 64 /* more of a name is not compared */

static const char *log_spec;
static const char *log_file;

static const hce_config_field_t fields[] = {
    {.name = "HCE_LOG",
     .dfl = "warn",
     .type = HCE_CONFIG_STRING,
     .value = &log_spec,
     .text = "What is logged: a level for all areas (error, warn, info, "
             "debug, trace), areas to add at info (util, boot, topo, plan, "
             "ce, proxy, core, fault, tuning, graph), or area:level; "
             "separated by commas."},
    {.name = "HCE_LOG_FILE",
     .type = HCE_CONFIG_STRING,
     .value = &log_file,
     .text = "File that log lines are appended to instead of standard "
             "error; %h is the host, %p the process, %r the rank or none, "
             "%% a percent sign."},
};

const hce_config_table_t hce_util_config = HCE_CONFIG_TABLE("util", fields);

/* Protects what follows; held for the whole of the first hce_config_init(),
 * so that nobody goes on with half of the settings. */
static pthread_mutex_t init_lock = PTHREAD_MUTEX_INITIALIZER;
static bool init_done;
static hce_status_t init_status;

/* Fields that the environment sets. */
static const hce_config_field_t **given;
static unsigned num_given;

bool hce_config_is_given(const hce_config_field_t *field)
{
    bool found = false;

    pthread_mutex_lock(&init_lock);
    for (unsigned i = 0; i < num_given && !found; i++)
        found = given[i] == field;
    pthread_mutex_unlock(&init_lock);
    return found;
}

static hce_status_t field_init(const hce_config_field_t *field)
{
    const char *text = getenv(field->name);
    hce_status_t status;

    if (text == NULL) {
        return field->dfl == NULL ? HCE_OK
                                  : hce_config_parse(field, field->dfl);
    }
    status = hce_config_parse(field, text);
    if (status == HCE_OK)
        given[num_given++] = field;
    return status;
}

/* Goes on after an error, so that all of them are seen at once. */
static hce_status_t table_init(const hce_config_table_t *table)
{
    hce_status_t first = HCE_OK;

    for (unsigned i = 0; i < table->num_fields; i++) {
        hce_status_t status = field_init(&table->fields[i]);

        if (first == HCE_OK)
            first = status;
    }
    return first;
}

/* Before all others, so that their errors go where the user wants them. */
static hce_status_t log_start(void)
{
    hce_status_t status = table_init(&hce_util_config);
    const char *why;

    if (status != HCE_OK)
        return status;
    why = hce_log_init(log_spec, log_file);
    if (why != NULL) {
        hce_log(ERROR, UTIL, "HCE_LOG=\"%s\": %s", log_spec, why);
        return HCE_ERR_CONFIG;
    }
    return HCE_OK;
}

/* Levenshtein distance of two names, one row at a time. */
static int name_distance(const char *a, const char *b)
{
    int row[NAME_SIZE + 1];
    int b_len = (int)strnlen(b, NAME_SIZE);

    for (int j = 0; j <= b_len; j++)
        row[j] = j;
    for (int i = 1; i <= NAME_SIZE && a[i - 1] != '\0'; i++) {
        int diagonal = row[0];

        row[0] = i;
        for (int j = 1; j <= b_len; j++) {
            int change = diagonal + (a[i - 1] != b[j - 1]);

            diagonal = row[j];
            row[j] = hce_min(change, 1 + hce_min(row[j], row[j - 1]));
        }
    }
    return row[b_len];
}

static const char *name_nearest(const hce_config_table_t *const *tables,
                                const char *name, int *distance_p)
{
    const char *nearest = "";
    int least = NAME_SIZE + 1;

    for (int t = 0; tables[t] != NULL; t++) {
        for (unsigned i = 0; i < tables[t]->num_fields; i++) {
            int distance = name_distance(name, tables[t]->fields[i].name);

            if (distance < least) {
                least = distance;
                nearest = tables[t]->fields[i].name;
            }
        }
    }
    *distance_p = least;
    return nearest;
}

static void unknown_warn(const hce_config_table_t *const *tables)
{
    for (char **entry = environ; entry != NULL && *entry != NULL; entry++) {
        size_t len = strcspn(*entry, "=");
        char name[NAME_SIZE + 1];
        const char *nearest;
        int distance;

        if (strncmp(*entry, PREFIX, strlen(PREFIX)) != 0)
            continue;
        snprintf(name, sizeof(name), "%.*s",
                 (int)hce_min(len, (size_t)NAME_SIZE), *entry);
        nearest = name_nearest(tables, name, &distance);
        if (distance != 0) {
            hce_log(WARN, UTIL, "%s is not a setting; the nearest one is %s",
                    name, nearest);
        }
    }
}

static hce_status_t tables_init(const hce_config_table_t *const *tables)
{
    unsigned num_fields = hce_util_config.num_fields;
    hce_status_t first;

    for (int t = 0; tables[t] != NULL; t++)
        num_fields += tables[t]->num_fields;
    given = calloc(num_fields, sizeof(*given));
    if (given == NULL) {
        hce_log(ERROR, UTIL, "settings: no memory for %u fields", num_fields);
        return HCE_ERR_NO_MEMORY;
    }
    first = log_start();
    for (int t = 0; tables[t] != NULL; t++) {
        hce_status_t status = HCE_OK;

        if (tables[t] != &hce_util_config)
            status = table_init(tables[t]);
        if (first == HCE_OK)
            first = status;
    }
    unknown_warn(tables);
    return first;
}

hce_status_t hce_config_init(const hce_config_table_t *const *tables)
{
    hce_status_t status;

    pthread_mutex_lock(&init_lock);
    if (!init_done) {
        init_status = tables_init(tables);
        init_done = true;
    }
    status = init_status;
    pthread_mutex_unlock(&init_lock);
    return status;
}

const char *hce_config_foreign(const char *name)
{
    return getenv(name);
}
