/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The proxy above the transports: the choice of one and the agreement on it,
 * segments, publishing, connecting on demand, retries, closing.
 */
#include "config.h"

#include "boot_ranks.h"

#include "rma_proxy/proxy.h"
#include "rma_proxy/select.h"
#include "rma_proxy/settings.h"
#include "util/log.h"
#include "util/math.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define WORDS 9

/* Two nodes, cyclic: 0 and 2, 1 and 3. */
static const int colors[] = {0, 1, 0, 1};
#define RANKS 4

/* Index of a transport in HCE_TRANSPORT's choices. */
static int choice(const char *name)
{
    for (int i = 0; hce_proxy_choices[i] != NULL; i++) {
        if (strcmp(hce_proxy_choices[i], name) == 0)
            return i;
    }
    fail_msg("%s is no choice", name);
    return -1;
}

typedef struct fixture {
    ranks_self_t *self;
    hce_layout_t *layout;
    hce_proxy_t *proxy;
    hce_counter_t counters[RANKS * WORDS];
    int errors;
} fixture_t;

static void on_error(void *arg, int peer, hce_status_t status,
                     const char *text)
{
    ((fixture_t *)arg)->errors++;
}

static hce_status_t fixture_open(fixture_t *fixture, ranks_self_t *self)
{
    hce_proxy_params_t params = {.boot = self->boot,
                                 .rank = self->rank,
                                 .words = WORDS,
                                 .error_cb = on_error,
                                 .error_arg = fixture};

    memset(fixture, 0, sizeof(*fixture));
    fixture->self = self;
    params.deadline = hce_clock_deadline(RANKS_LIMIT_NS);
    RANKS_CHECK(self, hce_layout_create(self->size, colors,
                                        &fixture->layout) == HCE_OK);
    params.layout = fixture->layout;
    return hce_proxy_open(&params, &fixture->proxy);
}

/* Without progress of the proxy. */
static void still_barrier(fixture_t *fixture)
{
    RANKS_CHECK(fixture->self,
                hce_boot_barrier(fixture->self->boot,
                                 hce_clock_deadline(RANKS_LIMIT_NS)) ==
                    HCE_OK);
}

static _Atomic int arrived; /* in one run, of one barrier */

/* With progress, and once a run: before closing. */
static void last_barrier(fixture_t *fixture)
{
    uint64_t end = hce_clock_deadline(RANKS_LIMIT_NS);

    hce_proxy_flush(fixture->proxy, end);
    atomic_fetch_add(&arrived, 1);
    while (atomic_load(&arrived) < RANKS && hce_clock_ns() < end) {
        if (!hce_proxy_progress(fixture->proxy, fixture->counters))
            sched_yield();
    }
    RANKS_CHECK(fixture->self, atomic_load(&arrived) == RANKS);
}

static void fixture_close(fixture_t *fixture, uint64_t len_ns)
{
    hce_proxy_close(fixture->proxy, hce_clock_deadline(len_ns));
    hce_layout_destroy(fixture->layout);
}

static uint64_t counter(const fixture_t *fixture, int peer, int slot)
{
    return hce_counter_read(&fixture->counters[peer * WORDS + slot]);
}

/* Until the counter is at least value, or for ever in the test's eyes. */
static bool await(fixture_t *fixture, int peer, int slot, uint64_t value)
{
    uint64_t end = hce_clock_deadline(RANKS_LIMIT_NS);

    while (!hce_counter_geq(counter(fixture, peer, slot), value)) {
        if (hce_clock_ns() > end)
            return false;
        if (!hce_proxy_progress(fixture->proxy, fixture->counters))
            sched_yield();
    }
    return true;
}

static void post_signal(fixture_t *fixture, int peer, int context, int slot,
                        uint64_t value)
{
    hce_status_t status;

    do {
        status = hce_proxy_signal(fixture->proxy, peer, context, slot, value);
        if (status == HCE_ERR_NO_RESOURCE)
            (void)hce_proxy_progress(fixture->proxy, fixture->counters);
    } while (status == HCE_ERR_NO_RESOURCE);
    RANKS_CHECK(fixture->self, status == HCE_OK);
}

static int run(ranks_fn_t fn, void *arg)
{
    ranks_spec_t spec = {.size = RANKS, .fn = fn, .arg = arg};

    atomic_store(&arrived, 0);
    return ranks_threads(&spec);
}

static void publish_send(fixture_t *fixture, int peer)
{
    ranks_self_t *self = fixture->self;

    RANKS_CHECK(self, hce_proxy_connect(fixture->proxy, peer) == HCE_OK);
    RANKS_CHECK(self, hce_proxy_connect(fixture->proxy, peer) == HCE_OK);
    post_signal(fixture, peer, 0, 0, 7);
    post_signal(fixture, peer, 0, 3, 5);
    post_signal(fixture, peer, 0, 3, 2); /* as a repeated old one */
    post_signal(fixture, peer, 0, WORDS - 1, 100 + (uint64_t)peer);
}

