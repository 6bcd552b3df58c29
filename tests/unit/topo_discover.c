/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Layouts from real groups: by the host's identity, by override, and what is
 * refused. Lists of CPUs.
 */
#include <config.h>

#include "boot_ranks.h"

#include "topo/machine.h"
#include "topo/pin.h"
#include "topo/settings.h"
#include "topo/topo.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

typedef struct nodes {
    const int *given;    /* [size] override or -1 */
    const int *expected; /* [size] node; NULL is HCE_ERR_CONFIG */
    int unshare;         /* this rank goes to another IPC namespace */
} nodes_t;

static void discover_run(ranks_self_t *self)
{
    const nodes_t *nodes = self->arg;
    hce_layout_t *layout = NULL;
    uint64_t deadline = hce_clock_deadline(RANKS_LIMIT_NS);
    hce_status_t status;

    if (nodes->unshare > 0 && self->rank == nodes->unshare) {
        RANKS_CHECK(self, unshare(CLONE_NEWIPC) == 0);
    }
    status = hce_topo_discover(self->boot, nodes->given[self->rank], deadline,
                               &layout);
    if (nodes->expected == NULL) {
        RANKS_CHECK(self, status == HCE_ERR_CONFIG);
    } else {
        RANKS_CHECK(self, status == HCE_OK);
        for (int r = 0; status == HCE_OK && r < self->size; r++) {
            RANKS_CHECK(self, layout->node[r] == nodes->expected[r]);
        }
        hce_layout_destroy(layout);
    }
    hce_boot_goodbye(self->boot, 10 * HCE_NS_PER_SEC);
}

static void nodes_check(const int *given, const int *expected, int unshare)
{
    nodes_t nodes = {given, expected, unshare};
    ranks_spec_t spec = {.size = 6, .fn = discover_run, .arg = &nodes};

    assert_int_equal(ranks_processes(&spec), 0);
}

static const int none[6] = {-1, -1, -1, -1, -1, -1};

static void test_one_host(void **state)
{
    static const int one[6] = {0, 0, 0, 0, 0, 0};

    nodes_check(none, one, 0);
}

static void test_override(void **state)
{
    static const int uneven[6] = {7, 7, 3, 3, 3, 1000000};
    static const int uneven_nodes[6] = {0, 0, 1, 1, 1, 2};
    static const int cyclic[6] = {1, 0, 1, 0, 1, 0};
    static const int cyclic_nodes[6] = {0, 1, 0, 1, 0, 1};

    nodes_check(uneven, uneven_nodes, 0);
    nodes_check(cyclic, cyclic_nodes, 0);
}

static void test_mixed(void **state)
{
    static const int first[6] = {0, -1, -1, -1, -1, -1};
    static const int last[6] = {-1, -1, -1, -1, -1, 4};

    nodes_check(first, NULL, 0);
    nodes_check(last, NULL, 0);
}

/* HCE_NODE_ID, unless the caller says something else. */
static void test_setting(void **state)
{
    static const int some[6] = {-1, -1, 5, 5, -1, 2};
    static const int some_nodes[6] = {0, 0, 1, 1, 0, 2};

    hce_topo_settings.node_id = 9;
    nodes_check(some, some_nodes, 0);
    hce_topo_settings.node_id = -1;
}

static void test_malformed(void **state)
{
    hce_topo_settings.proxy_cpus = "1,x";
    nodes_check(none, NULL, 0);
    hce_topo_settings.proxy_cpus = "auto";
}

/* Another IPC namespace is another node, and cannot be joined by hand. */
static void test_namespace(void **state)
{
    static const int all[6] = {0, 0, 0, 0, 0, 0};
    static const int apart[6] = {0, 1, 2, 3, 4, 5};
    static const int other[6] = {0, 0, 0, 0, 1, 0};
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        _exit(unshare(CLONE_NEWIPC) == 0 ? 0 : 77);
    }
    waitpid(pid, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        print_message("unshare: not permitted\n");
        skip();
    }
    nodes_check(none, other, 4);
    nodes_check(all, NULL, 4);
    nodes_check(apart, apart, 4);
}

