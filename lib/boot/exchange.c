/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Allgather and barrier over the star: each leaf sends its part, the hub sends
 * all parts to all. A rank is in one exchange at a time, so that the hub keeps
 * at most one part of each.
 */
#include <config.h>

#include "boot/group.h"
#include "util/log.h"

#include <stdlib.h>
#include <string.h>

static const char *const kind_names[HCE_BOOT_KIND_LAST] = {
    [HCE_BOOT_KIND_BARRIER] = "barrier",
    [HCE_BOOT_KIND_ALLGATHER] = "allgather",
    [HCE_BOOT_KIND_ALLGATHERV] = "allgatherv",
};

void hce_boot_exchange_cleanup(hce_boot_t *boot)
{
    hce_boot_exchange_t *exchange = &boot->exchange;

    exchange->is_open = false;
    exchange->has_result = false;
    free(exchange->lens);
    exchange->lens = NULL;
}

static void part_drop(hce_boot_link_t *link)
{
    free(link->part_data);
    link->part_data = NULL;
    link->has_part = false;
}

static bool part_matches(hce_boot_t *boot, const hce_boot_link_t *link)
{
    const hce_boot_part_t *mine = &boot->exchange.head;
    char name[128];

    hce_boot_rank_text(boot, link->rank, name, sizeof(name));
    if (link->part.kind != mine->kind) {
        hce_boot_news_tell(boot, HCE_ERR_MISMATCH, link->rank,
                           "%s calls %s where rank 0 calls %s (exchange %llu)",
                           name, kind_names[link->part.kind],
                           kind_names[mine->kind],
                           (unsigned long long)mine->seq);
        return false;
    }
    if (mine->kind != HCE_BOOT_KIND_ALLGATHERV &&
        link->part_len != boot->exchange.part_len) {
        hce_boot_news_tell(boot, HCE_ERR_MISMATCH, link->rank,
                           "%s gives %zu bytes to %s, rank 0 gives %zu "
                           "(exchange %llu)",
                           name, link->part_len, kind_names[mine->kind],
                           boot->exchange.part_len,
                           (unsigned long long)mine->seq);
        return false;
    }
    return true;
}

/* The result in memory; the same bytes follow the head on the wire. */
static hce_status_t result_build(hce_boot_t *boot)
{
    hce_boot_exchange_t *exchange = &boot->exchange;
    size_t lens_len = (size_t)boot->size * sizeof(uint64_t);
    size_t data_len = exchange->part_len;
    uint8_t *to;

    for (int i = 0; i < boot->num_links; i++)
        data_len += boot->links[i].part_len;
    if (lens_len + data_len > HCE_BOOT_FRAME_MAX - sizeof(hce_boot_part_t))
        return HCE_ERR_INVALID_ARG;
    exchange->lens = malloc(lens_len + data_len);
    if (exchange->lens == NULL)
        return HCE_ERR_NO_MEMORY;
    exchange->data_len = data_len;
    to = (uint8_t *)exchange->lens + lens_len;
    exchange->lens[0] = exchange->part_len;
    if (exchange->part_len > 0) {
        memcpy(to, exchange->part, exchange->part_len);
        to += exchange->part_len;
    }
    for (int i = 0; i < boot->num_links; i++) {
        hce_boot_link_t *link = &boot->links[i];

        exchange->lens[i + 1] = link->part_len;
        if (link->part_len > 0) {
            memcpy(to, link->part_data, link->part_len);
            to += link->part_len;
        }
        part_drop(link);
    }
    exchange->has_result = true;
    return HCE_OK;
}

static void exchange_finish(hce_boot_t *boot)
{
    hce_boot_exchange_t *exchange = &boot->exchange;
    hce_status_t status;

    for (int i = 0; i < boot->num_links; i++)
        if (!part_matches(boot, &boot->links[i]))
            return;
    status = result_build(boot);
    if (status != HCE_OK) {
        hce_boot_news_tell(boot, status, 0,
                           "rank 0 cannot hold the result of %s (exchange "
                           "%llu): %s",
                           kind_names[exchange->head.kind],
                           (unsigned long long)exchange->head.seq,
                           hce_status_string(status));
        return;
    }
    hce_boot_links_post(
        boot, hce_boot_buf_create(HCE_BOOT_RESULT, &exchange->head,
                                  sizeof(exchange->head), exchange->lens,
                                  (size_t)boot->size * sizeof(uint64_t) +
                                      exchange->data_len));
}

/* A rank that has left gives no part any more. */
static void leaver_blame(hce_boot_t *boot, const hce_boot_link_t *link,
                         int needed_by)
{
    char name[128];

    hce_boot_news_tell(
        boot, HCE_ERR_GONE, link->rank,
        "%s has left the group, which rank %d still needs",
        hce_boot_rank_text(boot, link->rank, name, sizeof(name)), needed_by);
}