/* A rank writes to those of the other node, and they see it in its row; rows
 * of its own node belong to others. Values never fall, and what was released
 * by force stays so. */
static void publish_ranks(ranks_self_t *self)
{
    fixture_t fixture;
    bool near;

    RANKS_CHECK(self, fixture_open(&fixture, self) == HCE_OK);
    for (int peer = 0; peer < RANKS; peer++) {
        if (hce_layout_same_node(fixture.layout, peer, self->rank))
            continue;
        hce_counter_post(&fixture.counters[peer * WORDS], HCE_COUNTER_RELEASE);
        publish_send(&fixture, peer);
    }
    for (int peer = 0; peer < RANKS; peer++) {
        near = hce_layout_same_node(fixture.layout, peer, self->rank);
        for (int slot = 0; near && slot < WORDS; slot++)
            RANKS_CHECK(self, counter(&fixture, peer, slot) == 0);
        if (near)
            continue;
        RANKS_CHECK(self, await(&fixture, peer, WORDS - 1,
                                100 + (uint64_t)self->rank));
        RANKS_CHECK(self, counter(&fixture, peer, 3) >= 2);
        RANKS_CHECK(self, counter(&fixture, peer, 3) <= 5);
        RANKS_CHECK(self, counter(&fixture, peer, 2) == 0);
        RANKS_CHECK(self, counter(&fixture, peer, 0) == HCE_COUNTER_RELEASE);
    }
    last_barrier(&fixture);
    RANKS_CHECK(self, fixture.errors == 0);
    fixture_close(&fixture, RANKS_LIMIT_NS);
}

static void test_publish(void **state)
{
    assert_int_equal(run(publish_ranks, NULL), 0);
}

#define BIG 3000017

typedef struct exchange {
    uint64_t base;
    size_t key_len;
    uint8_t key[HCE_TRANSPORT_MAX_KEY];
} exchange_t;

/* Rank 0 puts much to rank 1, which makes no progress at first: so many
 * segments are under way and no more. */
static void put_all(fixture_t *fixture, hce_proxy_put_t *put, bool *stuck_p)
{
    hce_transport_attr_t attr;
    hce_status_t status;
    int turns = 0;

    hce_proxy_query(fixture->proxy, &attr);
    do {
        status = hce_proxy_put(fixture->proxy, put);
        RANKS_CHECK(fixture->self, put->req.pending <= attr.depth);
        RANKS_CHECK(fixture->self, put->posted % attr.segment == 0 ||
                                       put->posted == put->len);
        (void)hce_proxy_progress(fixture->proxy, fixture->counters);
        if (status == HCE_INPROGRESS && ++turns == 1000) {
            *stuck_p = true;
            still_barrier(fixture);
        }
    } while (status == HCE_INPROGRESS);
    RANKS_CHECK(fixture->self, status == HCE_OK && put->posted == put->len);
}

static void big_sender(fixture_t *fixture, const exchange_t *target, char *src,
                       hce_proxy_mem_t *mem)
{
    hce_proxy_put_t put = {.src = src,
                           .mem = mem,
                           .len = BIG,
                           .remote_addr = target->base,
                           .peer = 1};
    bool stuck = false;

    RANKS_CHECK(fixture->self,
                hce_proxy_key_open(fixture->proxy, 1, target->key,
                                   target->key_len, &put.key) == HCE_OK);
    put_all(fixture, &put, &stuck);
    RANKS_CHECK(fixture->self, stuck); /* it did not all fit in buffers */
    post_signal(fixture, 1, 0, 4, 1);
    put.len = put.posted = 0;
    RANKS_CHECK(fixture->self, hce_proxy_put(fixture->proxy, &put) == HCE_OK);
    while (put.req.pending > 0)
        (void)hce_proxy_progress(fixture->proxy, fixture->counters);
    RANKS_CHECK(fixture->self, put.req.status == HCE_OK);
    hce_proxy_key_close(fixture->proxy, put.key);
}

