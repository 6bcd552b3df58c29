/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Why a group ends, and that a rank leaves. The hub's first news is the
 * verdict for all ranks: a leaf tells the hub what it knows and goes by the
 * answer, which may blame another rank. Only without a hub it goes by its
 * own knowledge.
 */
#include <config.h>

#include "boot/group.h"
#include "util/log.h"
#include "util/math.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A broken transport is often the shadow of a rank that is gone, which the
 * hub learns a little later. */
#define HOLD_NS (200 * HCE_NS_PER_MS)

static void news_pack(const hce_boot_news_t *news, hce_boot_news_msg_t *msg)
{
    memset(msg, 0, sizeof(*msg));
    msg->status = news->status;
    msg->rank = news->rank;
    snprintf(msg->text, sizeof(msg->text), "%s", news->text);
}

static bool hub_listens(const hce_boot_t *boot)
{
    return !hce_boot_is_hub(boot) && hce_boot_link_is_open(&boot->links[0]) &&
           !boot->links[0].has_left;
}

/* To all ranks, or to the hub: one that was stopped may yet read it. */
static void news_send(hce_boot_t *boot, const hce_boot_news_t *news)
{
    hce_boot_news_msg_t msg;

    news_pack(news, &msg);
    hce_boot_links_post(
        boot, hce_boot_buf_create(HCE_BOOT_NEWS, &msg, sizeof(msg), NULL, 0));
}

static void verdict_set(hce_boot_t *boot, const hce_boot_news_t *news,
                        bool is_told)
{
    if (boot->verdict.have)
        return;
    boot->verdict.have = true;
    boot->verdict.has_pending = false;
    boot->verdict.news = *news;
    boot->complaint.is_open = false;
    if (!boot->has_started)
        hce_log(DEBUG, BOOT, "%s", news->text); /* an error of the creation */
    else if (is_told)
        hce_log(INFO, FAULT, "rank %d says: %s", boot->hub, news->text);
    else
        hce_log(ERROR, FAULT, "%s", news->text);
    if (!is_told)
        news_send(boot, news);
    hce_boot_wake(boot);
}

static void verdict_hold(hce_boot_t *boot, const hce_boot_news_t *news,
                         uint64_t len_ns)
{
    if (!boot->verdict.has_pending) {
        boot->verdict.has_pending = true;
        boot->verdict.pending = *news;
        boot->verdict.pending_ns = hce_clock_ns() + len_ns;
    }
}

void hce_boot_news_tell(hce_boot_t *boot, hce_status_t status, int rank,
                        const char *format, ...)
{
    hce_boot_news_t news = {.status = status, .rank = rank};
    va_list args;

    va_start(args, format);
    vsnprintf(news.text, sizeof(news.text), format, args);
    va_end(args);
    verdict_set(boot, &news, false);
}

void hce_boot_news_tick(hce_boot_t *boot, uint64_t now)
{
    if (boot->verdict.has_pending && now >= boot->verdict.pending_ns)
        verdict_set(boot, &boot->verdict.pending, false);
}

void hce_boot_news_repeat(hce_boot_t *boot, hce_boot_link_t *link)
{
    hce_boot_news_msg_t msg;

    if (boot->verdict.have) {
        news_pack(&boot->verdict.news, &msg);
        hce_boot_link_send(boot, link, HCE_BOOT_NEWS, &msg, sizeof(msg));
    }
}

void hce_boot_set_news_cb(hce_boot_t *boot, hce_boot_news_cb_t cb, void *arg)
{
    hce_boot_lock(boot);
    boot->verdict.cb = cb;
    boot->verdict.cb_arg = arg;
    hce_boot_unlock(boot);
}

static void news_judge(hce_boot_t *boot, const hce_boot_news_t *news)
{
    if (news->status == HCE_ERR_TRANSPORT)
        verdict_hold(boot, news, HOLD_NS);
    else
        verdict_set(boot, news, false);
}

void hce_boot_abort(hce_boot_t *boot, const hce_boot_news_t *news)
{
    hce_boot_lock(boot);
    if (!boot->verdict.have) {
        if (hce_boot_is_hub(boot)) {
            news_judge(boot, news);
        } else if (hub_listens(boot)) {
            news_send(boot, news);
            verdict_hold(boot, news, HCE_BOOT_VERDICT_NS);
        } else {
            verdict_set(boot, news, false);
        }
    }
    hce_boot_unlock(boot);
}

