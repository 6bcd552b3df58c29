/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * How the engine's owner sleeps, and what wakes it. Private to the engine;
 * what others need of it is in engine.h.
 */
#ifndef HCE_CORE_BELL_H
#define HCE_CORE_BELL_H

#include <hce/hce.h>
#include <stdint.h>

/* Closed also after a failure. */
hce_status_t hce_bell_open(void);
void hce_bell_close(void);

/* Any thread. */
void hce_bell_ring(void);

/* Owner: until a descriptor is readable, or next_ns. */
void hce_bell_sleep(uint64_t next_ns);
/* Owner: after it. */
void hce_bell_drain(void);

#endif