static void big_ranks(ranks_self_t *self)
{
    exchange_t mine = {0}, all[RANKS];
    char *buf = malloc(BIG);
    hce_proxy_mem_t *mem;
    fixture_t fixture;
    const void *key;

    for (size_t i = 0; i < BIG; i++)
        buf[i] = self->rank == 0 ? (char)(i * 7 + i / 251) : 0;
    RANKS_CHECK(self, fixture_open(&fixture, self) == HCE_OK);
    RANKS_CHECK(self,
                hce_proxy_register(fixture.proxy, buf, BIG, &mem) == HCE_OK);
    key = hce_proxy_key(mem, &mine.key_len);
    memcpy(mine.key, key, mine.key_len);
    mine.base = (uintptr_t)buf;
    RANKS_CHECK(self, hce_boot_allgather(self->boot, &mine, sizeof(mine), all,
                                         hce_clock_deadline(RANKS_LIMIT_NS)) ==
                          HCE_OK);
    if (self->rank == 0)
        big_sender(&fixture, &all[1], buf, mem);
    else
        still_barrier(&fixture);
    if (self->rank == 1) {
        RANKS_CHECK(self, await(&fixture, 0, 4, 1));
        for (size_t i = 0; i < BIG; i++)
            RANKS_CHECK(self, buf[i] == (char)(i * 7 + i / 251));
        RANKS_CHECK(self, hce_proxy_connect(fixture.proxy, 0) == HCE_OK);
        post_signal(&fixture, 0, 0, 5, 1);
    } else if (self->rank == 0) {
        RANKS_CHECK(self, await(&fixture, 1, 5, 1));
    }
    last_barrier(&fixture);
    hce_proxy_deregister(fixture.proxy, mem);
    fixture_close(&fixture, RANKS_LIMIT_NS);
    free(buf);
}

static void test_big_put(void **state)
{
    assert_int_equal(run(big_ranks, NULL), 0);
}

/* Messages of both parities, over three contexts' worth of signals, with
 * posts put off at random. */
static void message_ranks(ranks_self_t *self)
{
    int peer = self->rank ^ 1;
    fixture_t fixture;
    char text[HCE_PROXY_MAIL_SIZE];

    RANKS_CHECK(self, fixture_open(&fixture, self) == HCE_OK);
    RANKS_CHECK(self, hce_proxy_connect(fixture.proxy, peer) == HCE_OK);
    for (uint64_t i = 1; i <= 200; i++) {
        size_t len = (size_t)(i * 41 % sizeof(text)) + 1;
        hce_status_t status;

        memset(text, (int)i, len);
        do {
            status = hce_proxy_message(fixture.proxy, peer, (int)(i % 2), text,
                                       len, 0, i);
            (void)hce_proxy_progress(fixture.proxy, fixture.counters);
        } while (status == HCE_ERR_NO_RESOURCE);
        RANKS_CHECK(self, status == HCE_OK);
        RANKS_CHECK(self, await(&fixture, peer, 0, i));
        RANKS_CHECK(self,
                    memcmp(hce_proxy_mail(fixture.proxy, peer, (int)(i % 2)),
                           text, len) == 0);
        for (int context = 0; context < 3; context++)
            post_signal(&fixture, peer, context, 1 + context, i);
        for (int context = 0; context < 3; context++)
            RANKS_CHECK(self, await(&fixture, peer, 1 + context, i));
    }
    if (self->arg != NULL)
        RANKS_CHECK(self, hce_proxy_retries(fixture.proxy) > 0);
    last_barrier(&fixture);
    fixture_close(&fixture, RANKS_LIMIT_NS);
}

static void test_messages(void **state)
{
    static int refusals;

    hce_proxy_settings.contexts = 3;
    assert_int_equal(run(message_ranks, NULL), 0);
    if (hce_proxy_settings.transport == choice("loop")) {
        hce_proxy_settings.loop_faults = "refuse=30,reorder=30,twice=20";
        assert_int_equal(run(message_ranks, &refusals), 0);
        hce_proxy_settings.loop_faults = NULL;
    }
    hce_proxy_settings.contexts = 0;
}

/* What needs a connection says so. What belongs to a rank that is gone ends
 * by its deadline. */
static void limits_ranks(ranks_self_t *self)
{
    int peer = self->rank ^ 1;
    hce_transport_attr_t attr;
    fixture_t fixture;

    RANKS_CHECK(self, fixture_open(&fixture, self) == HCE_OK);
    hce_proxy_query(fixture.proxy, &attr);
    RANKS_CHECK(self, attr.contexts == 1);
    RANKS_CHECK(self, hce_proxy_signal(fixture.proxy, peer, 0, 1, 1) ==
                          HCE_ERR_INTERNAL);
    RANKS_CHECK(self, hce_proxy_message(fixture.proxy, peer, 0, "", 1, 1, 1) ==
                          HCE_ERR_INTERNAL);
    RANKS_CHECK(self, hce_proxy_connect(fixture.proxy, peer) == HCE_OK);
    /* nobody answers: no rank makes progress any more */
    (void)hce_proxy_signal(fixture.proxy, peer, 0, 1, 1);
    hce_proxy_flush(fixture.proxy, hce_clock_deadline(HCE_NS_PER_MS));
    still_barrier(&fixture);
    fixture_close(&fixture, HCE_NS_PER_MS);
}

