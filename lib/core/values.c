/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Table of the settings of lib/core.
 */
#include "config.h"

#include "core/values.h"

#include <pthread.h>
#include <string.h>

#include "core/settings.h"
#include "util/log.h"

hce_core_values_t hce_core_values;

static const hce_config_field_t fields[] = {
    {
        .name = "HCE_AG_PATH",
        .dfl = "auto",
        .text = "Path of AllGather: auto, direct or flat.",
        .type = HCE_CONFIG_STRING,
        .value = &hce_core_values.ag_path,
        .collective = 1,
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

static hce_status_t init_result;

static void init_once(void)
{
    init_result = hce_config_init(hce_settings);
    if (init_result == HCE_OK)
        init_result = parse_width();
}

hce_status_t hce_core_config_init(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, init_once);
    return init_result;
}
