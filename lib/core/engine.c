/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Ownership, the progress thread and sleeping. engine.lock protects owned,
 * the list of waiters and the life of the thread; it is never held during a
 * turn. The list of pollables belongs to the owner.
 */
#include "config.h"

#include "core/engine.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "core/bell.h"
#include "core/settings.h"
#include "core/values.h"
#include "topo/topo.h"
#include "util/arch.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/math.h"

/* A spin, if HCE_SPIN asks for one, some yields, then sleep. Where ranks share
 * cores even a short spin takes the core from the rank that is waited for;
 * where they do not, a yield returns at once. */
#define YIELDS_BEFORE_SLEEP 20

/* After a caller has given the ownership back the progress thread stays
 * parked for a while: the next blocking call then needs no thread switch. The
 * time doubles while callers keep coming. */
#define GRACE_MIN_NS (1 * HCE_NS_PER_MS)
#define GRACE_MAX_NS (100 * HCE_NS_PER_MS)
#define SLEEP_MAX_NS (500 * HCE_NS_PER_MS)

/* Callers who keep waiting so soon after the last of their calls make the
 * progress themselves: then a kick leaves the progress thread parked, which
 * saves two thread switches. It looks after it in case the caller does not
 * come this time. */
#define SOON_NS    (HCE_NS_PER_MS / 20)
#define SOON_CALLS 8
#define DEFER_NS   (1 * HCE_NS_PER_MS)


typedef struct waiter {
    bool (*done)(void *arg);
    void *arg;
    pthread_cond_t wake;
    struct waiter *next;
    bool signalled;
} waiter_t;

static struct {
    pthread_mutex_t lock;
    pthread_cond_t park; /* the progress thread waits here */
    pthread_t thread;
    int users;
    bool owned;
    bool stop;
    bool kicked;
    atomic_bool deferred; /* a kick that nobody has been woken for */
    unsigned soon;        /* waits in a row that came soon after a kick */
    uint64_t kicked_ns;   /* the last kick, 0 after a wait */
    waiter_t *waiters;
    uint64_t quiet_ns;    /* owner: since when nothing has moved */
    uint64_t released_ns; /* when a caller last gave the ownership back */
    hce_pollable_t *pollables;
    atomic_int num_waiting;
    atomic_int num_acquiring; /* of them, those who want the ownership only */
    atomic_bool sleeping; /* the owner sleeps in epoll_wait */
    atomic_bool forked;
    atomic_uint_fast64_t wakes;
} engine = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
};

/* Serialises first get and last put, which start and join the thread. */
static pthread_mutex_t life_lock = PTHREAD_MUTEX_INITIALIZER;

static bool turn(void)
{
    hce_pollable_t *p;
    bool moved = false;

    for (p = engine.pollables; p != NULL; p = p->next)
        moved |= p->ops->progress(p);
    return moved;
}

static bool any_busy(void)
{
    hce_pollable_t *p;

    for (p = engine.pollables; p != NULL; p = p->next)
        if (p->ops->is_busy(p))
            return true;
    return false;
}

static bool arm_all(uint64_t *next_ns_p)
{
    hce_pollable_t *p;
    bool can_sleep = true;
    uint64_t next_ns = hce_clock_ns() + SLEEP_MAX_NS;

    for (p = engine.pollables; p != NULL && can_sleep; p = p->next) {
        next_ns = hce_min(next_ns, p->ops->next_ns(p));
        can_sleep = p->ops->arm(p);
    }
    *next_ns_p = next_ns;
    return can_sleep;
}

/* The owner has nothing to do. wanted() is looked at after sleeping has been
 * announced, so that a kick or a new waiter between the two is not lost. */
static void owner_sleep(bool (*wanted)(void *arg), void *arg)
{
    hce_pollable_t *p;
    uint64_t next_ns;

    /* seq_cst: pairs with wake_owner(), which changes what wanted() reads
     * and then reads sleeping; one of the two sees the other. */
    atomic_store(&engine.sleeping, true);
    if (arm_all(&next_ns) && !wanted(arg) &&
        atomic_load(&engine.num_acquiring) == 0)
        hce_bell_sleep(next_ns);
    atomic_store(&engine.sleeping, false);
    for (p = engine.pollables; p != NULL; p = p->next)
        p->ops->awake(p);
    hce_bell_drain();
}

