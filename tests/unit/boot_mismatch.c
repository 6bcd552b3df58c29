/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Ranks whose exchanges do not fit those of the others, and ranks that send
 * nonsense: all learn whom it is due to.
 */
#include <config.h>

#include "boot_ranks.h"

#include "boot/group.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

/* --- exchanges that do not fit --- */

static void mismatch_run(ranks_self_t *self)
{
    char in[8] = "", out[8 * 3];
    hce_status_t status;

    if (self->rank == 1) {
        status = hce_boot_barrier(self->boot, ranks_soon());
    } else {
        status = hce_boot_allgather(self->boot, in, 8, out, ranks_soon());
    }
    RANKS_CHECK(self, status == HCE_ERR_MISMATCH);
    ranks_check_news(self, HCE_ERR_MISMATCH, 1,
                     "calls barrier where rank 0 calls allgather");
}

static void length_run(ranks_self_t *self)
{
    char in[8] = "", out[8 * 3];
    size_t len = self->rank == 2 ? 4 : 8;

    RANKS_CHECK(self, hce_boot_allgather(self->boot, in, len, out,
                                         ranks_soon()) == HCE_ERR_MISMATCH);
    ranks_check_news(self, HCE_ERR_MISMATCH, 2,
                     "gives 4 bytes to allgather, rank 0 gives 8");
}

/* Rank self->arg never comes. */
static void late_run(ranks_self_t *self)
{
    const int *absent = self->arg;
    char text[64];

    if (self->rank != *absent) {
        RANKS_CHECK(self,
                    hce_boot_barrier(self->boot,
                                     hce_clock_deadline(HCE_NS_PER_SEC / 5)) ==
                        HCE_ERR_TIMEOUT);
    }
    snprintf(text, sizeof(text), "rank %d on ", *absent);
    ranks_check_news(self, HCE_ERR_TIMEOUT, *absent, text);
    RANKS_CHECK(self, strstr(self->news.news.text, "has not come") != NULL);
}

static void left_run(ranks_self_t *self)
{
    const int *leaver = self->arg;

    if (self->rank == *leaver) {
        hce_boot_goodbye(self->boot, 0);
        return;
    }
    RANKS_CHECK(self,
                hce_boot_barrier(self->boot, ranks_soon()) == HCE_ERR_GONE);
    ranks_check_news(self, HCE_ERR_GONE, *leaver,
                     "has left the group, which rank");
}

static void test_exchange_errors(void **state)
{
    ranks_spec_t spec = {.size = 3, .fn = mismatch_run};

    assert_int_equal(ranks_threads(&spec), 0);
    spec.fn = length_run;
    assert_int_equal(ranks_threads(&spec), 0);
    for (int r = 0; r < 3; r++) {
        spec.arg = &r;
        spec.fn = late_run;
        assert_int_equal(ranks_threads(&spec), 0);
        spec.fn = left_run;
        assert_int_equal(ranks_threads(&spec), 0);
    }
}

/* --- nonsense from a rank --- */

typedef struct nonsense {
    const void *bytes;
    size_t len;
    int from; /* rank */
} nonsense_t;

static void nonsense_run(ranks_self_t *self)
{
    const nonsense_t *nonsense = self->arg;
    int victim = nonsense->from;
    char name[32];

    RANKS_CHECK(self, hce_boot_barrier(self->boot, ranks_soon()) == HCE_OK);
    if (self->rank == victim) {
        for (int i = 0; i < self->boot->num_links; i++) {
            RANKS_CHECK(self, send(self->boot->links[i].conn.fd,
                                   nonsense->bytes, nonsense->len,
                                   MSG_NOSIGNAL) == (ssize_t)nonsense->len);
        }
        (void)ranks_await_news(self, RANKS_NEWS_NS);
        return;
    }
    snprintf(name, sizeof(name), "rank %d on ", victim);
    ranks_check_news(self, HCE_ERR_TRANSPORT, victim, name);
}

static void nonsense_check(const void *bytes, size_t len)
{
    for (int from = 0; from < 2; from++) {
        nonsense_t nonsense = {bytes, len, from};
        ranks_spec_t spec = {.size = 3, .fn = nonsense_run, .arg = &nonsense};

        assert_int_equal(ranks_threads(&spec), 0);
    }
}

static void test_nonsense(void **state)
{
    struct {
        hce_boot_frame_t frame;
        uint8_t body[600];
    } msg = {.frame = {.magic = HCE_BOOT_MAGIC,
                       .version = HCE_BOOT_WIRE_VERSION,
                       .type = HCE_BOOT_HEARTBEAT,
                       .len = UINT32_MAX}};

    nonsense_check("GET / HTTP/1.0\r\n\r\n", 18);
    nonsense_check(&msg, sizeof(msg.frame)); /* too long */
    msg.frame.len = 4;                       /* for a heartbeat */
    nonsense_check(&msg, sizeof(msg.frame) + 4);
    msg.frame.type = 99;
    nonsense_check(&msg, sizeof(msg.frame) + 4);
    msg.frame.type = HCE_BOOT_HELLO;
    nonsense_check(&msg, sizeof(msg.frame) + 4);
    msg.frame.type = 0;
    nonsense_check(&msg, sizeof(msg.frame) + 4);
    msg.frame.type = HCE_BOOT_HEARTBEAT;
    msg.frame.len = sizeof(hce_boot_heartbeat_t);
    msg.frame.version++;
    nonsense_check(&msg, sizeof(msg.frame) + msg.frame.len);
    msg.frame.version--;
    memset(msg.body, 0x77, sizeof(msg.body)); /* waits for no such rank */
    nonsense_check(&msg, sizeof(msg.frame) + msg.frame.len);
    msg.frame.type = HCE_BOOT_NEWS;
    msg.frame.len = sizeof(hce_boot_news_msg_t);
    nonsense_check(&msg, sizeof(msg.frame) + msg.frame.len);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exchange_errors),
        cmocka_unit_test(test_nonsense),
    };

    ranks_setup();
    return cmocka_run_group_tests_name("boot_mismatch", tests, NULL, NULL);
}
