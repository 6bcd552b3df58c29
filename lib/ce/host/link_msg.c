/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Packets of the node link.
 */
#include <config.h>

#include "ce/host/link_msg.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LINK_MAGIC   0x6863652d6c696e6bull /* "hce-link" */
#define LINK_VERSION 1u

typedef union control {
    struct cmsghdr align;
    char space[CMSG_SPACE(HCE_CE_PARCEL_FDS * sizeof(int))];
} control_t;

void hce_ce_link_msg_fill(hce_ce_link_msg_t *msg, const uint8_t *secret,
                          const hce_ce_exchange_t *exchange)
{
    *msg = (hce_ce_link_msg_t){.magic = LINK_MAGIC,
                               .version = LINK_VERSION,
                               .kind = exchange->kind,
                               .value = exchange->value};
    memcpy(msg->secret, secret, sizeof(msg->secret));
}

bool hce_ce_link_msg_is_valid(const hce_ce_link_msg_t *msg,
                              const uint8_t *secret,
                              const hce_ce_exchange_t *exchange)
{
    uint8_t differ = 0; /* in constant time: no guessing byte by byte */
    int i;

    for (i = 0; i < HCE_CE_LINK_SECRET_LEN; i++)
        differ |= msg->secret[i] ^ secret[i];
    return differ == 0 && msg->magic == LINK_MAGIC &&
           msg->version == LINK_VERSION && msg->kind == exchange->kind &&
           msg->value == exchange->value;
}

hce_status_t hce_ce_link_msg_send(int fd, hce_ce_link_msg_t *msg,
                                  const hce_ce_parcel_t *parcel)
{
    size_t fds_len = (size_t)parcel->num_fds * sizeof(int);
    struct iovec iov = {msg, sizeof(*msg)};
    struct msghdr hdr = {.msg_iov = &iov, .msg_iovlen = 1};
    control_t control;
    struct cmsghdr *cmsg;

    msg->num_fds = (uint32_t)parcel->num_fds;
    if (parcel->num_fds > 0) {
        memset(&control, 0, sizeof(control));
        hdr.msg_control = &control;
        hdr.msg_controllen = CMSG_SPACE(fds_len);
        cmsg = CMSG_FIRSTHDR(&hdr);
        cmsg->cmsg_level = SOL_SOCKET;
        cmsg->cmsg_type = SCM_RIGHTS;
        cmsg->cmsg_len = CMSG_LEN(fds_len);
        memcpy(CMSG_DATA(cmsg), parcel->fds, fds_len);
    }
    if (sendmsg(fd, &hdr, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof(*msg))
        return HCE_OK;
    /* ETOOMANYREFS: more descriptors of this user are in flight than one
     * process may open; others are receiving theirs. */
    if (errno == EAGAIN || errno == EINTR || errno == ETOOMANYREFS ||
        errno == ENOBUFS)
        return HCE_INPROGRESS;
    return HCE_ERR_SYSTEM;
}

/* Takes what descriptors there are; false if there are more than fit. */
static bool fds_take(struct msghdr *hdr, hce_ce_parcel_t *parcel)
{
    struct cmsghdr *cmsg;
    size_t len;

    for (cmsg = CMSG_FIRSTHDR(hdr); cmsg != NULL;
         cmsg = CMSG_NXTHDR(hdr, cmsg)) {
        if (cmsg->cmsg_level != SOL_SOCKET || cmsg->cmsg_type != SCM_RIGHTS)
            continue;
        len = cmsg->cmsg_len - CMSG_LEN(0);
        if (len > sizeof(parcel->fds))
            return false; /* the space does not allow it */
        memcpy(parcel->fds, CMSG_DATA(cmsg), len);
        parcel->num_fds = (int)(len / sizeof(int));
    }
    return (hdr->msg_flags & MSG_CTRUNC) == 0;
}

hce_status_t hce_ce_link_msg_recv(int fd, hce_ce_link_msg_t *msg,
                                  hce_ce_parcel_t *parcel)
{
    control_t control;
    struct iovec iov = {msg, sizeof(*msg)};
    struct msghdr hdr = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = &control,
                         .msg_controllen = sizeof(control)};
    ssize_t len;

    len = recvmsg(fd, &hdr, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (len < 0 && (errno == EAGAIN || errno == EINTR))
        return HCE_INPROGRESS;
    if (len <= 0)
        return HCE_ERR_GONE;
    *parcel = (hce_ce_parcel_t){0};
    if (!fds_take(&hdr, parcel) || len != sizeof(*msg) ||
        (hdr.msg_flags & MSG_TRUNC) != 0 ||
        msg->num_fds != (uint32_t)parcel->num_fds) {
        hce_ce_parcel_close(parcel);
        return HCE_ERR_INTERNAL;
    }
    return HCE_OK;
}
