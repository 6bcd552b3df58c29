/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Process-wide tables behind windows: memory of ours that peers can map, and
 * memory of peers that is mapped here. Thread-safe; never on a hot path.
 */
#ifndef HCE_CE_HOST_MEM_H
#define HCE_CE_HOST_MEM_H

#include <hce/hce.h>
#include <stdbool.h>

#define HCE_CE_TOKEN_LEN 16

/* Names one allocation of one process; never used twice. */
typedef struct hce_ce_mem_id {
    uint8_t token[HCE_CE_TOKEN_LEN]; /* of the process */
    uint64_t serial;                 /* of the allocation, from 1 */
} hce_ce_mem_id_t;

/* Random; the same for all threads of a process, another one in a child. */
hce_status_t hce_ce_process_token(uint8_t token[HCE_CE_TOKEN_LEN]);

/* An allocation of hce_ce_mem_alloc, as long as it is held. */
typedef struct hce_ce_mem {
    uint64_t serial;
    char *addr;
    size_t size; /* of the whole mapping */
    int fd;
} hce_ce_mem_t;

/* Holds the allocation that has all of [addr, addr + len); false if there is
 * none. Ends with hce_ce_mem_put. */
bool hce_ce_mem_get(const void *addr, size_t len, hce_ce_mem_t *mem_p);
void hce_ce_mem_put(uint64_t serial);

/* A peer's allocation, mapped here once however many windows it has. */
typedef struct hce_ce_import {
    struct hce_ce_import *next;
    hce_ce_mem_id_t id;
    char *addr;
    size_t size;
    unsigned refs;
} hce_ce_import_t;

/* Takes fd over on success. */
hce_status_t hce_ce_import_get(const hce_ce_mem_id_t *id, int fd, size_t size,
                               hce_ce_import_t **import_p);
void hce_ce_import_put(hce_ce_import_t *import);

#endif
