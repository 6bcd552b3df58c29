/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The verbs transport when calls and links fail, on devices that are not
 * there (fake_verbs.c): two transports of one thread, so that each failure
 * comes at a known place. Rank 0 puts and says so, rank 1 checks what it was
 * told of and then writes something of its own there, which has to stay.
 */
#include "config.h"

#include "fake_verbs.h"
#include "rma_proxy/proxy.h"
#include "rma_proxy/settings.h"
#include "softgpu/rig.h"
#include "util/clock.h"
#include "util/math.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ROUNDS    12
#define PUT       3001
#define SLOT      8192 /* bytes of a round */
#define MAIL      100
#define WORDS     4 /* of each writer */
#define LIMIT_NS  (20 * HCE_NS_PER_SEC)
#define CONTEXTS  2
#define MAX_BYTES (1024 * PUT)

typedef struct side {
    hce_transport_t *t;
    hce_transport_mem_t *mem;
    hce_transport_key_t *key; /* of the other's buf */
    hce_counter_t inbox[2 * WORDS];
    char mail[2 * MAIL];
    char buf[MAX_BYTES];
    int errors;
    hce_status_t status;
    char text[400];
} side_t;

static const hce_transport_ops_t *ops;
static const uint8_t secret[16] = "pairs of tests.";
static side_t *sides[2];
static char sources[MAX_BYTES];
static uint64_t silence_ns;

static void on_error(void *arg, int peer, hce_status_t status,
                     const char *text)
{
    side_t *side = arg;

    side->errors++;
    side->status = status;
    snprintf(side->text, sizeof(side->text), "%s", text);
}

static hce_status_t side_open(int rank)
{
    side_t *side = sides[rank];
    hce_transport_params_t params = {
        .rank = rank,
        .size = 2,
        .contexts = CONTEXTS,
        .silence_ns = silence_ns,
        .secret = secret,
        .inbox = side->inbox,
        .inbox_words = 2 * WORDS,
        .mail = side->mail,
        .mail_size = sizeof(side->mail),
        .error_cb = on_error,
        .error_arg = side,
    };
    hce_status_t status = ops->open(&params, &side->t);

    return status != HCE_OK ? status
                            : ops->mem_register(side->t, side->buf,
                                                sizeof(side->buf), &side->mem);
}

static hce_status_t side_connect(int rank)
{
    side_t *side = sides[rank], *other = sides[1 - rank];
    char key[HCE_TRANSPORT_MAX_KEY];
    hce_status_t status;
    void *addr;
    size_t len;

    status = ops->address(other->t, &addr, &len);
    if (status != HCE_OK)
        return status;
    status = ops->connect(side->t, 1 - rank, addr, len);
    free(addr);
    if (status == HCE_OK)
        status = ops->mem_pack(other->mem, key, &len);
    if (status == HCE_OK)
        status = ops->key_unpack(side->t, 1 - rank, key, len, &side->key);
    return status;
}

static hce_status_t pair_open(void)
{
    hce_status_t status = HCE_OK;

    for (int i = 0; i < 2; i++)
        sides[i] = calloc(1, sizeof(side_t));
    for (int i = 0; i < 2 && status == HCE_OK; i++)
        status = side_open(i);
    for (int i = 0; i < 2 && status == HCE_OK; i++)
        status = side_connect(i);
    return status;
}

static void pair_close(void)
{
    for (int i = 0; i < 2; i++) {
        if (sides[i]->key != NULL)
            ops->key_destroy(sides[i]->key);
        if (sides[i]->mem != NULL)
            ops->mem_deregister(sides[i]->t, sides[i]->mem);
        if (sides[i]->t != NULL)
            ops->close(sides[i]->t);
    }
    for (int i = 0; i < 2; i++)
        free(sides[i]);
}

/* False when a side has an error. Sleeping is tried, too. */
static bool turn(uint64_t end)
{
    for (int i = 0; i < 2; i++) {
        (void)ops->progress(sides[i]->t);
        (void)ops->arm(sides[i]->t);
    }
    assert_true(hce_clock_ns() < end);
    return sides[0]->errors == 0 && sides[1]->errors == 0;
}

static char pattern(int round, size_t at)
{
    return (char)(round * 37 + (int)at * 11 + 5);
}

static void source_fill(int round)
{
    for (size_t i = 0; i < 2 * PUT; i++)
        sources[i] = pattern(round, i);
}

static hce_status_t put(int round, int part, hce_transport_req_t *req)
{
    char *src = sides[0]->buf + part * PUT;
    size_t at = (size_t)round * SLOT + (size_t)part * PUT;

    memcpy(src, sources + part * PUT, PUT);
    return ops->put(sides[0]->t, 1, 0, src, sides[0]->mem, PUT,
                    (uintptr_t)sides[1]->buf + at, sides[0]->key, req);
}