static void test_cpu_lists(void **state)
{
    static const char *const wrong[] = {"",     ",",    "1,",           "a",
                                        "1-",   "3-1",  "-1",           "1 ",
                                        "1,,2", "9999", "0-9999999999", "0x1"};
    cpu_set_t cpus;

    assert_true(hce_topo_cpus_parse("0-3,8", &cpus));
    assert_int_equal(CPU_COUNT(&cpus), 5);
    assert_true(CPU_ISSET(3, &cpus) && CPU_ISSET(8, &cpus));
    assert_true(hce_topo_cpus_parse("7", &cpus));
    assert_int_equal(CPU_COUNT(&cpus), 1);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_false(hce_topo_cpus_parse(wrong[i], &cpus));
    }
}

/* In a thread of its own, which keeps what it is pinned to. */
static void *pin_main(void *arg)
{
    hce_topo_pin_proxy();
    pthread_getaffinity_np(pthread_self(), sizeof(cpu_set_t), arg);
    return NULL;
}

static void pin_try(const char *wish, cpu_set_t *cpus_p)
{
    pthread_t thread;

    hce_topo_settings.proxy_cpus = wish;
    assert_int_equal(pthread_create(&thread, NULL, pin_main, cpus_p), 0);
    pthread_join(thread, NULL);
    hce_topo_settings.proxy_cpus = "auto";
}

static void test_pin(void **state)
{
    cpu_set_t before, after;
    char text[16], line[128];
    int first = 0;

    pthread_getaffinity_np(pthread_self(), sizeof(before), &before);
    while (!CPU_ISSET(first, &before)) {
        first++;
    }
    pin_try("none", &after);
    assert_true(CPU_EQUAL(&before, &after));
    pin_try("nonsense", &after);
    assert_true(CPU_EQUAL(&before, &after));
    pin_try("1023", &after); /* not allowed, or not there */
    assert_true(CPU_EQUAL(&before, &after));
    snprintf(text, sizeof(text), "%d", first);
    pin_try(text, &after);
    assert_int_equal(CPU_COUNT(&after), 1);
    assert_true(CPU_ISSET(first, &after));
    pin_try("auto", &after);
    CPU_AND(&after, &after, &before);
    assert_true(CPU_COUNT(&after) > 0);
    hce_topo_describe(line, sizeof(line));
    assert_non_null(strstr(line, "threads"));
}

#ifdef HCE_HAVE_HWLOC
/* A recorded machine: two packages of two CPUs, an adapter at the second. */
static void test_nic(void **state)
{
    const char *folder = getenv("srcdir");
    char path[512], name[32] = "";
    cpu_set_t cpus, expected;

    snprintf(path, sizeof(path), "%s/tests/unit/topo_two_packages.xml",
             folder != NULL ? folder : "..");
    assert_int_equal(access(path, R_OK), 0);
    setenv("HWLOC_XMLFILE", path, 1);
    assert_true(hce_topo_machine_nic_cpus(&cpus, name, sizeof(name)));
    unsetenv("HWLOC_XMLFILE");
    assert_string_equal(name, "mlx5_0");
    CPU_ZERO(&expected);
    CPU_SET(2, &expected);
    CPU_SET(3, &expected);
    assert_true(CPU_EQUAL(&cpus, &expected));
}
#else
static void test_nic(void **state)
{
    print_message("built without hwloc\n");
    skip();
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_host),  cmocka_unit_test(test_override),
        cmocka_unit_test(test_mixed),     cmocka_unit_test(test_setting),
        cmocka_unit_test(test_namespace), cmocka_unit_test(test_cpu_lists),
        cmocka_unit_test(test_pin),       cmocka_unit_test(test_malformed),
        cmocka_unit_test(test_nic),
    };

    ranks_setup();
    return cmocka_run_group_tests_name("topo_discover", tests, NULL, NULL);
}
