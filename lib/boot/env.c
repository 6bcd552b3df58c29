/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Bootstrap from RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, as torchrun
 * sets them. A launcher's own store may hold MASTER_PORT, and other jobs its
 * neighbours: rank 0 takes the first free port of a short list, and the
 * others look for it there.
 */
#include <config.h>

#include "boot/bootstraps.h"
#include "boot/mac.h"
#include "boot/settings.h"
#include "util/config.h"
#include "util/log.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define PORTS       17 /* MASTER_PORT and the next 16 */
#define ADDRS_MAX   4  /* of MASTER_ADDR */
#define PORT_NAP_MS 50

typedef struct env {
    int64_t rank, size, port;
    const char *host;
    int first_port, num_ports;
    hce_boot_addr_t hosts[ADDRS_MAX]; /* without port */
    int num_hosts;
} env_t;

/* Communicators of this process so far; all ranks count alike. */
static _Atomic unsigned env_count;

/* HCE_ERR_UNSUPPORTED when it is not set. */
static hce_status_t number_get(const char *name, int64_t min, int64_t max,
                               int64_t *value_p, hce_boot_why_t *why)
{
    const char *text = hce_config_foreign(name);
    int64_t value;

    if (text == NULL) {
        snprintf(why->text, sizeof(why->text), "%s is not set", name);
        return HCE_ERR_UNSUPPORTED;
    }
    /* Compared here: to the parser 0 to 0 is any number. */
    if (hce_config_parse_int(text, 0, INT32_MAX, &value) != HCE_OK ||
        value < min || value > max) {
        snprintf(why->text, sizeof(why->text),
                 "%s=\"%.64s\": expected an integer from %lld to %lld", name,
                 text, (long long)min, (long long)max);
        return HCE_ERR_CONFIG;
    }
    *value_p = value;
    return HCE_OK;
}

/* An agent of torchrun keeps its store on MASTER_PORT as long as the job
 * runs: nothing of ours can be there, and the store is not bothered. */
static bool port_is_stores(void)
{
    const char *text = hce_config_foreign("TORCHELASTIC_USE_AGENT_STORE");

    return text != NULL && strcmp(text, "True") == 0;
}

static hce_status_t ports_get(env_t *env, hce_boot_why_t *why)
{
    hce_status_t status;

    if (hce_boot_settings.master_port != 0) {
        env->port = hce_boot_settings.master_port;
        env->first_port = (int)env->port;
        env->num_ports = 1;
        return HCE_OK;
    }
    status = number_get("MASTER_PORT", 1, 65535, &env->port, why);
    if (status != HCE_OK)
        return status;
    env->first_port = (int)env->port;
    env->num_ports = PORTS;
    if (port_is_stores() && env->port < 65535) {
        env->first_port++;
        env->num_ports--;
    }
    if (env->first_port + env->num_ports > 65536)
        env->num_ports = 65536 - env->first_port;
    return HCE_OK;
}

static hce_status_t env_get(env_t *env, hce_boot_why_t *why)
{
    int64_t local_rank;
    hce_status_t status =
        number_get("RANK", 0, HCE_BOOT_SIZE_MAX - 1, &env->rank, why);

    if (status == HCE_OK) {
        status =
            number_get("WORLD_SIZE", 1, HCE_BOOT_SIZE_MAX, &env->size, why);
    }
    if (status == HCE_OK && env->rank >= env->size) {
        snprintf(why->text, sizeof(why->text),
                 "RANK=%lld is not below WORLD_SIZE=%lld",
                 (long long)env->rank, (long long)env->size);
        return HCE_ERR_CONFIG;
    }
    if (status == HCE_OK && hce_config_foreign("LOCAL_RANK") != NULL)
        status = number_get("LOCAL_RANK", 0, env->size - 1, &local_rank, why);
    if (status != HCE_OK)
        return status;
    env->host = hce_config_foreign("MASTER_ADDR");
    if (env->host == NULL || env->host[0] == '\0') {
        snprintf(why->text, sizeof(why->text), "MASTER_ADDR is not set");
        return HCE_ERR_UNSUPPORTED;
    }
    return ports_get(env, why);
}

/* What all ranks of this job know alike, and most other jobs do not. The
 * address is not part of it: ranks may know rank 0's host by many names. */
static void job_fill(const env_t *env, unsigned number,
                     hce_boot_meeting_t *meeting)
{
    static const uint8_t domain[HCE_BOOT_KEY_LEN] = "libhce env key";
    const char *run = hce_config_foreign("TORCHELASTIC_RUN_ID");
    const char *slurm = hce_config_foreign("SLURM_JOB_ID");
    const char *secret = hce_boot_settings.job_secret;
    char text[512];
    int len = snprintf(text, sizeof(text), "%u %d %.200s %.200s", number,
                       (int)env->port, run != NULL ? run : "-",
                       slurm != NULL ? slurm : "-");

    meeting->job = hce_boot_hash(text, (size_t)len);
    secret = secret != NULL ? secret : "";
    hce_boot_mac(domain, secret, strlen(secret), meeting->key);
}