/* What says that the puts of a round are there: by turns each kind. */
static hce_status_t say(int round, hce_transport_req_t *req)
{
    hce_transport_parcel_t parcel = {.data = sides[0]->buf,
                                     .data_len = 2 * PUT,
                                     .mem = sides[0]->mem,
                                     .remote_addr = (uintptr_t)sides[1]->buf +
                                                    (size_t)round * SLOT,
                                     .key = sides[0]->key,
                                     .mail = sources,
                                     .mail_len = MAIL,
                                     .value = (uint64_t)round + 1};

    if (round % 3 == 0)
        return ops->parcel(sides[0]->t, 1, &parcel, req);
    if (round % 3 == 1)
        return ops->message(sides[0]->t, 1, 0, sources, MAIL, 0,
                            (uint64_t)round + 1);
    return ops->signal(sides[0]->t, 1, 0, 0, (uint64_t)round + 1);
}

/* Repeats a post until it is taken. */
#define POST(_post)                                                           \
    do {                                                                      \
        hce_status_t status_;                                                 \
        while ((status_ = (_post)) == HCE_ERR_NO_RESOURCE) {                  \
            if (!turn(end))                                                   \
                return false;                                                 \
        }                                                                     \
        if (status_ != HCE_OK)                                                \
            return false;                                                     \
    } while (0)

static bool round_send(int round, hce_transport_req_t *req, uint64_t end)
{
    source_fill(round);
    POST(put(round, 0, req));
    POST(put(round, 1, req));
    POST(say(round, req));
    return true;
}

static void round_check(int round)
{
    char *buf = sides[1]->buf + (size_t)round * SLOT;

    for (size_t i = 0; i < 2 * PUT; i++)
        assert_int_equal(buf[i], pattern(round, i));
    for (size_t i = 0; round % 3 != 2 && i < MAIL; i++)
        assert_int_equal(sides[1]->mail[i], pattern(round, i));
    memset(buf, 0x5a, SLOT);
}

/* Nothing that has been told of is written once more. */
static void stays_check(int rounds)
{
    for (size_t i = 0; i < (size_t)rounds * SLOT; i++)
        assert_int_equal(sides[1]->buf[i], 0x5a);
}

/* False: it ended with an error, as it may if it was told to. The answers of
 * rank 1 go over the other context. */
static bool exchange(int first, int rounds)
{
    uint64_t end = hce_clock_ns() + LIMIT_NS;

    for (int round = first; round < first + rounds; round++) {
        hce_transport_req_t req = {0};

        if (!round_send(round, &req, end))
            return false;
        while (hce_counter_read(&sides[1]->inbox[0]) < (uint64_t)round + 1) {
            if (!turn(end))
                return false;
        }
        round_check(round);
        POST(ops->signal(sides[1]->t, 0, 1, WORDS, (uint64_t)round + 1));
        while (hce_counter_read(&sides[0]->inbox[WORDS]) <
                   (uint64_t)round + 1 ||
               req.pending > 0) {
            if (!turn(end))
                return false;
        }
        if (req.status != HCE_OK)
            return false;
    }
    while (ops->flush(sides[0]->t) == HCE_INPROGRESS ||
           ops->flush(sides[1]->t) == HCE_INPROGRESS) {
        if (!turn(end))
            return false;
    }
    stays_check(first + rounds);
    return true;
}

static int count_fds(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int n = 0;

    assert_non_null(dir);
    while (readdir(dir) != NULL)
        n++;
    closedir(dir);
    return n;
}

/* One run with one failure; true if that came. */
static bool run_with_failure(const char *call, int nth, int *ends)
{
    int fds = count_fds();
    bool failed;

    fake_verbs_fail(call, nth);
    if (pair_open() != HCE_OK)
        ends[0]++;
    else if (exchange(0, ROUNDS))
        ends[1]++;
    else
        ends[2]++;
    pair_close();
    failed = fake_verbs_failed();
    fake_verbs_fail(NULL, 0);
    assert_int_equal(fake_verbs_objects(), 0);
    assert_int_equal(count_fds(), fds);
    return failed;
}

/* Whatever call fails: no hang, no leak, no wrong byte. */
static void test_calls(void **state)
{
    for (int i = 0; fake_verbs_calls[i] != NULL; i++) {
        int ends[3] = {0}, nth = 1;

        while (run_with_failure(fake_verbs_calls[i], nth, ends))
            nth += nth / 8 + 1;
        printf("# %s: opening failed %d times, %d ended well, %d by an "
               "error\n",
               fake_verbs_calls[i], ends[0], ends[1], ends[2]);
        assert_true(nth > 1 ||
                    strcmp(fake_verbs_calls[i], "ibv_get_cq_event") == 0);
    }
}