void hce_boot_exchange_forgo(hce_boot_t *boot)
{
    if (boot->exchange.is_open && !boot->exchange.has_result) {
        hce_boot_news_tell(boot, HCE_ERR_GONE, 0,
                           "rank 0 has left the group, which rank %d still "
                           "needs",
                           boot->rank);
    }
}

void hce_boot_exchange_check(hce_boot_t *boot)
{
    bool is_complete = true;

    if (!hce_boot_is_hub(boot) || !boot->exchange.is_open ||
        boot->exchange.has_result || boot->verdict.have)
        return;
    for (int i = 0; i < boot->num_links && !boot->verdict.have; i++) {
        hce_boot_link_t *link = &boot->links[i];

        if (!link->has_part) {
            is_complete = false;
            if (link->has_left)
                leaver_blame(boot, link, 0);
        }
    }
    if (is_complete)
        exchange_finish(boot);
}

/* The first rank whose part is missing is to blame. */
static void late_blame(hce_boot_t *boot)
{
    const hce_boot_exchange_t *exchange = &boot->exchange;
    uint64_t seq = exchange->head.seq + (exchange->is_open ? 0 : 1);
    int rank = 0;
    char name[128];

    for (int i = 0; exchange->is_open && i < boot->num_links; i++) {
        if (!boot->links[i].has_part) {
            rank = boot->links[i].rank;
            break;
        }
    }
    hce_boot_news_tell(boot, HCE_ERR_TIMEOUT, rank,
                       "%s has not come to exchange %llu in time",
                       hce_boot_rank_text(boot, rank, name, sizeof(name)),
                       (unsigned long long)seq);
}

hce_status_t hce_boot_on_part(hce_boot_t *boot, hce_boot_link_t *link,
                              const void *body, size_t len)
{
    uint64_t seq =
        boot->exchange.head.seq +
        (boot->exchange.is_open && !boot->exchange.has_result ? 0 : 1);
    size_t data_len = len - sizeof(hce_boot_part_t);

    memcpy(&link->part, body, sizeof(link->part));
    if (link->has_part || link->has_left || link->part.seq != seq ||
        link->part.kind == 0 || link->part.kind >= HCE_BOOT_KIND_LAST)
        return HCE_ERR_TRANSPORT;
    if (data_len > 0) {
        link->part_data = malloc(data_len);
        if (link->part_data == NULL)
            return HCE_ERR_NO_MEMORY;
        memcpy(link->part_data,
               (const uint8_t *)body + sizeof(hce_boot_part_t), data_len);
    }
    link->part_len = data_len;
    link->has_part = true;
    if (boot->has_left) {
        hce_boot_news_tell(boot, HCE_ERR_GONE, 0,
                           "rank 0 has left the group, which rank %d still "
                           "needs",
                           link->rank);
    }
    hce_boot_exchange_check(boot);
    return HCE_OK;
}

static bool result_fits(const hce_boot_t *boot, const uint64_t *lens,
                        size_t data_len)
{
    const hce_boot_exchange_t *exchange = &boot->exchange;

    for (int r = 0; r < boot->size; r++) {
        if (lens[r] > data_len ||
            (exchange->head.kind != HCE_BOOT_KIND_ALLGATHERV &&
             lens[r] != exchange->part_len))
            return false;
        data_len -= lens[r];
    }
    return data_len == 0 && lens[boot->rank] == exchange->part_len;
}

hce_status_t hce_boot_on_result(hce_boot_t *boot, hce_boot_link_t *link,
                                const void *body, size_t len)
{
    hce_boot_exchange_t *exchange = &boot->exchange;
    size_t lens_len = (size_t)boot->size * sizeof(uint64_t);
    const uint64_t *lens =
        (const void *)((const uint8_t *)body + sizeof(hce_boot_part_t));
    hce_boot_part_t head;

    memcpy(&head, body, sizeof(head));
    len -= sizeof(head);
    if (!exchange->is_open || exchange->has_result ||
        head.seq != exchange->head.seq || head.kind != exchange->head.kind ||
        len < lens_len || !result_fits(boot, lens, len - lens_len))
        return HCE_ERR_TRANSPORT;
    exchange->lens = malloc(len);
    if (exchange->lens == NULL)
        return HCE_ERR_NO_MEMORY;
    memcpy(exchange->lens, lens, len);
    exchange->data_len = len - lens_len;
    exchange->has_result = true;
    return HCE_OK;
}

/* One that is over was answered already. */
hce_status_t hce_boot_on_late(hce_boot_t *boot, hce_boot_link_t *link,
                              const void *body, size_t len)
{
    const hce_boot_exchange_t *exchange = &boot->exchange;
    hce_boot_part_t head;

    memcpy(&head, body, sizeof(head));
    if (head.seq == exchange->head.seq + 1 ||
        (head.seq == exchange->head.seq && exchange->is_open &&
         !exchange->has_result))
        late_blame(boot);
    return HCE_OK;
}

