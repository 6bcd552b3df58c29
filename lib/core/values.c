/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Table of the settings of lib/core.
 */
#include "config.h"

#include "core/values.h"

#include <inttypes.h>
#include <pthread.h>
#include <string.h>

#include "core/paths.h"
#include "core/settings.h"
#include "core/tuning.h"
#include "util/log.h"

hce_core_values_t hce_core_values;

#define NCCL_TEXT                                                             \
    "Where HCE_AG_PATH is unset: 0 is the path direct of AllGather, any "     \
    "other integer ring."

/* As users of NCCL's hierarchical copy-engine AllGather know them. */
static const char *nccl_rings[2];

/* Index: directions, 0 is auto. */
static const char *const ring_dirs_choices[] = {"auto", "1", "2", NULL};

static const hce_config_field_t fields[] = {
    {
        .name = "HCE_AG_PATH",
        .dfl = NULL,
        .text = "Path of AllGather: auto (also when unset), direct, ring, "
                "ring_short, eager, flat; one that cannot run is an error.",
        .type = HCE_CONFIG_STRING,
        .value = &hce_core_values.paths[HCE_COLL_ALLGATHER].name,
        .collective = 1,
    },
    {
        .name = "HCE_RS_PATH",
        .dfl = NULL,
        .text = "Path of ReduceScatter, like HCE_AG_PATH.",
        .type = HCE_CONFIG_STRING,
        .value = &hce_core_values.paths[HCE_COLL_REDUCE_SCATTER].name,
        .collective = 1,
    },
    {
        .name = "HCE_AR_PATH",
        .dfl = NULL,
        .text = "Path of AllReduce, like HCE_AG_PATH.",
        .type = HCE_CONFIG_STRING,
        .value = &hce_core_values.paths[HCE_COLL_ALLREDUCE].name,
        .collective = 1,
    },
    {
        .name = "NCCL_ENABLE_HCE_AG_RING",
        .dfl = NULL,
        .text = NCCL_TEXT,
        .type = HCE_CONFIG_STRING,
        .value = &nccl_rings[0],
        .collective = 1,
    },
    {
        .name = "NCCL_HIER_CE_COLL_AG_RAIL_RING_ENABLE",
        .dfl = NULL,
        .text = NCCL_TEXT,
        .type = HCE_CONFIG_STRING,
        .value = &nccl_rings[1],
        .collective = 1,
    },
    {
        .name = "HCE_RING_DIRS",
        .dfl = "auto",
        .text = "Directions in which the path ring sends: 2 halves, 1 the "
                "whole slice; auto is what costs less.",
        .type = HCE_CONFIG_ENUM,
        .value = &hce_core_values.ring_dirs,
        .choices = ring_dirs_choices,
        .collective = 1,
    },
    {
        .name = "HCE_CARRIERS",
        .dfl = "auto",
        .text = "Ranks of a node that send and receive for it: rails is all "
                "of them, a number at most so many, auto is one where the "
                "network is tcp (two in a ring in one direction), else all.",
        .type = HCE_CONFIG_STRING,
        .value = &hce_core_values.carriers_text,
        .collective = 1,
    },
    {
        .name = "HCE_TUNING_FILE",
        .dfl = NULL,
        .text = "Figures of cost for the automatic choice of a path, as "
                "hce_perf --calibrate writes them; the same on all ranks. "
                "Unset: built-in ones.",
        .type = HCE_CONFIG_STRING,
        .value = &hce_core_values.tuning_file,
    },
    {
        .name = "HCE_CHUNK_WIDTH",
        .dfl = "auto",
        .text = "Bytes of a chunk: rule is min(slice / contexts, 64 MiB), "
                "auto is the rule but at most 1 MiB, else a size.",
        .type = HCE_CONFIG_STRING,
        .value = &hce_core_values.chunk_width,
        .collective = 1,
    },
    {
        .name = "HCE_MULTI_CTX_THRESHOLD",
        .dfl = "4M",
        .text = "Bytes a rank from which all contexts are used, not one.",
        .type = HCE_CONFIG_SIZE,
        .value = &hce_core_values.multi_ctx_threshold,
        .collective = 1,
    },
    {
        .name = "HCE_SCRATCH",
        .dfl = "4M",
        .text = "Bytes of its own memory that the library may use for one "
                "call on a rank; it keeps four times as many, which cost "
                "nothing before they are used. Small messages and reductions "
                "need them.",
        .type = HCE_CONFIG_SIZE,
        .value = &hce_core_values.scratch,
        .collective = 1,
    },
    {
        .name = "HCE_SPIN",
        .dfl = "0",
        .text = "How long a waiting rank polls without giving its core away, "
                "before it yields a few times and sleeps; helps only where "
                "every rank and its proxy have cores of their own.",
        .type = HCE_CONFIG_TIME,
        .value = &hce_core_values.spin_ns,
    },
    {
        .name = "HCE_TIMEOUT",
        .dfl = "600",
        .text = "How long a call may make no progress before it fails and "
                "names the rank that is absent or stuck; 0 is for ever.",
        .type = HCE_CONFIG_TIME,
        .value = &hce_core_values.timeout_ns,
    },
    {
        .name = "HCE_SILENCE",
        .dfl = "10",
        .text = "How long a rank may send no heartbeat before it counts as "
                "dead, stopped or cut off; 0 is for ever.",
        .type = HCE_CONFIG_TIME,
        .value = &hce_core_values.silence_ns,
        .collective = 1,
    },
};

