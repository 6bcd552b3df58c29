/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Settings of the RMA proxy and its transports.
 */
#include "config.h"

#include "rma_proxy/settings.h"

#include "rma_proxy/proxy.h"

hce_proxy_settings_t hce_proxy_settings;

const char *const hce_proxy_choices[] = {"auto", "verbs", "ucx", "loop", NULL};

/* In the order of hce_ucx_put_t. */
static const char *const ucx_put_choices[] = {"auto", "am", "rma", NULL};

static const hce_config_field_t fields[] = {
    {.name = "HCE_TRANSPORT",
     .dfl = "auto",
     .text = "Network between nodes: auto is the first usable one of verbs "
             "(where a port of an RDMA device is active) and ucx; loop "
             "serves the ranks of one machine and is never chosen by auto.",
     .type = HCE_CONFIG_ENUM,
     .value = &hce_proxy_settings.transport,
     .choices = hce_proxy_choices,
     .collective = 1},
    {.name = "HCE_NUM_CTX",
     .dfl = "0",
     .text = "Contexts (independent connections to each peer) to open, at "
             "most 16; 0 is what the transport finds useful, at most 4.",
     .type = HCE_CONFIG_INT,
     .value = &hce_proxy_settings.contexts,
     .min = 0,
     .max = 16,
     .collective = 1},
    {.name = "HCE_LOOP_FAULTS",
     .dfl = NULL,
     .text = "Faults that the loop transport makes, for tests: a comma-"
             "separated list of delay=P, reorder=P, refuse=P, pieces=P, "
             "twice=P (percent of ops), break=N@R, lose=N@R (rank R's "
             "endpoint fails, or silently drops, at its N-th op).",
     .type = HCE_CONFIG_STRING,
     .value = &hce_proxy_settings.loop_faults},
    {.name = "HCE_LOOP_SEED",
     .dfl = "1",
     .text = "Seed of the choices that HCE_LOOP_FAULTS leaves open.",
     .type = HCE_CONFIG_INT,
     .value = &hce_proxy_settings.loop_seed},
    {.name = "HCE_LINK_RATE",
     .dfl = "0",
     .text = "Rate of the link that the ranks of a node share, in Mbit/s, "
             "from which the ucx transport sizes the socket buffers of TCP "
             "connections; 0 is what the devices say, if they know.",
     .type = HCE_CONFIG_INT,
     .value = &hce_proxy_settings.link_mbit,
     .min = 0,
     .max = 100000000},
    {.name = "HCE_UCX_PUT",
     .dfl = "auto",
     .text = "How the ucx transport moves data: am by active messages, rma "
             "by UCX's puts; auto is am where all devices are tcp, which "
             "knows no puts of its own.",
     .type = HCE_CONFIG_ENUM,
     .value = &hce_proxy_settings.ucx_put,
     .choices = ucx_put_choices,
     .collective = 1},
    {.name = "HCE_VERBS_DEVICES",
     .dfl = NULL,
     .text = "RDMA ports that the verbs transport uses, at most 4: a comma-"
             "separated list of NAME or NAME:PORT; by default all active ones "
             "that are closest to the CPU.",
     .type = HCE_CONFIG_STRING,
     .value = &hce_proxy_settings.verbs_devices},
    {.name = "HCE_VERBS_GID_INDEX",
     .dfl = "-1",
     .text = "Index of the GID that verbs connections use; -1 is 0 on "
             "InfiniBand, and on RoCE the first of version 2 with an IPv4 "
             "address, if there is one.",
     .type = HCE_CONFIG_INT,
     .value = &hce_proxy_settings.verbs_gid_index,
     .min = -1,
     .max = 255},
    {.name = "HCE_VERBS_TRAFFIC_CLASS",
     .dfl = "0",
     .text = "Traffic class of verbs connections, for networks that treat "
             "classes differently.",
     .type = HCE_CONFIG_INT,
     .value = &hce_proxy_settings.verbs_traffic_class,
     .min = 0,
     .max = 255},
    {.name = "HCE_VERBS_TIMEOUT",
     .dfl = "14",
     .text = "How long a queue pair waits for an acknowledgement before it "
             "sends again: 4.096 us times 2 to this power.",
     .type = HCE_CONFIG_INT,
     .value = &hce_proxy_settings.verbs_timeout,
     .min = 1,
     .max = 31},
    {.name = "HCE_VERBS_RETRY",
     .dfl = "6",
     .text = "How often a queue pair sends again before it fails, and is "
             "replaced; soft-RoCE takes 7 for ever.",
     .type = HCE_CONFIG_INT,
     .value = &hce_proxy_settings.verbs_retry,
     .min = 0,
     .max = 7},
    {.name = "HCE_VERBS_QUEUE",
     .dfl = "128",
     .text = "Work requests that a queue pair of the verbs transport takes.",
     .type = HCE_CONFIG_INT,
     .value = &hce_proxy_settings.verbs_queue,
     .min = 4,
     .max = 4096},
};

const hce_config_table_t hce_rma_proxy_config =
    HCE_CONFIG_TABLE("rma_proxy", fields);
