/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Heartbeats in both directions of each link, and who is silent. A rank is
 * watched from its first heartbeat on, which it sends when it first calls
 * hce_boot_progress: before that it may be busy with its own start.
 */
#include <config.h>

#include "boot/group.h"
#include "util/log.h"
#include "util/math.h"

#include <string.h>

#define BEAT_MAX_NS      HCE_NS_PER_SEC
#define BEATS_IN_SILENCE 4
#define BEATS_MISSED     3 /* two reports are between them at least */

static void beat_schedule(hce_boot_t *boot)
{
    hce_boot_watch_t *watch = &boot->watch;

    if (watch->is_started && watch->is_attached &&
        watch->next_beat_ns == HCE_TIME_NEVER)
        watch->next_beat_ns = 0;
}

void hce_boot_watch_start(hce_boot_t *boot, uint64_t silence_ns)
{
    hce_boot_watch_t *watch = &boot->watch;

    watch->silence_ns = silence_ns;
    watch->beat_ns = BEAT_MAX_NS;
    if (silence_ns != 0) {
        watch->beat_ns =
            hce_min(BEAT_MAX_NS,
                    hce_max(silence_ns / BEATS_IN_SILENCE, HCE_NS_PER_MS));
    }
    watch->is_started = true;
    beat_schedule(boot);
}

void hce_boot_watch_attach(hce_boot_t *boot)
{
    boot->watch.is_attached = true;
    beat_schedule(boot);
}

/* When this process was stopped itself (SIGSTOP, a debugger, a suspended
 * machine), the time that others had to be heard has not passed for them. */
void hce_boot_watch_resume(hce_boot_t *boot, uint64_t now)
{
    hce_boot_watch_t *watch = &boot->watch;

    if (watch->silence_ns != 0 && watch->last_turn_ns != 0 &&
        now - watch->last_turn_ns > watch->silence_ns / 2)
        for (int i = 0; i < boot->num_links; i++)
            boot->links[i].heard_ns = now;
    watch->last_turn_ns = now;
}

static void heartbeat_fill(const hce_boot_t *boot,
                           hce_boot_heartbeat_t *beat_p)
{
    beat_p->call =
        atomic_load_explicit(&boot->report_call, memory_order_relaxed);
    beat_p->waits_for =
        atomic_load_explicit(&boot->report_waits_for, memory_order_relaxed);
    beat_p->round = boot->watch.round;
}

/* Nothing is queued behind what a stopped peer has not taken: that much is
 * enough to be heard by when it goes on. */
static void beats_send(hce_boot_t *boot)
{
    hce_boot_heartbeat_t beat;

    heartbeat_fill(boot, &beat);
    for (int i = 0; i < boot->num_links; i++) {
        hce_boot_link_t *link = &boot->links[i];

        if (hce_boot_link_is_open(link) &&
            hce_boot_conn_is_idle(&link->conn)) {
            hce_boot_link_send(boot, link, HCE_BOOT_HEARTBEAT, &beat,
                               sizeof(beat));
        }
    }
}

static void link_silent(hce_boot_t *boot, hce_boot_link_t *link, uint64_t now)
{
    char name[128];

    hce_boot_news_tell(
        boot, HCE_ERR_SILENT, link->rank, "%s has sent nothing for %.1f s",
        hce_boot_rank_text(boot, link->rank, name, sizeof(name)),
        (double)(now - link->heard_ns) / HCE_NS_PER_SEC);
}

static void silence_check(hce_boot_t *boot, uint64_t now)
{
    for (int i = 0; i < boot->num_links; i++) {
        hce_boot_link_t *link = &boot->links[i];

        if (hce_boot_link_is_open(link) && link->is_watched &&
            !link->has_left && now > link->heard_ns &&
            now - link->heard_ns > boot->watch.silence_ns)
            link_silent(boot, link, now);
    }
}