const hce_config_table_t hce_core_config = HCE_CONFIG_TABLE("core", fields);

static hce_status_t parse_width(void)
{
    const char *text = hce_core_values.chunk_width;

    if (strcmp(text, "auto") == 0) {
        hce_core_values.width = HCE_CORE_WIDTH_AUTO;
    } else if (strcmp(text, "rule") == 0) {
        hce_core_values.width = HCE_CORE_WIDTH_RULE;
    } else if (hce_config_parse_size(text, &hce_core_values.width) !=
                   HCE_OK ||
               hce_core_values.width <= HCE_CORE_WIDTH_RULE) {
        hce_log(ERROR, CORE,
                "HCE_CHUNK_WIDTH is '%s', expected rule, auto or a size "
                "such as 1M",
                text);
        return HCE_ERR_CONFIG;
    }
    return HCE_OK;
}

/* Four times as much is kept, which is not to overflow. */
static hce_status_t check_scratch(void)
{
    if (hce_core_values.scratch <= HCE_CORE_MAX_SCRATCH)
        return HCE_OK;
    hce_log(ERROR, CORE,
            "HCE_SCRATCH is %" PRIu64 " bytes, expected at most %llu",
            hce_core_values.scratch, HCE_CORE_MAX_SCRATCH);
    return HCE_ERR_CONFIG;
}

static hce_status_t parse_carriers(void)
{
    const char *text = hce_core_values.carriers_text;
    int64_t number = HCE_CORE_CARRIERS_AUTO;

    if (strcmp(text, "rails") == 0) {
        number = HCE_CORE_CARRIERS_RAILS;
    } else if (strcmp(text, "auto") != 0 &&
               hce_config_parse_int(text, 1, HCE_CORE_MAX_CARRIERS,
                                    &number) != HCE_OK) {
        hce_log(ERROR, CORE,
                "HCE_CARRIERS is '%s', expected auto, rails or a number from "
                "1 to %d",
                text, HCE_CORE_MAX_CARRIERS);
        return HCE_ERR_CONFIG;
    }
    hce_core_values.carriers = (int)number;
    return HCE_OK;
}

