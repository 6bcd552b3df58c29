/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Reads a tuning file and finds figures in it.
 */
#include "config.h"

#include "core/tuning.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef HCE_HAVE_JANSSON
#include <jansson.h>
#endif

#include "util/log.h"
#include "util/math.h"

#define MAX_BYTES   (1 << 20) /* of a file */
#define MAX_FIGURES 4096

typedef struct entry {
    char kind[16];
    char path[16];
    int dirs;
    int nodes;
    int ranks;
    hce_cost_figure_t figure;
} entry_t;

static struct {
    entry_t *entries;
    size_t num;
    uint64_t digest;
} tuning;

void hce_tuning_unload(void)
{
    free(tuning.entries);
    memset(&tuning, 0, sizeof(tuning));
}

uint64_t hce_tuning_digest(void)
{
    return tuning.digest;
}

#ifdef HCE_HAVE_JANSSON

/* FNV-1a; never 0. */
static uint64_t digest(const char *text, size_t len)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    size_t i;

    for (i = 0; i < len; i++) {
        hash = (hash ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
    }
    return hash == 0 ? 1 : hash;
}

/* NULL, or why not; *text_p has *len_p bytes. */
static const char *read_file(const char *file, char **text_p, size_t *len_p)
{
    FILE *in = fopen(file, "re");
    char *text;
    size_t len;
    bool failed;

    if (in == NULL) {
        return "cannot be opened";
    }
    text = malloc(MAX_BYTES + 1);
    len = text == NULL ? 0 : fread(text, 1, MAX_BYTES + 1, in);
    failed = ferror(in) != 0;
    fclose(in);
    if (text == NULL || failed || len > MAX_BYTES) {
        free(text);
        return len > MAX_BYTES ? "is longer than 1 MiB" : "cannot be read";
    }
    *text_p = text;
    *len_p = len;
    return NULL;
}

static bool copy_name(char *to, size_t size, const char *from)
{
    return strlen(from) < size && memcpy(to, from, strlen(from) + 1) != NULL;
}

/* NULL, or what is wrong. *is_used_p: it is a figure of AllGather. */
static const char *read_entry(json_t *item, entry_t *e, bool *is_used_p)
{
    const char *coll, *kind, *path;
    double alpha, beta;
    json_error_t error;

    if (json_unpack_ex(item, &error, 0,
                       "{s:s, s:s, s:i, s:i, s:s, s:i, s:F, s:F}",
                       "collective", &coll, "transport", &kind, "nodes",
                       &e->nodes, "ranks", &e->ranks, "path", &path, "dirs",
                       &e->dirs, "alpha_us", &alpha, "beta_mbps",
                       &beta) != 0) {
        return "needs collective, transport, nodes, ranks, path, dirs, "
               "alpha_us and beta_mbps";
    }
    if (!copy_name(e->kind, sizeof(e->kind), kind) ||
        !copy_name(e->path, sizeof(e->path), path)) {
        return "has a name longer than 15 characters";
    }
    if (e->nodes < 1 || e->ranks < e->nodes || e->dirs < 0 || e->dirs > 2) {
        return "has an impossible layout or number of directions";
    }
    if (!(alpha >= 0) || !(beta > 0)) {
        return "has an alpha below 0, or a beta that is not above 0";
    }
    e->figure.alpha_s = alpha * 1e-6;
    e->figure.beta_bps = beta * 1e6;
    *is_used_p = strcmp(coll, "allgather") == 0;
    return NULL;
}

static hce_status_t read_entries(const char *file, json_t *list)
{
    size_t i, num = json_array_size(list);
    const char *why = NULL;
    bool is_used;

    tuning.entries = calloc(num + 1, sizeof(*tuning.entries));
    if (tuning.entries == NULL || num > MAX_FIGURES) {
        hce_log(ERROR, TUNING, "HCE_TUNING_FILE %s: too many figures", file);
        return HCE_ERR_CONFIG;
    }
    for (i = 0; i < num; i++) {
        why = read_entry(json_array_get(list, i),
                         &tuning.entries[tuning.num], &is_used);
        if (why != NULL) {
            hce_log(ERROR, TUNING, "HCE_TUNING_FILE %s: figure %zu %s", file,
                    i, why);
            return HCE_ERR_CONFIG;
        }
        tuning.num += is_used;
    }
    return HCE_OK;
}

static hce_status_t read_text(const char *file, const char *text, size_t len)
{
    json_t *root, *list;
    json_error_t error;
    hce_status_t status = HCE_ERR_CONFIG;
    int version = 0;

    root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &error);
    if (root == NULL) {
        hce_log(ERROR, TUNING, "HCE_TUNING_FILE %s, line %d: %s", file,
                error.line, error.text);
        return HCE_ERR_CONFIG;
    }
    if (json_unpack(root, "{s:i, s:o}", "version", &version, "figures",
                    &list) != 0 ||
        version != HCE_TUNING_VERSION || !json_is_array(list)) {
        hce_log(ERROR, TUNING,
                "HCE_TUNING_FILE %s: expected version %d and a list of "
                "figures",
                file, HCE_TUNING_VERSION);
    } else {
        status = read_entries(file, list);
    }
    json_decref(root);
    return status;
}

hce_status_t hce_tuning_load(const char *file)
{
    hce_status_t status;
    const char *why;
    char *text;
    size_t len;

    hce_tuning_unload();
    why = read_file(file, &text, &len);
    if (why != NULL) {
        hce_log(ERROR, TUNING, "HCE_TUNING_FILE %s %s", file, why);
        return HCE_ERR_CONFIG;
    }
    status = read_text(file, text, len);
    if (status == HCE_OK) {
        tuning.digest = digest(text, len);
    } else {
        hce_tuning_unload();
    }
    free(text);
    return status;
}

#else

hce_status_t hce_tuning_load(const char *file)
{
    hce_log(ERROR, TUNING, "HCE_TUNING_FILE %s: this build has no jansson",
            file);
    return HCE_ERR_CONFIG;
}

#endif

/* How unlike two layouts are: factors of 2 in nodes and in ranks. */
static double unlikeness(const entry_t *e, const hce_layout_t *layout)
{
    return fabs(log2((double)e->nodes / layout->nnodes)) +
           fabs(log2((double)e->ranks / layout->nranks));
}

static bool knows(const char *kind)
{
    size_t i;

    for (i = 0; i < tuning.num; i++) {
        if (strcmp(tuning.entries[i].kind, kind) == 0) {
            return true;
        }
    }
    return false;
}

bool hce_tuning_find(const char *kind, const hce_layout_t *layout,
                     const char *path, int dirs, hce_cost_figure_t *figure_p)
{
    const entry_t *best = NULL, *e;

    if (!knows(kind)) {
        return hce_cost_builtin(kind, path, dirs, figure_p);
    }
    for (e = tuning.entries; e < tuning.entries + tuning.num; e++) {
        if (strcmp(e->kind, kind) == 0 && strcmp(e->path, path) == 0 &&
            e->dirs == dirs &&
            (best == NULL ||
             unlikeness(e, layout) < unlikeness(best, layout))) {
            best = e;
        }
    }
    if (best == NULL) {
        return false;
    }
    *figure_p = best->figure;
    return true;
}

const char *hce_tuning_origin(const char *kind)
{
    return knows(kind) ? "tuning file" : "built-in figures";
}