/* The rank that waits for link's, and in which call; -1 if none is known. */
static int waiter_find(const hce_boot_t *boot, const hce_boot_link_t *link,
                       uint64_t *call_p)
{
    hce_boot_heartbeat_t report;

    heartbeat_fill(boot, &report);
    if (!boot->has_left && report.waits_for == link->rank) {
        *call_p = report.call;
        return boot->rank;
    }
    for (int i = 0; i < boot->num_links; i++) {
        const hce_boot_link_t *other = &boot->links[i];

        if (hce_boot_link_is_open(other) && !other->has_left &&
            other->report.waits_for == link->rank) {
            *call_p = other->report.call;
            return other->rank;
        }
    }
    return -1;
}

/* A rank that has left in good order, unnoticed in the midst of a change of
 * hubs, has done its part of all calls: nobody waits for it for long. */
static void missing_check(hce_boot_t *boot, hce_boot_link_t *link,
                          uint64_t now)
{
    uint64_t call = 0;
    int rank = waiter_find(boot, link, &call);

    if (rank < 0 || rank != link->missed_by || call != link->missed_call)
        link->missed_beats = 0;
    link->missed_by = rank;
    link->missed_call = call;
    if (rank < 0 || ++link->missed_beats < BEATS_MISSED ||
        now - link->heard_ns <= boot->watch.silence_ns)
        return;
    hce_boot_news_tell(boot, HCE_ERR_SILENT, link->rank,
                       "rank %d has sent nothing since the hub left %.1f s "
                       "ago, and rank %d waits for it in call %llu",
                       link->rank,
                       (double)(now - link->heard_ns) / HCE_NS_PER_SEC, rank,
                       (unsigned long long)call);
}

static void missing_find(hce_boot_t *boot, uint64_t now)
{
    for (int i = 0; i < boot->num_links && !boot->verdict.have; i++)
        if (boot->links[i].is_missing)
            missing_check(boot, &boot->links[i], now);
}

void hce_boot_watch_tick(hce_boot_t *boot, uint64_t now)
{
    hce_boot_watch_t *watch = &boot->watch;

    if (now < watch->next_beat_ns)
        return;
    beats_send(boot);
    watch->next_beat_ns = now + watch->beat_ns;
    if (watch->silence_ns != 0 && !boot->verdict.have &&
        (hce_boot_is_hub(boot) || !boot->has_left)) {
        silence_check(boot, now);
        missing_find(boot, now);
    }
}

void hce_boot_link_heard(hce_boot_link_t *link)
{
    if (link->conn.bytes_in != link->heard_bytes) {
        link->heard_bytes = link->conn.bytes_in;
        link->heard_ns = hce_clock_ns();
    }
}

void hce_boot_watch_ask(hce_boot_t *boot)
{
    hce_boot_heartbeat_t beat;

    boot->watch.round++;
    heartbeat_fill(boot, &beat);
    hce_boot_links_post(
        boot, hce_boot_buf_create(HCE_BOOT_ASK, &beat, sizeof(beat), NULL, 0));
}

hce_status_t hce_boot_on_heartbeat(hce_boot_t *boot, hce_boot_link_t *link,
                                   const void *body, size_t len)
{
    memcpy(&link->report, body, sizeof(link->report));
    if (link->report.waits_for < -1 || link->report.waits_for >= boot->size)
        return HCE_ERR_TRANSPORT;
    link->is_watched = true;
    return HCE_OK;
}

hce_status_t hce_boot_on_ask(hce_boot_t *boot, hce_boot_link_t *link,
                             const void *body, size_t len)
{
    hce_boot_heartbeat_t beat;

    memcpy(&link->report, body, sizeof(link->report));
    boot->watch.round = link->report.round;
    heartbeat_fill(boot, &beat);
    hce_boot_link_send(boot, link, HCE_BOOT_HEARTBEAT, &beat, sizeof(beat));
    return HCE_OK;
}

void hce_boot_set_report(hce_boot_t *boot, const hce_boot_report_t *report)
{
    atomic_store_explicit(&boot->report_call, report->call,
                          memory_order_relaxed);
    atomic_store_explicit(&boot->report_waits_for, report->waits_for,
                          memory_order_relaxed);
}