static void wake_owner(void)
{
    if (atomic_load(&engine.sleeping))
        hce_bell_ring();
}

/* True while the owner still spins. */
static bool spin(unsigned quiet)
{
    uint64_t now;

    if (hce_core_values.spin_ns == 0 || quiet > 1)
        return false;
    now = hce_clock_ns();
    if (quiet == 0)
        engine.quiet_ns = now;
    if (now - engine.quiet_ns >= hce_core_values.spin_ns)
        return false;
    hce_arch_pause();
    return true;
}

/* quiet: 0 after a turn that moved something, else what this returned. */
static unsigned idle(unsigned quiet, bool (*wanted)(void *arg), void *arg)
{
    if (spin(quiet))
        return 1;
    if (quiet < YIELDS_BEFORE_SLEEP)
        sched_yield();
    else
        owner_sleep(wanted, arg);
    return quiet + 1;
}

/* Caller holds engine.lock. */
static void signal_waiter(waiter_t *waiter)
{
    waiter->signalled = true;
    pthread_cond_signal(&waiter->wake);
}

/* Those whose work has been done by this owner may return. */
static void signal_done_waiters(void)
{
    waiter_t *w;

    if (atomic_load_explicit(&engine.num_waiting, memory_order_relaxed) == 0)
        return;
    pthread_mutex_lock(&engine.lock);
    for (w = engine.waiters; w != NULL; w = w->next)
        if (!w->signalled && w->done(w->arg))
            signal_waiter(w);
    pthread_mutex_unlock(&engine.lock);
}

/* Caller holds engine.lock. The first waiter takes over. */
static void disown(void)
{
    engine.owned = false;
    if (engine.waiters != NULL)
        signal_waiter(engine.waiters);
}

static bool never(void *arg)
{
    return false;
}

/* Caller holds engine.lock. Those who only want the ownership go first: they
 * keep it for a moment, and nobody ends their wait for them. */
static void waiter_add(waiter_t *waiter)
{
    waiter_t **at = &engine.waiters;

    if (waiter->done == never)
        atomic_fetch_add(&engine.num_acquiring, 1);
    else
        while (*at != NULL)
            at = &(*at)->next;
    waiter->next = *at;
    *at = waiter;
    atomic_fetch_add(&engine.num_waiting, 1);
}

/* Caller holds engine.lock. */
static void waiter_remove(waiter_t *waiter)
{
    waiter_t **at;

    for (at = &engine.waiters; *at != waiter; at = &(*at)->next)
        ;
    *at = waiter->next;
    if (waiter->done == never)
        atomic_fetch_sub(&engine.num_acquiring, 1);
    atomic_fetch_sub(&engine.num_waiting, 1);
}

/* Caller holds engine.lock. */
static bool is_free_for(const waiter_t *waiter)
{
    return !engine.owned &&
           (waiter->done == never || atomic_load(&engine.num_acquiring) == 0);
}

/* Caller holds engine.lock. Returns true as the owner, false if done(arg) came
 * true meanwhile. */
static bool own(bool (*done)(void *arg), void *arg)
{
    waiter_t waiter = {.done = done, .arg = arg};
    bool is_free = is_free_for(&waiter);

    if (!is_free) {
        pthread_cond_init(&waiter.wake, NULL);
        waiter_add(&waiter);
        wake_owner();
        while (!(is_free = is_free_for(&waiter)) && !done(arg)) {
            waiter.signalled = false;
            pthread_cond_wait(&waiter.wake, &engine.lock);
        }
        waiter_remove(&waiter);
        pthread_cond_destroy(&waiter.wake);
    }
    if (is_free) {
        engine.owned = true;
        engine.kicked = false;
    }
    return is_free;
}

void hce_engine_acquire(void)
{
    pthread_mutex_lock(&engine.lock);
    (void)own(never, NULL);
    pthread_mutex_unlock(&engine.lock);
}

