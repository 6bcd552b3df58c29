/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Lists of CPUs.
 */
#ifndef HCE_TOPO_PIN_H
#define HCE_TOPO_PIN_H

#include <sched.h>
#include <stdbool.h>

/* "0-3,8". Output only if all of it is understood. */
bool hce_topo_cpus_parse(const char *text, cpu_set_t *cpus_p);

/* False after an error line when HCE_PROXY_CPUS is malformed. */
bool hce_topo_proxy_cpus_check(void);

#endif