static bool host_is_numeric(const char *host)
{
    unsigned char buf[16];

    return inet_pton(AF_INET, host, buf) == 1 ||
           inet_pton(AF_INET6, host, buf) == 1;
}

/* The address to listen on: the one that the others use if it is this host's
 * and means the same to them, else all. */
static void listen_addr_find(const env_t *env, hce_boot_addr_t *addr_p)
{
    bool is_exact =
        host_is_numeric(env->host) || strcmp(env->host, "localhost") == 0;

    for (int i = 0; i < env->num_hosts; i++) {
        hce_boot_addr_t addr = env->hosts[i];
        int fd;

        if (hce_boot_addr_is_loopback(&addr) && !is_exact)
            continue; /* a host's own name, as its own hosts file has it */
        if (hce_boot_net_listen(&addr, &fd) == 0) {
            hce_boot_listen_t probe = {.fd = {fd}, .num = 1};

            hce_boot_listen_close(&probe);
            *addr_p = env->hosts[i];
            return;
        }
    }
    memset(addr_p, 0, sizeof(*addr_p));
    addr_p->family = env->hosts[0].family;
}

/* 0, or the last port's error. */
static int port_take(const env_t *env, const hce_boot_addr_t *host,
                     hce_boot_listen_t *listen)
{
    int rc = -EADDRINUSE;

    for (int i = 0; i < env->num_ports && rc != 0; i++) {
        listen->addr[0] = *host;
        listen->addr[0].port = (uint16_t)(env->first_port + i);
        rc = hce_boot_net_listen(&listen->addr[0], &listen->fd[0]);
    }
    listen->num = rc == 0 ? 1 : 0;
    return rc;
}

/* Ports that are taken may be those of groups that are just forming. */
static hce_status_t hub_prepare(const env_t *env, hce_boot_meeting_t *meeting,
                                hce_boot_why_t *why)
{
    hce_boot_addr_t host;
    char text[HCE_BOOT_ADDR_TEXT];
    int rc;

    listen_addr_find(env, &host);
    while ((rc = port_take(env, &host, &meeting->listen)) == -EADDRINUSE &&
           hce_clock_ns() < meeting->deadline)
        poll(NULL, 0, PORT_NAP_MS);
    if (rc != 0) {
        host.port = (uint16_t)env->first_port;
        snprintf(why->text, sizeof(why->text),
                 "rank 0 cannot listen on %s or the %d ports after it: %s",
                 hce_boot_addr_text(&host, text, sizeof(text)),
                 env->num_ports - 1, strerror(-rc));
        return HCE_ERR_BOOTSTRAP;
    }
    hce_boot_addr_text(&meeting->listen.addr[0], text, sizeof(text));
    if (hce_boot_settings.job_secret == NULL) {
        hce_log(INFO, BOOT,
                "listening on %s; the port is open to anybody who speaks the "
                "protocol until all ranks have come (HCE_JOB_SECRET closes "
                "it)",
                text);
    } else {
        hce_log(INFO, BOOT, "listening on %s", text);
    }
    return HCE_OK;
}

static hce_status_t env_meet(const env_t *env, hce_boot_meeting_t *meeting,
                             hce_boot_why_t *why, hce_boot_t **boot_p)
{
    hce_boot_addr_t addrs[PORTS * ADDRS_MAX];
    hce_status_t status = HCE_OK;

    if (env->rank == 0 && env->size > 1) {
        status = hub_prepare(env, meeting, why);
    } else {
        for (int p = 0; p < env->num_ports; p++) {
            for (int h = 0; h < env->num_hosts; h++) {
                hce_boot_addr_t *addr = &addrs[meeting->num_addrs++];

                *addr = env->hosts[h];
                addr->port = (uint16_t)(env->first_port + p);
            }
        }
        meeting->addrs = addrs;
    }
    if (status == HCE_OK) {
        status = hce_boot_meet(meeting, boot_p);
        memcpy(why->text, meeting->why, sizeof(why->text));
    }
    return status;
}

hce_status_t hce_boot_env_create(const hce_boot_params_t *params,
                                 hce_boot_why_t *why, hce_boot_t **boot_p)
{
    hce_boot_meeting_t meeting = {.name = "env",
                                  .deadline = params->deadline,
                                  .silence_ns = params->silence_ns};
    env_t env = {.num_hosts = ADDRS_MAX};
    hce_status_t status = env_get(&env, why);

    if (status != HCE_OK)
        return status;
    meeting.rank = (int)env.rank;
    meeting.size = (int)env.size;
    job_fill(&env,
             atomic_fetch_add_explicit(&env_count, 1, memory_order_relaxed),
             &meeting);
    status = hce_boot_net_resolve(env.host, env.hosts, &env.num_hosts,
                                  why->text, sizeof(why->text));
    if (status != HCE_OK)
        return status;
    return env_meet(&env, &meeting, why, boot_p);
}
