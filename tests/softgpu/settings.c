/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Settings of the soft GPU, from the environment; anything malformed ends the
 * process: a test must not run with another setting than it asked for.
 */
#include "soft.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

soft_settings_t soft_settings;

static long number(const char *name, long dfl, long min, long max)
{
    const char *text = getenv(name);
    char *end;
    long value;

    if (text == NULL || *text == '\0')
        return dfl;
    value = strtol(text, &end, 10);
    if (*end != '\0' || value < min || value > max)
        soft_die("%s=%s: expected %ld to %ld", name, text, min, max);
    return value;
}

void soft_settings_read(void)
{
    soft_settings = (soft_settings_t){
        .devices = (int)number("SOFTGPU_DEVICES", 2, 0, SOFT_MAX_DEVICES),
        .jitter_us = (int)number("SOFTGPU_JITTER", 50, 0, 100000),
        .connections =
            (int)number("SOFTGPU_CONNECTIONS", 8, 1, SOFT_MAX_QUEUES),
        .engines = (int)number("SOFTGPU_ENGINES", 3, 1, 8),
        .version = (int)number("SOFTGPU_VERSION", 13000, 11000, 13020),
        .ordering = (int)number("SOFTGPU_ORDERING", 0, 0, 200),
        .seed = (unsigned)number("SOFTGPU_SEED", 1, 0, 1l << 31),
        .window = (size_t)number("SOFTGPU_WINDOW", 64, 1, 1024) << 30,
        .memory = (size_t)number("SOFTGPU_MEMORY", 0, 0, 1 << 20) << 20,
    };
}

int soft_settings_attr(unsigned attr, int dfl)
{
    const char *text = getenv("SOFTGPU_ATTR");
    int value = dfl, this_value, len;
    unsigned this_attr;

    while (text != NULL && *text != '\0') {
        if (sscanf(text, "%u=%d%n", &this_attr, &this_value, &len) != 2 ||
            (text[len] != ',' && text[len] != '\0'))
            soft_die("SOFTGPU_ATTR: expected N=V,...: %s", text);
        if (this_attr == attr)
            value = this_value;
        text += len + (text[len] == ',');
    }
    return value;
}

bool soft_settings_hides(const char *name)
{
    const char *text = getenv("SOFTGPU_HIDE"), *at = text;
    size_t len = strlen(name);

    while (at != NULL && (at = strstr(at, name)) != NULL) {
        if ((at == text || at[-1] == ',') &&
            (at[len] == ',' || at[len] == '\0'))
            return true;
        at += len;
    }
    return false;
}