static bool has_result(const hce_boot_t *boot)
{
    return boot->exchange.has_result;
}

static void exchange_start(hce_boot_t *boot, hce_boot_kind_t kind,
                           const void *in, size_t len)
{
    hce_boot_exchange_t *exchange = &boot->exchange;

    exchange->head.seq++;
    exchange->head.kind = kind;
    exchange->part = in;
    exchange->part_len = len;
    exchange->is_open = true;
    if (boot->hub != 0) {
        hce_boot_exchange_forgo(boot);
    } else if (hce_boot_is_hub(boot)) {
        hce_boot_exchange_check(boot);
    } else if (boot->links[0].has_left ||
               !hce_boot_link_is_open(&boot->links[0])) {
        leaver_blame(boot, &boot->links[0], boot->rank);
    } else {
        hce_boot_links_post(
            boot, hce_boot_buf_create(HCE_BOOT_PART, &exchange->head,
                                      sizeof(exchange->head), in, len));
    }
}

/* The time is over: the hub knows who is late, and says so to all. */
static hce_status_t exchange_late(hce_boot_t *boot)
{
    hce_boot_exchange_t *exchange = &boot->exchange;
    hce_boot_until_t until = {
        .done = has_result, .deadline = hce_clock_ns() + HCE_BOOT_VERDICT_NS};

    if (hce_boot_is_hub(boot)) {
        late_blame(boot);
    } else {
        hce_boot_link_send(boot, &boot->links[0], HCE_BOOT_LATE,
                           &exchange->head, sizeof(exchange->head));
        if (hce_boot_wait(boot, &until) == HCE_OK)
            return HCE_OK;
        hce_boot_news_tell(boot, HCE_ERR_TIMEOUT, 0,
                           "rank 0 has not answered exchange %llu in time",
                           (unsigned long long)exchange->head.seq);
    }
    return (hce_status_t)boot->verdict.news.status;
}

/* Leaves the result in boot->exchange; the caller cleans up. */
static hce_status_t exchange_run(hce_boot_t *boot, hce_boot_kind_t kind,
                                 const void *in, size_t len, uint64_t deadline)
{
    hce_boot_until_t until = {.done = has_result, .deadline = deadline};
    hce_status_t status;

    if (len > HCE_BOOT_PART_MAX) {
        hce_log(ERROR, BOOT, "exchange of %zu bytes a rank: the limit is %u",
                len, HCE_BOOT_PART_MAX);
        return HCE_ERR_INVALID_ARG;
    }
    if (boot->verdict.have)
        return (hce_status_t)boot->verdict.news.status;
    exchange_start(boot, kind, in, len);
    status = hce_boot_wait(boot, &until);
    if (status == HCE_ERR_TIMEOUT && !boot->verdict.have)
        status = exchange_late(boot);
    return status;
}

hce_status_t hce_boot_allgather(hce_boot_t *boot, const void *in, size_t len,
                                void *out, uint64_t deadline)
{
    hce_status_t status;

    hce_boot_lock(boot);
    status = exchange_run(boot, HCE_BOOT_KIND_ALLGATHER, in, len, deadline);
    if (status == HCE_OK && len > 0)
        memcpy(out, boot->exchange.lens + boot->size, boot->exchange.data_len);
    hce_boot_exchange_cleanup(boot);
    hce_boot_unlock(boot);
    return status;
}

hce_status_t hce_boot_allgatherv(hce_boot_t *boot, const void *in, size_t len,
                                 size_t *lens, void **out_p, uint64_t deadline)
{
    const hce_boot_exchange_t *exchange = &boot->exchange;
    hce_status_t status;
    void *out = NULL;

    hce_boot_lock(boot);
    status = exchange_run(boot, HCE_BOOT_KIND_ALLGATHERV, in, len, deadline);
    if (status == HCE_OK) {
        /* One byte more, so that an empty result has an address as well. */
        out = malloc(exchange->data_len + 1);
        status = out == NULL ? HCE_ERR_NO_MEMORY : HCE_OK;
    }
    if (status == HCE_OK) {
        memcpy(out, exchange->lens + boot->size, exchange->data_len);
        for (int r = 0; r < boot->size; r++)
            lens[r] = exchange->lens[r];
        *out_p = out;
    }
    hce_boot_exchange_cleanup(boot);
    hce_boot_unlock(boot);
    return status;
}

hce_status_t hce_boot_barrier(hce_boot_t *boot, uint64_t deadline)
{
    hce_status_t status;

    hce_boot_lock(boot);
    status = exchange_run(boot, HCE_BOOT_KIND_BARRIER, NULL, 0, deadline);
    hce_boot_exchange_cleanup(boot);
    hce_boot_unlock(boot);
    return status;
}
