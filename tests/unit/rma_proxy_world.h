/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * A small world of ranks for tests of transports: threads of this process or
 * forked processes, each with an open transport, connected all to all. What
 * they share besides the transport lies in one shared mapping.
 *
 * Built for a transport by TEST_TRANSPORT, with environment variables by
 * TEST_ENV ("NAME=value NAME=value").
 */
#ifndef HCE_TESTS_RMA_PROXY_WORLD_H
#define HCE_TESTS_RMA_PROXY_WORLD_H

#include "rma_proxy/transport.h"

#include <setjmp.h>
#include <stddef.h>

#define WORLD_MAX     4
#define WORLD_WORDS   8         /* inbox words each peer has */
#define WORLD_MAIL    1024      /* mail bytes each peer has */
#define WORLD_BUF     (4 << 20) /* bytes that peers may put to, in all */
#define WORLD_TIMEOUT 60        /* seconds, for anything */
#define WORLD_SILENCE 10        /* seconds, to mend a link */

typedef struct world_rank world_rank_t;
typedef void (*world_body_t)(world_rank_t *self);

typedef struct world_shared {
    _Atomic int arrived; /* barrier: ranks that came, over all rounds */
    _Atomic int failed;
    _Atomic int flags[8]; /* for tests */
    char text[256];       /* the first failure */
    char addr[WORLD_MAX][8192];
    size_t addr_len[WORLD_MAX];
    char key[WORLD_MAX][HCE_TRANSPORT_MAX_KEY];
    size_t key_len[WORLD_MAX];
    uint64_t base[WORLD_MAX];
} world_shared_t;

typedef struct world {
    const hce_transport_ops_t *ops;
    int size;
    int phantoms; /* further ranks that never come */
    int contexts;
    bool processes;
    world_body_t body;
    world_shared_t *shared;
} world_t;

struct world_rank {
    world_t *world;
    const hce_transport_ops_t *ops;
    hce_transport_t *t;
    int rank, size;
    int rounds; /* barriers passed */
    size_t segment;
    hce_counter_t *inbox;
    char *mail;
    char *buf; /* WORLD_BUF bytes, a share for each writer */
    char *src; /* as many again, registered with them */
    hce_transport_mem_t *mem;
    hce_transport_key_t *keys[WORLD_MAX];
    bool quiet; /* do not progress in barriers */
    /* error_cb's calls, and what the last said */
    int errors, error_peer;
    hce_status_t error_status;
    char error_text[160];
    jmp_buf failure;
};

extern const uint8_t world_secret[16];

/* The transport that the test was built for (TEST_TRANSPORT), with settings
 * read. Ends with status 77 where it is not there. */
const hce_transport_ops_t *world_transport(void);

/* Runs body as each rank; returns the number of failures, each printed. */
int world_run(world_t *world);

void world_fail(world_rank_t *self, const char *file, int line,
                const char *text);
#define WORLD_CHECK(_self, _cond)                                             \
    do {                                                                      \
        if (!(_cond))                                                         \
            world_fail(_self, __FILE__, __LINE__, #_cond);                    \
    } while (0)

/* Before the end of the body; the transport is gone then. */
void world_close(world_rank_t *self);

/* All ranks; progresses meanwhile. */
void world_barrier(world_rank_t *self);

/* Where writer may put to in target's buffer. */
uint64_t world_remote(world_rank_t *self, int target);
char *world_local(world_rank_t *self, int writer);
size_t world_share(const world_rank_t *self);

/* One segment at most. More than five parameters, as the op itself. */
hce_status_t world_try_put(world_rank_t *self, int peer, int context,
                           const void *src, size_t len, uint64_t remote,
                           hce_transport_req_t *req);
/* Post, a put in segments, progressing while the transport refuses. */
void world_put(world_rank_t *self, int peer, int context, const void *src,
               size_t len, uint64_t remote, hce_transport_req_t *req);
void world_signal(world_rank_t *self, int peer, int context, int slot,
                  uint64_t value);
void world_message(world_rank_t *self, int peer, uint64_t offset,
                   const void *payload, size_t len, int slot, uint64_t value);

uint64_t world_word(const world_rank_t *self, int writer, int slot);
/* Until the word is at least value; sleeps with arm and poll if asked. */
void world_wait(world_rank_t *self, int writer, int slot, uint64_t value,
                bool sleep);
void world_wait_req(world_rank_t *self, const hce_transport_req_t *req);
void world_wait_flag(world_rank_t *self, int flag, int value);
void world_wait_error(world_rank_t *self);
void world_flush(world_rank_t *self);

/* The byte of a test pattern; never the same for two neighbours of a rank,
 * iteration or offset. */
unsigned char world_byte(int rank, uint64_t iteration, uint64_t offset);
void world_fill(void *buf, size_t len, int rank, uint64_t iteration);
bool world_is(const void *buf, size_t len, int rank, uint64_t iteration);

#endif
