/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Inside of a group: a star of links around one rank, the hub: rank 0, until
 * it leaves and another takes over. The hub has a link to each other rank, a
 * leaf has one. All functions here want the group's lock held, unless they
 * say otherwise.
 */
#ifndef HCE_BOOT_GROUP_H
#define HCE_BOOT_GROUP_H

#include "boot/boot.h"
#include "boot/conn.h"
#include "util/clock.h"

#include <pthread.h>
#include <stdatomic.h>

/* How long a leaf waits for the hub's verdict before it goes by its own. */
#define HCE_BOOT_VERDICT_NS (2 * HCE_NS_PER_SEC)

typedef struct hce_boot_link {
    hce_boot_conn_t conn; /* conn.fd is -1 before and after */
    int rank;             /* of the other side */
    hce_boot_who_t who;
    bool want_out;    /* epoll looks for room to send */
    bool has_left;    /* has said goodbye */
    bool is_watched;  /* has sent a heartbeat: its silence counts */
    bool is_awaited;  /* new hub: the rank has not returned yet */
    bool is_unproved; /* leaf: the new hub has not adopted it yet */
    bool is_missing;  /* has not come to the new hub, or is one that does not
                         answer: it has left, or died */
    int missed_by;    /* the rank that waits for it nevertheless, or -1, */
    uint64_t missed_call; /* in this call, */
    int missed_beats;     /* at so many heartbeats in a row */
    uint64_t heard_ns;    /* when something came last */
    uint64_t heard_bytes;
    hce_boot_heartbeat_t report;
    /* Hub: the rank's part of the exchange to come. */
    bool has_part;
    hce_boot_part_t part;
    void *part_data;
    size_t part_len;
} hce_boot_link_t;

/* A connection to a new hub that has not proved that it is a rank's. */
typedef struct hce_boot_caller {
    hce_boot_conn_t conn;
    uint64_t since_ns;
} hce_boot_caller_t;

typedef struct hce_boot_watch {
    bool is_started;
    bool is_attached; /* hce_boot_progress has been called */
    uint64_t silence_ns;
    uint64_t beat_ns; /* time between heartbeats */
    uint64_t next_beat_ns;
    uint64_t last_turn_ns;
    uint32_t round; /* of the last HCE_BOOT_ASK sent or seen */
} hce_boot_watch_t;

typedef struct hce_boot_verdict {
    bool have;
    bool delivered;
    hce_boot_news_t news;
    hce_boot_news_cb_t cb;
    void *cb_arg;
    /* Leaf: told to the hub, whose answer is awaited until then. Hub: held
     * back until then, as better knowledge may come. */
    bool has_pending;
    uint64_t pending_ns;
    hce_boot_news_t pending;
} hce_boot_verdict_t;

typedef struct hce_boot_exchange {
    bool is_open;         /* this rank is in a call */
    hce_boot_part_t head; /* of the last one; seq counts them */
    const void *part;
    size_t part_len;
    bool has_result;
    uint64_t *lens; /* [size], then the data of all; malloc'd */
    size_t data_len;
} hce_boot_exchange_t;

typedef struct hce_boot_complaint {
    bool is_open;
    int rank; /* who complains */
    uint64_t call;
    int waits_for;
    uint64_t decide_ns; /* at the latest, though reports are missing */
    char text[HCE_BOOT_TEXT_LEN];
} hce_boot_complaint_t;

#define HCE_BOOT_CALLERS_MAX 16

/* Who follows the hub, see heir.c and adopt.c. */
typedef struct hce_boot_heir {
    int rank;       /* hub: whom it has appointed, or -1 */
    bool has_place; /* hub: where that one listens */
    hce_boot_place_msg_t place;
    hce_boot_listen_t listen; /* heir: num is 0 for the others */
    bool is_handed;           /* hub: it is hub no longer */
    /* Leaf: to be carried out at the end of the turn; left is malloc'd. */
    bool is_due;
    hce_boot_handover_msg_t handover;
    uint8_t *left;
    /* Leaf and new hub: proofs between them are good for this place. */
    uint8_t hub_nonce[HCE_BOOT_NONCE_LEN];
    uint8_t leaf_nonce[HCE_BOOT_NONCE_LEN];
    /* New hub: how long ranks may return, and who has called. */
    uint64_t return_ns;
    hce_boot_caller_t callers[HCE_BOOT_CALLERS_MAX];
} hce_boot_heir_t;

