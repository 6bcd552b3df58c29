/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Which transport: the choice of one rank, and the agreement of all.
 */
#include "config.h"

#include "rma_proxy/select.h"

#include "rma_proxy/settings.h"
#include "util/log.h"
#include "util/math.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const hce_transport_ops_t *const hce_transports[] = {
#ifdef HCE_HAVE_VERBS
    &hce_transport_verbs,
#endif
#ifdef HCE_HAVE_UCX
    &hce_transport_ucx,
#endif
    &hce_transport_loop,
    NULL,
};

static void append(char *text, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void append(char *text, size_t size, const char *format, ...)
{
    size_t len = strlen(text);
    va_list args;

    va_start(args, format);
    vsnprintf(text + len, size - len, format, args);
    va_end(args);
}

static const hce_transport_ops_t *find(const char *name)
{
    for (int i = 0; hce_transports[i] != NULL; i++) {
        if (strcmp(hce_transports[i]->name, name) == 0)
            return hce_transports[i];
    }
    return NULL;
}

/* NULL if name can be used. */
static const char *why_not(const char *name)
{
    const hce_transport_ops_t *ops = find(name);

    return ops == NULL ? "not built in" : ops->unusable();
}

static const hce_transport_ops_t *select_auto(hce_proxy_offer_t *offer)
{
    char *text = offer->text;

    append(text, sizeof(offer->text),
           "no network between the nodes of this job:");
    for (int i = 1; hce_proxy_choices[i] != NULL; i++) {
        const char *name = hce_proxy_choices[i];
        const hce_transport_ops_t *ops = find(name);
        const char *why = why_not(name);

        if (why == NULL && ops->automatic) {
            text[0] = '\0';
            return ops;
        }
        append(text, sizeof(offer->text), "%s %s: %s", i > 1 ? ";" : "", name,
               why != NULL ? why
                           : "serves one machine, only with "
                             "HCE_TRANSPORT=loop");
    }
    return NULL;
}

const hce_transport_ops_t *hce_proxy_select(hce_proxy_offer_t *offer)
{
    const char *name = hce_proxy_choices[hce_proxy_settings.transport];
    const hce_transport_ops_t *ops;
    const char *why;

    if (strcmp(name, "auto") == 0) {
        ops = select_auto(offer);
    } else {
        why = why_not(name);
        ops = why == NULL ? find(name) : NULL;
        if (ops == NULL)
            append(offer->text, sizeof(offer->text), "HCE_TRANSPORT=%s: %s",
                   name, why);
    }
    if (ops == NULL)
        offer->status = HCE_ERR_UNSUPPORTED;
    return ops;
}

static bool is_first_of_name(const hce_proxy_offer_t *offers, int rank)
{
    for (int i = 0; i < rank; i++) {
        if (strcmp(offers[i].name, offers[rank].name) == 0)
            return false;
    }
    return true;
}

/* "ucx on rank 0 1 2, loop on rank 3" */
static void log_difference(const hce_proxy_offer_t *offers, int size)
{
    char text[320] = "";

    for (int i = 0; i < size; i++) {
        if (!is_first_of_name(offers, i))
            continue;
        append(text, sizeof(text), "%s%s on rank", i > 0 ? ", " : "",
               offers[i].name);
        for (int r = i; r < size; r++) {
            if (strcmp(offers[r].name, offers[i].name) == 0)
                append(text, sizeof(text), " %d", r);
        }
    }
    hce_log(ERROR, PROXY, "ranks have chosen different transports: %s", text);
}

hce_status_t hce_proxy_agree(const hce_proxy_offer_t *offers, int size,
                             int *contexts_p)
{
    int contexts = offers[0].contexts;

    for (int i = 0; i < size; i++) {
        if (offers[i].status == HCE_OK)
            continue;
        hce_log(ERROR, PROXY, "rank %d has no transport: %.*s", i,
                (int)sizeof(offers[i].text), offers[i].text);
        return (hce_status_t)offers[i].status;
    }
    for (int i = 1; i < size; i++) {
        if (strcmp(offers[i].name, offers[0].name) != 0) {
            log_difference(offers, size);
            return HCE_ERR_CONFIG;
        }
        contexts = hce_min(contexts, offers[i].contexts);
    }
    *contexts_p = contexts;
    return HCE_OK;
}