/* Caller holds engine.lock and owns the engine. */
static void give_back(void)
{
    engine.released_ns = hce_clock_ns();
    if (engine.waiters == NULL && any_busy()) {
        engine.kicked = true;
        pthread_cond_signal(&engine.park);
    }
    disown();
}

void hce_engine_release(void)
{
    pthread_mutex_lock(&engine.lock);
    give_back();
    pthread_mutex_unlock(&engine.lock);
}

/* Others want the ownership for a moment: true if it came back. */
static bool lend(bool (*done)(void *arg), void *arg)
{
    bool is_owner;

    pthread_mutex_lock(&engine.lock);
    disown();
    is_owner = own(done, arg);
    pthread_mutex_unlock(&engine.lock);
    return is_owner;
}

/* Caller holds engine.lock. A caller has come to wait. */
static void note_wait(void)
{
    if (engine.kicked_ns == 0)
        return;
    if (hce_clock_ns() - engine.kicked_ns > SOON_NS)
        engine.soon = 0;
    else if (engine.soon < SOON_CALLS && ++engine.soon == SOON_CALLS)
        pthread_cond_signal(&engine.park); /* it is to look sooner */
    engine.kicked_ns = 0;
    engine.deferred = false;
}

void hce_engine_wait(bool (*done)(void *arg), void *arg)
{
    unsigned quiet = 0;
    bool is_owner;

    pthread_mutex_lock(&engine.lock);
    note_wait();
    is_owner = own(done, arg);
    pthread_mutex_unlock(&engine.lock);
    while (is_owner && !done(arg)) {
        if (atomic_load(&engine.num_acquiring) > 0) {
            is_owner = lend(done, arg);
        } else if (turn()) {
            quiet = 0;
            signal_done_waiters();
        } else {
            quiet = idle(quiet, done, arg);
        }
    }
    if (!is_owner)
        return;
    pthread_mutex_lock(&engine.lock);
    give_back();
    pthread_mutex_unlock(&engine.lock);
}

void hce_engine_kick(void)
{
    pthread_mutex_lock(&engine.lock);
    engine.kicked_ns = hce_clock_ns();
    if (engine.owned) {
        wake_owner();
    } else if (engine.soon >= SOON_CALLS) {
        engine.deferred = true;
    } else {
        engine.kicked = true;
        pthread_cond_signal(&engine.park);
    }
    pthread_mutex_unlock(&engine.lock);
}

/* Caller holds engine.lock. The caller that a kick was left to does not come
 * to wait; the thread takes over. */
static void end_deferral(void)
{
    engine.soon = 0;
    engine.deferred = false;
    engine.kicked = true;
}

void hce_engine_rouse(void)
{
    if (!atomic_load_explicit(&engine.deferred, memory_order_relaxed))
        return;
    pthread_mutex_lock(&engine.lock);
    if (engine.deferred) {
        end_deferral();
        pthread_cond_signal(&engine.park);
    }
    pthread_mutex_unlock(&engine.lock);
}

static bool thread_is_wanted(void *arg)
{
    return atomic_load(&engine.num_waiting) > 0;
}

/* The progress thread owns the engine until a caller wants it. */
static void thread_progress(void)
{
    unsigned quiet = 0;

    while (!thread_is_wanted(NULL)) {
        if (turn())
            quiet = 0;
        else
            quiet = idle(quiet, thread_is_wanted, NULL);
        if (quiet > YIELDS_BEFORE_SLEEP)
            atomic_fetch_add_explicit(&engine.wakes, 1, memory_order_relaxed);
    }
}

