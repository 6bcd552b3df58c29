/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * A leaf while its group forms: calls at all places where its hub may listen,
 * again and again until one has seated it. Runs in the thread that creates
 * the group. The places are tried side by side, each a little after the one
 * before, so that one that accepts and says nothing costs no time.
 */
#include <config.h>

#include "boot/host.h"
#include "boot/mac.h"
#include "boot/meet.h"
#include "util/log.h"
#include "util/math.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STAGGER_NS       (100 * HCE_NS_PER_MS)
#define ATTEMPT_NS       (5 * HCE_NS_PER_SEC) /* until the hub's challenge */
#define BACKOFF_FIRST_NS (10 * HCE_NS_PER_MS)
#define BACKOFF_MAX_NS   HCE_NS_PER_SEC
/* A hub that another hand has started may be another job's: how long a better
 * one is looked for. */
#define STRANGER_NS (2 * HCE_NS_PER_SEC)

/* A private hub listens before anybody knows of it. Where nobody does it is
 * gone, or has given up; tried more than once all the same. */
#define REFUSALS_MAX 3

typedef enum {
    ATTEMPT_IDLE,
    ATTEMPT_CONNECTING,
    ATTEMPT_GREETED,    /* hello sent */
    ATTEMPT_CHALLENGED, /* it is a hub of this job, by its name */
    ATTEMPT_PROVED      /* proof sent; one at a time */
} attempt_state_t;

typedef struct attempt {
    const hce_boot_addr_t *addr;
    hce_boot_conn_t conn;
    attempt_state_t state;
    bool was_tried;
    uint64_t then_ns; /* idle: when to try; else when to give up */
    uint64_t backoff_ns;
    int refusals; /* nobody listened, so many times in a row */
    hce_boot_hello_t hello;
    hce_boot_challenge_t challenge;
    char why[192]; /* how it ended last */
} attempt_t;

typedef struct join {
    hce_boot_meeting_t *meeting;
    hce_boot_t *boot;
    uint64_t start_ns;
    int num;
    attempt_t *attempts;
    struct pollfd *fds;
    hce_status_t status; /* HCE_INPROGRESS until it is known */
} join_t;

/* The next place need not wait any longer for its first try. */
static void attempt_end(join_t *join, attempt_t *attempt, const char *why)
{
    attempt_t *next = attempt + 1;
    uint64_t now = hce_clock_ns();

    hce_boot_conn_close(&attempt->conn);
    snprintf(attempt->why, sizeof(attempt->why), "%s", why);
    attempt->state = ATTEMPT_IDLE;
    attempt->then_ns = now + attempt->backoff_ns;
    attempt->backoff_ns = hce_min(2 * attempt->backoff_ns, BACKOFF_MAX_NS);
    if (next < join->attempts + join->num && !next->was_tried)
        next->then_ns = now;
}

static void connect_fail(join_t *join, attempt_t *attempt, int rc)
{
    attempt->refusals = rc == -ECONNREFUSED ? attempt->refusals + 1 : 0;
    attempt_end(join, attempt, strerror(-rc));
}

static void attempt_start(join_t *join, attempt_t *attempt, uint64_t now)
{
    int fd, rc;

    attempt->was_tried = true;
    rc = hce_boot_net_connect(attempt->addr, &fd);
    if (rc != 0) {
        connect_fail(join, attempt, rc);
        return;
    }
    hce_boot_conn_init(&attempt->conn, fd, HCE_BOOT_HELLO_MAX);
    attempt->state = ATTEMPT_CONNECTING;
    attempt->then_ns = now + ATTEMPT_NS;
}

static void attempt_greet(join_t *join, attempt_t *attempt)
{
    hce_boot_hello_t *hello = &attempt->hello;
    int rc = hce_boot_net_connect_result(attempt->conn.fd);

    if (rc != 0) {
        connect_fail(join, attempt, rc);
        return;
    }
    attempt->refusals = 0;
    memset(hello, 0, sizeof(*hello));
    hello->rank = join->meeting->rank;
    hello->size = join->meeting->size;
    hello->job = join->meeting->job;
    hello->who = join->boot->who;
    if (hce_boot_random(hello->nonce, sizeof(hello->nonce)) != HCE_OK) {
        join->status = HCE_ERR_SYSTEM;
        return;
    }
    if (hce_boot_conn_send(&attempt->conn, HCE_BOOT_HELLO, hello,
                           sizeof(*hello)) != HCE_OK) {
        attempt_end(join, attempt, "closed by the other side");
        return;
    }
    attempt->state = ATTEMPT_GREETED;
}

static void nonces_fill(const attempt_t *attempt, hce_boot_nonces_t *nonces)
{
    memcpy(nonces->leaf, attempt->hello.nonce, sizeof(nonces->leaf));
    memcpy(nonces->hub, attempt->challenge.nonce, sizeof(nonces->hub));
}

/* From here on there is no time limit but the whole meeting's: the hub may
 * have seated this rank already. */
