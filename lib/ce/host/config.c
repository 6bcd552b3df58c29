/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Settings of the copy engines.
 */
#include <config.h>

#include "ce/ce.h"
#include "ce/cuda/settings.h"
#include "ce/host/settings.h"

hce_ce_settings_t hce_ce_settings = {
    .host_copy = HCE_CE_FORCE_AUTO,
    .copy_loop = HCE_CE_LOOP_AUTO,
    .nt_threshold = 64ull << 20,
};

static const char *const host_copy_choices[] = {"auto", "map", "vm", "staged",
                                                NULL};
static const char *const copy_loop_choices[] = {"auto", "memcpy", "rep",
                                                "vector", "nt", NULL};

hce_ce_cuda_settings_t hce_ce_cuda_settings = {
    .num_queues = 4,
    .copy_limit = 128ull << 20,
    .multicast = HCE_CE_CUDA_AUTO,
};

static const char *const multicast_choices[] = {"auto", "off", NULL};

/* None is collective: each rank decides how it writes to others. */
static const hce_config_field_t fields[] = {
    {.name = "HCE_HOST_COPY",
     .dfl = "auto",
     .text = "How the memory of node peers is written: auto and map use "
             "mapped windows; for other memory auto uses staging in shared "
             "memory, map process_vm_writev where that works; vm and staged "
             "use that way only.",
     .type = HCE_CONFIG_ENUM,
     .value = &hce_ce_settings.host_copy,
     .choices = host_copy_choices},
    {.name = "HCE_COPY_LOOP",
     .dfl = "auto",
     .text = "How the CPU copies: auto probes memcpy, rep movsb and vector "
             "stores to all destinations at once, and uses non-temporal "
             "stores from HCE_NT_THRESHOLD on.",
     .type = HCE_CONFIG_ENUM,
     .value = &hce_ce_settings.copy_loop,
     .choices = copy_loop_choices},
    {.name = "HCE_NT_THRESHOLD",
     .dfl = "64M",
     .text = "Bytes that all ranks of a node read and write in one operation, "
             "from which copies go past the caches.",
     .type = HCE_CONFIG_SIZE,
     .value = &hce_ce_settings.nt_threshold},
    {.name = "HCE_CUDA_QUEUES",
     .dfl = "4",
     .text = "Streams that copy, for each device and process.",
     .type = HCE_CONFIG_INT,
     .value = &hce_ce_cuda_settings.num_queues,
     .min = 1,
     .max = 4},
    {.name = "HCE_CUDA_COPY_LIMIT",
     .dfl = "128M",
     .text = "Most bytes of one copy that a device is given; longer ones are "
             "cut.",
     .type = HCE_CONFIG_SIZE,
     .value = &hce_ce_cuda_settings.copy_limit},
    {.name = "HCE_CUDA_MULTICAST",
     .dfl = "auto",
     .text = "Copies to all devices of a node at once: auto where there are "
             "more than two and the driver can, or off.",
     .type = HCE_CONFIG_ENUM,
     .value = &hce_ce_cuda_settings.multicast,
     .choices = multicast_choices},
};

const hce_config_table_t hce_ce_config = HCE_CONFIG_TABLE("ce", fields);