/* Caller holds engine.lock. Waits while callers do the work. */
static void thread_park(void)
{
    uint64_t grace = GRACE_MIN_NS, seen, now, until;
    struct timespec ts;

    while (!engine.stop) {
        seen = engine.released_ns;
        now = hce_clock_ns();
        if (engine.deferred && now >= engine.kicked_ns + DEFER_NS)
            end_deferral();
        if (engine.kicked && !engine.owned)
            break;
        if (!engine.owned && now >= seen + grace)
            break;
        until = now + (engine.soon >= SOON_CALLS ? DEFER_NS : grace);
        ts.tv_sec = (time_t)(until / HCE_NS_PER_SEC);
        ts.tv_nsec = (long)(until % HCE_NS_PER_SEC);
        pthread_cond_timedwait(&engine.park, &engine.lock, &ts);
        atomic_fetch_add_explicit(&engine.wakes, 1, memory_order_relaxed);
        if (engine.owned || engine.released_ns != seen)
            grace = hce_min(2 * grace, GRACE_MAX_NS);
    }
    engine.kicked = false;
}

static void *thread_main(void *arg)
{
    hce_topo_pin_proxy();
    pthread_mutex_lock(&engine.lock);
    while (!engine.stop) {
        thread_park();
        if (engine.stop || engine.owned)
            continue;
        engine.owned = true;
        pthread_mutex_unlock(&engine.lock);
        thread_progress();
        pthread_mutex_lock(&engine.lock);
        engine.released_ns = hce_clock_ns();
        disown();
    }
    pthread_mutex_unlock(&engine.lock);
    return NULL;
}

void hce_engine_add(hce_pollable_t *pollable)
{
    hce_engine_acquire();
    pollable->next = engine.pollables;
    engine.pollables = pollable;
    hce_engine_release();
}

void hce_engine_remove(hce_pollable_t *pollable)
{
    hce_pollable_t **at;

    hce_engine_acquire();
    for (at = &engine.pollables; *at != NULL; at = &(*at)->next) {
        if (*at == pollable) {
            *at = pollable->next;
            break;
        }
    }
    hce_engine_release();
}

uint64_t hce_engine_wakes(void)
{
    return atomic_load_explicit(&engine.wakes, memory_order_relaxed);
}

bool hce_engine_is_forked(void)
{
    return atomic_load_explicit(&engine.forked, memory_order_relaxed);
}

/* The child has one thread, and the parent's owner may have been anywhere:
 * only descriptors are closed, so that peers see the parent's end. */
static void in_child(void)
{
    hce_pollable_t *p;

    if (engine.users == 0)
        return;
    atomic_store(&engine.forked, true);
    for (p = engine.pollables; p != NULL; p = p->next)
        p->ops->forked(p);
    hce_bell_close();
}

static hce_status_t engine_start(void)
{
    static bool once;
    pthread_condattr_t attr;
    hce_status_t status = hce_bell_open();
    int error;

    if (status != HCE_OK)
        goto err_close;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&engine.park, &attr);
    pthread_condattr_destroy(&attr);
    engine.stop = false;
    engine.owned = false;
    error = pthread_create(&engine.thread, NULL, thread_main, NULL);
    if (error != 0) {
        errno = error;
        hce_log(ERROR, CORE, "cannot start the progress thread: %m");
        status = HCE_ERR_SYSTEM;
        goto err_cond;
    }
    if (!once)
        pthread_atfork(NULL, NULL, in_child);
    once = true;
    return HCE_OK;
err_cond:
    pthread_cond_destroy(&engine.park);
err_close:
    hce_bell_close();
    return status;
}

hce_status_t hce_engine_get(void)
{
    hce_status_t status = HCE_OK;

    pthread_mutex_lock(&life_lock);
    if (engine.users == 0)
        status = engine_start();
    if (status == HCE_OK)
        engine.users++;
    pthread_mutex_unlock(&life_lock);
    return status;
}

void hce_engine_put(void)
{
    pthread_mutex_lock(&life_lock);
    if (--engine.users == 0) {
        hce_engine_acquire(); /* the thread is parked then, or will be */
        pthread_mutex_lock(&engine.lock);
        engine.stop = true;
        pthread_cond_signal(&engine.park);
        disown();
        pthread_mutex_unlock(&engine.lock);
        pthread_join(engine.thread, NULL);
        pthread_cond_destroy(&engine.park);
        hce_bell_close();
    }
    pthread_mutex_unlock(&life_lock);
}
