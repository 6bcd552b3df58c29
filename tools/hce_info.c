/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * hce_info: what this build of the library is and what it finds on this
 * machine; all settings with their values and origins.
 */
#include "config.h"

#include "ce/dev.h"
#include "core/settings.h"
#include "core/values.h"
#include "rma_proxy/transport.h"
#include "topo/pin.h"
#include "topo/topo.h"

#include <argp.h>
#include <stdlib.h>

enum { KEY_DOC = 256 };

typedef enum mode { MODE_MACHINE, MODE_SETTINGS, MODE_DOC } info_mode_t;

/* argp finds it by name: hidden, as all else is, it would not count. */
__attribute__((visibility("default"))) const char *argp_program_version =
    "hce_info (" PACKAGE_STRING ")";

static const struct argp_option options[] = {
    {"config", 'c', NULL, 0,
     "Print all settings: value, where it comes from, meaning", 0},
    {"doc", KEY_DOC, NULL, 0, "Print the page of settings, docs/ENV.md", 0},
    {0}};

static error_t option_parse(int key, char *arg, struct argp_state *state)
{
    info_mode_t *mode = state->input;

    switch (key) {
    case 'c':
        *mode = MODE_SETTINGS;
        return 0;
    case KEY_DOC:
        *mode = MODE_DOC;
        return 0;
    case ARGP_KEY_ARG:
        argp_error(state, "'%s': expected no argument, only flags", arg);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static void row_print(const char *name, const char *text)
{
    printf("  %-10s %s\n", name, text);
}

static void version_print(void)
{
    char text[64];
    int major, minor, patch;

    hce_get_version(&major, &minor, &patch);
    snprintf(text, sizeof(text), "%d.%d.%d", major, minor, patch);
    printf("Version\n");
    row_print("package", PACKAGE_STRING);
    row_print("API", text);
}

static void build_print(void)
{
    static const struct {
        const char *name;
        const char *text;
    } packages[] = {
#ifdef HCE_HAVE_UCX
        {"ucx", "yes"},
#else
        {"ucx", "no: configured without it; there is no RMA proxy over UCX"},
#endif
#ifdef HCE_HAVE_PMIX
        {"pmix", "yes"},
#else
        {"pmix", "no: configured without it; mpirun and srun need the "
                 "env bootstrap"},
#endif
#ifdef HCE_HAVE_HWLOC
        {"hwloc", "yes"},
#else
        {"hwloc", "no: configured without it; the proxy is not pinned"},
#endif
#ifdef HCE_HAVE_JANSSON
        {"jansson", "yes"},
#else
        {"jansson", "no: configured without it; there is no JSON output"},
#endif
#ifdef HCE_DEBUG
        {"debug", "yes"},
#else
        {"debug", "no"},
#endif
    };

    printf("Build\n");
    row_print("host", HCE_BUILD_HOST);
    row_print("compiler", HCE_BUILD_COMPILER);
    row_print("configure",
              HCE_BUILD_ARGS[0] != '\0' ? HCE_BUILD_ARGS : "without options");
    for (size_t i = 0; i < sizeof(packages) / sizeof(packages[0]); i++) {
        row_print(packages[i].name, packages[i].text);
    }
}

static void devices_print(void)
{
    char text[512], name[32];
    int count;

    printf("Devices\n");
    row_print("host", "plain memory; the CPU is the copy engine");
    count = hce_ce_cuda_ops.count(text, sizeof(text));
    if (count == 0) {
        row_print("cuda", text);
    }
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof(name), "cuda %d", i);
        hce_ce_cuda_ops.describe(i, text, sizeof(text));
        row_print(name, text);
    }
}

static void transports_print(void)
{
    char text[512];

    printf("Transports\n");
    for (int i = 0; hce_transports[i] != NULL; i++) {
        const hce_transport_ops_t *ops = hce_transports[i];
        const char *why = ops->unusable();

        if (why != NULL) {
            snprintf(text, sizeof(text), "unusable: %s", why);
        } else {
            ops->describe(text, sizeof(text));
        }
        row_print(ops->name, text);
        for (int k = 0; ops->describe_device != NULL &&
                        ops->describe_device(k, text, sizeof(text));
             k++)
            row_print("", text);
    }
#ifndef HCE_HAVE_VERBS
    row_print("verbs", "missing: not in this build");
#endif
#ifndef HCE_HAVE_UCX
    row_print("ucx", "missing: not in this build");
#endif
}

static void topology_print(void)
{
    char text[256];

    hce_topo_describe(text, sizeof(text));
    printf("Topology\n");
    row_print("machine", text);
}

static int run(info_mode_t mode)
{
    /* The page is the same whatever the environment. */
    if (mode == MODE_DOC) {
        hce_config_print(hce_settings, stdout, HCE_CONFIG_DOC);
        return EXIT_SUCCESS;
    }
    if (hce_core_config_init() != HCE_OK || !hce_topo_proxy_cpus_check()) {
        return EXIT_FAILURE;
    }
    if (mode == MODE_SETTINGS) {
        hce_config_print(hce_settings, stdout, HCE_CONFIG_VALUES);
        return EXIT_SUCCESS;
    }
    version_print();
    build_print();
    devices_print();
    transports_print();
    topology_print();
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    static const struct argp argp = {
        .options = options,
        .parser = option_parse,
        .doc = "Print what this build of libhce is and what it finds on this "
               "machine: version, build, devices, transports, topology.",
    };
    info_mode_t mode = MODE_MACHINE;
    int status;

    argp_parse(&argp, argc, argv, 0, NULL, &mode);
    status = run(mode);
    /* A page that was cut short must not look complete. */
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "hce_info: cannot write to standard output\n");
        return EXIT_FAILURE;
    }
    return status;
}
