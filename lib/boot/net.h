/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Sockets and addresses. All sockets are CLOEXEC and non-blocking; results
 * are negative errno values, so that the caller can say what it tried.
 */
#ifndef HCE_BOOT_NET_H
#define HCE_BOOT_NET_H

#include <hce/hce.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An address as it travels in unique ids and splits. */
typedef struct hce_boot_addr {
    uint8_t family; /* 4, 6, or 0 for none */
    uint8_t reserved;
    uint16_t port; /* in host order */
    uint8_t ip[16];
} hce_boot_addr_t;

#define HCE_BOOT_ADDR_TEXT 64

/* A group's listening sockets: the address that others reach, and loopback
 * with the same port. */
#define HCE_BOOT_LISTEN_MAX 2

typedef struct hce_boot_listen {
    int fd[HCE_BOOT_LISTEN_MAX];
    hce_boot_addr_t addr[HCE_BOOT_LISTEN_MAX];
    int num;
} hce_boot_listen_t;

/* "192.0.2.1:29500"; returns buf. */
const char *hce_boot_addr_text(const hce_boot_addr_t *addr, char *buf,
                               size_t size);
bool hce_boot_addr_is_loopback(const hce_boot_addr_t *addr);
void hce_boot_addr_loopback(hce_boot_addr_t *addr_p);

/* Up to max addresses of a name; blocks as long as the resolver does. The
 * reason of a failure goes to why. */
hce_status_t hce_boot_net_resolve(const char *name, hce_boot_addr_t *addrs,
                                  int *num_p, char *why, size_t why_size);

/* The address that other hosts reach this one by: of HCE_SOCKET_IFNAME, else
 * of the first interface that is up, else loopback. Logs its error. */
hce_status_t hce_boot_net_primary(hce_boot_addr_t *addr_p);

/* Takes addr->port, or any if that is 0; writes the port back. */
int hce_boot_net_listen(hce_boot_addr_t *addr, int *fd_p);

/* On any port of primary, and on the same of loopback where that is another
 * address and the port is free there. Logs its error. */
hce_status_t hce_boot_listen_open(const hce_boot_addr_t *primary,
                                  hce_boot_listen_t *listen_p);
void hce_boot_listen_close(hce_boot_listen_t *listen);

/* Starts to connect; the socket is writable once that has ended. */
int hce_boot_net_connect(const hce_boot_addr_t *addr, int *fd_p);
/* The result once it has ended. */
int hce_boot_net_connect_result(int fd);

/* -EAGAIN when nobody waits. */
int hce_boot_net_accept(int listen_fd, int *fd_p);

/* Own and far end of a connected socket. */
int hce_boot_net_own_addr(int fd, hce_boot_addr_t *addr_p);
int hce_boot_net_peer_addr(int fd, hce_boot_addr_t *addr_p);

#endif
