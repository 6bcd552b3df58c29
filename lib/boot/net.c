/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Sockets and addresses of both families. No state.
 */
#include <config.h>

#include "boot/net.h"
#include "boot/settings.h"
#include "util/log.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

typedef union sockaddr_any {
    struct sockaddr sa;
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
} sockaddr_any_t;

static socklen_t addr_pack(const hce_boot_addr_t *addr, sockaddr_any_t *any)
{
    memset(any, 0, sizeof(*any));
    if (addr->family == 6) {
        any->in6.sin6_family = AF_INET6;
        any->in6.sin6_port = htons(addr->port);
        memcpy(&any->in6.sin6_addr, addr->ip, 16);
        return sizeof(any->in6);
    }
    any->in.sin_family = AF_INET;
    any->in.sin_port = htons(addr->port);
    memcpy(&any->in.sin_addr, addr->ip, 4);
    return sizeof(any->in);
}

/* False for families that the bootstrap does not know. */
static bool addr_unpack(const struct sockaddr *sa, hce_boot_addr_t *addr_p)
{
    const sockaddr_any_t *any = (const void *)sa;

    memset(addr_p, 0, sizeof(*addr_p));
    if (sa->sa_family == AF_INET6) {
        addr_p->family = 6;
        addr_p->port = ntohs(any->in6.sin6_port);
        memcpy(addr_p->ip, &any->in6.sin6_addr, 16);
        return true;
    }
    if (sa->sa_family == AF_INET) {
        addr_p->family = 4;
        addr_p->port = ntohs(any->in.sin_port);
        memcpy(addr_p->ip, &any->in.sin_addr, 4);
        return true;
    }
    return false;
}

const char *hce_boot_addr_text(const hce_boot_addr_t *addr, char *buf,
                               size_t size)
{
    char ip[INET6_ADDRSTRLEN] = "?";

    inet_ntop(addr->family == 6 ? AF_INET6 : AF_INET, addr->ip, ip,
              sizeof(ip));
    snprintf(buf, size, addr->family == 6 ? "[%s]:%u" : "%s:%u", ip,
             addr->port);
    return buf;
}

bool hce_boot_addr_is_loopback(const hce_boot_addr_t *addr)
{
    return addr->family == 6
               ? IN6_IS_ADDR_LOOPBACK((const struct in6_addr *)addr->ip)
               : addr->ip[0] == 127;
}

void hce_boot_addr_loopback(hce_boot_addr_t *addr_p)
{
    memset(addr_p, 0, sizeof(*addr_p));
    addr_p->family = 4;
    addr_p->ip[0] = 127;
    addr_p->ip[3] = 1;
}

hce_status_t hce_boot_net_resolve(const char *name, hce_boot_addr_t *addrs,
                                  int *num_p, char *why, size_t why_size)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *list;
    int max = *num_p, num = 0;
    int rc = getaddrinfo(name, NULL, &hints, &list);

    /* RFC 6761: it means loopback, also where nothing says so. */
    if (rc != 0 && max > 0 && strcmp(name, "localhost") == 0) {
        hce_boot_addr_loopback(&addrs[0]);
        *num_p = 1;
        return HCE_OK;
    }
    if (rc != 0) {
        snprintf(why, why_size, "%s: %s", name,
                 rc == EAI_SYSTEM ? strerror(errno) : gai_strerror(rc));
        return HCE_ERR_BOOTSTRAP;
    }
    for (struct addrinfo *a = list; a != NULL && num < max; a = a->ai_next)
        num += addr_unpack(a->ai_addr, &addrs[num]);
    freeaddrinfo(list);
    if (num == 0) {
        snprintf(why, why_size, "%s: has no IP address", name);
        return HCE_ERR_BOOTSTRAP;
    }
    *num_p = num;
    return HCE_OK;
}

/* How well an interface's address serves; 0 is not at all. IPv6 link-local
 * addresses mean nothing on another host. */
static int ifaddr_rank(const struct ifaddrs *ifa, const char *ifname)
{
    hce_boot_addr_t addr;

    if (ifa->ifa_addr == NULL || !addr_unpack(ifa->ifa_addr, &addr) ||
        (ifa->ifa_flags & IFF_UP) == 0 ||
        (addr.family == 6 && addr.ip[0] == 0xfe && addr.ip[1] == 0x80))
        return 0;
    if (ifname != NULL) {
        return strcmp(ifname, ifa->ifa_name) != 0 ? 0
               : addr.family == 4                 ? 2
                                                  : 1;
    }
    if ((ifa->ifa_flags & IFF_LOOPBACK) != 0)
        return 0;
    return addr.family == 4 ? 2 : 1;
}

