/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * What crosses the bootstrap's TCP connections; docs/WIRE.md explains the
 * exchange. Fixed widths, little-endian, natural alignment without holes.
 * Whatever changes here changes HCE_BOOT_WIRE_VERSION. In all versions these
 * stay as they are, so that a difference can be told: the frame header, the
 * first 16 bytes of HELLO, and REFUSE.
 */
#ifndef HCE_BOOT_WIRE_H
#define HCE_BOOT_WIRE_H

#include "boot/net.h"

#include <assert.h>
#include <stdint.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the wire structs need a little-endian machine"
#endif

#define HCE_BOOT_MAGIC        0x42454348u /* reads "HCEB" */
#define HCE_BOOT_WIRE_VERSION 2

#define HCE_BOOT_NONCE_LEN 16
#define HCE_BOOT_KEY_LEN   16
#define HCE_BOOT_HOST_LEN  64
#define HCE_BOOT_TEXT_LEN  480

/* Bytes after the header, at most. Nobody is trusted with more than a few
 * bytes before the hub has seated him. */
#define HCE_BOOT_HELLO_MAX 512u
#define HCE_BOOT_PART_MAX  (16u << 20)
#define HCE_BOOT_FRAME_MAX (1u << 30)

typedef enum hce_boot_type {
    HCE_BOOT_HELLO = 1,     /* leaf: who I am and what I look for */
    HCE_BOOT_CHALLENGE = 2, /* hub: prove it */
    HCE_BOOT_PROOF = 3,     /* leaf */
    HCE_BOOT_WELCOME = 4,   /* hub: its own proof; the leaf has its seat */
    HCE_BOOT_REFUSE = 5,    /* hub: and why */
    HCE_BOOT_START = 6,     /* hub: all ranks are there */
    HCE_BOOT_HEARTBEAT = 7, /* both */
    HCE_BOOT_PART = 8,      /* leaf: its part of an exchange */
    HCE_BOOT_RESULT = 9,    /* hub: the parts of all ranks */
    HCE_BOOT_LATE = 10,     /* leaf: my deadline for an exchange is over */
    HCE_BOOT_NEWS = 11,     /* both; the hub's is the verdict */
    HCE_BOOT_STUCK = 12,    /* leaf: my call makes no progress */
    HCE_BOOT_ASK = 13,      /* hub: report now */
    HCE_BOOT_GOODBYE = 14,  /* both: I leave in good order */
    HCE_BOOT_END = 15,      /* hub: all ranks have said goodbye */
    HCE_BOOT_APPOINT = 16,  /* hub: you follow when I have left */
    HCE_BOOT_PLACE = 17,    /* leaf: where I then listen */
    HCE_BOOT_HANDOVER = 18, /* hub: whom to turn to from now on */
    HCE_BOOT_RETURN = 19,   /* leaf, to the new hub: who I am, and proof */
    HCE_BOOT_ADOPT = 20,    /* new hub: its own proof */
    HCE_BOOT_TYPE_LAST
} hce_boot_type_t;

typedef struct hce_boot_frame {
    uint32_t magic;
    uint16_t version;
    uint16_t type;
    uint32_t len; /* of what follows */
    uint32_t reserved;
} hce_boot_frame_t;

/* Whom a connection leads to: for messages, and to tell apart jobs that have
 * the same environment. */
typedef struct hce_boot_who {
    uint64_t host_id; /* boot and network namespace, as a hash */
    int32_t pid;
    int32_t parent; /* process that started it */
    int32_t session;
    int32_t reserved;
    char host[HCE_BOOT_HOST_LEN];
} hce_boot_who_t;

typedef struct hce_boot_hello {
    int32_t rank;
    int32_t size;
    uint64_t job; /* which of the groups that use this list of ports */
    uint8_t nonce[HCE_BOOT_NONCE_LEN];
    hce_boot_who_t who;
} hce_boot_hello_t;

typedef struct hce_boot_challenge {
    uint8_t nonce[HCE_BOOT_NONCE_LEN];
    hce_boot_who_t who;
} hce_boot_challenge_t;

typedef struct hce_boot_proof {
    uint8_t mac[HCE_BOOT_KEY_LEN];
} hce_boot_proof_t;

typedef struct hce_boot_welcome {
    uint8_t mac[HCE_BOOT_KEY_LEN];
    uint8_t seed[HCE_BOOT_NONCE_LEN]; /* with the key: the secret */
} hce_boot_welcome_t;

/* What the macs of HCE_BOOT_PROOF, HCE_BOOT_WELCOME, HCE_BOOT_RETURN and
 * HCE_BOOT_ADOPT authenticate. */
typedef struct hce_boot_claim {
    uint8_t leaf_nonce[HCE_BOOT_NONCE_LEN];
    uint8_t hub_nonce[HCE_BOOT_NONCE_LEN];
    uint64_t job;
    int32_t rank;
    int32_t size;
    uint32_t type; /* of the frame that carries it */
    uint32_t reserved;
} hce_boot_claim_t;