static void attempt_prove(join_t *join, attempt_t *attempt)
{
    hce_boot_nonces_t nonces;
    hce_boot_proof_t proof;

    nonces_fill(attempt, &nonces);
    hce_boot_claim_mac(join->meeting, &attempt->hello, &nonces, HCE_BOOT_PROOF,
                       proof.mac);
    if (hce_boot_conn_send(&attempt->conn, HCE_BOOT_PROOF, &proof,
                           sizeof(proof)) != HCE_OK) {
        attempt_end(join, attempt, "closed by the other side");
        return;
    }
    attempt->state = ATTEMPT_PROVED;
    attempt->then_ns = HCE_TIME_NEVER;
}

static void welcome_handle(join_t *join, attempt_t *attempt,
                           const hce_boot_welcome_t *welcome)
{
    hce_boot_nonces_t nonces;
    uint8_t mac[HCE_BOOT_KEY_LEN];

    nonces_fill(attempt, &nonces);
    hce_boot_claim_mac(join->meeting, &attempt->hello, &nonces,
                       HCE_BOOT_WELCOME, mac);
    if (!hce_boot_mac_equal(mac, welcome->mac)) {
        attempt_end(join, attempt, "could not prove that it is our rank 0");
        return;
    }
    hce_boot_mac(join->meeting->key, welcome->seed, sizeof(welcome->seed),
                 join->boot->secret);
    hce_boot_lock(join->boot);
    join->status = hce_boot_link_open(join->boot, &join->boot->links[0],
                                      &attempt->conn, &attempt->challenge.who);
    hce_boot_unlock(join->boot);
    attempt->state = ATTEMPT_IDLE;
}

/* Whether another place could do better. */
static void refuse_handle(join_t *join, attempt_t *attempt,
                          const hce_boot_frame_t *frame, const void *body)
{
    hce_boot_refuse_t refuse;
    char why[192];

    memcpy(&refuse, body, sizeof(refuse));
    refuse.text[sizeof(refuse.text) - 1] = '\0';
    snprintf(why, sizeof(why), "refused: %s", refuse.text);
    attempt_end(join, attempt, why);
    if (refuse.reason == HCE_BOOT_REASON_VERSION) {
        snprintf(join->meeting->why, sizeof(join->meeting->why),
                 "rank %d speaks wire version %u, rank 0 speaks version %u",
                 join->meeting->rank, HCE_BOOT_WIRE_VERSION, refuse.version);
        join->status = HCE_ERR_VERSION;
    } else if (join->meeting->is_private &&
               refuse.reason != HCE_BOOT_REASON_JOB) {
        snprintf(join->meeting->why, sizeof(join->meeting->why), "%s",
                 refuse.text);
        join->status = refuse.reason == HCE_BOOT_REASON_SECRET
                           ? HCE_ERR_BOOTSTRAP
                           : HCE_ERR_CONFIG;
    }
}

static void attempt_read(join_t *join, attempt_t *attempt)
{
    const hce_boot_frame_t *frame;
    const void *body;
    hce_status_t status;

    status = hce_boot_conn_next(&attempt->conn, &frame, &body);
    if (status == HCE_INPROGRESS)
        return;
    if (status == HCE_ERR_GONE) {
        attempt_end(join, attempt, "closed by the other side");
    } else if (status != HCE_OK) {
        attempt_end(join, attempt, "speaks something else");
    } else if (frame->type == HCE_BOOT_REFUSE &&
               frame->len == sizeof(hce_boot_refuse_t)) {
        refuse_handle(join, attempt, frame, body);
    } else if (frame->version == HCE_BOOT_WIRE_VERSION &&
               attempt->state == ATTEMPT_GREETED &&
               frame->type == HCE_BOOT_CHALLENGE &&
               frame->len == sizeof(attempt->challenge)) {
        memcpy(&attempt->challenge, body, sizeof(attempt->challenge));
        hce_boot_who_clean(&attempt->challenge.who);
        attempt->state = ATTEMPT_CHALLENGED;
    } else if (frame->version == HCE_BOOT_WIRE_VERSION &&
               attempt->state == ATTEMPT_PROVED &&
               frame->type == HCE_BOOT_WELCOME &&
               frame->len == sizeof(hce_boot_welcome_t)) {
        welcome_handle(join, attempt, body);
    } else {
        attempt_end(join, attempt, "answered out of turn");
    }
}

static void attempt_tick(join_t *join, attempt_t *attempt, uint64_t now)
{
    if (now < attempt->then_ns)
        return;
    if (attempt->state == ATTEMPT_IDLE)
        attempt_start(join, attempt, now);
    else if (attempt->state == ATTEMPT_CONNECTING)
        attempt_end(join, attempt, "no connection in 5 s");
    else
        attempt_end(join, attempt, "accepted, but said nothing in 5 s");
}

/* The first hub in the list that will do gets the proof. */
static void hub_choose(join_t *join, uint64_t now)
{
    attempt_t *chosen = NULL;

    for (int i = 0; i < join->num; i++) {
        attempt_t *attempt = &join->attempts[i];

        if (attempt->state == ATTEMPT_PROVED)
            return;
        if (chosen == NULL && attempt->state == ATTEMPT_CHALLENGED &&
            (join->meeting->is_private ||
             now >= join->start_ns + STRANGER_NS ||
             hce_boot_who_related(&join->boot->who, &attempt->challenge.who)))
            chosen = attempt;
    }
    if (chosen != NULL)
        attempt_prove(join, chosen);
}

