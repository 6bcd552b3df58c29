/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Identity of machine and process, read afresh at each call (a child of fork
 * has another). No state.
 */
#include <config.h>

#include "boot/host.h"
#include "boot/mac.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void hce_boot_host_boot_id(char *buf, size_t size)
{
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t len = 0;

    if (fd >= 0) {
        len = read(fd, buf, size - 1);
        close(fd);
    }
    buf[len > 0 ? len : 0] = '\0';
    buf[strcspn(buf, "\n")] = '\0';
}

uint64_t hce_boot_host_namespace(const char *name)
{
    char path[64];
    struct stat st;

    snprintf(path, sizeof(path), "/proc/self/ns/%s", name);
    return stat(path, &st) == 0 ? (uint64_t)st.st_ino : 0;
}

void hce_boot_host_name(char *buf, size_t size)
{
    buf[0] = '\0';
    gethostname(buf, size);
    buf[size - 1] = '\0';
    if (buf[0] == '\0')
        snprintf(buf, size, "?");
}

void hce_boot_who_self(hce_boot_who_t *who_p)
{
    char id[192], boot_id[64], host[HCE_BOOT_HOST_LEN];
    int len;

    memset(who_p, 0, sizeof(*who_p));
    hce_boot_host_name(host, sizeof(host));
    hce_boot_host_boot_id(boot_id, sizeof(boot_id));
    len = snprintf(id, sizeof(id), "%s %llu %s", boot_id,
                   (unsigned long long)hce_boot_host_namespace("net"), host);
    who_p->host_id = hce_boot_hash(id, (size_t)len);
    who_p->pid = getpid();
    who_p->parent = getppid();
    who_p->session = getsid(0);
    memcpy(who_p->host, host, sizeof(host));
}

void hce_boot_who_clean(hce_boot_who_t *who)
{
    who->host[HCE_BOOT_HOST_LEN - 1] = '\0';
    for (char *c = who->host; *c != '\0'; c++)
        if (*c <= ' ' || *c > '~')
            *c = '?';
}

bool hce_boot_who_related(const hce_boot_who_t *a, const hce_boot_who_t *b)
{
    return a->host_id != b->host_id || a->pid == b->pid ||
           a->parent == b->parent || a->session == b->session;
}
