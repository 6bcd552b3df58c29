/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The proxy: a transport, the inbox that peers write, and the pass that
 * publishes what has arrived. Owner thread: the engine's owner, but for
 * registrations (caller's thread) and hce_proxy_retries (any thread).
 *
 * The inbox has words for each peer, then a word for each peer that says
 * "this one writes to you": only the rows of those are looked at.
 */
#include "config.h"

#include "rma_proxy/proxy.h"

#include "rma_proxy/select.h"
#include "rma_proxy/settings.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/math.h"

#include <assert.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROXY_MAX_CONTEXTS 16

struct hce_proxy_mem {
    hce_transport_mem_t *mem;
    size_t key_len;
    uint8_t key[HCE_TRANSPORT_MAX_KEY];
};

struct hce_proxy {
    const hce_transport_ops_t *ops;
    hce_transport_t *transport;
    hce_transport_attr_t attr;
    const hce_layout_t *layout;
    int rank, size;
    uint32_t words;
    hce_counter_t *inbox; /* [size * words], then [size] greetings */
    char *mail;           /* [size][2][HCE_PROXY_MAIL_SIZE] */
    char *addrs;          /* offer and address of each rank */
    size_t *addr_at;      /* [size + 1] into addrs */
    uint8_t *connected;   /* [size] */
    uint16_t *greeted;    /* [size] bit a context: greeting was sent */
    int *active;          /* peers whose rows are looked at */
    int *quiet;           /* peers on other nodes that have not written */
    int num_active, num_quiet;
    _Atomic uint64_t retries;
};

static size_t mail_size(const hce_proxy_t *proxy)
{
    return (size_t)proxy->size * 2 * HCE_PROXY_MAIL_SIZE;
}

static uint32_t greeting_word(const hce_proxy_t *proxy, int writer)
{
    return (uint32_t)proxy->size * proxy->words + (uint32_t)writer;
}

static void proxy_free(hce_proxy_t *proxy)
{
    free(proxy->inbox);
    free(proxy->mail);
    free(proxy->addrs);
    free(proxy->addr_at);
    free(proxy->connected);
    free(proxy->greeted);
    free(proxy->active);
    free(proxy->quiet);
    free(proxy);
}

static hce_proxy_t *proxy_alloc(const hce_proxy_params_t *params)
{
    size_t size = (size_t)params->layout->nranks;
    size_t num_words = size * params->words + size;
    size_t page = 4096;
    hce_proxy_t *proxy = calloc(1, sizeof(*proxy));

    if (proxy == NULL)
        return NULL;
    proxy->layout = params->layout;
    proxy->rank = params->rank;
    proxy->size = (int)size;
    proxy->words = params->words;
    proxy->inbox = aligned_alloc(
        page, hce_round_up(num_words * sizeof(hce_counter_t), page));
    proxy->mail = calloc(1, mail_size(proxy));
    proxy->addr_at = calloc(size + 1, sizeof(*proxy->addr_at));
    proxy->connected = calloc(size, sizeof(*proxy->connected));
    proxy->greeted = calloc(size, sizeof(*proxy->greeted));
    proxy->active = calloc(size, sizeof(*proxy->active));
    proxy->quiet = calloc(size, sizeof(*proxy->quiet));
    if (proxy->inbox == NULL || proxy->mail == NULL ||
        proxy->addr_at == NULL || proxy->connected == NULL ||
        proxy->greeted == NULL || proxy->active == NULL ||
        proxy->quiet == NULL) {
        proxy_free(proxy);
        return NULL;
    }
    /* No peer knows the address yet. */
    for (size_t i = 0; i < num_words; i++)
        atomic_init(&proxy->inbox[i].value, 0);
    for (int peer = 0; peer < proxy->size; peer++) {
        if (!hce_layout_same_node(proxy->layout, peer, proxy->rank))
            proxy->quiet[proxy->num_quiet++] = peer;
    }
    return proxy;
}

/* As many as any path has: each rank of the node to one on each other. */
static int num_flows(const hce_proxy_t *proxy)
{
    const hce_layout_t *layout = proxy->layout;

    return layout->node_size[layout->node[proxy->rank]] *
           (layout->nnodes - 1);
}

static hce_status_t transport_open(hce_proxy_t *proxy,
                                   const hce_proxy_params_t *params)
{
    hce_transport_params_t open = {
        .rank = proxy->rank,
        .size = proxy->size,
        .contexts = (int)hce_proxy_settings.contexts,
        .flows = num_flows(proxy),
        .silence_ns = params->silence_ns,
        .secret = hce_boot_secret(params->boot),
        .inbox = proxy->inbox,
        .inbox_words =
            (uint32_t)proxy->size * proxy->words + (uint32_t)proxy->size,
        .mail = proxy->mail,
        .mail_size = mail_size(proxy),
        .error_cb = params->error_cb,
        .error_arg = params->error_arg,
    };
    hce_status_t status = proxy->ops->open(&open, &proxy->transport);

    if (status == HCE_OK)
        proxy->ops->query(proxy->transport, &proxy->attr);
    return status;
}

static void transport_close(hce_proxy_t *proxy)
{
    if (proxy->transport != NULL)
        proxy->ops->close(proxy->transport);
    proxy->transport = NULL;
}

/* Chooses and opens. Failures go into the offer, so that all ranks learn of
 * them. */
static void make_offer(hce_proxy_t *proxy, const hce_proxy_params_t *params,
                       hce_proxy_offer_t *offer, void **addr_p, size_t *len_p)
{
    hce_status_t status;

    memset(offer, 0, sizeof(*offer));
    proxy->ops = hce_proxy_select(offer);
    if (proxy->ops == NULL)
        return;
    snprintf(offer->name, sizeof(offer->name), "%s", proxy->ops->name);
    status = transport_open(proxy, params);
    if (status == HCE_OK) {
        offer->contexts = proxy->attr.contexts;
        status = proxy->ops->address(proxy->transport, addr_p, len_p);
    }
    offer->status = status;
    if (status != HCE_OK)
        snprintf(offer->text, sizeof(offer->text), "opening %s failed: %s",
                 proxy->ops->name, hce_status_string(status));
}

/* Checks what the others sent, keeps their addresses. */
static hce_status_t keep_addresses(hce_proxy_t *proxy, const size_t *lens)
{
    hce_proxy_offer_t *offers = calloc((size_t)proxy->size, sizeof(*offers));
    hce_status_t status = HCE_OK;

    if (offers == NULL)
        return HCE_ERR_NO_MEMORY;
    for (int i = 0; i < proxy->size; i++) {
        proxy->addr_at[i + 1] = proxy->addr_at[i] + lens[i];
        if (lens[i] < sizeof(*offers)) {
            hce_log(ERROR, PROXY, "rank %d sent an address of %zu bytes", i,
                    lens[i]);
            status = HCE_ERR_BOOTSTRAP;
            break;
        }
        memcpy(&offers[i], proxy->addrs + proxy->addr_at[i], sizeof(*offers));
        offers[i].name[sizeof(offers[i].name) - 1] = '\0';
    }
    if (status == HCE_OK)
        status = hce_proxy_agree(offers, proxy->size, &proxy->attr.contexts);
    free(offers);
    return status;
}

static hce_status_t exchange(hce_proxy_t *proxy,
                             const hce_proxy_params_t *params)
{
    hce_proxy_offer_t offer;
    size_t *lens = calloc((size_t)proxy->size, sizeof(*lens));
    hce_status_t status = HCE_ERR_NO_MEMORY;
    void *addr = NULL, *out = NULL;
    size_t len = 0;
    char *blob;

    make_offer(proxy, params, &offer, &addr, &len);
    blob = malloc(sizeof(offer) + len);
    if (blob == NULL || lens == NULL)
        goto out;
    memcpy(blob, &offer, sizeof(offer));
    if (len > 0)
        memcpy(blob + sizeof(offer), addr, len);
    status = hce_boot_allgatherv(params->boot, blob, sizeof(offer) + len, lens,
                                 &out, params->deadline);
    if (status != HCE_OK)
        goto out;
    proxy->addrs = out;
    status = keep_addresses(proxy, lens);

out:
    free(blob);
    free(lens);
    free(addr);
    return status;
}

hce_status_t hce_proxy_open(const hce_proxy_params_t *params,
                            hce_proxy_t **proxy_p)
{
    hce_proxy_t *proxy;
    hce_status_t status;
    char text[160];

    if (params->layout->nnodes == 1) {
        *proxy_p = NULL;
        return HCE_OK;
    }
    proxy = proxy_alloc(params);
    if (proxy == NULL) {
        hce_log(ERROR, PROXY, "no memory for the inbox of %d ranks",
                params->layout->nranks);
        return HCE_ERR_NO_MEMORY;
    }
    status = exchange(proxy, params);
    if (status != HCE_OK) {
        transport_close(proxy);
        proxy_free(proxy);
        return status;
    }
    proxy->ops->describe(text, sizeof(text));
    hce_log(INFO, PROXY, "transport %s: %s; contexts %d, segment %u x %u",
            proxy->ops->name, text, proxy->attr.contexts, proxy->attr.segment,
            proxy->attr.depth);
    *proxy_p = proxy;
    return HCE_OK;
}

void hce_proxy_flush(hce_proxy_t *proxy, uint64_t deadline)
{
    struct pollfd polls[HCE_TRANSPORT_MAX_FDS];
    int fds[HCE_TRANSPORT_MAX_FDS];
    int n = proxy->ops->fds(proxy->transport, fds);

    for (int i = 0; i < n; i++)
        polls[i] = (struct pollfd){.fd = fds[i], .events = POLLIN};
    while (proxy->ops->flush(proxy->transport) == HCE_INPROGRESS) {
        uint64_t now = hce_clock_ns();
        int ms;

        if (now >= deadline) {
            hce_log(WARN, PROXY, "closed with transfers on their way");
            return;
        }
        if (proxy->ops->progress(proxy->transport) ||
            !proxy->ops->arm(proxy->transport))
            continue;
        ms = (int)hce_min(hce_div_up(deadline - now, HCE_NS_PER_MS), 100u);
        (void)poll(polls, (nfds_t)n, ms);
    }
}

hce_status_t hce_proxy_test_flush(hce_proxy_t *proxy)
{
    return proxy->ops->flush(proxy->transport);
}

void hce_proxy_close(hce_proxy_t *proxy, uint64_t deadline)
{
    if (proxy == NULL)
        return;
    if (deadline != 0)
        hce_proxy_flush(proxy, deadline);
    transport_close(proxy);
    proxy_free(proxy);
}

const char *hce_proxy_name(const hce_proxy_t *proxy)
{
    return proxy == NULL ? "none" : proxy->ops->name;
}

void hce_proxy_query(hce_proxy_t *proxy, hce_transport_attr_t *attr_p)
{
    *attr_p = proxy->attr;
}

hce_status_t hce_proxy_connect(hce_proxy_t *proxy, int peer)
{
    size_t skip = sizeof(hce_proxy_offer_t);
    hce_status_t status;

    assert(peer >= 0 && peer < proxy->size && peer != proxy->rank);
    if (proxy->connected[peer])
        return HCE_OK;
    status = proxy->ops->connect(
        proxy->transport, peer, proxy->addrs + proxy->addr_at[peer] + skip,
        proxy->addr_at[peer + 1] - proxy->addr_at[peer] - skip);
    proxy->connected[peer] = status == HCE_OK;
    return status;
}

hce_status_t hce_proxy_register(hce_proxy_t *proxy, void *addr, size_t len,
                                hce_proxy_mem_t **mem_p)
{
    hce_proxy_mem_t *mem = calloc(1, sizeof(*mem));
    hce_status_t status;

    if (mem == NULL) {
        hce_log(ERROR, PROXY, "no memory to register %zu bytes", len);
        return HCE_ERR_NO_MEMORY;
    }
    status = proxy->ops->mem_register(proxy->transport, addr, len, &mem->mem);
    if (status != HCE_OK)
        goto err_free;
    status = proxy->ops->mem_pack(mem->mem, mem->key, &mem->key_len);
    if (status != HCE_OK)
        goto err_deregister;
    *mem_p = mem;
    return HCE_OK;

err_deregister:
    proxy->ops->mem_deregister(proxy->transport, mem->mem);
err_free:
    free(mem);
    return status;
}

void hce_proxy_deregister(hce_proxy_t *proxy, hce_proxy_mem_t *mem)
{
    if (mem == NULL)
        return;
    proxy->ops->mem_deregister(proxy->transport, mem->mem);
    free(mem);
}

const void *hce_proxy_key(const hce_proxy_mem_t *mem, size_t *len_p)
{
    *len_p = mem->key_len;
    return mem->key;
}

hce_status_t hce_proxy_key_open(hce_proxy_t *proxy, int peer, const void *key,
                                size_t len, hce_transport_key_t **key_p)
{
    hce_status_t status = hce_proxy_connect(proxy, peer);

    if (status != HCE_OK)
        return status;
    return proxy->ops->key_unpack(proxy->transport, peer, key, len, key_p);
}

void hce_proxy_key_close(hce_proxy_t *proxy, hce_transport_key_t *key)
{
    if (key != NULL)
        proxy->ops->key_destroy(key);
}

/* Counts a post that was put off. */
static hce_status_t posted(hce_proxy_t *proxy, hce_status_t status)
{
    if (status == HCE_ERR_NO_RESOURCE)
        atomic_fetch_add_explicit(&proxy->retries, 1, memory_order_relaxed);
    return status;
}

hce_status_t hce_proxy_put(hce_proxy_t *proxy, hce_proxy_put_t *put)
{
    assert(put->context < proxy->attr.contexts);
    while (put->posted < put->len) {
        uint64_t len = hce_min(put->len - put->posted, proxy->attr.segment);
        hce_status_t status;

        if (put->req.status != HCE_OK)
            return put->req.status;
        if (put->req.pending >= proxy->attr.depth)
            return HCE_INPROGRESS;
        status = posted(
            proxy, proxy->ops->put(proxy->transport, put->peer, put->context,
                                   put->src + put->posted, put->mem->mem, len,
                                   put->remote_addr + put->posted, put->key,
                                   &put->req));
        if (status == HCE_ERR_NO_RESOURCE)
            return HCE_INPROGRESS;
        if (status != HCE_OK)
            return status;
        put->posted += len;
    }
    return put->req.status;
}

/* The first signal of a context says that there will be more: it lands
 * before them, and puts this rank on the peer's list of active ones. */
static hce_status_t greet(hce_proxy_t *proxy, int peer, int context)
{
    hce_status_t status;

    if (proxy->greeted[peer] >> context & 1)
        return HCE_OK;
    if (!proxy->connected[peer]) {
        hce_log(ERROR, PROXY, "a signal to rank %d, which is not connected",
                peer);
        return HCE_ERR_INTERNAL;
    }
    status = proxy->ops->signal(proxy->transport, peer, context,
                                greeting_word(proxy, proxy->rank), 1);
    if (status == HCE_OK)
        proxy->greeted[peer] |= (uint16_t)(1u << context);
    return status;
}

hce_status_t hce_proxy_signal(hce_proxy_t *proxy, int peer, int context,
                              int slot, uint64_t value)
{
    hce_status_t status = greet(proxy, peer, context);

    assert(slot >= 0 && (uint32_t)slot < proxy->words);
    if (status == HCE_OK)
        status = proxy->ops->signal(
            proxy->transport, peer, context,
            (uint32_t)proxy->rank * proxy->words + (uint32_t)slot, value);
    return posted(proxy, status);
}

static uint64_t mail_offset(int writer, int parity)
{
    return ((uint64_t)writer * 2 + (uint64_t)parity) * HCE_PROXY_MAIL_SIZE;
}

hce_status_t hce_proxy_message(hce_proxy_t *proxy, int peer, int parity,
                               const void *payload, size_t len, int slot,
                               uint64_t value)
{
    hce_status_t status = greet(proxy, peer, 0);

    assert(len <= HCE_PROXY_MAIL_SIZE && (parity & ~1) == 0);
    if (status == HCE_OK)
        status = proxy->ops->message(
            proxy->transport, peer, mail_offset(proxy->rank, parity), payload,
            len, (uint32_t)proxy->rank * proxy->words + (uint32_t)slot, value);
    return posted(proxy, status);
}

hce_status_t hce_proxy_parcel(hce_proxy_t *proxy, hce_proxy_put_t *put,
                              const hce_proxy_letter_t *letter)
{
    hce_transport_parcel_t parcel = {
        .data = put->src,
        .data_len = put->len,
        .mem = put->mem->mem,
        .remote_addr = put->remote_addr,
        .key = put->key,
        .mail = letter->payload,
        .mail_len = letter->len,
        .mail_offset = mail_offset(proxy->rank, letter->parity),
        .word = (uint32_t)proxy->rank * proxy->words + (uint32_t)letter->slot,
        .value = letter->value,
    };
    hce_status_t status = greet(proxy, put->peer, 0);

    assert(put->len <= proxy->attr.parcel &&
           letter->len <= HCE_PROXY_MAIL_SIZE && (letter->parity & ~1) == 0);
    if (status == HCE_OK)
        status = proxy->ops->parcel(proxy->transport, put->peer, &parcel,
                                    &put->req);
    if (status == HCE_OK)
        put->posted = put->len;
    return posted(proxy, status);
}

const void *hce_proxy_mail(const hce_proxy_t *proxy, int peer, int parity)
{
    return proxy->mail + mail_offset(peer, parity);
}

static bool find_active(hce_proxy_t *proxy)
{
    bool moved = false;
    int i = 0;

    while (i < proxy->num_quiet) {
        int peer = proxy->quiet[i];

        if (hce_counter_read(&proxy->inbox[greeting_word(proxy, peer)]) == 0) {
            i++;
            continue;
        }
        proxy->active[proxy->num_active++] = peer;
        proxy->quiet[i] = proxy->quiet[--proxy->num_quiet];
        moved = true;
    }
    return moved;
}

/* Acquire on the word, release on the counter: what landed before the word
 * is visible to whoever sees the counter. This pass is its only writer. */
static bool publish_row(hce_proxy_t *proxy, int peer, hce_counter_t *counters)
{
    size_t base = (size_t)peer * proxy->words;
    bool moved = false;

    for (size_t i = base; i < base + proxy->words; i++) {
        uint64_t word = hce_counter_read(&proxy->inbox[i]);
        uint64_t known =
            atomic_load_explicit(&counters[i].value, memory_order_relaxed);

        if (word == known || !hce_counter_geq(word, known))
            continue;
        hce_counter_post(&counters[i], word);
        moved = true;
    }
    return moved;
}

bool hce_proxy_progress(hce_proxy_t *proxy, hce_counter_t *counters)
{
    bool moved = proxy->ops->progress(proxy->transport);

    moved |= find_active(proxy);
    for (int i = 0; i < proxy->num_active; i++)
        moved |= publish_row(proxy, proxy->active[i], counters);
    return moved;
}

int hce_proxy_fds(hce_proxy_t *proxy, int *fds)
{
    return proxy->ops->fds(proxy->transport, fds);
}

bool hce_proxy_arm(hce_proxy_t *proxy)
{
    return proxy->ops->arm(proxy->transport);
}

uint64_t hce_proxy_retries(const hce_proxy_t *proxy)
{
    return atomic_load_explicit(&((hce_proxy_t *)proxy)->retries,
                                memory_order_relaxed);
}

void hce_proxy_forked(hce_proxy_t *proxy)
{
    proxy->ops->forked(proxy->transport);
}
