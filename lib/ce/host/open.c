/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Opening and closing a copy engine. Open is two rounds over boot: hello
 * (who is in which process, where it listens), then, after links and probes,
 * a verdict: all ranks open or all fail, and all know why.
 */
#include <config.h>

#include "ce/host/host.h"

#include "ce/host/copy.h"
#include "util/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef struct hello {
    hce_ce_mem_id_t seg; /* its token names the process */
    uint8_t name[HCE_CE_LINK_NAME_LEN];
    uint64_t seg_addr;
    uint64_t pid_ns; /* inode of its pid namespace; 0: unknown */
    uint32_t num_counters;
    int32_t pid; /* in its own namespace */
    int32_t status;
    uint32_t reserved;
} hello_t;

static int pidfd_open_syscall(pid_t pid)
{
#ifdef SYS_pidfd_open
    return (int)syscall(SYS_pidfd_open, pid, 0); /* CLOEXEC by itself */
#else
    errno = ENOSYS;
    return -1;
#endif
}

static uint64_t pid_namespace(void)
{
    struct stat st;

    return stat("/proc/self/ns/pid", &st) == 0 ? (uint64_t)st.st_ino : 0;
}

static hce_status_t ce_create(const hce_ce_params_t *params, hce_ce_t **ce_p)
{
    const hce_layout_t *layout = params->layout;
    int node = layout->node[params->rank], l;
    hce_ce_peer_t *peer;
    hce_ce_t *ce;

    ce = calloc(1, sizeof(*ce));
    if (ce == NULL)
        goto err;
    ce->boot = params->boot;
    ce->rank = params->rank;
    ce->lrank = layout->lrank[params->rank];
    ce->num_lranks = layout->node_size[node];
    ce->num_counters = params->num_counters;
    ce->deadline = params->deadline;
    ce->link.listener = -1;
    ce->peers = calloc((size_t)ce->num_lranks, sizeof(*ce->peers));
    ce->ring_ends = calloc((size_t)ce->num_lranks, sizeof(*ce->ring_ends));
    if (ce->peers == NULL || ce->ring_ends == NULL)
        goto err_free;
    for (l = 0; l < ce->num_lranks; l++) {
        peer = &ce->peers[l];
        ce->ring_ends[l] = &peer->tx;
        peer->rank = hce_layout_rank(layout, node, l);
        peer->link = peer->pidfd = -1;
    }
    pthread_mutex_init(&ce->lock, NULL);
    *ce_p = ce;
    return HCE_OK;

err_free:
    free(ce->ring_ends);
    free(ce->peers);
    free(ce);
err:
    hce_log(ERROR, CE, "no memory for a copy engine");
    return HCE_ERR_NO_MEMORY;
}

/* What needs no other rank. */
static hce_status_t ce_prepare(hce_ce_t *ce, int doorbell, hello_t *hello)
{
    hce_ce_seg_shape_t shape = {ce->num_lranks, ce->num_counters};
    hce_status_t status;

    hello->num_counters = ce->num_counters;
    hello->pid = (int32_t)getpid();
    hello->pid_ns = pid_namespace();
    status = hce_ce_loops_init();
    if (status == HCE_OK)
        status = hce_ce_seg_create(&shape, ce->rank, doorbell, &ce->seg);
    if (status == HCE_OK)
        status =
            hce_ce_outbox_init(&ce->outbox, ce->seg->outbox, ce->num_lranks);
    if (status == HCE_OK && ce->num_lranks > 1)
        status = hce_ce_link_listen(ce);
    if (status != HCE_OK)
        return status;
    hello->seg = ce->seg->head->id;
    hello->seg_addr = (uint64_t)(uintptr_t)ce->seg->head;
    memcpy(hello->name, ce->link.name, sizeof(hello->name));
    return HCE_OK;
}

/* All see the same hellos, so all stop here or none does. */
static hce_status_t hellos_check(const hce_ce_t *ce,
                                 const hce_layout_t *layout,
                                 const hello_t *hellos)
{
    int rank, first;

    for (rank = 0; rank < layout->nranks; rank++) {
        if (hellos[rank].status != HCE_OK) {
            if (rank != ce->rank)
                hce_log(ERROR, CE, "rank %d cannot open its copy engine: %s",
                        rank,
                        hce_status_string((hce_status_t)hellos[rank].status));
            return (hce_status_t)hellos[rank].status;
        }
        first = hce_layout_rank(layout, layout->node[rank], 0);
        if (hellos[rank].num_counters != hellos[first].num_counters) {
            hce_log(ERROR, CE, "rank %d has %u counters, but rank %d has %u",
                    rank, hellos[rank].num_counters, first,
                    hellos[first].num_counters);
            return HCE_ERR_MISMATCH;
        }
    }
    return HCE_OK;
}

