/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * What the ranks of the verbs transport tell each other besides what they
 * write into each other's memory: docs/WIRE.md. Byte order is the machine's.
 */
#ifndef HCE_RMA_PROXY_VERBS_WIRE_H
#define HCE_RMA_PROXY_VERBS_WIRE_H

#include <assert.h>
#include <stdint.h>

#define VERBS_MAGIC   0x31564348u /* "HCV1" in little endian */
#define VERBS_DEVICES 4           /* of one rank */
#define VERBS_TEXT    200

/* A port of a device, as far as it must be known to connect. */
typedef struct verbs_port {
    uint8_t gid[16];
    uint32_t qpn;
    uint32_t psn;
    uint16_t lid;
    uint8_t mtu;     /* enum ibv_mtu */
    uint8_t is_roce; /* addressed by GID alone */
    uint8_t device;  /* index of its keys */
    uint8_t reserved[3];
} verbs_port_t;

static_assert(sizeof(verbs_port_t) == 32, "wire size");

typedef enum verbs_type {
    VERBS_CONNECT = 1, /* writer: here is my new queue pair for context */
    VERBS_ACCEPT,      /* target: the old one is gone, here is the new */
    VERBS_BUSY,        /* target: no port of mine works; ask again */
    VERBS_FAIL,        /* writer: gives up, for text */
    VERBS_BYE          /* both: closes in good order */
} verbs_type_t;

/* Everything on a control connection. Native byte order: the magic tells. */
typedef struct verbs_frame {
    uint32_t magic;
    uint8_t type;
    uint8_t devices; /* CONNECT: how many the writer has */
    uint16_t context;
    uint32_t rank;
    uint32_t attempt; /* of this endpoint; an ACCEPT answers the same */
    uint8_t secret[16];
    uint64_t arrived; /* ACCEPT: number of the last op that landed */
    verbs_port_t port;
    char text[VERBS_TEXT];
} verbs_frame_t;

static_assert(sizeof(verbs_frame_t) == 72 + VERBS_TEXT, "wire size");

/* What peers need to connect and to write: see docs/WIRE.md. */
typedef struct verbs_keys {
    uint64_t addr;
    uint32_t rkey[VERBS_DEVICES];
} verbs_keys_t;

typedef struct verbs_address {
    uint32_t magic;
    uint16_t contexts;
    uint16_t devices;
    uint8_t listener[20]; /* hce_boot_addr_t */
    uint32_t reserved;
    verbs_keys_t inbox, mail, arrived;
} verbs_address_t;

static_assert(sizeof(verbs_address_t) == 32 + 3 * 24, "wire size");

#endif