hce_status_t hce_boot_on_news(hce_boot_t *boot, hce_boot_link_t *link,
                              const void *body, size_t len)
{
    hce_boot_news_msg_t msg;
    hce_boot_news_t news;

    memcpy(&msg, body, sizeof(msg));
    if (msg.status >= 0 || msg.status < HCE_ERR_INTERNAL || msg.rank < -1 ||
        msg.rank >= boot->size)
        return HCE_ERR_TRANSPORT;
    news.status = msg.status;
    news.rank = msg.rank;
    msg.text[sizeof(msg.text) - 1] = '\0';
    memcpy(news.text, msg.text, sizeof(news.text));
    if (boot->verdict.have)
        return HCE_OK;
    if (hce_boot_is_hub(boot))
        news_judge(boot, &news);
    else
        verdict_set(boot, &news, true);
    return HCE_OK;
}

void hce_boot_end_check(hce_boot_t *boot)
{
    if (!hce_boot_is_hub(boot) || !boot->has_left || boot->has_ended)
        return;
    for (int i = 0; i < boot->num_links; i++) {
        const hce_boot_link_t *link = &boot->links[i];

        if (link->is_awaited ||
            (hce_boot_link_is_open(link) && !link->has_left))
            return;
    }
    boot->has_ended = true;
    hce_boot_links_post(boot,
                        hce_boot_buf_create(HCE_BOOT_END, NULL, 0, NULL, 0));
}

void hce_boot_hub_missed(hce_boot_t *boot, hce_boot_link_t *link)
{
    hce_log(INFO, FAULT,
            "rank %d, the new hub, does not answer: from now on nobody tells "
            "of ranks that end",
            link->rank);
    link->is_unproved = false;
    link->has_left = true;
    link->is_missing = true;
    link->missed_by = -1;
    link->heard_ns = hce_clock_ns();
}

void hce_boot_link_lost(hce_boot_t *boot, hce_boot_link_t *link,
                        const char *why)
{
    bool is_expected = link->has_left || boot->heir.is_handed ||
                       (boot->has_left && !hce_boot_is_hub(boot));
    char name[128];

    if (link->is_unproved) {
        hce_boot_hub_missed(boot, link);
    } else if (why != NULL) {
        hce_boot_news_tell(boot, HCE_ERR_TRANSPORT, link->rank, "%s", why);
    } else if (!is_expected) {
        hce_boot_news_tell(
            boot, HCE_ERR_GONE, link->rank, "%s is gone",
            hce_boot_rank_text(boot, link->rank, name, sizeof(name)));
    }
    hce_boot_link_close(boot, link);
    hce_boot_end_check(boot);
}

hce_status_t hce_boot_on_goodbye(hce_boot_t *boot, hce_boot_link_t *link,
                                 const void *body, size_t len)
{
    link->has_left = true;
    if (link->rank == boot->heir.rank) {
        boot->heir.rank = -1;
        hce_boot_heir_appoint(boot);
    }
    hce_boot_exchange_check(boot);
    hce_boot_end_check(boot);
    return HCE_OK;
}

hce_status_t hce_boot_on_end(hce_boot_t *boot, hce_boot_link_t *link,
                             const void *body, size_t len)
{
    boot->has_ended = true;
    return HCE_OK;
}

/* After news nobody waits for others to leave, only until all is sent. */
static bool goodbye_done(const hce_boot_t *boot)
{
    for (int i = 0; i < boot->num_links; i++)
        if (!hce_boot_conn_is_idle(&boot->links[i].conn))
            return false;
    return boot->has_ended || boot->verdict.have ||
           (!hce_boot_is_hub(boot) && !hce_boot_link_is_open(&boot->links[0]));
}

void hce_boot_goodbye(hce_boot_t *boot, uint64_t left_ns)
{
    hce_boot_until_t until = {.done = goodbye_done,
                              .deadline = hce_clock_ns() + left_ns,
                              .ignore_news = true};

    hce_boot_lock(boot);
    if (boot->verdict.has_pending)
        verdict_set(boot, &boot->verdict.pending, false);
    if (!boot->has_left) {
        boot->has_left = true;
        hce_boot_links_post(
            boot, hce_boot_buf_create(HCE_BOOT_GOODBYE, NULL, 0, NULL, 0));
        hce_boot_end_check(boot);
    }
    (void)hce_boot_wait(boot, &until);
    hce_boot_hand_over(boot);
    hce_boot_unlock(boot);
}
