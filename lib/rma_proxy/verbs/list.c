/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Verbs transport: which RDMA ports this machine has, and which of them a
 * rank uses. Any thread; nothing is kept open.
 */
#include "config.h"

#include "rma_proxy/verbs/verbs.h"

#include "rma_proxy/settings.h"
#include "util/log.h"
#include "util/math.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIST_PORTS 64

/* What is said of a port. */
typedef struct list_port {
    verbs_choice_t id;
    bool is_active;
    bool is_far; /* from the CPU that asks */
    struct ibv_port_attr attr;
    int gid_index;
    uint8_t gid[16];
} list_port_t;

/* -1: not known, or there is but one. */
static int numa_node(const char *path)
{
    FILE *file = fopen(path, "re");
    int node = -1;

    if (file == NULL)
        return -1;
    if (fscanf(file, "%d", &node) != 1)
        node = -1;
    fclose(file);
    return node;
}

static bool is_far(const char *device)
{
    unsigned int cpu, node;
    char path[160];
    int other;

    snprintf(path, sizeof(path), "/sys/class/infiniband/%s/device/numa_node",
             device);
    other = numa_node(path);
    return other >= 0 && getcpu(&cpu, &node) == 0 && (int)node != other;
}

static void port_fill(list_port_t *list, struct ibv_context *context)
{
    bool is_roce = list->attr.link_layer == IBV_LINK_LAYER_ETHERNET;
    union ibv_gid gid = {.raw = {0}};

    list->is_active = list->attr.state == IBV_PORT_ACTIVE;
    list->gid_index = hce_verbs_gid_choose(context, list->id.port, is_roce);
    (void)ibv_query_gid(context, list->id.port, list->gid_index, &gid);
    memcpy(list->gid, gid.raw, sizeof(list->gid));
}

static int device_list(struct ibv_device *device, list_port_t *ports, int max)
{
    struct ibv_context *context = ibv_open_device(device);
    struct ibv_device_attr attr;
    int num = 0;

    if (context == NULL)
        return 0;
    if (ibv_query_device(context, &attr) != 0)
        attr.phys_port_cnt = 0;
    for (int i = 1; i <= attr.phys_port_cnt && num < max; i++) {
        list_port_t *port = &ports[num];

        memset(port, 0, sizeof(*port));
        snprintf(port->id.name, sizeof(port->id.name), "%s",
                 ibv_get_device_name(device));
        port->id.port = (uint8_t)i;
        if (ibv_query_port(context, port->id.port, &port->attr) != 0)
            continue;
        port->is_far = is_far(port->id.name);
        port_fill(port, context);
        num++;
    }
    (void)ibv_close_device(context);
    return num;
}

/* Of all devices; malloc'd. */
static int ports_list(list_port_t **ports_p)
{
    list_port_t *ports = calloc(LIST_PORTS, sizeof(*ports));
    struct ibv_device **devices = NULL;
    int num_devices = 0, num = 0;

    if (ports != NULL)
        devices = ibv_get_device_list(&num_devices);
    if (devices == NULL) {
        free(ports);
        *ports_p = NULL;
        return 0;
    }
    for (int i = 0; i < num_devices; i++)
        num += device_list(devices[i], ports + num, LIST_PORTS - num);
    ibv_free_device_list(devices);
    *ports_p = ports;
    return num;
}

const char *hce_verbs_unusable(void)
{
    list_port_t *ports;
    int num = ports_list(&ports), active = 0;

    for (int i = 0; i < num; i++)
        active += ports[i].is_active;
    free(ports);
    if (num == 0)
        return "there is no RDMA device";
    return active > 0 ? NULL : "no port of an RDMA device is active";
}

/* Mbit/s; codes of the InfiniBand specification, per lane. */
static unsigned int lane_mbit(uint8_t speed)
{
    static const struct {
        uint8_t code;
        unsigned int mbit;
    } speeds[] = {{1, 2500},   {2, 5000},   {4, 10000},  {8, 10000},
                  {16, 14000}, {32, 25000}, {64, 50000}, {128, 100000}};

    for (size_t i = 0; i < sizeof(speeds) / sizeof(speeds[0]); i++) {
        if (speeds[i].code == speed)
            return speeds[i].mbit;
    }
    return 0;
}