/* Watched from the start where possible, so that the end of a process is
 * seen while its link is still missing; replaced by what it passes. */
static void peers_init(hce_ce_t *ce, const hello_t *hellos)
{
    const hello_t *mine = &hellos[ce->rank], *its;
    hce_ce_peer_t *peer;
    int l;

    for (l = 0; l < ce->num_lranks; l++) {
        peer = &ce->peers[l];
        its = &hellos[peer->rank];
        peer->seg_addr = its->seg_addr;
        peer->is_local = memcmp(its->seg.token, mine->seg.token,
                                sizeof(its->seg.token)) == 0;
        if (peer->is_local)
            peer->pid = getpid();
        else if (its->pid_ns == mine->pid_ns && its->pid_ns != 0)
            peer->pidfd = pidfd_open_syscall(its->pid);
    }
}

static hce_status_t peer_attach(hce_ce_t *ce, int lrank, const hello_t *hello,
                                hce_ce_parcel_t *parcel)
{
    hce_ce_peer_t *peer = &ce->peers[lrank];
    hce_ce_seg_ticket_t ticket = {.id = hello->seg,
                                  .rank = peer->rank,
                                  .fd = parcel->fds[0],
                                  .doorbell = parcel->fds[1]};
    socklen_t len = sizeof(struct ucred);
    struct ucred cred;
    hce_status_t status;

    if (parcel->num_fds < 2)
        return hce_ce_fail(ce, HCE_ERR_INTERNAL, "rank %d passed no segment",
                           peer->rank);
    status = hce_ce_seg_attach(&ticket, &ce->seg->shape, &peer->seg);
    if (status != HCE_OK)
        return hce_ce_fail(ce, status,
                           "rank %d cannot map the segment of rank %d",
                           ce->rank, peer->rank);
    if (peer->pidfd >= 0)
        close(peer->pidfd);
    peer->pidfd = parcel->num_fds > 2 ? parcel->fds[2] : -1;
    parcel->num_fds = 0; /* all taken over */
    /* As the kernel translates it into this process' pid namespace. */
    if (getsockopt(peer->link, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0)
        peer->pid = cred.pid;
    return HCE_OK;
}

static hce_status_t peers_attach(hce_ce_t *ce, const hello_t *hellos,
                                 hce_ce_parcel_t *in)
{
    hce_status_t status = HCE_OK;
    hce_ce_peer_t *peer;
    int l;

    for (l = 0; l < ce->num_lranks && status == HCE_OK; l++) {
        peer = &ce->peers[l];
        if (!peer->is_local)
            status = peer_attach(ce, l, &hellos[peer->rank], &in[l]);
        else if ((peer->seg = hce_ce_seg_get(&hellos[peer->rank].seg)) == NULL)
            status = hce_ce_fail(ce, HCE_ERR_GONE,
                                 "rank %d has closed its segment", peer->rank);
        if (status != HCE_OK)
            break;
        hce_ce_seg_ring(peer->seg, ce->lrank, &peer->tx);
        hce_ce_seg_ring(ce->seg, l, &peer->rx);
    }
    return status;
}

/* After a failure: peers that wait for this rank see it at once. */
static void links_close(hce_ce_t *ce)
{
    int l;

    hce_ce_link_unlisten(ce);
    for (l = 0; l < ce->num_lranks; l++) {
        if (ce->peers[l].link >= 0)
            close(ce->peers[l].link);
        ce->peers[l].link = -1;
    }
}

/* Links, segments, probes. */
static hce_status_t ce_connect(hce_ce_t *ce, const hello_t *hellos)
{
    size_t num = (size_t)ce->num_lranks;
    hce_ce_parcel_t *in = calloc(num, sizeof(*in));
    hce_ce_parcel_t *out = calloc(num, sizeof(*out));
    uint8_t(*names)[HCE_CE_LINK_NAME_LEN] = calloc(num, sizeof(*names));
    int pidfd = pidfd_open_syscall(getpid()), l;
    hce_ce_exchange_t exchange = {.kind = HCE_CE_LINK_HELLO,
                                  .deadline = ce->deadline,
                                  .in = in,
                                  .out = out};
    hce_status_t status = HCE_OK;

    if (in == NULL || out == NULL || names == NULL) {
        status = hce_ce_fail(ce, HCE_ERR_NO_MEMORY,
                             "rank %d has no memory for links", ce->rank);
        goto err;
    }
    peers_init(ce, hellos);
    for (l = 0; l < ce->num_lranks; l++) {
        memcpy(names[l], hellos[ce->peers[l].rank].name, sizeof(*names));
        if (ce->peers[l].is_local)
            continue;
        in[l].is_due = true;
        out[l] = (hce_ce_parcel_t){
            .is_due = true,
            .num_fds = pidfd >= 0 ? 3 : 2,
            .fds = {ce->seg->shm.fd, ce->seg->doorbell, pidfd}};
    }
    status = hce_ce_link_connect(ce, &exchange, names);
    if (status == HCE_OK)
        status = peers_attach(ce, hellos, in);
    for (l = 0; l < ce->num_lranks && status == HCE_OK; l++)
        status = hce_ce_probe_peer(ce, l);
    for (l = 0; l < ce->num_lranks; l++)
        hce_ce_parcel_close(&in[l]);
    if (status != HCE_OK)
        links_close(ce);
err:
    if (pidfd >= 0)
        close(pidfd);
    free(names);
    free(out);
    free(in);
    return status;
}

static hce_status_t ce_join(hce_ce_t *ce, const hce_ce_params_t *params)
{
    const hce_layout_t *layout = params->layout;
    hello_t hello = {0}, *hellos;
    hce_status_t status;
    int l;

    hello.status = ce_prepare(ce, params->doorbell, &hello);
    hellos = calloc((size_t)layout->nranks, sizeof(*hellos));
    if (hellos == NULL) {
        hce_log(ERROR, CE, "no memory for %d hellos", layout->nranks);
        return HCE_ERR_NO_MEMORY;
    }
    status = hce_boot_allgather(ce->boot, &hello, sizeof(hello), hellos,
                                ce->deadline);
    if (status == HCE_OK)
        status = hellos_check(ce, layout, hellos);
    /* Nobody closes anything before all agree, so what peers of this process
     * look up is still there. */
    if (status == HCE_OK)
        status = hce_ce_agree(ce, ce_connect(ce, hellos), ce->deadline,
                              "open its copy engine");
    for (l = 0; l < ce->num_lranks && status == HCE_OK; l++)
        ce->peers[l].stages = hce_ce_ring_is_used(&ce->peers[l].rx);
    free(hellos);
    hce_ce_link_unlisten(ce); /* all links stand */
    return status;
}

hce_status_t hce_ce_open(const hce_ce_params_t *params, hce_ce_t **ce_p)
{
    hce_status_t status;
    hce_ce_t *ce;

    status = ce_create(params, &ce);
    if (status != HCE_OK)
        return status;
    status = ce_join(ce, params);
    if (status != HCE_OK) {
        hce_ce_close(ce);
        return status;
    }
    *ce_p = ce;
    return HCE_OK;
}

void hce_ce_close(hce_ce_t *ce)
{
    hce_ce_peer_t *peer;
    int l;

    hce_ce_windows_cleanup(ce);
    links_close(ce);
    for (l = 0; l < ce->num_lranks; l++) {
        peer = &ce->peers[l];
        if (peer->pidfd >= 0)
            close(peer->pidfd);
        if (peer->seg != NULL)
            hce_ce_seg_put(peer->seg);
    }
    if (ce->seg != NULL)
        hce_ce_seg_put(ce->seg);
    pthread_mutex_destroy(&ce->lock);
    hce_ce_outbox_cleanup(&ce->outbox);
    free(ce->ranges);
    free(ce->ring_ends);
    free(ce->peers);
    free(ce);
}

static void fd_forget(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* Only descriptors, and the child's own copy of where they are noted. */
void hce_ce_forked(hce_ce_t *ce)
{
    hce_ce_peer_t *peer;
    int l;

    for (l = 0; l < ce->num_lranks; l++) {
        peer = &ce->peers[l];
        fd_forget(&peer->link);
        fd_forget(&peer->pidfd);
        if (peer->seg != NULL)
            fd_forget(&peer->seg->doorbell);
    }
    fd_forget(&ce->link.listener);
    fd_forget(&ce->seg->doorbell);
    fd_forget(&ce->seg->shm.fd);
}