/* "direct" or "ring", as a variable of NCCL's says. */
static hce_status_t parse_nccl(const char *name, const char *text,
                               const char **path_p)
{
    int64_t number;

    if (hce_config_parse_int(text, INT64_MIN, INT64_MAX, &number) != HCE_OK) {
        hce_log(ERROR, TUNING,
                "%s=\"%s\": expected an integer, 0 for the path direct, any "
                "other for ring",
                name, text);
        return HCE_ERR_CONFIG;
    }
    *path_p = number == 0 ? "direct" : "ring";
    return HCE_OK;
}

const char *hce_core_path_variable(hce_coll_t coll)
{
    static const char *const names[HCE_COLL_LAST] = {
        [HCE_COLL_ALLGATHER] = "HCE_AG_PATH",
        [HCE_COLL_REDUCE_SCATTER] = "HCE_RS_PATH",
        [HCE_COLL_ALLREDUCE] = "HCE_AR_PATH",
    };

    return names[coll];
}

static hce_status_t check_path(hce_coll_t coll)
{
    hce_core_path_t *path = &hce_core_values.paths[coll];
    char known[HCE_PATHS_NAMES_SIZE];

    if (path->name == NULL)
        return HCE_OK;
    path->origin = hce_core_path_variable(coll);
    if (strcmp(path->name, "auto") == 0 ||
        hce_paths_find(coll, path->name) != NULL)
        return HCE_OK;
    hce_log(ERROR, TUNING, "%s=\"%s\": expected auto, %s", path->origin,
            path->name, hce_paths_names(coll, known));
    return HCE_ERR_CONFIG;
}

/* HCE_AG_PATH, else what one of NCCL's variables says. */
static hce_status_t choose_ag_path(void)
{
    static const char *const names[] = {
        "NCCL_ENABLE_HCE_AG_RING", "NCCL_HIER_CE_COLL_AG_RAIL_RING_ENABLE"};
    hce_core_path_t *values = &hce_core_values.paths[HCE_COLL_ALLGATHER];
    const char *own = values->name, *path;
    size_t i;

    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (nccl_rings[i] == NULL) {
            continue;
        }
        if (parse_nccl(names[i], nccl_rings[i], &path) != HCE_OK) {
            return HCE_ERR_CONFIG;
        }
        if (own != NULL) {
            hce_log(WARN, TUNING, "%s=%s is ignored: HCE_AG_PATH=%s",
                    names[i], nccl_rings[i], own);
        } else if (values->name != NULL && strcmp(values->name, path) != 0) {
            hce_log(ERROR, TUNING,
                    "%s asks for the path %s, %s=%s for %s: set one of them, "
                    "or HCE_AG_PATH",
                    values->origin, values->name, names[i], nccl_rings[i],
                    path);
            return HCE_ERR_CONFIG;
        } else {
            values->name = path;
            values->origin = names[i];
        }
    }
    return HCE_OK;
}

static hce_status_t choose_paths(void)
{
    hce_status_t status = HCE_OK;
    int coll;

    for (coll = 0; coll < HCE_COLL_LAST && status == HCE_OK; coll++)
        status = check_path((hce_coll_t)coll);
    if (status == HCE_OK)
        status = choose_ag_path();
    for (coll = 0; coll < HCE_COLL_LAST; coll++)
        if (hce_core_values.paths[coll].name == NULL)
            hce_core_values.paths[coll].name = "auto";
    return status;
}

static hce_status_t init_result;

static void init_once(void)
{
    init_result = hce_config_init(hce_settings);
    if (init_result == HCE_OK)
        init_result = parse_width();
    if (init_result == HCE_OK)
        init_result = parse_carriers();
    if (init_result == HCE_OK)
        init_result = check_scratch();
    if (init_result == HCE_OK)
        init_result = choose_paths();
    if (init_result == HCE_OK && hce_core_values.tuning_file != NULL)
        init_result = hce_tuning_load(hce_core_values.tuning_file);
}

hce_status_t hce_core_config_init(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, init_once);
    return init_result;
}