/* Ticks all attempts and tells what to sleep for. */
static uint64_t attempts_tick(join_t *join)
{
    uint64_t now = hce_clock_ns();
    uint64_t then = join->meeting->deadline;

    for (int i = 0; i < join->num; i++)
        attempt_tick(join, &join->attempts[i], now);
    hub_choose(join, now);
    for (int i = 0; i < join->num; i++) {
        attempt_t *attempt = &join->attempts[i];

        join->fds[i].fd = attempt->conn.fd;
        join->fds[i].events =
            attempt->state == ATTEMPT_CONNECTING ? POLLOUT : POLLIN;
        then = hce_min(then, attempt->then_ns);
        if (attempt->state == ATTEMPT_CHALLENGED &&
            now < join->start_ns + STRANGER_NS)
            then = hce_min(then, join->start_ns + STRANGER_NS);
    }
    return then;
}

static void attempts_sleep(join_t *join, uint64_t then)
{
    int count = poll(join->fds, (nfds_t)join->num,
                     hce_boot_meeting_sleep_ms(join->meeting, then));

    for (int i = 0; i < join->num && count > 0; i++) {
        attempt_t *attempt = &join->attempts[i];

        if (join->fds[i].revents == 0 || join->status != HCE_INPROGRESS)
            continue;
        if (attempt->state == ATTEMPT_CONNECTING)
            attempt_greet(join, attempt);
        else
            attempt_read(join, attempt);
    }
}

/* "... in time; A: why; B to C: why" */
static void join_explain(join_t *join, const char *what)
{
    char *why = join->meeting->why;
    size_t size = sizeof(join->meeting->why);
    size_t len =
        (size_t)snprintf(why, size, "rank %d has not found its rank 0 %s",
                         join->meeting->rank, what);

    for (int i = 0; i < join->num && len < size;) {
        const attempt_t *first = &join->attempts[i];
        const char *text = first->why[0] != '\0' ? first->why : "no answer";
        char a[HCE_BOOT_ADDR_TEXT], b[HCE_BOOT_ADDR_TEXT];
        int last = i;

        while (last + 1 < join->num &&
               strcmp(join->attempts[last + 1].why, first->why) == 0)
            last++;
        hce_boot_addr_text(first->addr, a, sizeof(a));
        hce_boot_addr_text(join->attempts[last].addr, b, sizeof(b));
        len +=
            (size_t)snprintf(why + len, size - len, "; %s%s%s: %s", a,
                             last > i ? " to " : "", last > i ? b : "", text);
        i = last + 1;
    }
}

static bool hub_is_gone(const join_t *join)
{
    for (int i = 0; i < join->num; i++)
        if (join->attempts[i].refusals < REFUSALS_MAX)
            return false;
    return join->meeting->is_private;
}

static hce_status_t join_run(join_t *join)
{
    while (join->status == HCE_INPROGRESS) {
        uint64_t then = attempts_tick(join);

        if (join->status == HCE_INPROGRESS)
            attempts_sleep(join, then);
        if (join->status != HCE_INPROGRESS)
            continue;
        join->status = hce_boot_meeting_check(join->meeting);
        if (join->status == HCE_ERR_BOOTSTRAP) {
            join_explain(join, "in time");
        } else if (join->status == HCE_INPROGRESS && hub_is_gone(join)) {
            join_explain(join, "where it was: it has ended or given up");
            join->status = HCE_ERR_BOOTSTRAP;
        }
    }
    return join->status;
}

hce_status_t hce_boot_join(hce_boot_meeting_t *meeting, hce_boot_t *boot)
{
    join_t join = {.meeting = meeting,
                   .boot = boot,
                   .start_ns = hce_clock_ns(),
                   .num = meeting->num_addrs,
                   .status = HCE_INPROGRESS};
    hce_status_t status = HCE_ERR_NO_MEMORY;

    join.attempts = calloc((size_t)join.num, sizeof(*join.attempts));
    join.fds = calloc((size_t)join.num, sizeof(*join.fds));
    if (join.attempts != NULL && join.fds != NULL) {
        for (int i = 0; i < join.num; i++) {
            attempt_t *attempt = &join.attempts[i];

            hce_boot_conn_init(&attempt->conn, -1, 0);
            attempt->addr = &meeting->addrs[i];
            attempt->backoff_ns = BACKOFF_FIRST_NS;
            attempt->then_ns = join.start_ns + (uint64_t)i * STAGGER_NS;
        }
        status = join_run(&join);
        for (int i = 0; i < join.num; i++)
            hce_boot_conn_close(&join.attempts[i].conn);
    } else {
        snprintf(meeting->why, sizeof(meeting->why), "no memory");
    }
    free(join.attempts);
    free(join.fds);
    return status;
}
