/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Whom a stall is due to. A rank whose call makes no progress complains to
 * the hub, which asks all ranks what they do now, waits for the answers, and
 * follows who waits for whom from the one that complains to the end. The
 * first complaint decides.
 */
#include <config.h>

#include "boot/group.h"
#include "util/math.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Longer than any healthy rank takes to answer. */
#define ANSWER_NS (2 * HCE_NS_PER_SEC)

#define CHAIN_SHOWN 3 /* ranks of a long chain that the text shows */

typedef enum {
    END_NONE,
    END_LEFT,   /* the last rank has said goodbye */
    END_CIRCLE, /* it waits for one that comes before it */
    END_ABSENT, /* it has not entered the call */
    END_AHEAD,  /* it is in a later call */
    END_IDLE    /* it waits for nobody */
} end_t;

/* Between the rank and the call. */
static const char *const end_texts[] = {
    [END_LEFT] = "has left without ending",
    [END_CIRCLE] = "and others wait for each other in",
    [END_ABSENT] = "has not entered",
    [END_AHEAD] = "has gone on to a call after",
    [END_IDLE] = "makes no progress in",
};

typedef struct text {
    char buf[HCE_BOOT_TEXT_LEN];
    size_t len;
} text_t;

static void text_add(text_t *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void text_add(text_t *text, const char *format, ...)
{
    size_t room = sizeof(text->buf) - text->len;
    va_list args;
    int len;

    va_start(args, format);
    len = vsnprintf(text->buf + text->len, room, format, args);
    va_end(args);
    text->len += hce_min((size_t)len, room - 1);
}

/* What rank does as far as is known: of the hub itself now, of the rank that
 * complains when it did, of the others by their last heartbeat. */
static hce_boot_heartbeat_t report_of(const hce_boot_t *boot, int rank)
{
    const hce_boot_complaint_t *complaint = &boot->complaint;
    hce_boot_heartbeat_t report = {.call = complaint->call,
                                   .waits_for = complaint->waits_for};

    if (rank == complaint->rank)
        return report;
    if (rank != boot->rank)
        return hce_boot_link_of(boot, rank)->report;
    report.call =
        atomic_load_explicit(&boot->report_call, memory_order_relaxed);
    report.waits_for =
        atomic_load_explicit(&boot->report_waits_for, memory_order_relaxed);
    return report;
}

/* Does the chain end at rank? */
static end_t end_find(const hce_boot_t *boot, int rank)
{
    hce_boot_heartbeat_t report = report_of(boot, rank);

    if (rank != boot->rank && hce_boot_link_of(boot, rank)->has_left)
        return END_LEFT;
    if (report.call != boot->complaint.call)
        return report.call < boot->complaint.call ? END_ABSENT : END_AHEAD;
    return report.waits_for < 0 || report.waits_for == rank ? END_IDLE
                                                            : END_NONE;
}

/* Ranks from the one that complains to the one to blame; their number goes
 * to num_p. chain has room for all ranks. */
static end_t chain_find(const hce_boot_t *boot, int *chain, int *num_p)
{
    end_t end;
    int num = 0;

    chain[num++] = boot->complaint.rank;
    while ((end = end_find(boot, chain[num - 1])) == END_NONE) {
        int next = report_of(boot, chain[num - 1]).waits_for;

        for (int i = 0; i < num; i++) {
            if (chain[i] == next) {
                *num_p = num;
                return END_CIRCLE;
            }
        }
        chain[num++] = next;
    }
    *num_p = num;
    return end;
}

/* "rank 3 waits for rank 5, which waits for rank 7" */
static void chain_print(text_t *text, const int *chain, int num)
{
    for (int i = 1; i < num; i++) {
        if (i == 1)
            text_add(text, ": rank %d waits for ", chain[0]);
        else
            text_add(text, ", which waits for ");
        if (i == CHAIN_SHOWN && num > CHAIN_SHOWN + 2) {
            text_add(text, "%d more in a row and at last ", num - i - 1);
            i = num - 1;
        }
        text_add(text, "rank %d", chain[i]);
    }
}

static void complaint_decide(hce_boot_t *boot)
{
    hce_boot_complaint_t *complaint = &boot->complaint;
    int *chain = calloc((size_t)boot->size, sizeof(*chain));
    int num = 1, blamed = complaint->rank;
    end_t end = END_IDLE;
    text_t text = {.len = 0};
    char name[128];

    complaint->is_open = false;
    if (chain != NULL) {
        end = chain_find(boot, chain, &num);
        blamed = chain[num - 1];
    }
    text_add(&text, "rank %d %s call %llu", blamed, end_texts[end],
             (unsigned long long)complaint->call);
    if (chain != NULL)
        chain_print(&text, chain, num);
    free(chain);
    text_add(&text, "; %s",
             hce_boot_rank_text(boot, blamed, name, sizeof(name)));
    if (complaint->text[0] != '\0')
        text_add(&text, "; rank %d: %s", complaint->rank, complaint->text);
    hce_boot_news_tell(boot, HCE_ERR_TIMEOUT, blamed, "%s", text.buf);
}

static bool all_answered(const hce_boot_t *boot)
{
    for (int i = 0; i < boot->num_links; i++) {
        const hce_boot_link_t *link = &boot->links[i];

        if (hce_boot_link_is_open(link) && !link->has_left &&
            link->report.round != boot->watch.round)
            return false;
    }
    return true;
}

void hce_boot_stuck_tick(hce_boot_t *boot, uint64_t now)
{
    if (boot->complaint.is_open &&
        (now >= boot->complaint.decide_ns || all_answered(boot)))
        complaint_decide(boot);
}

static void complaint_open(hce_boot_t *boot, int rank,
                           const hce_boot_stuck_msg_t *msg)
{
    hce_boot_complaint_t *complaint = &boot->complaint;

    if (complaint->is_open || boot->verdict.have)
        return;
    complaint->is_open = true;
    complaint->rank = rank;
    complaint->call = msg->call;
    complaint->waits_for = msg->waits_for;
    complaint->decide_ns = hce_clock_ns() + ANSWER_NS;
    snprintf(complaint->text, sizeof(complaint->text), "%s", msg->text);
    hce_boot_watch_ask(boot);
}

hce_status_t hce_boot_on_stuck(hce_boot_t *boot, hce_boot_link_t *link,
                               const void *body, size_t len)
{
    hce_boot_stuck_msg_t msg;

    memcpy(&msg, body, sizeof(msg));
    msg.text[sizeof(msg.text) - 1] = '\0';
    if (msg.waits_for < -1 || msg.waits_for >= boot->size)
        return HCE_ERR_TRANSPORT;
    complaint_open(boot, link->rank, &msg);
    return HCE_OK;
}

/* Without a hub there is nobody who knows more. */
static void complaint_judge_alone(hce_boot_t *boot,
                                  const hce_boot_stuck_msg_t *msg)
{
    int rank = msg->waits_for >= 0 ? msg->waits_for : boot->rank;

    if (msg->waits_for >= 0) {
        hce_boot_news_tell(boot, HCE_ERR_TIMEOUT, rank,
                           "rank %d waits for rank %d in call %llu (the "
                           "hub has left, so no more is known): %s",
                           boot->rank, rank, (unsigned long long)msg->call,
                           msg->text);
    } else {
        hce_boot_news_tell(boot, HCE_ERR_TIMEOUT, rank,
                           "rank %d makes no progress in call %llu: %s", rank,
                           (unsigned long long)msg->call, msg->text);
    }
}

void hce_boot_stuck(hce_boot_t *boot, uint64_t call, int waits_for,
                    const char *text)
{
    hce_boot_stuck_msg_t msg = {.call = call, .waits_for = waits_for};

    snprintf(msg.text, sizeof(msg.text), "%s", text != NULL ? text : "");
    hce_boot_lock(boot);
    if (boot->verdict.have) {
        /* Nothing more to find out. */
    } else if (hce_boot_is_hub(boot)) {
        complaint_open(boot, boot->rank, &msg);
        hce_boot_wake(boot);
    } else if (!hce_boot_link_is_open(&boot->links[0]) ||
               boot->links[0].has_left) {
        complaint_judge_alone(boot, &msg);
    } else {
        hce_boot_link_send(boot, &boot->links[0], HCE_BOOT_STUCK, &msg,
                           sizeof(msg));
    }
    hce_boot_unlock(boot);
}