static unsigned int num_lanes(uint8_t width)
{
    return width == 16 ? 2 : width == 1 ? 1 : width * 2u;
}

static void port_text(const list_port_t *port, char *buf, size_t size)
{
    char gid[64];

    snprintf(buf, size, "%s port %u: %s, %s, %u Gbit/s, GID %d %s",
             port->id.name, port->id.port,
             ibv_port_state_str(port->attr.state),
             port->attr.link_layer == IBV_LINK_LAYER_ETHERNET ? "RoCE"
                                                              : "InfiniBand",
             lane_mbit(port->attr.active_speed) *
                 num_lanes(port->attr.active_width) / 1000,
             port->gid_index, hce_verbs_gid_text(port->gid, gid, sizeof(gid)));
}

bool hce_verbs_device_describe(int index, char *buf, size_t size)
{
    list_port_t *ports;
    int num = ports_list(&ports);

    if (index < num)
        port_text(&ports[index], buf, size);
    free(ports);
    return index < num;
}

void hce_verbs_describe(char *buf, size_t size)
{
    list_port_t *ports;
    int num = ports_list(&ports);
    size_t len;

    snprintf(buf, size, "RDMA ports");
    for (int i = 0; i < num; i++) {
        len = strlen(buf);
        snprintf(buf + len, size - len, " %s:%u%s", ports[i].id.name,
                 ports[i].id.port, ports[i].is_active ? "" : " (not active)");
    }
    free(ports);
}

/* "mlx5_0" or "mlx5_0:1" */
static const list_port_t *find(const list_port_t *ports, int num,
                               const char *name)
{
    const char *colon = strchr(name, ':');
    size_t len = colon != NULL ? (size_t)(colon - name) : strlen(name);
    int port = colon != NULL ? atoi(colon + 1) : 1;

    for (int i = 0; i < num; i++) {
        if (strncmp(ports[i].id.name, name, len) == 0 &&
            ports[i].id.name[len] == '\0' && ports[i].id.port == port)
            return &ports[i];
    }
    return NULL;
}

static hce_status_t choose_named(const list_port_t *ports, int num,
                                 verbs_choice_t choices[VERBS_DEVICES],
                                 int *num_p)
{
    char *text = strdup(hce_proxy_settings.verbs_devices), *save, *name;
    hce_status_t status = text != NULL ? HCE_OK : HCE_ERR_NO_MEMORY;
    int chosen = 0;

    for (name = text != NULL ? strtok_r(text, ",", &save) : NULL;
         name != NULL && status == HCE_OK; name = strtok_r(NULL, ",", &save)) {
        const list_port_t *port = find(ports, num, name);

        if (port == NULL || chosen == VERBS_DEVICES) {
            hce_log(ERROR, PROXY, "HCE_VERBS_DEVICES=\"%s\": %s \"%s\"",
                    hce_proxy_settings.verbs_devices,
                    port == NULL ? "there is no port"
                                 : "at most 4 are used, too many is",
                    name);
            status = HCE_ERR_CONFIG;
            break;
        }
        choices[chosen++] = port->id;
    }
    free(text);
    *num_p = chosen;
    return status == HCE_OK && chosen == 0 ? HCE_ERR_CONFIG : status;
}

static int choose_closest(const list_port_t *ports, int num,
                          verbs_choice_t choices[VERBS_DEVICES])
{
    int chosen = 0;

    for (int far = 0; far <= 1 && chosen == 0; far++) {
        for (int i = 0; i < num && chosen < VERBS_DEVICES; i++) {
            if (ports[i].is_active && ports[i].is_far == far)
                choices[chosen++] = ports[i].id;
        }
    }
    return chosen;
}

hce_status_t hce_verbs_choose(verbs_choice_t choices[VERBS_DEVICES],
                              int *num_p)
{
    list_port_t *ports;
    int num = ports_list(&ports);
    hce_status_t status = HCE_OK;

    *num_p = 0;
    if (hce_proxy_settings.verbs_devices != NULL) {
        status = choose_named(ports, num, choices, num_p);
    } else {
        *num_p = choose_closest(ports, num, choices);
        if (*num_p == 0) {
            hce_log(ERROR, PROXY,
                    "verbs: no port of an RDMA device is active");
            status = HCE_ERR_TRANSPORT;
        }
    }
    free(ports);
    return status;
}
