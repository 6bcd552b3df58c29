/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Where the progress thread runs. Never outside of the CPUs that the process
 * was given, and not pinned at all when in doubt: a thread that shares one
 * CPU with the application is worse than one that wanders.
 */
#include <config.h>

#include "topo/pin.h"
#include "topo/machine.h"
#include "topo/settings.h"
#include "topo/topo.h"
#include "util/log.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AUTO_CPUS_MIN 2 /* near the adapter, to be worth it */

/* The number at *at, which moves behind it; -1 if there is none. */
static int cpu_parse(const char **at)
{
    int cpu = 0;
    const char *p = *at;

    while (*p >= '0' && *p <= '9' && cpu < CPU_SETSIZE)
        cpu = 10 * cpu + (*p++ - '0');
    if (p == *at || cpu >= CPU_SETSIZE)
        return -1;
    *at = p;
    return cpu;
}

bool hce_topo_cpus_parse(const char *text, cpu_set_t *cpus_p)
{
    cpu_set_t cpus;

    CPU_ZERO(&cpus);
    for (;;) {
        int from = cpu_parse(&text), to = from;

        if (from >= 0 && *text == '-') {
            text++;
            to = cpu_parse(&text);
        }
        if (from < 0 || to < from)
            return false;
        for (int cpu = from; cpu <= to; cpu++)
            CPU_SET(cpu, &cpus);
        if (*text == '\0') {
            *cpus_p = cpus;
            return true;
        }
        if (*text++ != ',')
            return false;
    }
}

bool hce_topo_proxy_cpus_check(void)
{
    const char *wish = hce_topo_settings.proxy_cpus;
    cpu_set_t cpus;

    if (strcmp(wish, "none") == 0 || strcmp(wish, "auto") == 0 ||
        hce_topo_cpus_parse(wish, &cpus))
        return true;
    hce_log(ERROR, TOPO,
            "HCE_PROXY_CPUS=\"%s\": expected auto, none or a list such as "
            "0-3,8",
            wish);
    return false;
}

/* Pins to what of the wish is allowed, if that is less than all. */
static void pin_within(const cpu_set_t *wish, int min_cpus, const char *why)
{
    cpu_set_t allowed, cpus;
    int count, rc;

    rc = pthread_getaffinity_np(pthread_self(), sizeof(allowed), &allowed);
    if (rc != 0) {
        hce_log(INFO, TOPO, "pthread_getaffinity_np: %s", strerror(rc));
        return;
    }
    CPU_AND(&cpus, wish, &allowed);
    count = CPU_COUNT(&cpus);
    if (count < min_cpus || CPU_EQUAL(&cpus, &allowed)) {
        hce_log(INFO, TOPO,
                "progress thread not pinned: %s leaves %d of %d CPUs", why,
                count, CPU_COUNT(&allowed));
        return;
    }
    rc = pthread_setaffinity_np(pthread_self(), sizeof(cpus), &cpus);
    if (rc != 0) {
        hce_log(WARN, TOPO, "pthread_setaffinity_np: %s", strerror(rc));
    } else {
        hce_log(INFO, TOPO, "progress thread pinned to %d CPUs: %s", count,
                why);
    }
}

void hce_topo_pin_proxy(void)
{
    const char *wish = hce_topo_settings.proxy_cpus;
    char nic[32], why[64];
    cpu_set_t cpus;

    if (strcmp(wish, "none") == 0)
        return;
    if (strcmp(wish, "auto") == 0) {
        if (hce_topo_machine_nic_cpus(&cpus, nic, sizeof(nic))) {
            snprintf(why, sizeof(why), "near %s", nic);
            pin_within(&cpus, AUTO_CPUS_MIN, why);
        }
        return;
    }
    if (hce_topo_cpus_parse(wish, &cpus))
        pin_within(&cpus, 1, "HCE_PROXY_CPUS");
}
