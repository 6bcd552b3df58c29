/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Reads the kernel's counters: getrusage, and /proc/self/net/dev, which has
 * those of the reader's own network namespace.
 */
#include "measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static double seconds(const struct timeval *time)
{
    return (double)time->tv_sec + (double)time->tv_usec * 1e-6;
}

double hce_perf_measure_cpu(void)
{
    struct rusage usage;

    if (getrusage(RUSAGE_SELF, &usage) != 0)
        return 0;
    return seconds(&usage.ru_utime) + seconds(&usage.ru_stime);
}

void hce_perf_measure_net(hce_perf_net_t *net_p)
{
    hce_perf_net_t net = {0, 0};
    unsigned long long received, sent;
    char line[512], name[32];
    FILE *file = fopen("/proc/self/net/dev", "re");

    /* Two lines of titles have no colon in the first column's place. */
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        if (sscanf(line, " %31[^: ]: %llu %*u %*u %*u %*u %*u %*u %*u %llu",
                   name, &received, &sent) == 3 &&
            strcmp(name, "lo") != 0) {
            net.received += received;
            net.sent += sent;
        }
    }
    if (file != NULL)
        fclose(file);
    *net_p = net;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double hce_perf_measure_median(double *values, size_t num)
{
    qsort(values, num, sizeof(*values), compare);
    if (num % 2 == 1)
        return values[num / 2];
    return (values[num / 2 - 1] + values[num / 2]) / 2;
}
