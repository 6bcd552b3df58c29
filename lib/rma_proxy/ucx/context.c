/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * UCX transport: our defaults for UCX, and what UCX finds on this machine.
 * No environment variable is set; one that the user has set wins.
 */
#include "config.h"

#include "rma_proxy/ucx/ucx.h"

#include "util/config.h"
#include "util/log.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TCP_PREFIX "TCP_"

typedef struct ucx_default {
    const char *env; /* the user's name for it */
    const char *key; /* for ucp_config_modify */
    const char *value;
} ucx_default_t;

/* Heartbeats are ours: with UCX's an endpoint asks for its other end's id,
 * which is what ucx.h wants to avoid.
 * Shared memory inside a node is the copy engines' work; between "nodes" of
 * one machine it would also hide the network. On tcp a put travels in pieces
 * of TX_SEG_SIZE, 8k if left alone; these hold 64k and the headers. Socket
 * buffers left to the kernel grow beyond the queues of the switches: see
 * tune.c. */
static const ucx_default_t defaults[] = {
    {"UCX_TLS", "TLS", "^shm"},
    {"UCX_KEEPALIVE_INTERVAL", "KEEPALIVE_INTERVAL", "inf"},
    {"UCX_RESOLVE_REMOTE_EP_ID", "RESOLVE_REMOTE_EP_ID", "n"},
    {"UCX_TCP_TX_SEG_SIZE", "TCP_TX_SEG_SIZE", "65kb"},
    {"UCX_TCP_RX_SEG_SIZE", "TCP_RX_SEG_SIZE", "65kb"},
};

/* UCX warns of options of a transport that is not there. */
static bool may_apply(const char *key)
{
    const char *tls = hce_config_foreign("UCX_TLS");

    return strncmp(key, TCP_PREFIX, strlen(TCP_PREFIX)) != 0 || tls == NULL ||
           strstr(tls, "tcp") != NULL || strstr(tls, "all") != NULL;
}

/* Before UCX 1.17 the options of a transport are known to ucp_config_modify
 * without its prefix (uct_config_modify, src/uct/base/uct_md.c). */
static const char *modify_key(const char *key)
{
    unsigned major, minor, patch;

    ucp_get_version(&major, &minor, &patch);
    if ((major > 1 || minor >= 17) ||
        strncmp(key, TCP_PREFIX, strlen(TCP_PREFIX)) != 0)
        return key;
    return key + strlen(TCP_PREFIX);
}

static void config_set(ucp_config_t *config, const ucx_default_t *one)
{
    ucs_status_t status;

    if (hce_config_foreign(one->env) != NULL || !may_apply(one->key))
        return;
    status = ucp_config_modify(config, modify_key(one->key), one->value);
    if (status != UCS_OK)
        hce_log(WARN, PROXY, "ucx: default %s=%s was not taken: %s", one->env,
                one->value, ucs_status_string(status));
}

static ucs_status_t config_create(size_t sockbuf, ucp_config_t **config_p)
{
    char text[24];
    const ucx_default_t send = {"UCX_TCP_SNDBUF", "TCP_SNDBUF", text};
    const ucx_default_t receive = {"UCX_TCP_RCVBUF", "TCP_RCVBUF", text};
    ucp_config_t *config;
    ucs_status_t status = ucp_config_read(NULL, NULL, &config);

    if (status != UCS_OK)
        return status;
    for (size_t i = 0; i < sizeof(defaults) / sizeof(defaults[0]); i++)
        config_set(config, &defaults[i]);
    snprintf(text, sizeof(text), "%zu", sockbuf);
    config_set(config, &send);
    config_set(config, &receive);
    *config_p = config;
    return UCS_OK;
}

ucs_status_t hce_ucx_context_create(bool rma, size_t sockbuf,
                                    ucp_context_h *context_p)
{
    ucp_params_t params = {
        .field_mask =
            UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_MT_WORKERS_SHARED,
        .features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP,
        .mt_workers_shared = 1, /* registrations come from other threads */
    };
    ucp_config_t *config;
    ucs_status_t status = config_create(sockbuf, &config);

    if (status != UCS_OK)
        return status;
    if (rma)
        params.features |= UCP_FEATURE_RMA;
    status = ucp_init(&params, config, context_p);
    ucp_config_release(config);
    return status;
}

static ucx_facts_t facts;

/* A line of ucp_context_print_info: "resource 1 : md 1 dev 1 ... -- tcp/lo".
 * There is no other way to ask for them in UCX 1.13. */
static void note_resource(const char *line)
{
    const char *name = strstr(line, "-- ");
    size_t len = strlen(facts.devices);

    if (strstr(line, "resource ") == NULL || name == NULL)
        return;
    name += 3;
    if (strncmp(name, "self/", 5) == 0)
        return;
    snprintf(facts.devices + len, sizeof(facts.devices) - len, "%s%.*s",
             len > 0 ? " " : "", (int)strcspn(name, " \n"), name);
    if (strncmp(name, "tcp/", 4) != 0) {
        facts.rma = true;
        facts.contexts = 4;
    }
}

static void note_resources(ucp_context_h context)
{
    char *text = NULL, *save, *line;
    size_t size;
    FILE *stream = open_memstream(&text, &size);

    if (stream == NULL)
        return;
    ucp_context_print_info(context, stream);
    fclose(stream);
    for (line = strtok_r(text, "\n", &save); line != NULL;
         line = strtok_r(NULL, "\n", &save))
        note_resource(line);
    free(text);
}

static void facts_init(void)
{
    ucp_lib_attr_t attr = {.field_mask = UCP_LIB_ATTR_FIELD_MAX_THREAD_LEVEL};
    ucp_context_h context;
    ucs_status_t status = ucp_lib_query(&attr);

    facts.contexts = 1;
    if (status == UCS_OK && attr.max_thread_level < UCS_THREAD_MODE_MULTI) {
        snprintf(facts.why, sizeof(facts.why),
                 "UCX is built without thread support");
        return;
    }
    status = hce_ucx_context_create(true, hce_ucx_sockbuf(1, 0), &context);
    if (status != UCS_OK) {
        snprintf(facts.why, sizeof(facts.why), "ucp_init: %s",
                 ucs_status_string(status));
        return;
    }
    note_resources(context);
    ucp_cleanup(context);
    if (facts.devices[0] == '\0')
        snprintf(facts.why, sizeof(facts.why), "UCX finds no device");
}

const ucx_facts_t *hce_ucx_facts(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, facts_init);
    return &facts;
}