hce_status_t hce_boot_net_primary(hce_boot_addr_t *addr_p)
{
    const char *ifname = hce_boot_settings.socket_ifname;
    const struct ifaddrs *best = NULL;
    struct ifaddrs *list;

    if (getifaddrs(&list) != 0) {
        hce_log(ERROR, BOOT, "getifaddrs: %m");
        return HCE_ERR_SYSTEM;
    }
    for (const struct ifaddrs *ifa = list; ifa != NULL; ifa = ifa->ifa_next)
        if (ifaddr_rank(ifa, ifname) >
            (best == NULL ? 0 : ifaddr_rank(best, ifname)))
            best = ifa;
    if (best != NULL) {
        addr_unpack(best->ifa_addr, addr_p);
        addr_p->port = 0;
    } else if (ifname == NULL) {
        hce_boot_addr_loopback(addr_p);
    }
    freeifaddrs(list);
    if (best == NULL && ifname != NULL) {
        hce_log(ERROR, BOOT,
                "HCE_SOCKET_IFNAME=\"%s\": expected an interface that is up "
                "and has an address",
                ifname);
        return HCE_ERR_CONFIG;
    }
    return HCE_OK;
}

static int socket_open(const hce_boot_addr_t *addr)
{
    int fd = socket(addr->family == 6 ? AF_INET6 : AF_INET,
                    SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    return fd < 0 ? -errno : fd;
}

/* Small frames leave at once. */
static void nodelay_set(int fd)
{
    int one = 1;

    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

/* SO_REUSEADDR: an earlier job's connections may linger on the port, and a
 * launcher's own store may want it after us. */
int hce_boot_net_listen(hce_boot_addr_t *addr, int *fd_p)
{
    int fd = socket_open(addr);
    int one = 1, rc;
    sockaddr_any_t any;
    socklen_t len = addr_pack(addr, &any);

    if (fd < 0)
        return fd;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (bind(fd, &any.sa, len) != 0 || listen(fd, SOMAXCONN) != 0 ||
        getsockname(fd, &any.sa, &len) != 0) {
        rc = -errno;
        close(fd);
        return rc;
    }
    addr_unpack(&any.sa, addr);
    *fd_p = fd;
    return 0;
}

hce_status_t hce_boot_listen_open(const hce_boot_addr_t *primary,
                                  hce_boot_listen_t *listen_p)
{
    hce_boot_listen_t listen = {.num = 0};
    char text[HCE_BOOT_ADDR_TEXT];
    int rc;

    listen.addr[0] = *primary;
    rc = hce_boot_net_listen(&listen.addr[0], &listen.fd[0]);
    if (rc != 0) {
        hce_log(ERROR, BOOT, "listen on %s: %s",
                hce_boot_addr_text(primary, text, sizeof(text)),
                strerror(-rc));
        return HCE_ERR_SYSTEM;
    }
    listen.num = 1;
    if (!hce_boot_addr_is_loopback(primary)) {
        hce_boot_addr_loopback(&listen.addr[1]);
        listen.addr[1].port = listen.addr[0].port;
        if (hce_boot_net_listen(&listen.addr[1], &listen.fd[1]) == 0)
            listen.num = 2;
    }
    *listen_p = listen;
    return HCE_OK;
}

void hce_boot_listen_close(hce_boot_listen_t *listen)
{
    for (int i = 0; i < listen->num; i++)
        close(listen->fd[i]);
    listen->num = 0;
}

int hce_boot_net_connect(const hce_boot_addr_t *addr, int *fd_p)
{
    sockaddr_any_t any;
    socklen_t len = addr_pack(addr, &any);
    int fd = socket_open(addr), rc;

    if (fd < 0)
        return fd;
    nodelay_set(fd);
    if (connect(fd, &any.sa, len) != 0 && errno != EINPROGRESS) {
        rc = -errno;
        close(fd);
        return rc;
    }
    *fd_p = fd;
    return 0;
}

int hce_boot_net_connect_result(int fd)
{
    int error = 0;
    socklen_t len = sizeof(error);

    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0)
        return -errno;
    return -error;
}

int hce_boot_net_accept(int listen_fd, int *fd_p)
{
    int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd < 0)
        return -errno;
    nodelay_set(fd);
    *fd_p = fd;
    return 0;
}

int hce_boot_net_own_addr(int fd, hce_boot_addr_t *addr_p)
{
    sockaddr_any_t any;
    socklen_t len = sizeof(any);

    if (getsockname(fd, &any.sa, &len) != 0)
        return -errno;
    return addr_unpack(&any.sa, addr_p) ? 0 : -EAFNOSUPPORT;
}

int hce_boot_net_peer_addr(int fd, hce_boot_addr_t *addr_p)
{
    sockaddr_any_t any;
    socklen_t len = sizeof(any);

    if (getpeername(fd, &any.sa, &len) != 0)
        return -errno;
    return addr_unpack(&any.sa, addr_p) ? 0 : -EAFNOSUPPORT;
}