struct hce_boot {
    char name[8];
    int rank, size;
    uint8_t secret[HCE_BOOT_KEY_LEN];
    hce_boot_who_t who;
    int epfd;
    int wake_fd; /* wakes a blocked caller when another thread progresses */
    /* Written by hce_boot_set_report, read by turns; a heartbeat may mix two
     * reports, which does no harm: who is stuck reports the same for long. */
    _Atomic(uint64_t) report_call;
    _Atomic(int32_t) report_waits_for;

    pthread_mutex_t lock; /* protects what follows */
    bool has_started;     /* all ranks are there */
    int waiters;
    int hub; /* rank */
    int num_links;
    hce_boot_link_t *links; /* hub: of all others by rank; leaf: of the hub */
    hce_boot_heir_t heir;
    hce_boot_watch_t watch;
    hce_boot_verdict_t verdict;
    hce_boot_exchange_t exchange;
    hce_boot_complaint_t complaint;
    bool has_left;  /* this rank has said goodbye */
    bool has_ended; /* all ranks have */
};

static inline bool hce_boot_is_hub(const hce_boot_t *boot)
{
    return boot->rank == boot->hub;
}

/* Hub: the link of another rank. */
static inline hce_boot_link_t *hce_boot_link_of(const hce_boot_t *boot,
                                                int rank)
{
    return &boot->links[rank < boot->hub ? rank : rank - 1];
}

static inline bool hce_boot_link_is_open(const hce_boot_link_t *link)
{
    return link->conn.fd >= 0;
}

/* group.c */

/* Before anybody else knows the group; no lock. */
hce_status_t hce_boot_group_create(const char *name, int rank, int size,
                                   hce_boot_t **boot_p);
/* Takes conn over. */
hce_status_t hce_boot_link_open(hce_boot_t *boot, hce_boot_link_t *link,
                                hce_boot_conn_t *conn,
                                const hce_boot_who_t *who);
void hce_boot_link_close(hce_boot_t *boot, hce_boot_link_t *link);
void hce_boot_link_send(hce_boot_t *boot, hce_boot_link_t *link,
                        hce_boot_type_t type, const void *body, size_t len);
/* To all open links; takes the reference of buf over (NULL: no memory). */
void hce_boot_links_post(hce_boot_t *boot, hce_boot_buf_t *buf);
/* "rank 3 on HOST (pid P)"; returns buf. */
const char *hce_boot_rank_text(const hce_boot_t *boot, int rank, char *buf,
                               size_t size);
/* The link that leads to rank; NULL if this rank has none. */
hce_boot_link_t *hce_boot_link_find(hce_boot_t *boot, int rank);

void hce_boot_lock(hce_boot_t *boot);
/* Calls the news callback if that is due, after unlocking. */
void hce_boot_unlock(hce_boot_t *boot);

/* Ends the sleep of a blocked caller in another thread. */
void hce_boot_wake(hce_boot_t *boot);

/* Does all that can be done without waiting. */
void hce_boot_turn(hce_boot_t *boot);

/* Turns until done() or the deadline; the lock is released while sleeping.
 * HCE_OK, HCE_ERR_TIMEOUT, or the news' status unless ignore_news. */
typedef struct hce_boot_until {
    bool (*done)(const hce_boot_t *boot);
    uint64_t deadline;
    bool ignore_news;
} hce_boot_until_t;
hce_status_t hce_boot_wait(hce_boot_t *boot, const hce_boot_until_t *until);

/* When the next turn is due if nothing comes. */
uint64_t hce_boot_due_ns(const hce_boot_t *boot);

/* heir.c */

/* Hub: chooses who follows, if there is nobody and anybody is needed. */
void hce_boot_heir_appoint(hce_boot_t *boot);
/* Hub, at its end: sends the others to the heir. */
void hce_boot_hand_over(hce_boot_t *boot);
/* Carries out a handover that has come. After all links have been read: they
 * change. */
void hce_boot_heir_tick(hce_boot_t *boot, uint64_t now);
/* lock need not be held: nobody else knows the group any more. */
void hce_boot_heir_cleanup(hce_boot_t *boot);
/* Of a frame that is sent by or to rank. */
void hce_boot_heir_mac(const hce_boot_t *boot, int rank,
                       const uint8_t nonce[HCE_BOOT_NONCE_LEN],
                       hce_boot_type_t type, uint8_t mac[HCE_BOOT_KEY_LEN]);
hce_status_t hce_boot_on_appoint(hce_boot_t *boot, hce_boot_link_t *link,
                                 const void *body, size_t len);
