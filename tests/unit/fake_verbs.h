/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * RDMA devices fake0 and fake1 of this process, in place of those that
 * libibverbs would find: reliable connections between queue pairs of its
 * threads. Stricter than a device: a queue that overflows, a completion that
 * has no room, or inline data that is too long ends the process. What is
 * posted is done bit by bit as completions are polled for.
 */
#ifndef HCE_TESTS_FAKE_VERBS_H
#define HCE_TESTS_FAKE_VERBS_H

#include <stdbool.h>
#include <stdint.h>

/* Names of all calls that can be made to fail; ends with NULL. */
extern const char *const fake_verbs_calls[];

/* From now on the nth call of that name fails, once; NULL: none does.
 * Returns through fake_verbs_failed whether one has. */
void fake_verbs_fail(const char *call, int nth);
bool fake_verbs_failed(void);

/* What happens to the nth WRITE from now on: its queue pair fails, as after
 * too many retries. */
typedef enum fake_break {
    FAKE_BREAK_NONE,
    FAKE_BREAK_LOST, /* nothing has arrived */
    FAKE_BREAK_HALF, /* half of the data has */
    FAKE_BREAK_ACK   /* all has, but the sender does not know */
} fake_break_t;
void fake_verbs_break(fake_break_t kind, int nth);
bool fake_verbs_broke(void);

void fake_verbs_port(int device, bool is_active);

/* Addresses that cannot be registered but through a descriptor. */
void fake_verbs_device_memory(uint64_t base, uint64_t len);

/* Objects that exist, of any kind. */
int fake_verbs_objects(void);

#endif