/* A link that fails at any request, in any way, is mended unnoticed. */
static void test_breaks(void **state)
{
    static const fake_break_t kinds[] = {FAKE_BREAK_LOST, FAKE_BREAK_HALF,
                                         FAKE_BREAK_ACK};

    for (int k = 0; k < 3; k++) {
        int nth = 0;
        bool broke;

        do {
            assert_int_equal(pair_open(), HCE_OK);
            fake_verbs_break(kinds[k], ++nth);
            assert_true(exchange(0, ROUNDS));
            broke = fake_verbs_broke();
            fake_verbs_break(FAKE_BREAK_NONE, 0);
            pair_close();
        } while (broke);
        printf("# broken in way %d at %d places\n", k, nth - 1);
        assert_true(nth > 3 * ROUNDS);
    }
}

static void test_other_port(void **state)
{
    assert_int_equal(pair_open(), HCE_OK);
    assert_true(exchange(0, 4));
    fake_verbs_port(0, false);
    assert_true(exchange(4, 4));
    fake_verbs_port(0, true);
    fake_verbs_port(1, false);
    assert_true(exchange(8, 4));
    fake_verbs_port(1, true);
    pair_close();
}

/* Down in mid-operation, and up again before the limit. */
static void test_flap(void **state)
{
    hce_transport_req_t req = {0};
    uint64_t end = hce_clock_ns() + LIMIT_NS;

    assert_int_equal(pair_open(), HCE_OK);
    assert_true(exchange(0, 4));
    assert_true(round_send(4, &req, end));
    fake_verbs_port(0, false);
    fake_verbs_port(1, false);
    for (int i = 0; i < 100; i++)
        assert_true(turn(end));
    fake_verbs_port(0, true);
    fake_verbs_port(1, true);
    while (hce_counter_read(&sides[1]->inbox[0]) < 5)
        assert_true(turn(end));
    round_check(4);
    while (req.pending > 0)
        assert_true(turn(end));
    assert_int_equal(req.status, HCE_OK);
    assert_true(exchange(5, 4));
    pair_close();
}

/* Down for good: the error says where, and every request ends. */
static void test_down(void **state)
{
    hce_transport_req_t req = {0};
    uint64_t end = hce_clock_ns() + LIMIT_NS;

    silence_ns = 200 * HCE_NS_PER_MS;
    assert_int_equal(pair_open(), HCE_OK);
    assert_true(exchange(0, 4));
    assert_true(round_send(4, &req, end));
    fake_verbs_port(0, false);
    fake_verbs_port(1, false);
    while (turn(end))
        ;
    printf("# %s\n", sides[0]->text);
    assert_int_equal(sides[0]->errors, 1);
    assert_int_equal(sides[0]->status, HCE_ERR_TRANSPORT);
    assert_non_null(strstr(sides[0]->text, "fake0 port 1"));
    assert_non_null(strstr(sides[0]->text, "of 3001 bytes"));
    assert_non_null(strstr(sides[0]->text, "not resumed within 0.2 s"));
    assert_int_equal(req.pending, 0);
    assert_int_not_equal(req.status, HCE_OK);
    assert_int_equal(ops->signal(sides[0]->t, 1, 0, 0, 9), HCE_ERR_TRANSPORT);
    pair_close();
    fake_verbs_port(0, true);
    fake_verbs_port(1, true);
    silence_ns = LIMIT_NS / 2;
}

/* Down with nothing to send: no error, until there is something. */
static void test_idle(void **state)
{
    uint64_t end;

    silence_ns = 200 * HCE_NS_PER_MS;
    assert_int_equal(pair_open(), HCE_OK);
    assert_true(exchange(0, 4));
    fake_verbs_port(0, false);
    fake_verbs_port(1, false);
    end = hce_clock_ns() + 2 * silence_ns;
    while (hce_clock_ns() < end)
        assert_true(turn(HCE_TIME_NEVER));
    fake_verbs_port(0, true);
    fake_verbs_port(1, true);
    assert_true(exchange(4, 4));
    pair_close();
    silence_ns = LIMIT_NS / 2;
}

/* Four requests at a time: the device would notice a fifth. */
static bool many_puts(void)
{
    uint64_t end = hce_clock_ns() + LIMIT_NS;
    hce_transport_req_t req = {0};

    for (size_t i = 0; i < sizeof(sources); i++)
        sources[i] = pattern(3, i);
    memcpy(sides[0]->buf, sources, sizeof(sources));
    for (size_t i = 0; i < 1000; i++) {
        POST(ops->put(sides[0]->t, 1, 0, sides[0]->buf + i * PUT,
                      sides[0]->mem, PUT, (uintptr_t)sides[1]->buf + i * PUT,
                      sides[0]->key, &req));
    }
    POST(ops->signal(sides[0]->t, 1, 0, 0, 1));
    while (hce_counter_read(&sides[1]->inbox[0]) == 0) {
        if (!turn(end))
            return false;
    }
    assert_memory_equal(sides[1]->buf, sources, (size_t)1000 * PUT);
    while (req.pending > 0 && turn(end))
        ;
    return req.pending == 0 && req.status == HCE_OK;
}