static void test_limits(void **state)
{
    hce_proxy_settings.contexts = 1;
    assert_int_equal(run(limits_ranks, NULL), 0);
    hce_proxy_settings.contexts = 0;
}

static void one_node_ranks(ranks_self_t *self)
{
    static const int one[RANKS];
    hce_layout_t *layout;
    hce_proxy_params_t params = {.boot = self->boot, .rank = self->rank};
    hce_proxy_t *proxy = (void *)self;

    RANKS_CHECK(self, hce_layout_create(RANKS, one, &layout) == HCE_OK);
    params.layout = layout;
    RANKS_CHECK(self, hce_proxy_open(&params, &proxy) == HCE_OK);
    RANKS_CHECK(self, proxy == NULL);
    RANKS_CHECK(self, strcmp(hce_proxy_name(NULL), "none") == 0);
    hce_proxy_close(NULL, 0);
    hce_layout_destroy(layout);
}

static void test_one_node(void **state)
{
    assert_int_equal(run(one_node_ranks, NULL), 0);
}

/* As processes: rank 2 has other settings than the rest. */
static void differ_ranks(ranks_self_t *self)
{
    const char *faults = self->arg;
    fixture_t fixture;

    if (self->rank == 2 && faults != NULL)
        hce_proxy_settings.loop_faults = faults;
    else if (self->rank == 2)
        hce_proxy_settings.transport = choice("ucx");
    RANKS_CHECK(self, fixture_open(&fixture, self) != HCE_OK);
    RANKS_CHECK(self, fixture.proxy == NULL);
    hce_layout_destroy(fixture.layout);
}

/* One rank's failure is everybody's, and nobody waits. */
static void test_differ(void **state)
{
    ranks_spec_t spec = {.size = RANKS, .fn = differ_ranks};
    int before = hce_proxy_settings.transport;

    hce_proxy_settings.transport = choice("loop");
    assert_int_equal(ranks_processes(&spec), 0);
    spec.arg = "nonsense";
    assert_int_equal(ranks_processes(&spec), 0);
    hce_proxy_settings.transport = before;
}

static void test_agree(void **state)
{
    hce_proxy_offer_t offers[3] = {
        {.name = "loop", .contexts = 4},
        {.name = "loop", .contexts = 2},
        {.name = "loop", .contexts = 3},
    };
    int contexts = -1;

    assert_int_equal(hce_proxy_agree(offers, 3, &contexts), HCE_OK);
    assert_int_equal(contexts, 2);
    contexts = -1;
    strcpy(offers[1].name, "ucx");
    assert_int_equal(hce_proxy_agree(offers, 3, &contexts), HCE_ERR_CONFIG);
    offers[2].status = HCE_ERR_UNSUPPORTED;
    assert_int_equal(hce_proxy_agree(offers, 3, &contexts),
                     HCE_ERR_UNSUPPORTED);
    assert_int_equal(contexts, -1);
}

static void test_select(void **state)
{
    hce_proxy_offer_t offer = {0};
    int before = hce_proxy_settings.transport;
    const hce_transport_ops_t *ops;

    hce_proxy_settings.transport = choice("loop");
    assert_ptr_equal(hce_proxy_select(&offer), &hce_transport_loop);
    assert_string_equal(offer.text, "");
    /* Never loop by itself: it would not reach other machines. */
    hce_proxy_settings.transport = choice("auto");
    ops = hce_proxy_select(&offer);
    assert_ptr_not_equal(ops, &hce_transport_loop);
    if (ops == NULL) {
        assert_int_equal(offer.status, HCE_ERR_UNSUPPORTED);
        assert_non_null(strstr(offer.text, "ucx: "));
        assert_non_null(strstr(offer.text, "loop: "));
    } else {
        assert_string_equal(offer.text, "");
    }
    hce_proxy_settings.transport = before;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_select),   cmocka_unit_test(test_agree),
        cmocka_unit_test(test_differ),   cmocka_unit_test(test_one_node),
        cmocka_unit_test(test_publish),  cmocka_unit_test(test_big_put),
        cmocka_unit_test(test_messages), cmocka_unit_test(test_limits),
    };
    const hce_config_table_t *const tables[] = {
        &hce_util_config, &hce_boot_config, &hce_rma_proxy_config, NULL};
    int failed = 0;

    /* All traffic stays on this machine. */
    setenv("UCX_NET_DEVICES", "lo", 0);
    if (hce_config_init(tables) != HCE_OK)
        return 1;
    for (int i = 0; hce_transports[i] != NULL; i++) {
        if (hce_transports[i]->unusable() != NULL)
            continue;
        printf("# over %s\n", hce_transports[i]->name);
        hce_proxy_settings.transport = choice(hce_transports[i]->name);
        failed += cmocka_run_group_tests(tests, NULL, NULL);
    }
    return failed;
}