hce_status_t hce_boot_on_place(hce_boot_t *boot, hce_boot_link_t *link,
                               const void *body, size_t len);
hce_status_t hce_boot_on_handover(hce_boot_t *boot, hce_boot_link_t *link,
                                  const void *body, size_t len);
hce_status_t hce_boot_on_adopt(hce_boot_t *boot, hce_boot_link_t *link,
                               const void *body, size_t len);

/* adopt.c */

/* Events of the epoll set from this number on are not those of links. */
#define HCE_BOOT_EVENT_ADOPT 0x40000000u

/* Heir: becomes the hub. left has a bit for each rank that has left. */
hce_status_t hce_boot_adopt_start(hce_boot_t *boot, const uint8_t *left);
void hce_boot_adopt_event(hce_boot_t *boot, uint32_t event);
void hce_boot_adopt_tick(hce_boot_t *boot, uint64_t now);
void hce_boot_adopt_stop(hce_boot_t *boot);

/* frames.c */

/* Handles what has come; the link may be closed afterwards. */
void hce_boot_link_read(hce_boot_t *boot, hce_boot_link_t *link);

/* What the handlers of frames.c call: HCE_OK, or HCE_ERR_TRANSPORT when the
 * frame makes no sense. */
typedef hce_status_t (*hce_boot_handler_t)(hce_boot_t *boot,
                                           hce_boot_link_t *link,
                                           const void *body, size_t len);

/* news.c */
void hce_boot_news_tell(hce_boot_t *boot, hce_status_t status, int rank,
                        const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void hce_boot_news_tick(hce_boot_t *boot, uint64_t now);
/* Hub: for a rank that returns after the verdict. */
void hce_boot_news_repeat(hce_boot_t *boot, hce_boot_link_t *link);
/* Hub: ends its wait for others to leave, if all have. */
void hce_boot_end_check(hce_boot_t *boot);
/* The connection has ended by itself, or is broken, as why says. */
void hce_boot_link_lost(hce_boot_t *boot, hce_boot_link_t *link,
                        const char *why);
/* Leaf: the new hub is not there. */
void hce_boot_hub_missed(hce_boot_t *boot, hce_boot_link_t *link);
hce_status_t hce_boot_on_news(hce_boot_t *boot, hce_boot_link_t *link,
                              const void *body, size_t len);
hce_status_t hce_boot_on_goodbye(hce_boot_t *boot, hce_boot_link_t *link,
                                 const void *body, size_t len);
hce_status_t hce_boot_on_end(hce_boot_t *boot, hce_boot_link_t *link,
                             const void *body, size_t len);

/* watch.c */
/* All ranks are there. */
void hce_boot_watch_start(hce_boot_t *boot, uint64_t silence_ns);
/* From now on this rank progresses all the time: others may count on it. */
void hce_boot_watch_attach(hce_boot_t *boot);
/* First in a turn, before anything is read. */
void hce_boot_watch_resume(hce_boot_t *boot, uint64_t now);
void hce_boot_watch_tick(hce_boot_t *boot, uint64_t now);
/* Notes that something has come, if so. */
void hce_boot_link_heard(hce_boot_link_t *link);
/* Asks all ranks for a report now. */
void hce_boot_watch_ask(hce_boot_t *boot);
hce_status_t hce_boot_on_heartbeat(hce_boot_t *boot, hce_boot_link_t *link,
                                   const void *body, size_t len);
hce_status_t hce_boot_on_ask(hce_boot_t *boot, hce_boot_link_t *link,
                             const void *body, size_t len);

/* stuck.c */
void hce_boot_stuck_tick(hce_boot_t *boot, uint64_t now);
hce_status_t hce_boot_on_stuck(hce_boot_t *boot, hce_boot_link_t *link,
                               const void *body, size_t len);

/* exchange.c */
void hce_boot_exchange_cleanup(hce_boot_t *boot);
/* Hub: ends the open exchange if all parts are there, or if a rank that has
 * not given its part has left. */
void hce_boot_exchange_check(hce_boot_t *boot);
/* Rank 0 has left, with which there is no exchange. */
void hce_boot_exchange_forgo(hce_boot_t *boot);
hce_status_t hce_boot_on_part(hce_boot_t *boot, hce_boot_link_t *link,
                              const void *body, size_t len);
hce_status_t hce_boot_on_result(hce_boot_t *boot, hce_boot_link_t *link,
                                const void *body, size_t len);
hce_status_t hce_boot_on_late(hce_boot_t *boot, hce_boot_link_t *link,
                              const void *body, size_t len);

#endif
