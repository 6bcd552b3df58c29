/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Values of this folder's settings, for use inside the folder. Written by
 * hce_config_init, constant afterwards.
 */
#ifndef HCE_RMA_PROXY_SETTINGS_H
#define HCE_RMA_PROXY_SETTINGS_H

#include <stdint.h>

typedef enum hce_ucx_put {
    HCE_UCX_PUT_AUTO,
    HCE_UCX_PUT_AM,
    HCE_UCX_PUT_RMA
} hce_ucx_put_t;

typedef struct hce_proxy_settings {
    int transport;    /* 0 is auto, else a name of the table in config.c */
    int64_t contexts; /* 0 is what is useful */
    const char *loop_faults;
    int64_t loop_seed;
    int ucx_put;       /* hce_ucx_put_t */
    int64_t link_mbit; /* 0: as the devices say */
    const char *verbs_devices;
    int64_t verbs_gid_index; /* -1: by rule */
    int64_t verbs_traffic_class;
    int64_t verbs_timeout; /* 4.096 us x 2^value */
    int64_t verbs_retry;
    int64_t verbs_queue; /* work requests */
} hce_proxy_settings_t;

extern hce_proxy_settings_t hce_proxy_settings;

/* Names of the transports that HCE_TRANSPORT may ask for, after "auto". */
extern const char *const hce_proxy_choices[];

#endif