typedef enum hce_boot_reason {
    HCE_BOOT_REASON_VERSION = 1,
    HCE_BOOT_REASON_JOB = 2,   /* another group's hub */
    HCE_BOOT_REASON_SIZE = 3,  /* number of ranks differs */
    HCE_BOOT_REASON_RANK = 4,  /* no such rank */
    HCE_BOOT_REASON_TAKEN = 5, /* the rank has its seat already */
    HCE_BOOT_REASON_SECRET = 6 /* the proof is wrong */
} hce_boot_reason_t;

typedef struct hce_boot_refuse {
    uint32_t reason;
    uint32_t version; /* the hub's */
    char text[120];
} hce_boot_refuse_t;

typedef struct hce_boot_heartbeat {
    uint64_t call;
    int32_t waits_for;
    uint32_t round; /* of the last HCE_BOOT_ASK seen */
} hce_boot_heartbeat_t;

/* Heads HCE_BOOT_PART (data of one rank follows) and HCE_BOOT_RESULT (one
 * uint64_t length a rank and the data of all follow). */
typedef struct hce_boot_part {
    uint64_t seq;  /* 1 is the group's first exchange */
    uint32_t kind; /* hce_boot_kind_t */
    uint32_t reserved;
} hce_boot_part_t;

typedef enum hce_boot_kind {
    HCE_BOOT_KIND_BARRIER = 1,
    HCE_BOOT_KIND_ALLGATHER = 2, /* all lengths are equal */
    HCE_BOOT_KIND_ALLGATHERV = 3,
    HCE_BOOT_KIND_LAST
} hce_boot_kind_t;

typedef struct hce_boot_news_msg {
    int32_t status;
    int32_t rank;
    char text[HCE_BOOT_TEXT_LEN];
} hce_boot_news_msg_t;

typedef struct hce_boot_stuck_msg {
    uint64_t call;
    int32_t waits_for;
    uint32_t reserved;
    char text[HCE_BOOT_TEXT_LEN];
} hce_boot_stuck_msg_t;

typedef struct hce_boot_appoint_msg {
    uint32_t is_one_host; /* all ranks can be reached over loopback */
    uint32_t reserved;
} hce_boot_appoint_msg_t;

typedef struct hce_boot_place_msg {
    uint32_t num_addrs; /* the last one is loopback if there are two */
    uint32_t reserved;
    uint8_t nonce[HCE_BOOT_NONCE_LEN];
    hce_boot_addr_t addrs[HCE_BOOT_LISTEN_MAX];
} hce_boot_place_msg_t;

/* One bit a rank follows, lowest first: set for those that have left. */
typedef struct hce_boot_handover_msg {
    int32_t heir; /* rank */
    uint32_t reserved;
    hce_boot_place_msg_t place;
    hce_boot_who_t who; /* the heir is */
} hce_boot_handover_msg_t;

typedef struct hce_boot_return_msg {
    int32_t rank;
    uint32_t reserved;
    uint8_t nonce[HCE_BOOT_NONCE_LEN];
    uint8_t mac[HCE_BOOT_KEY_LEN];
    hce_boot_who_t who;
} hce_boot_return_msg_t;

typedef struct hce_boot_adopt_msg {
    uint8_t mac[HCE_BOOT_KEY_LEN];
} hce_boot_adopt_msg_t;

static_assert(sizeof(hce_boot_frame_t) == 16, "wire");
static_assert(sizeof(hce_boot_who_t) == 88, "wire");
static_assert(sizeof(hce_boot_hello_t) == 120, "wire");
static_assert(sizeof(hce_boot_challenge_t) == 104, "wire");
static_assert(sizeof(hce_boot_proof_t) == 16, "wire");
static_assert(sizeof(hce_boot_welcome_t) == 32, "wire");
static_assert(sizeof(hce_boot_claim_t) == 56, "wire");
static_assert(sizeof(hce_boot_refuse_t) == 128, "wire");
static_assert(sizeof(hce_boot_heartbeat_t) == 16, "wire");
static_assert(sizeof(hce_boot_part_t) == 16, "wire");
static_assert(sizeof(hce_boot_news_msg_t) == 488, "wire");
static_assert(sizeof(hce_boot_stuck_msg_t) == 496, "wire");
static_assert(sizeof(hce_boot_appoint_msg_t) == 8, "wire");
static_assert(sizeof(hce_boot_place_msg_t) == 64, "wire");
static_assert(sizeof(hce_boot_handover_msg_t) == 160, "wire");
static_assert(sizeof(hce_boot_return_msg_t) == 128, "wire");
static_assert(sizeof(hce_boot_adopt_msg_t) == 16, "wire");

#endif
