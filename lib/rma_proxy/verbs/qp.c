/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Verbs transport: queue pairs and their states.
 */
#include "config.h"

#include "rma_proxy/verbs/verbs.h"

#include "rma_proxy/settings.h"
#include "util/log.h"
#include "util/math.h"

#include <errno.h>
#include <string.h>

#define QP_INLINE    64
#define QP_RNR_TIMER 1 /* 0.01 ms: the target is only late in its refill */
#define QP_RNR_RETRY 7 /* for ever: a target that looks away is no error */
#define QP_HOP_LIMIT 64

static struct ibv_qp *create(verbs_t *verbs, verbs_device_t *device,
                             uint32_t *inline_p)
{
    struct ibv_qp_init_attr attr = {
        .send_cq = device->send_cq,
        .recv_cq = device->recv_cq,
        .srq = device->srq,
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = verbs->queue,
                .max_send_sge = 1,
                .max_inline_data = *inline_p},
    };
    struct ibv_qp *qp = ibv_create_qp(device->pd, &attr);

    if (qp != NULL)
        *inline_p = attr.cap.max_inline_data;
    return qp;
}

static int to_init(struct ibv_qp *qp, const verbs_device_t *device)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
                               .port_num = device->port,
                               .qp_access_flags = IBV_ACCESS_LOCAL_WRITE |
                                                  IBV_ACCESS_REMOTE_WRITE};

    return ibv_modify_qp(qp, &attr,
                         IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                             IBV_QP_ACCESS_FLAGS);
}

hce_status_t hce_verbs_qp_create(verbs_t *verbs, verbs_device_t *device,
                                 verbs_qp_made_t *made_p)
{
    const char *what = "ibv_create_qp";
    verbs_qp_made_t made = {.inline_len = QP_INLINE};
    int rc = 0;

    made.qp = create(verbs, device, &made.inline_len);
    if (made.qp == NULL && errno == EINVAL) {
        made.inline_len = 0; /* a device that knows no inline data */
        made.qp = create(verbs, device, &made.inline_len);
    }
    if (made.qp == NULL)
        goto err;
    what = "ibv_modify_qp to INIT";
    rc = to_init(made.qp, device);
    if (rc != 0)
        goto err_destroy;
    made.psn = (uint32_t)hce_rand_next(&verbs->seed) & 0xffffff;
    *made_p = made;
    return HCE_OK;

err_destroy:
    (void)ibv_destroy_qp(made.qp);
err:
    hce_log(DEBUG, PROXY, "verbs: %s port %u: %s: %s", device->name,
            device->port, what, strerror(rc != 0 ? rc : errno));
    return HCE_ERR_TRANSPORT;
}

static struct ibv_ah_attr route(const verbs_device_t *device,
                                const verbs_port_t *port)
{
    const verbs_port_t *mine = &device->address;
    struct ibv_ah_attr ah = {.dlid = port->lid, .port_num = device->port};

    /* Between subnets of InfiniBand, and always on RoCE. */
    ah.is_global = mine->is_roce || memcmp(mine->gid, port->gid, 8) != 0 ||
                   hce_proxy_settings.verbs_gid_index >= 0;
    ah.grh.sgid_index = (uint8_t)device->gid_index;
    ah.grh.hop_limit = QP_HOP_LIMIT;
    ah.grh.traffic_class = (uint8_t)hce_proxy_settings.verbs_traffic_class;
    memcpy(ah.grh.dgid.raw, port->gid, sizeof(port->gid));
    return ah;
}

static int to_receive(const verbs_device_t *device, struct ibv_qp *qp,
                      const verbs_port_t *port)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = (enum ibv_mtu)hce_min(device->address.mtu, port->mtu),
        .dest_qp_num = port->qpn,
        .rq_psn = port->psn,
        .min_rnr_timer = QP_RNR_TIMER,
        .ah_attr = route(device, port),
    };

    return ibv_modify_qp(qp, &attr,
                         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
                             IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                             IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

static int to_send(struct ibv_qp *qp, uint32_t psn)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTS,
        .timeout = (uint8_t)hce_proxy_settings.verbs_timeout,
        .retry_cnt = (uint8_t)hce_proxy_settings.verbs_retry,
        .rnr_retry = QP_RNR_RETRY,
        .sq_psn = psn,
    };

    return ibv_modify_qp(qp, &attr,
                         IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                             IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                             IBV_QP_MAX_QP_RD_ATOMIC);
}

hce_status_t hce_verbs_qp_connect(verbs_device_t *device,
                                  const verbs_qp_made_t *made,
                                  const verbs_port_t *port, bool is_writer)
{
    int rc = to_receive(device, made->qp, port);

    if (rc == 0 && is_writer)
        rc = to_send(made->qp, made->psn);
    if (rc == 0)
        return HCE_OK;
    hce_log(DEBUG, PROXY, "verbs: %s port %u: ibv_modify_qp: %s", device->name,
            device->port, strerror(rc));
    return HCE_ERR_TRANSPORT;
}

/* RESET first: from its return on the device neither writes nor reads for
 * this queue pair, whatever destroying leaves to be done later. */
void hce_verbs_qp_destroy(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
    uint32_t num = qp->qp_num;

    if (ibv_modify_qp(qp, &attr, IBV_QP_STATE) != 0)
        hce_log(DEBUG, PROXY, "verbs: queue pair %u: no RESET: %m", num);
    if (ibv_destroy_qp(qp) != 0)
        hce_log(WARN, PROXY, "verbs: ibv_destroy_qp %u: %m", num);
}