static void test_short_queue(void **state)
{
    int64_t queue = hce_proxy_settings.verbs_queue;

    hce_proxy_settings.verbs_queue = 4;
    assert_int_equal(pair_open(), HCE_OK);
    assert_true(many_puts());
    pair_close();
    hce_proxy_settings.verbs_queue = queue;
}

#define DEVICE_LEN 70001
#define DEVICE_AT  4100 /* not where the allocation begins */

static hce_transport_mem_t *device_register(int rank, hce_cu_ptr_t ptr)
{
    hce_transport_mem_t *mem;

    fake_verbs_device_memory(ptr, RIG_MIB);
    assert_int_equal(ops->mem_register(sides[rank]->t,
                                       (void *)(uintptr_t)(ptr + DEVICE_AT),
                                       DEVICE_LEN, &mem),
                     HCE_OK);
    return mem;
}

static void device_put(const hce_cu_ptr_t ptrs[2],
                       hce_transport_mem_t *const mems[2])
{
    uint64_t end = hce_clock_ns() + LIMIT_NS;
    char packed[HCE_TRANSPORT_MAX_KEY];
    hce_transport_req_t req = {0};
    hce_transport_key_t *key;
    hce_status_t status;
    size_t len;

    assert_int_equal(ops->mem_pack(mems[1], packed, &len), HCE_OK);
    assert_int_equal(ops->key_unpack(sides[0]->t, 1, packed, len, &key),
                     HCE_OK);
    do {
        assert_true(turn(end));
        status = ops->put(sides[0]->t, 1, 0,
                          (void *)(uintptr_t)(ptrs[0] + DEVICE_AT), mems[0],
                          DEVICE_LEN, ptrs[1] + DEVICE_AT, key, &req);
    } while (status == HCE_ERR_NO_RESOURCE);
    while (req.pending > 0)
        assert_true(turn(end));
    assert_int_equal(req.status, HCE_OK);
    ops->key_destroy(key);
}

/* Not through the host. */
static void test_device_memory(void **state)
{
    hce_cu_ptr_t ptrs[2] = {rig_alloc(0, RIG_MIB), rig_alloc(0, RIG_MIB)};
    char *host = rig_host(2 * RIG_MIB), *back = host + RIG_MIB;
    hce_transport_mem_t *mems[2];

    for (size_t i = 0; i < RIG_MIB; i++)
        host[i] = pattern(7, i);
    RIG_OK(gpu.memcpy_async(ptrs[0], rig_ptr(host), RIG_MIB, NULL));
    RIG_OK(gpu.memcpy_async(ptrs[1], rig_ptr(host) + RIG_MIB, RIG_MIB, NULL));
    RIG_OK(gpu.stream_synchronize(NULL));
    assert_int_equal(pair_open(), HCE_OK);
    for (int i = 0; i < 2; i++)
        mems[i] = device_register(i, ptrs[i]);
    device_put(ptrs, mems);
    RIG_OK(
        gpu.flush_rdma_writes(HCE_CU_FLUSH_CURRENT_CTX, HCE_CU_FLUSH_TO_ALL));
    RIG_OK(gpu.memcpy_async(rig_ptr(host) + RIG_MIB, ptrs[1], RIG_MIB, NULL));
    RIG_OK(gpu.stream_synchronize(NULL));
    assert_memory_equal(back + DEVICE_AT, host + DEVICE_AT, DEVICE_LEN);
    assert_int_equal(back[DEVICE_AT - 1], 0);
    assert_int_equal(back[DEVICE_AT + DEVICE_LEN], 0);
    for (int i = 0; i < 2; i++)
        ops->mem_deregister(sides[i]->t, mems[i]);
    pair_close();
    fake_verbs_device_memory(0, 0);
    rig_host_free(host, 2 * RIG_MIB);
    for (int i = 0; i < 2; i++)
        RIG_OK(gpu.mem_free(ptrs[i]));
}

int main(void)
{
    const hce_config_table_t *const tables[] = {&hce_rma_proxy_config, NULL};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_device_memory),
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_breaks),
        cmocka_unit_test(test_other_port),
        cmocka_unit_test(test_flap),
        cmocka_unit_test(test_down),
        cmocka_unit_test(test_idle),
        cmocka_unit_test(test_short_queue),
    };

    if (hce_config_init(tables) != HCE_OK)
        return 1;
    rig_open();
    ops = &hce_transport_verbs;
    silence_ns = LIMIT_NS / 2;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
